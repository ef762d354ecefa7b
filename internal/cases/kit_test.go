package cases_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/proc"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/store/sqlite"
	"github.com/stint-dev/stint/store/storetest"
)

// TestMain lets the test binary be the guard of the processes that it starts.
func TestMain(m *testing.M) {
	proc.MaybeGuard()
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		_ = p.Value.Set("6") // most of the time the tests wait: for a clock, for a process
	}
	code := m.Run()
	clean()
	os.Exit(code)
}

// long reports whether rigs run at full size.
func long() bool { return os.Getenv("STINT_LONG") == "1" }

// patience bounds what a test waits for, on a machine that is busy.
const patience = time.Minute

// stores are the names of the stores that a case must hold on.
func stores() []string { return []string{"mem", "sqlite"} }

// place is where the sessions of a test are kept.
type place struct {
	t     *testing.T
	path  string // of the file; empty: memory
	store stint.Store
}

// onStores runs fn on every store. Afterwards each journal must be sound.
func onStores(t *testing.T, fn func(t *testing.T, p *place)) {
	for _, name := range stores() {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, name, t.TempDir())
			fn(t, p)
			p.close()
		})
	}
}

// onFile runs fn on SQLite alone: for programs, where a case has shown already that
// the stores are alike.
func onFile(t *testing.T, fn func(t *testing.T, p *place)) {
	t.Helper()
	p := newPlace(t, "sqlite", t.TempDir())
	fn(t, p)
	p.close()
}

// newPlace is a store of that name, a file in dir. It is closed at the end of the
// test, in whatever way that comes.
func newPlace(t *testing.T, name, dir string) *place {
	t.Helper()
	p := &place{t: t}
	if name == "sqlite" {
		p.path = filepath.Join(dir, "stint.db")
	}
	p.open()
	t.Cleanup(func() { _ = p.store.Close() })
	return p
}

// inTime runs fn on every store with a clock that stands still while anybody works.
func inTime(t *testing.T, fn func(t *testing.T, p *place)) { inTimeOn(t, stores(), fn) }

// inTimeOn does the same on these stores.
func inTimeOn(t *testing.T, on []string, fn func(t *testing.T, p *place)) {
	for _, name := range on {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				p := newPlace(t, name, dir)
				fn(t, p)
				p.close()
			})
		})
	}
}

func (p *place) open() {
	p.t.Helper()
	if p.path == "" {
		p.store = mem.New()
		return
	}
	s, err := sqlite.Open(p.t.Context(), sqlite.Options{Path: p.path})
	if err != nil {
		p.t.Fatal(err)
	}
	p.store = s
}

// close checks every session and closes the store.
func (p *place) close() {
	p.t.Helper()
	p.check()
	if err := p.store.Close(); err != nil {
		p.t.Error(err)
	}
}

// reload closes the file and opens it again, so that nothing can be answered from
// memory. A store that is memory stays.
func (p *place) reload() {
	p.t.Helper()
	if p.path == "" {
		return
	}
	if err := p.store.Close(); err != nil {
		p.t.Fatal(err)
	}
	p.open()
}

