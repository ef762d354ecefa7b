//go:build agents

package acp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/acp"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// These tests run real agents, against a model on the loopback that plays a script:
//
//	go test -tags agents -run TestReal -count 1 ./agent/acp
//
// AGENTS names those to run (opencode,gemini,codex-acp); STINT_AGENTS_DIR is where npm has put
// them, each in a folder of its name (${XDG_CACHE_HOME:-~/.cache}/stint-agents).

// scripted is the model: OpenAI Chat Completions for opencode, Responses for codex, Gemini
// for gemini. It
// calls a shell for each prompt, and then says that it is done.
type scripted struct {
	t       *testing.T
	server  *httptest.Server
	command string

	mu       sync.Mutex
	requests []string // bodies
}

func newScripted(t *testing.T, command string) *scripted {
	t.Helper()
	m := &scripted{t: t, command: command}
	m.server = httptest.NewServer(m)
	t.Cleanup(m.server.Close)
	return m
}

// last is the newest request that has tools, which is one of the session's.
func (m *scripted) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(m.requests) - 1; i >= 0; i-- {
		if strings.Contains(m.requests[i], `"tools"`) {
			return m.requests[i]
		}
	}
	return ""
}

// question is what a request has, in any of the three shapes.
type question struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Messages []json.RawMessage `json:"messages"`
	Contents []json.RawMessage `json:"contents"`
	Input    []json.RawMessage `json:"input"`
	Tools    json.RawMessage   `json:"tools"`
	Config   json.RawMessage   `json:"generationConfig"`
}

// calls reports whether the model is to call its tool: nothing came after the newest
// prompt, and that does not say that the call was made or refused.
func (q question) calls() bool {
	items := slices.Concat(q.Input, q.Messages, q.Contents)
	for i := len(items) - 1; i >= 0; i-- {
		s := string(items[i])
		var it struct{ Type, Role string }
		_ = json.Unmarshal(items[i], &it)
		switch {
		case it.Role == "tool", strings.HasSuffix(it.Type, "_call_output"), strings.Contains(s, `"functionResponse"`):
			return false
		case it.Role == "user":
			return !strings.Contains(s, "You were interrupted") || strings.Contains(s, "You were given permission")
		}
	}
	return false
}

func (q question) has(tool string) bool { return strings.Contains(string(q.Tools), `"`+tool+`"`) }

