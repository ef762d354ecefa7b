package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/store/storetest"
)

var update = flag.Bool("update", false, "rewrite the golden transcripts")

// rig is a store with the runners on it, in a synctest bubble.
type rig struct {
	t     *testing.T
	store *mortal
	out   bytes.Buffer
}

// mortal is a store on which runners can be made to die.
type mortal struct {
	*mem.Store
	mu    sync.Mutex
	locks map[string]func() error
	dead  map[string]bool

	stalled map[string]bool
}

// Hold remembers the lock, so that Kill can let go of it.
func (m *mortal) Hold(ctx context.Context, holder string) (func() error, error) {
	release, err := m.Store.Hold(ctx, holder)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.locks[holder] = release
	return func() error { return nil }, err
}

// Kill makes the holder's lock vanish, as kill -9 does.
func (m *mortal) Kill(holder string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead[holder] = true
	_ = m.locks[holder]()
}

// Stall makes a runner as good as stopped (SIGSTOP): its renewals and claims do
// not reach the store, its lock stays.
func (m *mortal) Stall(holder string) { m.set(m.stalled, holder, true) }

// Unstall lets it go on.
func (m *mortal) Unstall(holder string) { m.set(m.stalled, holder, false) }

func (m *mortal) set(in map[string]bool, holder string, v bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	in[holder] = v
}

func (m *mortal) is(in map[string]bool, holder string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return in[holder]
}

// Renew does nothing for a stalled runner.
func (m *mortal) Renew(ctx context.Context, ttl time.Duration, held []stint.Lease) ([]stint.ID, error) {
	if len(held) > 0 && m.is(m.stalled, held[0].Holder) {
		return nil, nil
	}
	return m.Store.Renew(ctx, ttl, held)
}

// Claim gives nothing to the dead. What else they do reaches the store: an append
// that was on its way when its process died.
func (m *mortal) Claim(ctx context.Context, c stint.Claim) ([]stint.Lease, error) {
	if m.is(m.dead, c.Holder) || m.is(m.stalled, c.Holder) {
		return nil, nil
	}
	return m.Store.Claim(ctx, c)
}

// inBubble runs fn on a rig; afterwards every session's fold must equal its row.
func inBubble(t *testing.T, fn func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, store: &mortal{Store: mem.New(), locks: map[string]func() error{}, dead: map[string]bool{}, stalled: map[string]bool{}}}
		fn(r)
		storetest.Check(t, r.store)
		if err := r.store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// runner is an engine that serves until it is stopped or killed.
type runner struct {
	*engine.Engine
	r      *rig
	cancel context.CancelFunc
	done   chan error
}

func agent(name string, fn stint.AgentFunc) engine.Agent { return engine.Agent{Name: name, Loop: fn} }

func (r *rig) engine(opt engine.Options) *engine.Engine {
	r.t.Helper()
	return r.engineOn(r.store, opt)
}