// check holds every session against all that can be checked: the store's contract,
// the chain, the rules, every body and every state.
func (p *place) check() {
	p.t.Helper()
	storetest.Check(p.t, p.store)
	rows, err := p.store.Sessions(p.t.Context(), stint.Filter{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, row := range rows {
		report, err := view.VerifySession(p.t.Context(), p.store, row, view.VerifyOptions{States: true})
		if err != nil {
			p.t.Fatal(err)
		}
		if !report.OK {
			p.t.Errorf("session %s is not sound: %+v", row.Short, report.Problems)
		}
	}
}

// engine is a runner that has a and nothing else. The test closes it.
func (p *place) engine(a engine.Agent) *engine.Engine {
	p.t.Helper()
	return p.engineOn(p.store, a)
}

func (p *place) engineOn(store stint.Store, a engine.Agent) *engine.Engine {
	p.t.Helper()
	e, err := engine.New(p.t.Context(), store, engine.Options{Agents: []engine.Agent{a}, Poll: 100 * time.Millisecond})
	if err != nil {
		p.t.Fatal(err)
	}
	return e
}

func (p *place) closes(e *engine.Engine) {
	p.t.Helper()
	if err := e.Close(); err != nil {
		p.t.Error(err)
	}
}

// run makes a session of a and drives it until it ends or waits for somebody.
func (p *place) run(a engine.Agent, input string) stint.Session {
	p.t.Helper()
	return p.runLimited(a, input, nil)
}

func (p *place) runLimited(a engine.Agent, input string, lim *stint.Limits) stint.Session {
	p.t.Helper()
	e := p.engine(a)
	defer p.closes(e)
	s, err := e.RunNew(p.t.Context(), engine.Request{Agent: a, Input: []byte(input), Limits: lim}, func(engine.Created) {})
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// goOn drives a session that is there, in a new engine.
func (p *place) goOn(a engine.Agent, id stint.ID) stint.Session {
	p.t.Helper()
	e := p.engine(a)
	defer p.closes(e)
	s, err := e.Run(p.t.Context(), id)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, p.journal(id))
	}
	return s
}

func (p *place) send(id stint.ID, kind stint.MessageKind, c journal.Command) {
	p.t.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		p.t.Fatal(err)
	}
	p.message(id, stint.Message{Kind: kind, Data: data})
}

func (p *place) prompt(id stint.ID, text string) {
	p.t.Helper()
	p.message(id, stint.Message{Kind: stint.Prompt, Body: []byte(text)})
}

func (p *place) message(id stint.ID, m stint.Message) {
	p.t.Helper()
	m.ID, m.From = ident.New().String(), "human:ana"
	if err := p.store.Send(p.t.Context(), id, m); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) row(id stint.ID) stint.Row {
	p.t.Helper()
	row, err := p.store.Session(p.t.Context(), id)
	if err != nil {
		p.t.Fatal(err)
	}
	return row
}

// entries returns the whole journal of a session, with the bodies that lie outside.
func (p *place) entries(id stint.ID) []stint.Entry {
	p.t.Helper()
	family := p.row(id).Session.Family
	var all []stint.Entry
	for {
		after := stint.Seq(0)
		if len(all) > 0 {
			after = all[len(all)-1].Seq
		}
		es, err := p.store.Entries(p.t.Context(), stint.Range{Session: id, After: after})
		if err != nil {
			p.t.Fatal(err)
		}
		if len(es) == 0 {
			return all
		}
		for i := range es {
			if es[i].Blob.IsZero() {
				continue
			}
			if es[i].Body, err = p.store.Blob(p.t.Context(), family, es[i].Blob); err != nil {
				p.t.Fatal(err)
			}
		}
		all = append(all, es...)
	}
}

// state is that of the session's newest checkpoint, as the store has it.
func (p *place) state(id stint.ID) string {
	p.t.Helper()
	return p.stateOf(id, p.row(id).Session.Checkpoint)
}

// states are those of all checkpoints on the session's line, by loop.
func (p *place) states(id stint.ID) []string {
	p.t.Helper()
	es, err := p.store.Entries(p.t.Context(), stint.Range{Session: id})
	if err != nil {
		p.t.Fatal(err)
	}
	var out []string
	for n := range p.row(id).Session.Checkpoint.Loop {
		cp, err := journal.CheckpointAt(es, n+1)
		if err != nil {
			p.t.Fatal(err)
		}
		out = append(out, p.stateOf(id, cp))
	}
	return out
}

