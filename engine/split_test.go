package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// chooser thinks, once for each session of a family and never again, and then asks.
type chooser struct {
	mu     sync.Mutex
	ran    map[string]int    // by the session's name and the step
	chosen map[string]string // by the session's name: what it ended with
	schema json.RawMessage   // nil: it asks for a yes or a no
}

func (c *chooser) agent() engine.Agent {
	return agent("chooser", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		s := l.Session()
		do := func(st stint.Step, out string) (string, error) {
			r, err := l.Do(ctx, st, func(context.Context, string) (stint.Result, error) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.ran[st.Name]++
				return stint.Result{Data: json.RawMessage(out), Usage: stint.Usage{Input: 7}}, nil
			})
			return string(r.Data), err
		}
		if s.At.Loop == 1 {
			_, err := do(stint.Step{Name: "look", Effect: stint.Read}, `"seen"`)
			return stint.Next{State: json.RawMessage(`1`)}, err
		}
		if _, err := do(stint.Step{Name: "think", Effect: stint.Idempotent}, `"deploy"`); err != nil {
			return stint.Next{}, err
		}
		if _, err := do(stint.Step{Name: "order", Effect: stint.Once}, `"ordered"`); err != nil {
			return stint.Next{}, err
		}
		got, err := do(stint.Step{Name: "deploy", Effect: stint.Once, Ask: "deploy it?", Answer: c.schema}, `"deployed"`)
		if stint.CodeOf(err) == stint.Denied {
			got, err = err.Error(), nil
		}
		if err != nil {
			return stint.Next{}, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.chosen[s.Name] = got
		return stint.Next{End: &stint.End{}}, nil
	})
}

// splits decides the open question of a session, and what its branches go on with.
func (r *rig) splits(id stint.ID, d journal.Decision, body string) {
	r.t.Helper()
	d.Approval = r.question(id).Seq
	r.decides(id, "human:kim", d, body)
}

// TestSplit: each answer to a question gets a session that goes on with it from there, and
// nothing that stands before the question is done again.
func TestSplit(t *testing.T) {
	inBubble(t, func(r *rig) {
		c := &chooser{ran: map[string]int{}, chosen: map[string]string{}}
		n := r.serve(engine.Options{Agents: []engine.Agent{c.agent()}, Holder: "r1"})
		id := r.start(n.Engine, c.agent(), "go")
		r.settles(id, stint.Waiting)
		r.splits(id, journal.Decision{State: stint.ApprovalApproved, Branches: []journal.Decision{{State: stint.ApprovalDenied, Note: "try without"}}}, "")
		<-time.After(time.Minute)
		parent := r.settles(id, stint.Completed)
		all := r.branches(id)
		if len(all) != 1 {
			t.Fatalf("%d branches", len(all))
		}
		b := r.settles(all[0].ID, stint.Completed)
		if c.chosen[parent.Name] != `"deployed"` || !strings.Contains(c.chosen[b.Name], "denied by human:kim: try without") {
			t.Errorf("they ended with %q", c.chosen)
		}
		if c.ran["think"] != 1 || c.ran["order"] != 1 || c.ran["deploy"] != 1 || c.ran["look"] != 1 {
			t.Errorf("done were %v", c.ran)
		}
		if b.Totals.Steps != 0 || b.Totals.Usage != (stint.Usage{}) || b.Totals.Errors != 1 || b.Checkpoint.Loop != 2 || b.Parent.Loop != 1 {
			t.Errorf("the branch counts %+v", b.Totals)
		}
		n.stop()
		r.verifies(id)
		r.verifies(b.ID)
		r.note("the session")
		r.show(id)
		r.note("the branch")
		r.show(b.ID)
		r.golden("split")
	})
}

// TestSplitAnswers: of a question that asks for more than a yes or a no.
func TestSplitAnswers(t *testing.T) {
	inBubble(t, func(r *rig) {
		c := &chooser{ran: map[string]int{}, chosen: map[string]string{}, schema: json.RawMessage(`{"type":"string"}`)}
		n := r.serve(engine.Options{Agents: []engine.Agent{c.agent()}, Holder: "r1"})
		id := r.start(n.Engine, c.agent(), "go")
		r.settles(id, stint.Waiting)
		yes := stint.ApprovalApproved
		r.splits(id, journal.Decision{State: yes, Branches: []journal.Decision{{State: yes, Answer: json.RawMessage(`"blue"`)}, {State: yes, Answer: json.RawMessage(`"green"`)}}}, `"red"`)
		<-time.After(time.Minute)
		got := []string{c.chosen[r.settles(id, stint.Completed).Name]}
		for _, b := range r.branches(id) {
			got = append(got, c.chosen[r.settles(b.ID, stint.Completed).Name])
			r.verifies(b.ID)
		}
		if s := strings.Join(got, " "); s != `"red" "blue" "green"` || c.ran["order"] != 1 {
			t.Errorf("they went on with %s, and ordered %d times", s, c.ran["order"])
		}
		n.stop()
	})
}

