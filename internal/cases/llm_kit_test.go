package cases_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint/model/modeltest"
)

// programs are what the tests start, built when the first of them needs one.
var programs struct {
	once sync.Once
	dir  string
	err  error
}

// stintPath is the real program.
func stintPath(t *testing.T) string {
	t.Helper()
	return built(t, "stint")
}

// toolPath is testdata/tool.
func toolPath(t *testing.T) string {
	t.Helper()
	return built(t, "tool")
}

func built(t *testing.T, name string) string {
	t.Helper()
	programs.once.Do(func() {
		if programs.dir, programs.err = os.MkdirTemp("", "stint-cases-"); programs.err == nil {
			programs.err = build(programs.dir)
		}
	})
	if programs.err != nil {
		t.Fatal(programs.err)
	}
	return filepath.Join(programs.dir, name)
}

// clean removes what was built.
func clean() {
	for _, dir := range []string{programs.dir, clocked.dir} {
		if dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
}

func build(to string) error {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return err
	}
	// The go command keeps the outcome of tests whose inputs stayed as they were. It knows
	// what they looked at, but not what a build that they started has read.
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go") && slices.Contains([]string{".go", ".sql", ".yaml", ".json", ".mod", ".sum"}, filepath.Ext(path)):
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-o", to+string(filepath.Separator), "./cmd/stint", "./internal/cases/testdata/tool")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, b)
	}
	return nil
}

// apis are the formats that models are spoken to in.
func apis() []string { return []string{"messages", "chat", "responses"} }

// site is a folder with a stint.yaml whose agent "case" is a model with tools. The model is
// a strict service in this process.
type site struct {
	t   *testing.T
	dir string
	api string
	srv *modeltest.Server
	env []string // added to that of every command
}

// agent is what the agent of a site has.
type agent struct {
	keys  string // further keys, a line each
	tools []toolSpec
	more  string // further entries of tools
}

// inFormats runs fn in each of the formats, side by side.
func inFormats(t *testing.T, fn func(t *testing.T, api string), formats ...string) {
	t.Helper()
	t.Parallel()
	if len(formats) == 0 {
		formats = apis()
	}
	for _, api := range formats {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			fn(t, api)
		})
	}
}

// llm makes a site. Every request that its service got must be valid in the end.
func llm(t *testing.T, api string, sc modeltest.Scenario, a agent) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), api: api, srv: modeltest.Serve(t, sc)}
	base := s.srv.URL
	if api != "messages" {
		base += "/v1"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "providers:\n  local: {api: %s, base_url: %q}\nagents:\n  case:\n    kind: llm\n    model: local/mock-1\n", api, base)
	for l := range strings.Lines(strings.TrimSpace(a.keys)) {
		fmt.Fprintf(&b, "    %s\n", strings.TrimRight(l, "\n"))
	}
	if len(a.tools) > 0 || a.more != "" {
		fmt.Fprintf(&b, "    tools:\n")
	}
	for _, one := range a.tools {
		b.WriteString(s.tool(one))
	}
	b.WriteString(a.more)
	s.write("stint.yaml", b.String())
	t.Cleanup(func() {
		for i, r := range s.srv.Requests() {
			if r.Why != "" {
				t.Errorf("request %d was not valid: %s\n%s", i+1, r.Why, clip(string(r.Body)))
			}
		}
	})
	return s
}

// steps is a scenario of steps, in JSON.
func steps(t *testing.T, text string) modeltest.Scenario {
	t.Helper()
	var sc modeltest.Scenario
	if err := json.Unmarshal([]byte(text), &sc); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return sc
}

// played is a scenario of those that every model is tested with.
func played(t *testing.T, name string) modeltest.Scenario {
	t.Helper()
	return modeltest.Load(t, filepath.Join("..", "..", "model", "modeltest", "testdata", "f", name+".scenario.json"))
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// command is a program in the site, not started.
func (s *site) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + os.TempDir(), "USER=tester"}, s.env...)
	return cmd
}

// under is a command of stint that was started.
type under struct {
	t         *testing.T
	cmd       *exec.Cmd
	out, talk bytes.Buffer // whole once done is closed
	done      chan struct{}
	took      time.Duration
}

// start starts stint.
func (s *site) start(args ...string) *under {
	s.t.Helper()
	u := &under{t: s.t, cmd: s.command(stintPath(s.t), args...), done: make(chan struct{})}
	u.cmd.Stderr = &u.talk
	u.launch()
	return u
}

