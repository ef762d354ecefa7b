package modeltest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Scenario is what a [Server] plays.
type Scenario struct {
	Steps []Step `json:"steps"`
	After string `json:"after"`
	// By is how a step is found: "" by how many valid requests came before, "turn" by how
	// many answers are in the request, so that one that is sent again is answered as it was.
	By string `json:"by"`
	// Quiet is the text for a request that forbids calls; "" leaves it to the steps.
	Quiet string `json:"quiet"`

	dir string // of sse files
}

// Step is one answer.
type Step struct {
	Text    string            `json:"text"`
	Tools   []ToolCall        `json:"tools"`
	Stop    string            `json:"stop"`
	Usage   Usage             `json:"usage"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"` // a JSON string is sent as its text
	EType   string            `json:"etype"`
	Inside  string            `json:"inside"`
	Cut     bool              `json:"cut"`
	Stall   bool              `json:"stall"`
	Linger  bool              `json:"linger"`
	Hang    bool              `json:"hang"`
	SSEFile string            `json:"sse_file"`
}

// ToolCall is a call in a Step.
type ToolCall struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	ArgsRaw *string         `json:"args_raw"`
}

// Usage is what a Step says it used, in the Messages API's words.
type Usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

// args is the text of the call's arguments.
func (c *ToolCall) args() string {
	if c.ArgsRaw != nil {
		return *c.ArgsRaw
	}
	if c.Input == nil {
		return "{}"
	}
	return string(c.Input)
}

// Request is one request that a [Server] got.
type Request struct {
	At     time.Time
	Path   string
	Header http.Header
	Body   []byte
	Why    string // what is wrong with it; "" for a valid one
}

// Server is a scripted service on the loopback. Its methods may be called from any goroutine.
type Server struct {
	URL string // without a path; the Messages API is at URL, the others at URL/v1

	scenario Scenario
	mu       sync.Mutex
	requests []Request
	step     int
	release  chan struct{}
}

// Load reads a scenario from a file; sse files are looked for beside it.
func Load(tb testing.TB, file string) Scenario {
	tb.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	s := Scenario{dir: filepath.Dir(file)}
	if err := json.Unmarshal(b, &s); err != nil {
		tb.Fatalf("%s: %v", file, err)
	}
	return s
}

// Serve starts a server that is closed with the test.
func Serve(tb testing.TB, s Scenario) *Server {
	tb.Helper()
	srv := &Server{scenario: s, release: make(chan struct{})}
	h := httptest.NewServer(srv)
	tb.Cleanup(h.Close)
	tb.Cleanup(func() { close(srv.release) })
	srv.URL = h.URL
	return srv
}

// Requests returns what came so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := formatOf(r.URL.Path)
	if f == nil {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client died while it sent: there is no request to judge
	}
	var why string
	switch {
	case r.Header.Get("Content-Type") != "application/json":
		why = "the content type is " + r.Header.Get("Content-Type")
	default:
		why = f.check(body)
	}
	s.mu.Lock()
	s.requests = append(s.requests, Request{time.Now(), r.URL.Path, r.Header.Clone(), body, why})
	n := len(s.requests)
	step := Step{Status: http.StatusBadRequest, EType: "invalid_request_error", Body: message("invalid_request_error", why)}
	if why == "" {
		step = s.next(f, body)
	}
	s.mu.Unlock()
	s.play(w, r, f, step.numbered(n), n)
}

// next is the step that answers a valid request. The server is locked.
func (s *Server) next(f format, body []byte) Step {
	turns, quiet := f.look(body)
	if quiet && s.scenario.Quiet != "" {
		return Step{Text: s.scenario.Quiet}
	}
	k, steps := s.step, s.scenario.Steps
	if s.step++; s.scenario.By == "turn" {
		k = turns
	}
	switch {
	case k < len(steps):
		return steps[k]
	case s.scenario.After == "repeat_last" && len(steps) > 0:
		return steps[len(steps)-1]
	}
	return Step{Text: "done"}
}

// numbered is the step with the number of the request in place of {n} in its ids.
func (s Step) numbered(n int) *Step {
	s.Tools = slices.Clone(s.Tools)
	for i := range s.Tools {
		s.Tools[i].ID = strings.ReplaceAll(s.Tools[i].ID, "{n}", strconv.Itoa(n))
	}
	return &s
}

func message(etype, text string) json.RawMessage {
	b, err := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": etype, "message": text}})
	if err != nil {
		return nil
	}
	return b
}

func (s *Server) play(w http.ResponseWriter, r *http.Request, f format, step *Step, n int) {
	if step.Hang {
		s.hold(r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_test")
	for k, v := range step.Headers {
		w.Header().Set(k, v)
	}
	if step.Status != 0 {
		w.WriteHeader(step.Status)
		body := step.Body
		var text string
		if json.Unmarshal(body, &text) == nil && len(body) > 0 {
			body = []byte(text)
		}
		if len(body) == 0 {
			etype := step.EType
			if etype == "" {
				etype = "error"
			}
			body = message(etype, "scripted")
		}
		_, _ = w.Write(body)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if step.SSEFile != "" {
		b, err := os.ReadFile(filepath.Join(s.scenario.dir, step.SSEFile))
		if err != nil {
			b = []byte("event: error\ndata: " + string(message("invalid_request_error", "the test has no "+step.SSEFile)) + "\n\n")
		}
		_, _ = w.Write(b)
		return
	}
	events := f.stream(step, n)
	switch {
	case step.Inside != "":
		events = append(events[:1:1], f.failure(step.Inside))
	case step.Cut || step.Stall:
		events = events[:f.whole(events)]
	case step.Linger:
		events = events[:f.whole(events)+1]
	}
	for _, e := range events {
		_, _ = io.WriteString(w, e)
		if fl, ok := w.(http.Flusher); ok {
			fl.Flush()
		}
	}
	if step.Stall || step.Linger {
		s.hold(r)
	}
}

// hold waits until the client or the test has gone.
func (s *Server) hold(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.release:
	}
}

// format is one wire format.
type format interface {
	check(body []byte) string
	look(body []byte) (turns int, quiet bool) // answers in a valid request, and whether it forbids calls
	stream(s *Step, n int) []string
	failure(etype string) string
	whole(events []string) int // how many events there are before the first that makes it whole
}

func formatOf(path string) format {
	switch {
	case strings.HasSuffix(path, "/v1/messages"):
		return messages{}
	case strings.HasSuffix(path, "/chat/completions"):
		return chat{}
	case strings.HasSuffix(path, "/responses"):
		return responses{}
	}
	return nil
}

// event is one event of a stream.
func event(name string, data any) string {
	b, err := json.Marshal(data)
	if err != nil {
		return ""
	}
	if name == "" {
		return "data: " + string(b) + "\n\n"
	}
	return "event: " + name + "\ndata: " + string(b) + "\n\n"
}

// pieces cuts s into pieces of a few characters.
func pieces(s string) []string {
	var out []string
	runes := []rune(s)
	for len(runes) > 12 {
		out = append(out, string(runes[:12]))
		runes = runes[12:]
	}
	return append(out, string(runes))
}