// TestSplitOnce: a process that dies before the decision is recorded leaves branches that
// the next one finds.
func TestSplitOnce(t *testing.T) {
	inBubble(t, func(r *rig) {
		c := &chooser{ran: map[string]int{}, chosen: map[string]string{}}
		n := r.serve(engine.Options{Agents: []engine.Agent{c.agent()}, Holder: "r1"})
		id := r.start(n.Engine, c.agent(), "go")
		r.settles(id, stint.Waiting)
		n.stop()
		e := r.engineOn(&losing{mortal: r.store}, engine.Options{Holder: "r2"})
		r.splits(id, journal.Decision{State: stint.ApprovalDenied, Branches: []journal.Decision{{State: stint.ApprovalApproved}}}, "")
		if err := e.Settle(r.t.Context(), id); stint.CodeOf(err) != stint.Fenced {
			r.t.Fatalf("the first try: %v", err)
		}
		<-time.After(time.Minute)
		two := r.serve(engine.Options{Agents: []engine.Agent{c.agent()}, Holder: "r3"})
		r.settles(id, stint.Completed)
		if all := r.branches(id); len(all) != 1 {
			t.Errorf("%d branches", len(all))
		} else if b := r.settles(all[0].ID, stint.Completed); c.chosen[b.Name] != `"deployed"` || c.ran["deploy"] != 1 {
			t.Errorf("it ended with %q", c.chosen)
		}
		two.stop()
		r.closes(e)
		r.verifies(id)
	})
}

// TestSplitWhereAChildIs: what a loop has spawned is one session's alone. The question is
// asked anew, since of one there is one decision.
func TestSplitWhereAChildIs(t *testing.T) {
	inBubble(t, func(r *rig) {
		child := agent("worker", func(context.Context, stint.Loop) (stint.Next, error) { return ends(`1`), nil })
		boss := agent("boss", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if _, err := spawn(ctx, l, stint.Child{Agent: "worker"}); err != nil {
				return stint.Next{}, err
			}
			_, err := l.Do(ctx, stint.Step{Name: "deploy", Ask: "deploy it?"}, func(context.Context, string) (stint.Result, error) { return stint.Result{}, nil })
			return stint.Next{End: &stint.End{}}, err
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{boss, child}, Holder: "r1"})
		id := r.start(n.Engine, boss, "go")
		first := r.question(id).Seq
		r.splits(id, journal.Decision{State: stint.ApprovalApproved, Branches: []journal.Decision{{State: stint.ApprovalDenied}}}, "")
		<-time.After(time.Minute)
		q := r.question(id)
		if len(r.branches(id)) != 0 || q.Seq == first {
			t.Errorf("%d branches, and the question is %d after %d", len(r.branches(id)), q.Seq, first)
		}
		if why := r.refusals(id); len(why) != 1 || !strings.Contains(why[0], "whose end only this session hears") {
			t.Errorf("it was refused with %q", why)
		}
		r.decides(id, "human:kim", journal.Decision{Approval: q.Seq, State: stint.ApprovalApproved}, "")
		<-time.After(time.Minute)
		r.settles(id, stint.Completed)
		n.stop()
		r.verifies(id)
	})
}

// TestSplitSkips: what a person chose not to have done again is not done by a branch at a
// question either.
func TestSplitSkips(t *testing.T) {
	inBubble(t, func(r *rig) {
		var mu sync.Mutex
		sent := map[string]int{}
		hang := true
		a := agent("sender", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if l.Session().At.Line > 0 || l.Session().Parent.Branch {
				if _, err := l.Do(ctx, stint.Step{Name: "look", Effect: stint.Read, Ask: "go on?"}, func(context.Context, string) (stint.Result, error) { return stint.Result{}, nil }); err != nil && stint.CodeOf(err) != stint.Denied {
					return stint.Next{}, err
				}
			}
			_, err := l.Do(ctx, stint.Step{Name: "send", Effect: stint.Once}, func(ctx context.Context, _ string) (stint.Result, error) {
				mu.Lock()
				sent[l.Session().Name]++
				hangs := hang
				hang = false
				mu.Unlock()
				if hangs {
					<-ctx.Done()
				}
				return stint.Result{}, ctx.Err()
			})
			return stint.Next{End: &stint.End{}}, err
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "go")
		<-time.After(time.Second)
		r.store.Kill("r1")
		two := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
		r.settles(id, stint.Waiting)
		zero := 0
		r.send(id, stint.Restart, journal.Command{From: &zero, InDoubt: journal.SkipDoubt})
		<-time.After(time.Second)
		r.splits(id, journal.Decision{State: stint.ApprovalApproved, Branches: []journal.Decision{{State: stint.ApprovalDenied}}}, "")
		<-time.After(time.Minute)
		s := r.settles(id, stint.Completed)
		for _, b := range r.branches(id) {
			r.settles(b.ID, stint.Completed)
			r.verifies(b.ID)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(r.branches(id)) != 1 || len(sent) != 1 || sent[s.Name] != 1 {
			t.Errorf("it was sent %v\n%s", sent, r.journal(id))
		}
		two.stop()
		n.stop()
	})
}