// launch starts a command whose output goes to u.out. The test ends it, if nobody else does.
func (u *under) launch() {
	u.t.Helper()
	u.cmd.Stdout, u.cmd.WaitDelay = &u.out, 5*time.Second
	begun := time.Now()
	if err := u.cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	go func() {
		defer close(u.done)
		var exit *exec.ExitError
		if err := u.cmd.Wait(); err != nil && !errors.As(err, &exit) {
			fmt.Fprintln(&u.talk, err)
		}
		u.took = time.Since(begun)
	}()
	u.t.Cleanup(func() { u.kill() })
}

// kill ends stint as kill -9 does, and waits until it is gone.
func (u *under) kill() {
	_ = u.cmd.Process.Kill()
	<-u.done
}

// ends waits for the end of the command. A code of -1 is any.
func (u *under) ends(code int) string {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), 2*patience)
	defer cancel()
	select {
	case <-u.done:
	case <-ctx.Done():
		u.kill()
		u.t.Fatalf("it did not end: %s", u)
	}
	if got := u.cmd.ProcessState.ExitCode(); code >= 0 && got != code {
		u.t.Fatalf("want exit status %d: %s", code, u)
	}
	return u.out.String()
}

// ended reports whether the command has ended.
func (u *under) ended() bool {
	select {
	case <-u.done:
		return true
	default:
		return false
	}
}

func (u *under) String() string {
	return fmt.Sprintf("stint %s: %s after %v\n%s%s", strings.Join(u.cmd.Args[1:], " "), u.cmd.ProcessState, u.took.Round(time.Millisecond), clip(u.out.String()), clip(u.talk.String()))
}

func clip(s string) string {
	if len(s) > 4000 {
		return s[:2000] + "\n…\n" + s[len(s)-2000:]
	}
	return s
}

// must runs stint to its end, which is to be good.
func (s *site) must(args ...string) string {
	s.t.Helper()
	return s.gives(0, args...)
}

// gives runs stint to its end, with that exit status, and returns its output.
func (s *site) gives(code int, args ...string) string {
	s.t.Helper()
	return s.start(args...).ends(code)
}

// shown is what the cases look at in stint.session/1.
type shown struct {
	ID, Short, Status, Reason string
	Waiting                   *struct {
		For, What string
		Step      *string
	}
	Now    *struct{ Line string }
	Totals struct {
		Loops, Steps, Errors int
		Tokens               struct{ Input, Output string }
	}
	Result *struct{ Text string }
	Steps  []struct {
		Step, Name, Kind, Effect string
		Outcome                  *string
	}
}

// wrote is what the cases look at in stint.entry/1.
type wrote struct {
	Seq  int
	Kind string
	Hash string
	Pos  struct{ Line, Loop, Attempt, Step, Sub int }
	Data json.RawMessage
	Body *struct {
		Size   int
		JSON   json.RawMessage
		Text   string
		Base64 []byte
	}
}

// body is the entry's body as text.
func (e *wrote) body() string {
	switch {
	case e.Body == nil:
		return ""
	case e.Body.JSON != nil:
		return string(e.Body.JSON)
	case e.Body.Base64 != nil:
		return string(e.Body.Base64)
	}
	return e.Body.Text
}

func unmarshal[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in\n%s", err, clip(text))
	}
	return v
}

