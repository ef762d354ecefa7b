//go:build agents

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// scripted is a model on the loopback: OpenAI Responses for codex, Chat Completions
// for opencode, Gemini for gemini. It calls a shell once for each prompt, unless the
// prompt says that the CLI was interrupted, and then says that it is done.
type scripted struct {
	t       *testing.T
	server  *httptest.Server
	command string
	twice   bool // it calls its tool twice in one answer
	refuses int  // the HTTP status of every answer; 0: none

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

// calls is how often it calls its tool in one answer.
func (m *scripted) calls() int {
	if m.twice {
		return 2
	}
	return 1
}

// question is what a request has, in any of the three shapes.
type question struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Input    []json.RawMessage `json:"input"`
	Messages []json.RawMessage `json:"messages"`
	Contents []json.RawMessage `json:"contents"`
	Tools    json.RawMessage   `json:"tools"`
	Config   json.RawMessage   `json:"generationConfig"`
}

// calls reports whether the model is to call its tool: nothing came after the newest
// prompt, and that is no interruption.
func (q question) calls() bool {
	items := append(append(q.Input, q.Messages...), q.Contents...)
	for i := len(items) - 1; i >= 0; i-- {
		s := string(items[i])
		var it struct{ Type, Role string }
		_ = json.Unmarshal(items[i], &it)
		switch {
		case it.Role == "tool", strings.HasSuffix(it.Type, "_call_output"), strings.Contains(s, `"functionResponse"`):
			return false
		case it.Role == "user":
			return !strings.Contains(s, "You were interrupted")
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
	case m.refuses != 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(m.refuses)
		_, _ = io.WriteString(w, `{"error":{"message":"Incorrect API key provided","code":401,"status":"UNAUTHENTICATED","type":"invalid_request_error"}}`)
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

func (m *scripted) responses(w http.ResponseWriter, q question, n int) {
	w.Header().Set("Content-Type", "text/event-stream")
	args := func(k string, v any) string {
		b, err := json.Marshal(object{k: v})
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	items := []object{{"type": "message", "id": fmt.Sprint("msg_", n), "role": "assistant", "status": "completed",
		"content": []object{{"type": "output_text", "text": "All done.", "annotations": []any{}}}}}
	if q.calls() {
		items = nil
	}
	for i := 0; q.calls() && i < m.calls(); i++ {
		n := fmt.Sprint(n, "_", i)
		call := object{"type": "function_call", "id": fmt.Sprint("fc_", n), "call_id": fmt.Sprint("call_", n), "status": "completed"}
		switch {
		case q.has("exec_command"):
			call["name"], call["arguments"] = "exec_command", args("cmd", m.command)
		case q.has("shell_command"):
			call["name"], call["arguments"] = "shell_command", args("command", m.command)
		default:
			call["name"], call["arguments"] = "shell", args("command", []string{"bash", "-c", m.command})
		}
		items = append(items, call)
	}
	id := fmt.Sprint("resp_", n)
	send(w, "response.created", object{"type": "response.created", "response": object{"id": id, "object": "response", "status": "in_progress", "output": []any{}}})
	for i, item := range items {
		send(w, "response.output_item.added", object{"type": "response.output_item.added", "output_index": i, "item": item})
		send(w, "response.output_item.done", object{"type": "response.output_item.done", "output_index": i, "item": item})
	}
	send(w, "response.completed", object{"type": "response.completed", "response": object{"id": id, "object": "response", "status": "completed", "output": items,
		"usage": object{"input_tokens": 100, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": 10, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 110}}})
}

func (m *scripted) chat(w http.ResponseWriter, q question, n int) {
	delta, reason := object{"role": "assistant", "content": "All done."}, "stop"
	if q.calls() && q.has("bash") {
		b, err := json.Marshal(object{"command": m.command, "description": "works"})
		if err != nil {
			panic(err)
		}
		reason = "tool_calls"
		var calls []object
		for i := range m.calls() {
			calls = append(calls, object{"index": i, "id": fmt.Sprint("call_", n, "_", i), "type": "function", "function": object{"name": "bash", "arguments": string(b)}})
		}
		delta = object{"role": "assistant", "tool_calls": calls}
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

func (m *scripted) gemini(w http.ResponseWriter, r *http.Request, q question, n int) {
	parts := []object{{"text": "All done."}}
	switch {
	case strings.Contains(string(q.Config), "Schema"):
		parts[0]["text"] = `{"reasoning":"x","next_speaker":"user","model_choice":"flash","complexity_reasoning":"x","complexity_score":1}`
	case q.calls() && q.has("run_shell_command"):
		parts = nil
		for i := range m.calls() {
			parts = append(parts, object{"functionCall": object{"id": fmt.Sprint("fc", n, "_", i), "name": "run_shell_command", "args": object{"command": m.command, "description": "works"}}})
		}
	}
	answer := object{"candidates": []object{{"content": object{"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}},
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