func (m *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var q question
	_ = json.Unmarshal(body, &q)
	m.mu.Lock()
	m.requests = append(m.requests, string(body))
	n := len(m.requests)
	m.mu.Unlock()
	switch path := r.URL.Path; {
	case r.Header.Get("Upgrade") != "":
		w.WriteHeader(http.StatusUpgradeRequired)
	case strings.HasSuffix(path, "/models"):
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"scripted","object":"model","created":1,"owned_by":"loop"}],"models":[]}`)
	case strings.HasSuffix(path, "/responses"):
		m.responses(w, q, n)
	case strings.HasSuffix(path, "/chat/completions"):
		m.chat(w, q, n)
	case strings.Contains(path, ":countTokens"):
		_, _ = io.WriteString(w, `{"totalTokens":10}`)
	case strings.Contains(path, ":streamGenerateContent"), strings.Contains(path, ":generateContent"):
		m.gemini(w, r, q, n)
	default:
		http.NotFound(w, r)
	}
}

type object map[string]any

// send writes one event of a stream.
func send(w io.Writer, name string, data any) {
	b, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", b)
}

func (m *scripted) chat(w http.ResponseWriter, q question, n int) {
	delta, reason := object{"role": "assistant", "content": "All done."}, "stop"
	if q.calls() && q.has("bash") {
		b, err := json.Marshal(object{"command": m.command, "description": "works"})
		if err != nil {
			panic(err)
		}
		reason = "tool_calls"
		delta = object{"role": "assistant", "tool_calls": []object{{"index": 0, "id": fmt.Sprint("call_", n), "type": "function", "function": object{"name": "bash", "arguments": string(b)}}}}
	}
	usage := object{"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}
	base := func(choices ...object) object {
		return object{"id": fmt.Sprint("c", n), "object": "chat.completion.chunk", "created": 1, "model": q.Model, "choices": choices}
	}
	if !q.Stream {
		o := base(object{"index": 0, "message": delta, "finish_reason": reason})
		o["object"], o["usage"] = "chat.completion", usage
		if err := json.NewEncoder(w).Encode(o); err != nil {
			m.t.Error(err)
		}
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send(w, "", base(object{"index": 0, "delta": delta, "finish_reason": nil}))
	send(w, "", base(object{"index": 0, "delta": object{}, "finish_reason": reason}))
	last := base()
	last["choices"], last["usage"] = []any{}, usage
	send(w, "", last)
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func (m *scripted) responses(w http.ResponseWriter, q question, n int) {
	w.Header().Set("Content-Type", "text/event-stream")
	args := func(k string, v any) string {
		b, err := json.Marshal(object{k: v})
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	item := object{"type": "message", "id": fmt.Sprint("msg_", n), "role": "assistant", "status": "completed",
		"content": []object{{"type": "output_text", "text": "All done.", "annotations": []any{}}}}
	if q.calls() {
		item = object{"type": "function_call", "id": fmt.Sprint("fc_", n), "call_id": fmt.Sprint("call_", n), "status": "completed"}
		switch {
		case q.has("exec_command"):
			item["name"], item["arguments"] = "exec_command", args("cmd", m.command)
		case q.has("shell_command"):
			item["name"], item["arguments"] = "shell_command", args("command", m.command)
		default:
			item["name"], item["arguments"] = "shell", args("command", []string{"bash", "-c", m.command})
		}
	}
	id := fmt.Sprint("resp_", n)
	send(w, "response.created", object{"type": "response.created", "response": object{"id": id, "object": "response", "status": "in_progress", "output": []any{}}})
	send(w, "response.output_item.added", object{"type": "response.output_item.added", "output_index": 0, "item": item})
	send(w, "response.output_item.done", object{"type": "response.output_item.done", "output_index": 0, "item": item})
	send(w, "response.completed", object{"type": "response.completed", "response": object{"id": id, "object": "response", "status": "completed", "output": []any{item},
		"usage": object{"input_tokens": 100, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": 10, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 110}}})
}

func (m *scripted) gemini(w http.ResponseWriter, r *http.Request, q question, n int) {
	part := object{"text": "All done."}
	switch {
	case strings.Contains(string(q.Config), "Schema"):
		part["text"] = `{"reasoning":"x","next_speaker":"user","model_choice":"flash","complexity_reasoning":"x","complexity_score":1}`
	case q.calls() && q.has("run_shell_command"):
		part = object{"functionCall": object{"id": fmt.Sprint("fc", n), "name": "run_shell_command", "args": object{"command": m.command, "description": "works"}}}
	}
	answer := object{"candidates": []object{{"content": object{"role": "model", "parts": []object{part}}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": object{"promptTokenCount": 30, "candidatesTokenCount": 5, "totalTokenCount": 35}, "modelVersion": "scripted"}
	if strings.Contains(r.URL.Path, ":stream") {
		w.Header().Set("Content-Type", "text/event-stream")
		send(w, "", answer)
		return
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		m.t.Error(err)
	}
}

// real is an agent with a home of its own.
type real struct {
	name  string
	model *scripted
	work  string
	spec  acp.Spec
	mark  string // is in the command line of the tool that runs
}

// eachAgent runs a test for every agent that is asked for. The tool writes one line, and
// then sleeps if it is to hang.
func eachAgent(t *testing.T, hang bool, test func(t *testing.T, c *real)) {
	t.Helper()
	names := strings.FieldsFunc(os.Getenv("AGENTS"), func(r rune) bool { return r == ',' || r == ' ' })
	if len(names) == 0 {
		names = []string{"opencode", "gemini", "codex-acp"}
	}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			work := t.TempDir()
			c := &real{name: name, work: work, mark: fmt.Sprintf("9%d%07d", i, os.Getpid())}
			command := "echo paid >> " + work + "/effects; cat " + work + "/effects"
			if hang {
				command = "echo paid >> " + work + "/effects; sleep " + c.mark
			}
			c.model = newScripted(t, command)
			c.configure(t)
			test(t, c)
		})
	}
}

// configure writes the agent's own configuration, by which it asks before a command.
func (c *real) configure(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	base := os.Getenv("STINT_AGENTS_DIR")
	if base == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		base = filepath.Join(cache, "stint-agents")
	}
	program := filepath.Join(base, c.name, "node_modules", ".bin", c.name)
	if _, err := os.Stat(program); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "HTTP", c.model.server.URL)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"HOME": home}
	c.spec = acp.Spec{Dir: c.work, Env: env}
	switch c.name {
	case "opencode":
		write(filepath.Join(c.work, "opencode.json"), `{"autoupdate":false,"share":"disabled","model":"loop/scripted","small_model":"loop/scripted",
"permission":{"bash":"ask","edit":"ask"},"provider":{"loop":{"npm":"@ai-sdk/openai-compatible","name":"loop",
"options":{"baseURL":"HTTP/v1","apiKey":"x"},"models":{"scripted":{"name":"scripted","tool_call":true,"limit":{"context":100000,"output":4096}}}}}}`)
		for _, v := range []string{"CONFIG", "DATA", "STATE", "CACHE"} {
			env["XDG_"+v+"_HOME"] = filepath.Join(home, strings.ToLower(v))
		}
		env["OPENCODE_DISABLE_MODELS_FETCH"], env["OPENCODE_DISABLE_AUTOUPDATE"], env["OPENCODE_DISABLE_DEFAULT_PLUGINS"] = "1", "1", "1"
		c.spec.Command = []string{program, "acp"}
	case "gemini":
		write(filepath.Join(home, ".gemini", "settings.json"), `{"security":{"auth":{"selectedType":"gemini-api-key"}},
"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},"general":{"disableAutoUpdate":true,"enableAutoUpdate":false}}`)
		env["GEMINI_API_KEY"], env["GOOGLE_GEMINI_BASE_URL"], env["NO_BROWSER"] = "x", c.model.server.URL, "1"
		c.spec.Command = []string{program, "--experimental-acp", "--skip-trust", "-m", "scripted"}
	case "codex-acp":
		write(filepath.Join(home, "config.toml"), `model = "scripted"
model_provider = "loop"
approval_policy = "untrusted"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[feedback]
enabled = false
[model_providers.loop]
name = "loop"
base_url = "HTTP/v1"
wire_api = "responses"
env_key = "LOOP_KEY"
`)
		env["CODEX_HOME"], env["LOOP_KEY"], env["OPENAI_API_KEY"] = home, "x", "x"
		c.spec.Command = []string{program}
	default:
		t.Fatalf("there is no agent %q here", c.name)
	}
}

