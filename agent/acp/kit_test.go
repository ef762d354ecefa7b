package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/acp"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/replay/replaytest"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/store/sqlite"
)

// rig is a store with an engine on it that runs one agent.
type rig struct {
	t      *testing.T
	store  stint.Store
	engine *engine.Engine
	agent  engine.Agent
	acp    *acp.Agent
}

// newRig makes one in memory, with one attempt a loop unless more are asked for.
func newRig(t *testing.T, spec acp.Spec, attempts int) *rig {
	t.Helper()
	return rigOn(t, mem.New(), spec, attempts)
}

func rigOn(t *testing.T, store stint.Store, spec acp.Spec, attempts int) *rig {
	t.Helper()
	a, err := acp.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	a.Settle(5 * time.Second) // a slow machine must not make two steps of one
	a.Calm(10 * time.Millisecond)
	r := &rig{t: t, store: store, agent: engineAgent(a, attempts), acp: a}
	if r.engine, err = engine.New(t.Context(), store, engine.Options{Agents: []engine.Agent{r.agent}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			r.show()
		}
		replaytest.Same(t, store, a, true)
		if err := r.engine.Close(); err != nil {
			t.Error(err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// replace makes an engine for an agent that was changed.
func (r *rig) replace() {
	r.t.Helper()
	if err := r.engine.Close(); err != nil {
		r.t.Fatal(err)
	}
	var err error
	if r.engine, err = engine.New(r.t.Context(), r.store, engine.Options{Agents: []engine.Agent{r.agent}}); err != nil {
		r.t.Fatal(err)
	}
}

func engineAgent(a stint.Agent, attempts int) engine.Agent {
	return engine.Agent{Name: "acp", Loop: a, Retry: engine.Retry{Attempts: attempts, Initial: time.Millisecond, Max: time.Millisecond}}
}

// run starts a session and drives it until it ends or waits.
func (r *rig) run(ctx context.Context, input string) stint.Session {
	r.t.Helper()
	c, err := r.engine.Start(r.t.Context(), engine.Request{Agent: r.agent, Name: "s", Input: []byte(input), Actor: "human:ana"})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.drive(ctx, c.ID)
}

func (r *rig) drive(ctx context.Context, id stint.ID) stint.Session {
	r.t.Helper()
	s, err := r.engine.Run(ctx, id)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// show logs the journals of a test that failed.
func (r *rig) show() {
	all, err := r.store.Sessions(context.Background(), stint.Filter{})
	if err != nil {
		r.t.Log(err)
	}
	for _, row := range all {
		r.t.Logf("%s (%s)\n%s", row.Session.Status, row.Session.Reason, r.journal(row.Session.ID))
	}
}

// held starts a session and returns it once it waits for a person with its process kept,
// and what waits for the end of its drive.
func (r *rig) held(input string) (stint.ID, func() stint.Session) {
	r.t.Helper()
	c, err := r.engine.Start(r.t.Context(), engine.Request{Agent: r.agent, Name: "s", Input: []byte(input), Actor: "human:ana"})
	if err != nil {
		r.t.Fatal(err)
	}
	return c.ID, r.holds(c.ID)
}

// holds drives a session in the background until it waits for a person.
func (r *rig) holds(id stint.ID) func() stint.Session {
	r.t.Helper()
	type end struct {
		s   stint.Session
		err error
	}
	ended := make(chan end, 1)
	go func() {
		s, err := r.engine.Run(r.t.Context(), id)
		ended <- end{s, err}
	}()
	r.asked(id)
	return func() stint.Session {
		r.t.Helper()
		e := <-ended
		if e.err != nil {
			r.t.Fatal(e.err)
		}
		return e.s
	}
}

// asked waits for a question and returns it.
func (r *rig) asked(id stint.ID) stint.Approval {
	r.t.Helper()
	var open []stint.Approval
	eventually(r.t, "asked: a person", func() bool {
		open = nil
		for _, a := range r.session(id).At.Approvals {
			if a.State == stint.ApprovalOpen {
				open = append(open, a)
			}
		}
		return len(open) > 0
	})
	if len(open) != 1 {
		r.t.Fatalf("%d questions are open\n%s", len(open), r.journal(id))
	}
	return open[0]
}

// session is the session as the store has it.
func (r *rig) session(id stint.ID) stint.Session {
	r.t.Helper()
	row, err := r.store.Session(context.WithoutCancel(r.t.Context()), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return row.Session
}

// decide decides a question, as another process does: by a message in the store.
func (r *rig) decide(id stint.ID, a stint.Approval, state stint.ApprovalState, note string) {
	r.t.Helper()
	d := journal.Decision{Approval: a.Seq, State: state, Note: note}
	data, err := json.Marshal(d)
	if err != nil {
		r.t.Fatal(err)
	}
	m := stint.Message{ID: d.MessageID(), From: "human:kim", Kind: stint.Decision, Data: data}
	if err := r.store.Send(r.t.Context(), id, m); err != nil {
		r.t.Fatal(err)
	}
}

// is fails unless a session has the status.
func (r *rig) is(s stint.Session, want stint.Status) {
	r.t.Helper()
	if s.Status != want {
		r.t.Fatalf("the session is %s (%s), not %s\n%s", s.Status, s.Reason, want, r.journal(s.ID))
	}
}

func (r *rig) send(id stint.ID, kind stint.MessageKind, c journal.Command, body string) {
	r.t.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		r.t.Fatal(err)
	}
	m := stint.Message{ID: ident.New().String(), From: "human:ana", Kind: kind, Data: data}
	if kind == stint.Prompt {
		m.Data, m.Body = nil, []byte(body)
	}
	if err := r.store.Send(r.t.Context(), id, m); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) entries(id stint.ID) []stint.Entry {
	r.t.Helper()
	es, err := r.store.Entries(context.WithoutCancel(r.t.Context()), stint.Range{Session: id})
	if err != nil {
		r.t.Fatal(err)
	}
	return es
}

// body is an entry's, wherever it lies.
func (r *rig) body(e *stint.Entry, family stint.ID) string {
	r.t.Helper()
	if e.Blob.IsZero() {
		return string(e.Body)
	}
	b, err := r.store.Blob(context.WithoutCancel(r.t.Context()), family, e.Blob)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// journal prints the entries that people look for.
func (r *rig) journal(id stint.ID) string {
	r.t.Helper()
	row, err := r.store.Session(context.WithoutCancel(r.t.Context()), id)
	if err != nil {
		r.t.Fatal(err)
	}
	var b, logged strings.Builder
	all := r.entries(id)
	slices.SortStableFunc(all, func(x, y stint.Entry) int { // members of a group end in any order
		if x.Kind != y.Kind || x.Pos.Sub == 0 || x.Pos.Step != y.Pos.Step {
			return 0
		}
		return x.Pos.Sub - y.Pos.Sub
	})
	for _, e := range all {
		body := r.body(&e, row.Session.Family)
		switch e.Kind {
		case stint.StepRequested, stint.StepCompleted, stint.StepFailed, stint.StepResolved:
			fmt.Fprintf(&b, "%-6s %-14s %s\n", e.Pos, e.Kind, about(e.Data))
		case stint.OutputWritten:
			logged.WriteString(body) // when, a timer decides
			continue
		case stint.ApprovalRequested: // the digest of the input is of a folder that differs from test to test
			fmt.Fprintf(&b, "%-6s %-14s %s\n", e.Pos, e.Kind, regexp.MustCompile(`"input":"[0-9a-f]{24}"`).ReplaceAll(e.Data, []byte(`"input":"DIGEST"`)))
			continue
		case stint.ApprovalDecided: // the number of its entry depends on when the log was written
			fmt.Fprintf(&b, "%-6s %-14s %s\n", e.Pos, e.Kind, regexp.MustCompile(`"approval":\d+`).ReplaceAll(e.Data, []byte(`"approval":N`)))
		case stint.LoopCompleted:
			fmt.Fprintf(&b, "       %s\n", e.Kind)
		case stint.LoopFailed, stint.SessionEnded:
			fmt.Fprintf(&b, "       %-14s %s\n", e.Kind, e.Data)
		default:
			continue
		}
		if !utf8.ValidString(body) {
			body = "(a delta)"
		}
		if len(body) > 300 {
			body = fmt.Sprintf("%s… (%d bytes)", body[:300], len(body))
		}
		if body != "" {
			fmt.Fprintf(&b, "           %s\n", strings.ReplaceAll(strings.TrimRight(body, "\n"), "\n", "\n           "))
		}
	}
	if logged.Len() > 0 {
		b.WriteString("log:\n" + logged.String())
	}
	return b.String()
}

// about is what an entry says of its step.
func about(data []byte) string {
	var d struct {
		Name, Kind, Effect, Error, Verdict string
		Args                               json.RawMessage
		Usage                              json.RawMessage
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return err.Error()
	}
	s := strings.TrimSpace(fmt.Sprintf("%s %s %s %s", d.Kind, d.Name, d.Effect, d.Verdict))
	for _, more := range []string{string(d.Args), d.Error, string(d.Usage)} {
		if more != "" && more != "{}" {
			s += " " + more
		}
	}
	return s
}

// steps counts entries of a kind by the step's name.
func (r *rig) steps(id stint.ID, kind stint.Kind, name string) int {
	r.t.Helper()
	n := 0
	for _, e := range r.entries(id) {
		var d struct{ Name string }
		if e.Kind == kind && json.Unmarshal(e.Data, &d) == nil && d.Name == name {
			n++
		}
	}
	return n
}

// golden compares a text with testdata/NAME.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
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

// runnerConfig is what a stint that can be killed is told.
type runnerConfig struct {
	Store string
	ID    stint.ID // zero: start a session
	Input string
	Spec  acp.Spec
}

// runner is a small stint: it drives one session on an SQLite store.
func runner(file string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "runner:", err)
		return 1
	}
	var c runnerConfig
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return fail(err)
	}
	ctx := context.Background()
	store, err := sqlite.Open(ctx, sqlite.Options{Path: c.Store})
	if err != nil {
		return fail(err)
	}
	a, err := acp.New(c.Spec)
	if err != nil {
		return fail(err)
	}
	agent := engineAgent(a, 2)
	e, err := engine.New(ctx, store, engine.Options{Agents: []engine.Agent{agent}})
	if err != nil {
		return fail(err)
	}
	var s stint.Session
	if c.ID.IsZero() {
		s, err = e.RunNew(ctx, engine.Request{Agent: agent, Name: "s", Input: []byte(c.Input), Actor: "human:ana"}, func(engine.Created) {})
	} else {
		s, err = e.Run(ctx, c.ID)
	}
	if err != nil {
		return fail(err)
	}
	fmt.Println(s.Status, s.Reason)
	return 0
}
