package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/policy"
)

// orders gives an order that somebody has to agree to.
func (r *rig) orders(id stint.ID, kind stint.MessageKind, from int, v policy.Verdict) {
	r.t.Helper()
	raw, err := stint.Marshal(v)
	if err != nil {
		r.t.Fatal(err)
	}
	q := &journal.ApprovalRequested{Text: string(kind) + " it", Why: "guard", Approvers: v.Approvers, Policy: raw}
	if v.Quorum > 1 {
		q.Quorum = v.Quorum
	}
	if v.Deadline > 0 {
		q.Until = time.Now().Add(v.Deadline)
	}
	q.Rule = "guard"
	c := journal.Command{From: &from, Ask: q, Reason: "wrong way"}
	if row := r.row(id); !row.Live {
		c.Head = row.Session.Head
	}
	r.send(id, kind, c)
}

// asksOf are the questions about orders that are open.
func (r *rig) asksOf(id stint.ID) (all []stint.Approval) {
	r.t.Helper()
	for _, a := range r.row(id).Session.At.Approvals {
		if a.OfOrder() {
			all = append(all, a)
		}
	}
	return all
}

// branches are the sessions that were begun from this one's state.
func (r *rig) branches(id stint.ID) (all []stint.Session) {
	r.t.Helper()
	for _, s := range r.family(id) {
		if s.Parent.Branch && s.Parent.Session == id {
			all = append(all, s)
		}
	}
	return all
}

var guard = policy.Verdict{Do: policy.Ask, Rule: "guard", Quorum: 1}

// TestOrderIsAsked: an order that others have to agree to changes nothing until they do; a
// no leaves the session as it is, a yes does what was ordered, in whichever status.
func TestOrderIsAsked(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("counter", counter(4, new([]string)))
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "count")
		r.settles(id, stint.Completed)
		n.stop() // nobody serves: whoever sends settles
		e := r.engine(engine.Options{Holder: "r2"})
		settle := func() {
			t.Helper()
			if err := e.Settle(r.t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		r.orders(id, stint.Rollback, 1, guard)
		settle()
		if s := r.row(id).Session; s.Status != stint.Completed || len(r.asksOf(id)) != 1 || s.At.Line != 0 {
			t.Errorf("an order that is asked about: %s, %d questions, line %d", s.Status, len(r.asksOf(id)), s.At.Line)
		}
		r.decide(id, 0, stint.ApprovalDenied, "leave it", "")
		settle()
		if s := r.row(id).Session; s.Status != stint.Completed || len(s.At.Approvals) != 0 {
			t.Errorf("after a no: %s, %v", s.Status, s.At.Approvals)
		}
		r.orders(id, stint.BranchOff, 2, guard)
		settle()
		r.orders(id, stint.Rollback, 1, guard)
		settle()
		r.decide(id, 0, stint.ApprovalApproved, "", "")
		settle()
		if all := r.branches(id); len(all) != 1 || all[0].Parent.Loop != 2 || all[0].Parent.Reason != "wrong way" {
			t.Errorf("after a yes to a branch: %+v", all)
		}
		r.decide(id, 0, stint.ApprovalApproved, "go", "")
		settle()
		if s := r.row(id).Session; s.Status != stint.Waiting || s.Wait.For != stint.ForOperator || s.Checkpoint.Loop != 1 || s.At.Line != 1 {
			t.Errorf("after a yes to a rollback: %s at %d", s.Status, s.Checkpoint.Loop)
		}
		r.verifies(id)
		r.closes(e)
		r.show(id)
		r.golden("order")
	})
}

// TestOrderWhileItRuns: a session goes on while somebody decides about an order; what would
// be done to it then is what was ordered, at its next step.
func TestOrderWhileItRuns(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("slow", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			for range 20 {
				if _, err := step(ctx, l, "work", stint.Read, func() (string, error) { <-time.After(time.Second); return "", nil }); err != nil {
					return stint.Next{}, err
				}
			}
			return stint.Next{State: []byte("1")}, nil
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		<-time.After(25 * time.Second)
		r.orders(id, stint.BranchOff, 1, guard)
		r.orders(id, stint.Restart, 1, guard)
		<-time.After(3 * time.Second)
		if s := r.row(id).Session; len(r.asksOf(id)) != 2 || s.At.Loop != 2 {
			t.Fatalf("%d questions in loop %d\n%s", len(r.asksOf(id)), s.At.Loop, r.journal(id))
		}
		r.decide(id, 0, stint.ApprovalApproved, "", "")
		<-time.After(3 * time.Second)
		began := 0
		for _, e := range r.entries(id) {
			if e.Kind == stint.LoopStarted && e.Pos.Loop == 2 {
				began++
			}
		}
		if s := r.row(id).Session; len(r.branches(id)) != 1 || s.At.Line != 0 || began != 1 {
			t.Errorf("a branch broke off the loop: %d branches, line %d, begun %d times", len(r.branches(id)), s.At.Line, began)
		}
		<-time.After(20 * time.Second) // a question outlives its loop
		if s := r.row(id).Session; s.At.Loop != 3 || len(r.asksOf(id)) != 1 {
			t.Errorf("in loop %d there are %d questions", s.At.Loop, len(r.asksOf(id)))
		}
		r.decide(id, 0, stint.ApprovalApproved, "", "")
		<-time.After(3 * time.Second)
		if s := r.row(id).Session; s.At.Line != 1 || s.At.Loop != 2 {
			t.Errorf("after a yes to a restart from loop 1: line %d, loop %d\n%s", s.At.Line, s.At.Loop, r.journal(id))
		}
		n.stop()
		r.verifies(id)
	})
}