func (c *real) effects(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.work, "effects"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

// survivors are the processes that have a text in their command line.
func survivors(t *testing.T, text string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), text) {
			out = append(out, f+" "+strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return out
}

// Two turns in one session of the agent; the first call is permitted, the second not.
func TestRealTurns(t *testing.T) {
	eachAgent(t, false, func(t *testing.T, c *real) {
		c.spec.Interactive = true
		r := newRig(t, c.spec, 1)
		r.acp.Settle(time.Second)
		r.acp.Calm(time.Second)
		id, end := r.held("Pay the bill.")
		if got := c.effects(t); got != "" {
			t.Errorf("before the decision: %q", got)
		}
		a := r.asked(id)
		t.Logf("asked: %s: %s", a.Name, a.Text)
		r.decide(id, a, stint.ApprovalApproved, "")
		r.is(end(), stint.Waiting)
		has(t, "the journal", r.journal(id), "tool execute once", "paid", `"text":"All done.","last":true`)
		r.send(id, stint.Prompt, journal.Command{}, "Once more.")
		end = r.holds(id)
		r.decide(id, r.asked(id), stint.ApprovalDenied, "once is enough")
		r.is(end(), stint.Waiting)
		if got := c.effects(t); got != "paid\n" {
			t.Errorf("the effects are %q", got)
		}
		has(t, "the last question", c.model.last(), "Pay the bill.", "Once more.")
		t.Log(r.journal(id), r.session(id).Totals.Usage)
	})
}

// kill -9 of stint while a person thinks: nothing survives, the question stays, and what
// is decided then is for the call that the agent asks for again; it is done once.
func TestRealKilledWhileHeld(t *testing.T) {
	for _, state := range []stint.ApprovalState{stint.ApprovalApproved, stint.ApprovalDenied} {
		t.Run(string(state), func(t *testing.T) {
			eachAgent(t, false, func(t *testing.T, c *real) {
				path := filepath.Join(t.TempDir(), "stint.db")
				c.spec.Hold = 20 * time.Second
				r, id := crashOn(t, path, c.spec, func(r *rig, id stint.ID) bool { return r.session(id).Status == stint.Waiting })
				r.acp.Calm(time.Second)
				eventually(t, "gone: the agent", func() bool { return len(survivors(t, c.spec.Command[0])) == 0 })
				r.decide(id, r.asked(id), state, "")
				s := r.drive(t.Context(), id)
				if s.Status != stint.Stopped || state != stint.ApprovalDenied { // codex-acp ends its turn with a refusal
					r.is(s, stint.Completed)
				}
				want := map[stint.ApprovalState]string{stint.ApprovalApproved: "paid\n"}[state]
				if got := c.effects(t); got != want {
					t.Errorf("the effects are %q\n%s", got, r.journal(id))
				}
				if n := strings.Count(r.journal(id), "approval.requested"); n != 1 {
					t.Errorf("a person was asked %d times", n)
				}
				t.Log(r.journal(id))
			})
		})
	}
}

// A cancel in the middle of a call ends everything, within five seconds.
func TestRealCancel(t *testing.T) {
	eachAgent(t, true, func(t *testing.T, c *real) {
		c.spec.Approve = map[string]acp.Approve{"execute": acp.Never}
		r := newRig(t, c.spec, 1)
		r.acp.Settle(time.Second)
		r.acp.Calm(time.Second)
		s, err := r.engine.Start(t.Context(), engine.Request{Agent: r.agent, Name: "s", Input: []byte("Pay the bill."), Actor: "human:ana"})
		if err != nil {
			t.Fatal(err)
		}
		var at time.Time
		go func() {
			eventually(t, "in its call", func() bool { return c.effects(t) != "" })
			at = time.Now()
			r.send(s.ID, stint.Kill, journal.Command{}, "")
		}()
		r.is(r.drive(t.Context(), s.ID), stint.Canceled)
		if d := time.Since(at); d > 5*time.Second {
			t.Errorf("it took %v", d)
		}
		if left := append(survivors(t, c.mark), survivors(t, c.spec.Command[0])...); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// Where nobody is logged in, the error says how to.
func TestRealLogin(t *testing.T) {
	eachAgent(t, false, func(t *testing.T, c *real) {
		if c.name == "opencode" { // it asks for no login by itself; its provider does
			c.model.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"error":{"message":"Invalid API key","type":"invalid_request_error","code":"invalid_api_key"}}`)
			})
		}
		delete(c.spec.Env, "GEMINI_API_KEY")
		delete(c.spec.Env, "OPENAI_API_KEY")
		if c.name == "codex-acp" { // with its own provider, which wants one
			if err := os.Remove(filepath.Join(c.spec.Env["HOME"], "config.toml")); err != nil {
				t.Fatal(err)
			}
		}
		r := newRig(t, c.spec, 3)
		s := r.run(t.Context(), "Pay the bill.")
		r.is(s, stint.Failed)
		t.Log(s.Reason)
		has(t, "the journal", r.journal(s.ID), "nobody is logged in to "+c.name, "log in with  ", "the agent names: ")
	})
}

// A session that is loaded tells again what was, which is no step. Gemini finds one only
// when the minute is over in which its record was begun.
func TestRealLoad(t *testing.T) {
	eachAgent(t, false, func(t *testing.T, c *real) {
		c.spec.Interactive = true
		c.spec.Approve = map[string]acp.Approve{"execute": acp.Never}
		r := newRig(t, c.spec, 1)
		r.acp.Calm(time.Second)
		s := r.run(t.Context(), "Pay the bill.")
		r.is(s, stint.Waiting)
		if c.name == "gemini" {
			<-time.After(61 * time.Second)
		}
		r.send(s.ID, stint.Prompt, journal.Command{}, "Once more.")
		s = r.drive(t.Context(), s.ID)
		r.is(s, stint.Waiting)
		if n := r.steps(s.ID, stint.StepCompleted, "execute"); n != 2 || c.effects(t) != "paid\npaid\n" {
			t.Errorf("%d calls, effects %q\n%s", n, c.effects(t), r.journal(s.ID))
		}
		if strings.Contains(r.journal(s.ID), "begins anew") {
			t.Errorf("it was not loaded\n%s", r.journal(s.ID))
		}
	})
}