// engineOn makes an engine on a store that stands in front of the rig's.
func (r *rig) engineOn(store stint.Store, opt engine.Options) *engine.Engine {
	r.t.Helper()
	e, err := engine.New(r.t.Context(), store, opt)
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

// serve starts a runner.
func (r *rig) serve(opt engine.Options) *runner {
	r.t.Helper()
	return r.serveOn(r.store, opt)
}

// serveOn starts a runner on a store that stands in front of the rig's.
func (r *rig) serveOn(store stint.Store, opt engine.Options) *runner {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	n := &runner{Engine: r.engineOn(store, opt), r: r, cancel: cancel, done: make(chan error, 1)}
	go func() { n.done <- n.Serve(ctx) }()
	return n
}

// stop drains the runner.
func (n *runner) stop() {
	n.r.t.Helper()
	n.cancel()
	if err := <-n.done; err != nil {
		n.r.t.Error(err)
	}
	if err := n.Close(); err != nil {
		n.r.t.Error(err)
	}
}

// closes ends an engine that does not serve.
func (r *rig) closes(e *engine.Engine) {
	r.t.Helper()
	if err := e.Close(); err != nil {
		r.t.Error(err)
	}
}

// verifies holds a session's journal against all rules that a reader can check.
func (r *rig) verifies(id stint.ID) {
	r.t.Helper()
	var v journal.Verifier
	for _, e := range r.entries(id) {
		if err := v.Add(e); err != nil {
			r.t.Errorf("%v\n%s", err, r.journal(id))
			return
		}
	}
}

func (r *rig) start(e *engine.Engine, a engine.Agent, input string) stint.ID {
	r.t.Helper()
	c, err := e.Start(r.t.Context(), engine.Request{Agent: a, Input: []byte(input), Actor: "human:ana"})
	if err != nil {
		r.t.Fatal(err)
	}
	return c.ID
}

func (r *rig) row(id stint.ID) stint.Row {
	r.t.Helper()
	row, err := r.store.Session(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return row
}

// settles waits, in virtual time, until the session has the status.
func (r *rig) settles(id stint.ID, want stint.Status) stint.Session {
	r.t.Helper()
	for range 100_000 {
		synctest.Wait()
		row := r.row(id)
		if s, _ := row.Status(); s == want {
			return row.Session
		}
		<-time.After(50 * time.Millisecond)
	}
	row := r.row(id)
	s, reason := row.Status()
	r.t.Fatalf("the session is %s (%s), not %s, after 5,000 s\n%s", s, reason, want, r.journal(id))
	return stint.Session{}
}

func (r *rig) send(id stint.ID, kind stint.MessageKind, c journal.Command) {
	r.t.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		r.t.Fatal(err)
	}
	r.message(id, stint.Message{Kind: kind, Data: data})
}

func (r *rig) message(id stint.ID, m stint.Message) {
	r.t.Helper()
	m.ID, m.From = ident.New().String(), "human:ana"
	if err := r.store.Send(r.t.Context(), id, m); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) entries(id stint.ID) []stint.Entry {
	r.t.Helper()
	es, err := r.store.Entries(r.t.Context(), stint.Range{Session: id})
	if err != nil {
		r.t.Fatal(err)
	}
	return es
}

// journal prints a session's entries as a person would want to read them.
func (r *rig) journal(id stint.ID) string {
	var b strings.Builder
	for _, e := range r.entries(id) {
		fmt.Fprintf(&b, "%3d  e%d l%d %-7s %-18s %-8s", e.Seq, e.Epoch, e.Pos.Line, fmt.Sprintf("%s#%d", e.Pos, e.Pos.Attempt), e.Kind, e.Actor)
		b.WriteString(brief(e))
		b.WriteByte('\n')
	}
	row := r.row(id)
	s, reason := row.Status()
	fmt.Fprintf(&b, "     %s %s", s, reason)
	if w := row.Session.Wait; w != nil {
		fmt.Fprintf(&b, " · waits for %s: %s", w.For, w.What)
	}
	b.WriteByte('\n')
	return b.String()
}

// brief is an entry's data without what changes from run to run.
func brief(e stint.Entry) string {
	var m map[string]any
	if err := json.Unmarshal(e.Data, &m); err != nil {
		return "  " + err.Error()
	}
	for _, k := range []string{"ms", "family", "agent", "trigger", "limits", "id", "at", "since", "until", "state", "checkpoint", "ran_ns", "order", "branches"} {
		if k != "state" || e.Kind != stint.ApprovalDecided {
			delete(m, k)
		}
	}
	if e.Kind == stint.SessionWaiting {
		delete(m, "approval") // it has the session's id in it
	}
	if parent, ok := m["parent"].(map[string]any); ok {
		delete(parent, "session")
		delete(parent, "hash")
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err.Error()
	}
	out := "  " + string(b)
	if len(e.Body) > 0 && len(e.Body) < 100 {
		out += "  ← " + string(e.Body)
	}
	return out
}

// note writes a line of the test's own into the transcript.
func (r *rig) note(format string, args ...any) { fmt.Fprintf(&r.out, format+"\n", args...) }

func (r *rig) show(id stint.ID) { r.out.WriteString(r.journal(id)) }

// golden compares what was shown with testdata/NAME.txt.
func (r *rig) golden(name string) {
	r.t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, r.out.Bytes(), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	if !bytes.Equal(want, r.out.Bytes()) {
		r.t.Errorf("%s differs; -update rewrites it, after you have understood why\n--- got\n%s--- want\n%s", path, r.out.Bytes(), want)
	}
}

// step is a step that returns text, for agents in tests.
func step(ctx context.Context, l stint.Loop, name string, effect stint.Effect, fn func() (string, error)) (string, error) {
	return stint.Do(ctx, l, stint.Step{Name: name, Effect: effect}, func(context.Context, string) (string, error) { return fn() })
}

// text returns a step's work that cannot fail.
func text(s string) func() (string, error) { return func() (string, error) { return s, nil } }

var errBoom = errors.New("boom")
