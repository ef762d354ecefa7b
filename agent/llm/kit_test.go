package llm_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/replay/replaytest"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/model/script"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/tool"
)

var update = flag.Bool("update", false, "rewrite the golden transcripts")

// heard is a model that keeps what it was asked, and holds every request to the rules.
type heard struct {
	model.Model

	t    testing.TB
	mu   sync.Mutex
	reqs []model.Request
}

func (h *heard) Call(ctx context.Context, r *model.Request, hear func(model.Delta)) (*model.Answer, error) {
	if err := r.Check(); err != nil {
		h.t.Errorf("a request that no provider takes: %v", err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		h.t.Error(err)
	}
	var kept model.Request
	if err := json.Unmarshal(b, &kept); err != nil {
		h.t.Error(err)
	}
	h.mu.Lock()
	h.reqs = append(h.reqs, kept)
	h.mu.Unlock()
	return h.Model.Call(ctx, r, hear)
}

// plays makes a model of a script.
func plays(t testing.TB, text string) *heard {
	t.Helper()
	m, err := script.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &heard{Model: m, t: t}
}

func toolset(t testing.TB, tools ...tool.Tool) *tool.Set {
	t.Helper()
	s, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func agentOf(t testing.TB, s llm.Spec) *llm.Agent {
	t.Helper()
	a, err := llm.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// does is a tool that answers with fn's text.
func does(name string, effect stint.Effect, fn func(c tool.Call) (string, error)) tool.Tool {
	return tool.Tool{Name: name, Effect: effect, Parallel: true, Description: "Does " + name + ".",
		Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"text":{"type":"string"}},"additionalProperties":false}`),
		Caller: tool.CallerFunc(func(_ context.Context, c tool.Call) (tool.Output, error) {
			text, err := fn(c)
			return tool.Output{Text: text}, err
		})}
}

// echo returns its arguments.
func echo(name string) tool.Tool {
	return does(name, stint.Read, func(c tool.Call) (string, error) { return string(c.Args), nil })
}

// rig is an engine on a store in memory, in a synctest bubble.
type rig struct {
	t     *testing.T
	store *mem.Store
	e     *engine.Engine
	agent engine.Agent
	id    stint.ID
	begun func(stint.ID) // told of a session once it is durable; nil: nobody is
	out   bytes.Buffer
}

func onEngine(t *testing.T, s llm.Spec, fn func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, store: mem.New()}
		r.agent = engine.Agent{Name: "helper", Loop: agentOf(t, s)}
		var err error
		if r.e, err = engine.New(t.Context(), r.store, engine.Options{Agents: []engine.Agent{r.agent}}); err != nil {
			t.Fatal(err)
		}
		fn(r)
		replaytest.Same(t, r.store, agentOf(t, s), false)
		if err := errors.Join(r.e.Close(), r.store.Close()); err != nil {
			t.Error(err)
		}
	})
}

// start begins a session and drives it until it ends or waits.
func (r *rig) start(input string, limits *stint.Limits) stint.Session {
	r.t.Helper()
	s, err := r.e.RunNew(r.t.Context(), engine.Request{Agent: r.agent, Input: []byte(input), Actor: "human:ana", Limits: limits},
		func(c engine.Created) {
			if r.id = c.ID; r.begun != nil {
				r.begun(c.ID)
			}
		})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// say sends a prompt and drives the session on.
func (r *rig) say(text string) stint.Session {
	r.t.Helper()
	if err := r.store.Send(r.t.Context(), r.id, stint.Message{ID: ident.New().String(), Kind: stint.Prompt, From: "human:ana", Body: []byte(text)}); err != nil {
		r.t.Fatal(err)
	}
	return r.goOn()
}

func (r *rig) goOn() stint.Session {
	r.t.Helper()
	s, err := r.e.Run(r.t.Context(), r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *rig) state() json.RawMessage {
	r.t.Helper()
	row, err := r.store.Session(r.t.Context(), r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := journal.ReadState(row.Session.Checkpoint, engine.Source(r.t.Context(), r.store, r.id, row.Session.Family))
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

func (r *rig) entries() []stint.Entry {
	r.t.Helper()
	es, err := r.store.Entries(r.t.Context(), stint.Range{Session: r.id})
	if err != nil {
		r.t.Fatal(err)
	}
	return es
}

// show prints the steps in their order, the waits, the transcript and how the session
// stands.
func (r *rig) show() {
	r.t.Helper()
	es := r.entries()
	slices.SortStableFunc(es, func(a, b stint.Entry) int {
		return cmp.Or(a.Pos.Loop-b.Pos.Loop, after(a)-after(b), a.Pos.Step-b.Pos.Step, a.Pos.Sub-b.Pos.Sub)
	})
	for _, e := range es {
		switch e.Kind {
		case stint.StepCompleted, stint.StepFailed:
			d, err := journal.Decode[journal.StepDone](&e)
			if err != nil {
				r.t.Fatal(err)
			}
			line := "ok"
			if d.Error != "" {
				line = "error: " + brief(d.Error, 100)
			}
			fmt.Fprintf(&r.out, "%-7s %-10s %-5s %s\n", e.Pos, d.Name, d.Effect, line)
		case stint.SessionWaiting:
			d, err := journal.Decode[journal.Parked](&e)
			if err != nil {
				r.t.Fatal(err)
			}
			fmt.Fprintf(&r.out, "%-7s waits for %s: %s\n", e.Pos, d.For, d.What)
		case stint.SessionEnded:
			if len(e.Body) > 0 {
				fmt.Fprintf(&r.out, "%-7s result %s\n", e.Pos, e.Body)
			}
		}
	}
	r.out.WriteByte('\n')
	row, err := r.store.Session(r.t.Context(), r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	if row.Session.Checkpoint.Seq > 0 {
		r.out.WriteString(transcript(r.t, r.state()))
	}
	r.out.WriteString(stands(&row.Session))
}

// after is 1 for what follows the steps of a loop.
func after(e stint.Entry) int {
	if e.Kind == stint.SessionWaiting || e.Kind == stint.SessionEnded {
		return 1
	}
	return 0
}

func stands(s *stint.Session) string {
	line := fmt.Sprintf("\n%s", s.Status)
	if s.Reason != "" {
		line += ": " + s.Reason
	}
	if s.Wait != nil {
		line += fmt.Sprintf(", waits for %s: %s", s.Wait.For, s.Wait.What)
	}
	return line + "\n"
}

// messages are those of a state, which must be valid.
func messages(t testing.TB, state json.RawMessage) []model.Message {
	t.Helper()
	if state == nil {
		return nil
	}
	var s struct {
		Messages []model.Message `json:"messages"`
	}
	if err := json.Unmarshal(state, &s); err != nil {
		t.Fatalf("%v in %s", err, state)
	}
	if err := model.Valid(s.Messages); len(s.Messages) > 0 && err != nil {
		t.Errorf("the transcript: %v", err)
	}
	return s.Messages
}

// transcript is a state as a person reads it.
func transcript(t testing.TB, state json.RawMessage) string {
	t.Helper()
	var b strings.Builder
	for _, m := range messages(t, state) {
		for _, p := range m.Parts {
			switch {
			case p.Call != nil:
				fmt.Fprintf(&b, "%-9s  calls %s %s %s\n", m.Role, p.Call.Name, p.Call.ID, brief(string(p.Call.Args), 200))
			case p.Result != nil && p.Result.Error:
				fmt.Fprintf(&b, "%-9s  %s fails: %s\n", m.Role, p.Result.Call, brief(p.Result.Text, 400))
			case p.Result != nil:
				fmt.Fprintf(&b, "%-9s  %s gives: %s\n", m.Role, p.Result.Call, brief(p.Result.Text, 400))
			default:
				fmt.Fprintf(&b, "%-9s  %s\n", m.Role, brief(p.Text, 400))
			}
		}
	}
	return b.String()
}

func brief(s string, n int) string {
	s = strings.ReplaceAll(s, "\n", `\n`)
	if len(s) > n {
		return s[:n*2/3] + " … " + s[len(s)-n/3:]
	}
	return s
}

func golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs; -update rewrites it, after you have understood why\n--- got\n%s--- want\n%s", path, got, want)
	}
}

func (r *rig) golden(name string) {
	r.t.Helper()
	golden(r.t, name, r.out.String())
}