// all is the sessions of the store, oldest first.
func (s *site) all() []shown {
	s.t.Helper()
	all := unmarshal[struct{ Items []shown }](s.t, s.must("ps", "-a", "--json")).Items
	slices.SortFunc(all, func(a, b shown) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// only is the one session of the store, with its page.
func (s *site) only() shown {
	s.t.Helper()
	all := s.all()
	if len(all) != 1 {
		s.t.Fatalf("there are %d sessions, want one", len(all))
	}
	return s.show(all[0].ID)
}

func (s *site) show(id string) shown {
	s.t.Helper()
	return unmarshal[shown](s.t, s.must("show", id, "--json"))
}

// journal is the entries of a session with their bodies.
func (s *site) journal(id string) (all []wrote) {
	s.t.Helper()
	for l := range strings.Lines(s.must("logs", id, "-o", "jsonl", "--content")) {
		all = append(all, unmarshal[wrote](s.t, l))
	}
	return all
}

// of is the entries of one kind.
func of(all []wrote, kind string) []wrote {
	return slices.DeleteFunc(slices.Clone(all), func(e wrote) bool { return e.Kind != kind })
}

// is checks how a session stands: its status, and words of its reason, of what it waits
// for, or of its result.
func (s *site) is(v shown, status string, words ...string) {
	s.t.Helper()
	text := v.Reason
	if v.Waiting != nil {
		text += " " + v.Waiting.For + ": " + v.Waiting.What
	}
	if v.Result != nil {
		text += " " + v.Result.Text
	}
	ok := v.Status == status
	for _, w := range words {
		ok = ok && strings.Contains(text, w)
	}
	if !ok {
		s.t.Fatalf("the session is %s (%s), want %s (%s)\n%s", v.Status, text, status, strings.Join(words, ", "), s.must("logs", v.ID))
	}
}

// verified checks every journal of the store.
func (s *site) verified() {
	s.t.Helper()
	s.must("verify", "--all", "--states")
}

// requests are the bodies that the service got.
func (s *site) requests(n int) []string {
	s.t.Helper()
	all := s.srv.Requests()
	if len(all) != n {
		s.t.Fatalf("the service got %d requests, want %d\n%s", len(all), n, s.must("logs", "@last"))
	}
	out := make([]string, n)
	for i, r := range all {
		out[i] = string(r.Body)
	}
	return out
}

// message is one message or item of a request, in whatever format: its texts, and its
// calls and results.
type message struct {
	Role    string
	Texts   []string
	Calls   []call
	Results []result
}

type call struct{ ID, Name, Args string } // Args as they were sent

type result struct {
	ID, Text string
	Error    bool
}

// results are those of a request, in order.
func results(t *testing.T, api, body string) (all []result) {
	t.Helper()
	for _, m := range said(t, api, body) {
		all = append(all, m.Results...)
	}
	return all
}

// calls are those of a request, in order.
func calls(t *testing.T, api, body string) (all []call) {
	t.Helper()
	for _, m := range said(t, api, body) {
		all = append(all, m.Calls...)
	}
	return all
}

// said takes a request apart.
func said(t *testing.T, api, body string) (out []message) {
	t.Helper()
	type part struct {
		Type, Text, ID, Name string
		Input                json.RawMessage
		ToolUseID            string `json:"tool_use_id"`
		Content              json.RawMessage
		IsError              bool `json:"is_error"`
	}
	b := unmarshal[struct {
		Messages, Input []struct {
			Type, Role string
			Content    json.RawMessage
			ToolCalls  []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
			ToolCallID string `json:"tool_call_id"`
			CallID     string `json:"call_id"`
			Name       string
			Arguments  string
			Output     string
		}
	}](t, body)
	for _, m := range append(b.Messages, b.Input...) {
		o := message{Role: m.Role}
		switch {
		case m.Role == "tool":
			o.Results = []result{{ID: m.ToolCallID, Text: text(t, m.Content)}}
		case m.Type == "function_call":
			o.Calls = []call{{m.CallID, m.Name, m.Arguments}}
		case m.Type == "function_call_output":
			o.Results = []result{{ID: m.CallID, Text: m.Output}}
		case api != "messages":
			o.Texts = []string{text(t, m.Content)}
		default:
			for _, p := range unmarshal[[]part](t, string(m.Content)) {
				switch p.Type {
				case "tool_use":
					o.Calls = append(o.Calls, call{p.ID, p.Name, string(p.Input)})
				case "tool_result":
					o.Results = append(o.Results, result{p.ToolUseID, text(t, p.Content), p.IsError})
				default:
					o.Texts = append(o.Texts, p.Text)
				}
			}
		}
		for _, c := range m.ToolCalls {
			o.Calls = append(o.Calls, call{c.ID, c.Function.Name, c.Function.Arguments})
		}
		out = append(out, o)
	}
	return out
}

// text is content that is a string or a list of parts.
func text(t *testing.T, content json.RawMessage) string {
	t.Helper()
	var s string
	if len(content) == 0 || string(content) == "null" || json.Unmarshal(content, &s) == nil {
		return s
	}
	for _, p := range unmarshal[[]struct{ Text string }](t, string(content)) {
		s += p.Text
	}
	return s
}