func (p *place) stateOf(id stint.ID, cp stint.Checkpoint) string {
	p.t.Helper()
	b, err := journal.ReadState(cp, engine.Source(p.t.Context(), p.store, id, p.row(id).Session.Family))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

// results are the bodies of what the named steps gave, in order of seq.
func (p *place) results(id stint.ID, name string) []string {
	p.t.Helper()
	var out []string
	for _, e := range p.entries(id) {
		if e.Kind != stint.StepCompleted {
			continue
		}
		d, err := journal.Decode[journal.StepDone](&e)
		if err != nil {
			p.t.Fatal(err)
		}
		if d.Name == name {
			out = append(out, string(e.Body))
		}
	}
	return out
}

// export is the session's journal as other programs get it.
func (p *place) export(id stint.ID) string {
	p.t.Helper()
	row := p.row(id)
	var b bytes.Buffer
	if err := view.Export(p.t.Context(), p.store, &row, time.Now(), &b); err != nil {
		p.t.Fatal(err)
	}
	return b.String()
}

// journal is for a person who looks at a test that failed.
func (p *place) journal(id stint.ID) string {
	p.t.Helper()
	var b strings.Builder
	for _, e := range p.entries(id) {
		fmt.Fprintf(&b, "%3d  e%d l%d %s#%d %s %s %.200s %.200q\n", e.Seq, e.Epoch, e.Pos.Line, e.Pos, e.Pos.Attempt, e.Kind, e.Actor, e.Data, e.Body)
	}
	s := p.row(id).Session
	fmt.Fprintf(&b, "     %s %s %+v", s.Status, s.Reason, s.Wait)
	return b.String()
}

// ends checks how a session ended, or what it waits for.
func (p *place) ends(s stint.Session, want stint.Status, about ...string) {
	p.t.Helper()
	text := s.Reason
	if s.Wait != nil {
		text = string(s.Wait.For) + ": " + s.Wait.What
	}
	ok := s.Status == want
	for _, a := range about {
		ok = ok && strings.Contains(text, a)
	}
	if !ok {
		p.t.Fatalf("the session is %s (%s), want %s (%s)\n%s", s.Status, text, want, strings.Join(about, ", "), p.journal(s.ID))
	}
}

// goAgent is an agent in Go whose loops are tried once.
func goAgent(fn stint.AgentFunc) engine.Agent {
	return engine.Agent{Name: "case", Loop: fn, Retry: engine.Retry{Attempts: 1}}
}

// python is testdata/NAME.py, with the SDK, as an agent whose loops are tried once.
func python(t *testing.T, name string, args ...string) engine.Agent {
	t.Helper()
	return pythonWith(t, func(s *exec.Spec) { s.Command = append([]string{"python3", name + ".py"}, args...) })
}

func pythonWith(t *testing.T, change func(s *exec.Spec)) engine.Agent {
	t.Helper()
	lib, err := filepath.Abs(filepath.Join("..", "..", "sdk", "python"))
	if err != nil {
		t.Fatal(err)
	}
	spec := exec.Spec{Dir: "testdata", Keep: exec.KeepSession, Env: map[string]string{"PYTHONPATH": lib, "PYTHONDONTWRITEBYTECODE": "1"}}
	change(&spec)
	a, err := exec.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine.Agent{Name: "case", Runtime: "exec", Loop: a, Retry: engine.Retry{Attempts: 1}}
}

// do is a step with a result of raw JSON.
func do(ctx context.Context, l stint.Loop, name string, effect stint.Effect, input string, fn func() string) (string, error) {
	var in json.RawMessage
	if input != "" {
		in = json.RawMessage(input)
	}
	res, err := l.Do(ctx, stint.Step{Name: name, Effect: effect, Input: in}, func(context.Context, string) (stint.Result, error) {
		return stint.Result{Data: json.RawMessage(fn())}, nil
	})
	return string(res.Data), err
}

// compact is JSON without white space between its tokens.
func compact(t *testing.T, b []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, b); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return out.String()
}

// await polls for something outside this process.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	end := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-end:
			t.Fatalf("no %s within %v", what, patience)
		case <-tick.C:
		}
	}
}
