package record_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/record"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/model/script"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/builtin"
)

// rig is an engine on a store in memory, and how often its tools ran.
type rig struct {
	t     *testing.T
	store *mem.Store
	e     *engine.Engine

	mu  sync.Mutex
	ran int
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, store: mem.New()}
	var err error
	if r.e, err = engine.New(t.Context(), r.store, engine.Options{Agents: []engine.Agent{worker()}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.e.Close(), r.store.Close()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// worker is who a session begins another one of.
func worker() engine.Agent {
	return engine.Agent{Name: "worker", Loop: stint.AgentFunc(func(context.Context, stint.Loop) (stint.Next, error) {
		return stint.Next{End: &stint.End{Result: json.RawMessage(`"dug"`)}}, nil
	})}
}

// tools are one that counts, one that fails, one that is asked about, and the built-in ones.
func (r *rig) tools() *tool.Set {
	does := func(name string, effect stint.Effect, fn func(n int, c tool.Call) (string, error)) tool.Tool {
		return tool.Tool{Name: name, Effect: effect, Approve: tool.Never, Caller: tool.CallerFunc(func(_ context.Context, c tool.Call) (tool.Output, error) {
			r.mu.Lock()
			r.ran++
			n := r.ran
			r.mu.Unlock()
			text, err := fn(n, c)
			return tool.Output{Text: text}, err
		})}
	}
	pay := does("pay", stint.Once, func(_ int, c tool.Call) (string, error) { return "paid " + string(c.Args), nil })
	pay.Approve = tool.Always
	all, err := builtin.Spawn("worker")
	if err != nil {
		r.t.Fatal(err)
	}
	all = append(all, builtin.Ask(), pay,
		does("count", stint.Once, func(n int, _ tool.Call) (string, error) { return fmt.Sprint("run ", n), nil }),
		does("look", stint.Read, func(_ int, c tool.Call) (string, error) { return fmt.Sprint(len(c.Args), " bytes"), nil }),
		does("fail", stint.Read, func(int, tool.Call) (string, error) {
			return "", stint.Definite(&stint.Error{Code: stint.Unavailable, Err: errors.New("it is broken"), Hint: "mend it"})
		}))
	set, err := tool.NewSet(all...)
	if err != nil {
		r.t.Fatal(err)
	}
	return set
}

func (r *rig) agent(play string, rec llm.Record) engine.Agent {
	r.t.Helper()
	m, err := script.Parse([]byte(play))
	if err != nil {
		r.t.Fatal(err)
	}
	a, err := llm.New(llm.Spec{Model: m, Tools: r.tools(), Record: rec})
	if err != nil {
		r.t.Fatal(err)
	}
	return engine.Agent{Name: "clerk", Loop: a}
}

// run does a session, with decide for what it asks; answers are what was made of it.
func (r *rig) run(a engine.Agent, branch *stint.ID, decide func(*stint.Approval) (journal.Decision, string)) stint.Session {
	r.t.Helper()
	var s stint.Session
	var err error
	if branch != nil {
		zero := 0
		c, err := r.e.Branch(r.t.Context(), *branch, engine.Branch{From: &zero, Agent: &a, InDoubt: journal.RedoDoubt, Actor: "human:ana"})
		if err != nil {
			r.t.Fatal(err)
		}
		s, err = r.drive(c.ID, a)
		if err != nil {
			r.t.Fatal(err)
		}
		return s
	}
	e, err := engine.New(r.t.Context(), r.store, engine.Options{Agents: []engine.Agent{a, worker()}})
	if err != nil {
		r.t.Fatal(err)
	}
	defer e.Close()
	s, err = e.RunNew(r.t.Context(), engine.Request{Agent: a, Input: []byte("Go."), Actor: "human:ana"}, func(engine.Created) {})
	for err == nil && s.Status == stint.Waiting && s.Wait.For == stint.ForApproval {
		for i := range s.At.Approvals {
			q := &s.At.Approvals[i]
			if q.State != stint.ApprovalOpen {
				continue
			}
			d, body := decide(q)
			d.Approval = q.Seq
			data, err := stint.Marshal(d)
			if err != nil {
				r.t.Fatal(err)
			}
			if err := r.store.Send(r.t.Context(), s.ID, stint.Message{ID: d.MessageID(), Kind: stint.Decision, From: "human:ana", Data: data, Body: []byte(body)}); err != nil {
				r.t.Fatal(err)
			}
		}
		s, err = r.drive(s.ID, a)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// drive goes on with a session as another process would.
func (r *rig) drive(id stint.ID, a engine.Agent) (stint.Session, error) {
	e, err := engine.New(r.t.Context(), r.store, engine.Options{Agents: []engine.Agent{a, worker()}})
	if err != nil {
		return stint.Session{}, err
	}
	s, err := e.Run(r.t.Context(), id)
	return s, errors.Join(err, e.Close())
}

// results are what a session told its model of its calls, in order.
func (r *rig) results(s *stint.Session) (out []string) {
	r.t.Helper()
	b, err := journal.ReadState(s.Checkpoint, engine.Source(r.t.Context(), r.store, s.ID, s.Family))
	if err != nil {
		r.t.Fatal(err)
	}
	var state struct {
		Messages []struct {
			Parts []struct{ Result *struct{ Text string } }
		}
	}
	if err := json.Unmarshal(b, &state); err != nil {
		r.t.Fatal(err)
	}
	for _, m := range state.Messages {
		for _, p := range m.Parts {
			if p.Result != nil {
				out = append(out, p.Result.Text)
			}
		}
	}
	return out
}

// long is more than the input of a call that is on record by its hash alone.
var long = strings.Repeat("x", 3000)

// A session with calls of every kind is done again from its record: the model is told the
// same of each call, and no tool runs.
func TestTheSameIsTold(t *testing.T) {
	r := newRig(t)
	play := `{"steps":[
		{"tools":[{"name":"count","input":{"a":1,"b":[2]}},{"name":"fail","input":{"x":{"y":1,"z":2}}},{"name":"look","input":{"text":"` + long + `","n":1}}]},
		{"tools":[{"name":"count","input":{"b":[2],"a":1}},{"name":"pay","input":{"to":"ana"}},{"name":"pay","input":{"to":"bob"}},{"name":"pay","input":{"to":"cy"}}]},
		{"tools":[{"name":"ask","input":{"question":"Which?"}},{"name":"spawn","input":{"agent":"worker","input":"dig"}}]},
		{"tools":[{"name":"wait_for_children","input":{}}]},
		{"text":"Done."}]}`
	a := r.agent(play, nil)
	was := r.run(a, nil, func(q *stint.Approval) (journal.Decision, string) {
		switch {
		case q.Name == "ask":
			return journal.Decision{State: stint.ApprovalApproved}, `"the red one"`
		case strings.Contains(q.Text, "bob"):
			return journal.Decision{State: stint.ApprovalDenied, Note: "not bob"}, ""
		case strings.Contains(q.Text, "cy"):
			return journal.Decision{State: stint.ApprovalApproved, Edit: true}, `{"to":"di"}`
		}
		return journal.Decision{State: stint.ApprovalApproved}, ""
	})
	if was.Status != stint.Completed {
		t.Fatalf("%s: %s, %+v", was.Status, was.Reason, was.Wait)
	}
	ran, told := r.ran, r.results(&was)
	if len(told) != 10 || told[5] != "denied by human:ana: not bob" || !strings.Contains(told[6], `to {"to":"di"})`) || told[7] != "the red one" {
		t.Errorf("it was told %q", told)
	}
	rec := record.New(r.store, record.Of{Session: was.ID, Until: was.Head})
	if n, err := rec.Len(t.Context()); err != nil || n != 10 {
		t.Errorf("%d calls are on record, %v", n, err)
	}
	// The members of the arguments stand in another order.
	other := strings.NewReplacer(`{"a":1,"b":[2]}`, `{"b":[2], "a":1}`, `{"y":1,"z":2}`, `{"z":2,"y":1}`, `"text":"`+long+`","n":1`, `"n":1,"text":"`+long+`"`).Replace(play)
	is := r.run(r.agent(other, rec), &was.ID, nil)
	if is.Status != stint.Completed || r.ran != ran {
		t.Fatalf("%s: %s; %d tools ran", is.Status, is.Reason, r.ran-ran)
	}
	if got, err := r.store.Sessions(t.Context(), stint.Filter{}); err != nil || len(got) != 3 { // itself, its child, the branch
		t.Errorf("%d sessions, %v", len(got), err)
	}
	got := r.results(&is)
	if len(got) != len(told) || len(got) != 10 {
		t.Fatalf("it was told %q, and then %q", told, got)
	}
	for i := range got {
		if got[i] != told[i] && !(i == 8 && strings.HasPrefix(got[i], told[i]+" The session ") && strings.HasSuffix(got[i], "has ended: completed. Its result:\n\"dug\"")) {
			t.Errorf("of call %d it was told %q, and then %q", i, told[i], got[i])
		}
	}
	if missing, err := record.Missing(t.Context(), r.store, &is); err != nil || len(missing) != 0 {
		t.Errorf("not on record are %+v, %v", missing, err)
	}
}

// Equal calls get their results in order, and then the last of them; what is not on record
// is told as that; what came later, or stands on a line that was left, is not on record.
func TestOrder(t *testing.T) {
	r := newRig(t)
	a := r.agent(`{"steps":[{"tools":[{"name":"count","input":{}},{"name":"count","input":{"n":1}}]},{"tools":[{"name":"count","input":{}}]},{"text":"Done."}]}`, nil)
	was := r.run(a, nil, nil)
	whole := record.Of{Session: was.ID, Until: was.Head}
	rec := record.New(r.store, whole)
	for n, want := range []string{"run 1", "run 3", "run 3", "run 3"} {
		got, ok, err := rec.Answer(t.Context(), "count", json.RawMessage(`{}`), n)
		if err != nil || !ok || !strings.Contains(string(got.Data), `"`+want+`"`) {
			t.Errorf("call %d gave %s, %v, %v, want %q", n, got.Data, ok, err, want)
		}
	}
	for _, c := range []struct {
		name, args string
		of         record.Of
	}{
		{"count", `{"n":2}`, whole}, {"count", `{"n":1.0}`, whole}, {"look", `{}`, whole},
		{"count", `{"n":1}`, record.Of{Session: was.ID, Behind: 1, Until: was.Head}},
		{"count", `{}`, record.Of{Session: was.ID, Until: 2}},
	} {
		if got, ok, err := record.New(r.store, c.of).Answer(t.Context(), c.name, json.RawMessage(c.args), 0); ok || err != nil {
			t.Errorf("%s %s of %+v gave %s, %v", c.name, c.args, c.of, got.Data, err)
		}
	}
	ran := r.ran
	is := r.run(r.agent(`{"steps":[{"tools":[{"name":"count","input":{}},{"name":"pay","input":{"to":"eve"}}]},{"tools":[{"name":"count","input":{}},{"name":"count","input":{}}]},{"text":"Done."}]}`, rec), &was.ID, nil)
	got := r.results(&is)
	if is.Status != stint.Completed || r.ran != ran || len(got) != 4 || got[0] != "run 1" || !strings.HasPrefix(got[1], "error: pay"+llm.OffRecord) || got[2] != "run 3" || got[3] != "run 3" {
		t.Errorf("%s: %s; %d tools ran, and it was told %q", is.Status, is.Reason, r.ran-ran, got)
	}
	missing, err := record.Missing(t.Context(), r.store, &is)
	if err != nil || len(missing) != 1 || missing[0].Pos.String() != "1.2.2" || missing[0].Tool != "pay" || string(missing[0].Args) != `{"to":"eve"}` {
		t.Errorf("not on record are %+v, %v", missing, err)
	}
	// Done again, it is on the record of that session neither.
	if got, ok, err := record.New(r.store, record.Of{Session: is.ID, Until: is.Head}).Answer(t.Context(), "pay", json.RawMessage(`{"to":"eve"}`), 0); ok || err != nil {
		t.Errorf("what was not made gave %+v, %v", got, err)
	}
}

// A process dies in the middle of a recorded call: whoever goes on asks for the same one.
func TestARecordedCallIsInNoDoubt(t *testing.T) {
	r := newRig(t)
	play := `{"steps":[{"tools":[{"name":"count","input":{}}]},{"tools":[{"name":"count","input":{}}]},{"text":"Done."}]}`
	was := r.run(r.agent(play, nil), nil, nil)
	rec := record.New(r.store, record.Of{Session: was.ID, Until: was.Head})
	stuck := &stuckRecord{Record: rec, reached: make(chan bool), dead: make(chan bool)}
	a := r.agent(play, stuck)
	zero := 0
	c, err := r.e.Branch(t.Context(), was.ID, engine.Branch{From: &zero, Agent: &a, Actor: "human:ana"})
	if err != nil {
		t.Fatal(err)
	}
	dies, err := engine.New(t.Context(), r.store, engine.Options{Agents: []engine.Agent{a}})
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan error)
	go func() {
		_, err := dies.Run(t.Context(), c.ID)
		gone <- err
	}()
	<-stuck.reached
	if err := dies.Close(); err != nil {
		t.Error(err)
	}
	defer func() {
		close(stuck.dead)
		<-gone
	}()
	ran := r.ran
	is, err := r.drive(c.ID, r.agent(play, rec))
	if err != nil || is.Status != stint.Completed || r.ran != ran {
		t.Fatalf("%s: %s, %+v; %d tools ran, %v", is.Status, is.Reason, is.Wait, r.ran-ran, err)
	}
	if got := r.results(&is); len(got) != 2 || got[0] != "run 1" || got[1] != "run 2" {
		t.Errorf("it was told %q", got)
	}
}

// stuckRecord does not answer the second call.
type stuckRecord struct {
	llm.Record

	reached, dead chan bool
}

func (s *stuckRecord) Answer(ctx context.Context, name string, args json.RawMessage, n int) (llm.Recorded, bool, error) {
	if n == 0 {
		return s.Record.Answer(ctx, name, args, n)
	}
	close(s.reached)
	<-s.dead
	return llm.Recorded{}, false, errors.New("it is too late")
}

// What somebody said before a loop is said again where a branch begins before it.
func TestSaid(t *testing.T) {
	r := newRig(t)
	was := r.run(r.agent(`{"steps":[{"text":"Done."}]}`, nil), nil, nil)
	zero := 0
	a := r.agent(`{"steps":[{"text":"Done."}]}`, nil)
	c, err := r.e.Branch(t.Context(), was.ID, engine.Branch{From: &zero, Agent: &a, Say: "Mind the gap.", Actor: "human:ana"})
	if err != nil {
		t.Fatal(err)
	}
	is, err := r.drive(c.ID, a)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct {
		s    *stint.Session
		loop int
		want string
	}{{&was, 1, ""}, {&is, 1, "Mind the gap."}, {&is, 2, ""}} {
		if got, err := record.Said(t.Context(), r.store, q.s, q.loop); err != nil || got != q.want {
			t.Errorf("loop %d of %s was told %q, %v", q.loop, q.s.Name, got, err)
		}
	}
}