// TestOrderOverMoved: a yes is to the plan that was shown. What went on since makes it void.
func TestOrderOverMoved(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("counter", func(_ context.Context, l stint.Loop) (stint.Next, error) {
			return stint.Next{State: []byte("1"), Wait: &stint.Wait{For: stint.ForMessage, Wakes: []stint.MessageKind{stint.Prompt}}}, nil
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		r.settles(id, stint.Waiting)
		r.orders(id, stint.Rollback, 0, guard)
		<-time.After(time.Second)
		r.message(id, stint.Message{Kind: stint.Prompt, Body: []byte("go on")})
		<-time.After(time.Second)
		r.decide(id, 0, stint.ApprovalApproved, "", "")
		<-time.After(time.Second)
		if s := r.row(id).Session; s.At.Line != 0 || len(s.At.Approvals) != 0 || s.Checkpoint.Loop != 2 {
			t.Errorf("the yes to a plan of before: line %d, %v", s.At.Line, s.At.Approvals)
		}
		if why := r.refusals(id); len(why) != 1 || !strings.Contains(why[0], "went on since it was ordered") {
			t.Errorf("whoever decided is told %q", why)
		}
		n.stop()
		r.verifies(id)
	})
}

// TestOrderByTwo: where two have to agree the first yes changes nothing.
func TestOrderByTwo(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("counter", counter(3, new([]string)))
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "count")
		r.settles(id, stint.Completed)
		v := policy.Verdict{Do: policy.Ask, Rule: "guard", Quorum: 2, Approvers: []string{"approver"}}
		r.orders(id, stint.Rollback, 1, v)
		<-time.After(time.Second)
		q := r.asksOf(id)[0].Seq
		say := func(by stint.Actor, role string) {
			t.Helper()
			r.decides(id, by, journal.Decision{Approval: q, State: stint.ApprovalApproved, Each: by, Roles: []string{role}}, "")
			<-time.After(time.Second)
		}
		say("human:eve", "viewer")
		say("human:kim", "approver")
		if s := r.row(id).Session; s.At.Line != 0 || len(r.asksOf(id)) != 1 {
			t.Errorf("one of two said yes: line %d", s.At.Line)
		}
		say("human:lee", "approver")
		if s := r.settles(id, stint.Waiting); s.At.Line != 1 || len(s.At.Approvals) != 0 {
			t.Errorf("two of two said yes: line %d", s.At.Line)
		}
		n.stop()
		r.verifies(id)
	})
}

// TestOrderExpires: also where the session has ended, and nobody looks.
func TestOrderExpires(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("counter", counter(3, new([]string)))
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "count")
		r.settles(id, stint.Completed)
		r.orders(id, stint.Rollback, 1, policy.Verdict{Do: policy.Ask, Rule: "guard", Quorum: 1, Deadline: time.Hour, OnExpire: policy.Escalate, EscalateTo: []string{"admin"}, Approvers: []string{"user:kim"}})
		<-time.After(90 * time.Minute)
		if q := r.asksOf(id); len(q) != 1 || len(q[0].Approvers) != 2 {
			t.Errorf("after its first deadline: %+v", q)
		}
		<-time.After(time.Hour)
		if s := r.row(id).Session; len(s.At.Approvals) != 0 || s.Status != stint.Completed || s.At.Line != 0 {
			t.Errorf("after its last deadline: %s, %+v", s.Status, s.At.Approvals)
		}
		n.stop()
		r.verifies(id)
	})
}

// losing is a store whose first decision of a question is lost: who makes it is fenced.
type losing struct {
	*mortal
	once sync.Once
}

func (s *losing) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	lost := false
	for i := range b.Entries {
		if b.Entries[i].Kind == stint.ApprovalDecided {
			s.once.Do(func() { lost = true })
		}
	}
	if lost {
		go done(stint.Fenced.Errorf("append", "the process was stopped for a while"))
		return
	}
	s.mortal.Append(ctx, l, b, done)
}

// TestOrderedBranchOnce: a branch that was made by a process which died before it said so
// is the one that the next process finds.
func TestOrderedBranchOnce(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("counter", counter(3, new([]string)))
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "count")
		r.settles(id, stint.Completed)
		n.stop()
		e := r.engineOn(&losing{mortal: r.store}, engine.Options{Holder: "r2"})
		r.orders(id, stint.BranchOff, 2, guard)
		if err := e.Settle(r.t.Context(), id); err != nil {
			t.Fatal(err)
		}
		r.decide(id, 0, stint.ApprovalApproved, "", "")
		if err := e.Settle(r.t.Context(), id); stint.CodeOf(err) != stint.Fenced {
			t.Fatalf("the first try: %v", err)
		}
		if len(r.branches(id)) != 1 || len(r.asksOf(id)) != 1 {
			t.Fatalf("after it: %d branches, %d questions", len(r.branches(id)), len(r.asksOf(id)))
		}
		<-time.After(time.Minute)
		f := r.engine(engine.Options{Holder: "r3"})
		if err := f.Settle(r.t.Context(), id); err != nil {
			t.Fatal(err)
		}
		es := r.entries(id)
		d, err := journal.Decode[journal.ApprovalDecided](&es[len(es)-1])
		if all := r.branches(id); err != nil || len(all) != 1 || len(d.Branches) != 1 || d.Branches[0] != all[0].ID || len(r.asksOf(id)) != 0 {
			t.Errorf("after the second: %v, %+v, %v\n%s", all, d, err, r.journal(id))
		}
		r.closes(e)
		r.closes(f)
		r.verifies(id)
	})
}
