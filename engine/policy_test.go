package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/policy"
)

// paid is an agent that pays once a loop, and knows with what in the end.
type paid struct {
	did, told []string
	denied    error
}

func (p *paid) Loop(ctx context.Context, l stint.Loop) (stint.Next, error) {
	input := `{"amount":100}`
	s := stint.Step{Name: "pay", Kind: stint.Tool, Effect: stint.Once, Input: json.RawMessage(input)}
	s.Edit = func(in json.RawMessage) { input = string(in); p.told = append(p.told, input) }
	_, err := l.Do(ctx, s, func(context.Context, string) (stint.Result, error) {
		p.did = append(p.did, input)
		return stint.Result{Data: json.RawMessage(`"ok"`)}, nil
	})
	if errors.Is(err, stint.Denied) {
		p.denied = err
		return stint.Next{End: &stint.End{Reason: "denied"}}, nil
	}
	if err != nil {
		return stint.Next{}, err
	}
	if l.Session().At.Loop == 1 { // a loop that is entered again answers the step from the journal
		_, err = stint.Do(ctx, l, stint.Step{Name: "wait", Ask: "go on?"}, func(context.Context, string) (string, error) { return "", nil })
	}
	return stint.Next{End: &stint.End{}}, err
}

// policed is the agent under a policy of rules for pay, and none for the other step.
func policed(t *testing.T, p *paid, rules ...policy.Rule) engine.Agent {
	t.Helper()
	compiled, err := policy.Compile(append(rules, policy.Rule{Name: "others", Match: policy.Match{Tool: []string{"wait"}}, Do: policy.Ask}))
	if err != nil {
		t.Fatal(err)
	}
	return engine.Agent{Name: "paid", Loop: p, Policy: compiled}
}

func (r *rig) decides(id stint.ID, by stint.Actor, d journal.Decision, body string) {
	r.t.Helper()
	data, err := json.Marshal(d)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.store.Send(r.t.Context(), id, stint.Message{ID: d.MessageID(), Kind: stint.Decision, From: by, Data: data, Body: []byte(body)}); err != nil {
		r.t.Fatal(err)
	}
	<-time.After(time.Second)
}

func pay(do policy.Do, a policy.Asking) policy.Rule {
	return policy.Rule{Name: "payments", Match: policy.Match{Tool: []string{"pay"}}, Do: do, Asking: a}
}

// question is the one that is open.
func (r *rig) question(id stint.ID) stint.Approval {
	r.t.Helper()
	for _, a := range r.settles(id, stint.Waiting).At.Approvals {
		if a.State == stint.ApprovalOpen {
			return a
		}
	}
	r.t.Fatalf("nothing is asked\n%s", r.journal(id))
	return stint.Approval{}
}

func TestPolicyDecides(t *testing.T) {
	for _, c := range []struct {
		do   policy.Do
		want string
	}{{policy.Allow, "[{\"amount\":100}] <nil>"}, {policy.Deny, "[] denied by the policy, rule payments: not on a Monday"}} {
		inBubble(t, func(r *rig) {
			p := &paid{}
			a := policed(t, p, pay(c.do, policy.Asking{Message: map[policy.Do]string{policy.Deny: "not on a Monday"}[c.do]}))
			n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
			id := r.start(n.Engine, a, "")
			if c.do == policy.Allow {
				r.decides(id, "human:ana", journal.Decision{Approval: r.question(id).Seq, State: stint.ApprovalApproved}, "")
			}
			r.settles(id, stint.Completed)
			n.stop()
			if got := fmt.Sprint(p.did, " ", p.denied); got != c.want {
				t.Errorf("%s: %s, want %s", c.do, got, c.want)
			}
			r.verifies(id)
			r.show(id)
			r.golden("policy-" + string(c.do))
		})
	}
}

// TestPolicyQuorum: two of the approvers have to say yes to the same input, whoever is none
// of them is refused, and the input that they chose is the one that is done; the agent is told
// of it also where the step is answered from the journal.
func TestPolicyQuorum(t *testing.T) {
	inBubble(t, func(r *rig) {
		p := &paid{}
		a := policed(t, p, pay(policy.Ask, policy.Asking{Approvers: []string{"admin", "user:kim"}, Quorum: 2}))
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		yes := func(by string, edit string, roles ...string) {
			q := r.question(id)
			r.decides(id, stint.Actor("human:"+by), journal.Decision{Approval: q.Seq, State: stint.ApprovalApproved, Each: stint.Actor(by + edit), Roles: roles, Edit: edit != ""}, edit)
		}
		yes("eve", "")                         // no approver
		yes("ana", "", "admin")                // the first
		yes("ana", "", "admin")                // the same message again: nothing
		yes("kim", `{"amount":90}`)            // changes it, and begins the count anew
		yes("eve", `{"amount":1}`, "operator") // still none
		if q := r.question(id); len(q.Yes) != 1 || q.Edited == "" {
			t.Errorf("the question stands at %+v", q)
		}
		if len(p.did) > 0 {
			t.Errorf("it was done with %q before enough had said yes", p.did)
		}
		r.decides(id, "human:ana", journal.Decision{Approval: r.question(id).Seq, State: stint.ApprovalApproved, Each: "ana again", Roles: []string{"admin"}}, "")
		second := r.question(id) // pay is done, and the loop asks the next
		r.decides(id, "human:ana", journal.Decision{Approval: second.Seq, State: stint.ApprovalApproved}, "")
		r.settles(id, stint.Completed)
		n.stop()
		if fmt.Sprint(p.did) != `[{"amount":90}]` || fmt.Sprint(p.told) != `[{"amount":90} {"amount":90}]` {
			t.Errorf("it was done with %q, and told of %q", p.did, p.told)
		}
		r.verifies(id)
		r.show(id)
		r.golden("policy-quorum")
	})
}

// TestPolicyExpires: a question that nobody decides ends as its rule says, whoever runs then.
func TestPolicyExpires(t *testing.T) {
	for _, c := range []struct {
		on     policy.OnExpire
		status stint.Status
		after  time.Duration
	}{
		{policy.ExpireDeny, stint.Completed, time.Hour},
		{policy.ExpireStop, stint.Stopped, time.Hour},
		{policy.Escalate, stint.Completed, 3 * time.Hour}, // the deadlines of ana, of bob, of cho
		{policy.ExpireAsk, stint.Waiting, 90 * time.Minute},
	} {
		t.Run(string(c.on), func(t *testing.T) {
			inBubble(t, func(r *rig) {
				p := &paid{}
				ask := policy.Asking{Approvers: []string{"user:ana"}, Deadline: time.Hour, OnExpire: c.on}
				if c.on == policy.Escalate {
					ask.EscalateTo = []string{"user:bob", "user:cho"}
				}
				a := policed(t, p, pay(policy.Ask, ask))
				n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(n.Engine, a, "")
				q := r.question(id)
				if q.Until.IsZero() {
					t.Error("it has no deadline")
				}
				<-time.After(c.after - time.Minute)
				r.settles(id, stint.Waiting)
				<-time.After(2 * time.Minute)
				r.settles(id, c.status)
				if c.on == policy.ExpireAsk {
					r.decides(id, "human:ana", journal.Decision{Approval: q.Seq, State: stint.ApprovalDenied, Note: "no"}, "")
					r.settles(id, stint.Completed)
				}
				n.stop()
				if len(p.did) > 0 {
					t.Error("it was done")
				}
				r.verifies(id)
				r.show(id)
				r.golden("policy-expire-" + string(c.on))
			})
		})
	}
}

// TestLateIsLate: a yes that comes after the deadline is none, also where nobody was there to
// notice that it passed.
func TestLateIsLate(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late=%v", late), func(t *testing.T) {
			inBubble(t, func(r *rig) {
				p := &paid{}
				a := policed(t, p, pay(policy.Ask, policy.Asking{Deadline: time.Hour}))
				n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(n.Engine, a, "")
				q := r.question(id)
				n.stop()
				yes := func() {
					r.decides(id, "human:ana", journal.Decision{Approval: q.Seq, State: stint.ApprovalApproved}, "")
				}
				if !late {
					yes()
				}
				<-time.After(2 * time.Hour)
				if late {
					yes()
				}
				n = r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
				<-time.After(time.Minute)
				n.stop()
				if (len(p.did) == 0) != late || (len(r.refusals(id)) == 1) != late {
					t.Errorf("%q was done, and refused was %q\n%s", p.did, r.refusals(id), r.journal(id))
				}
				r.verifies(id)
			})
		})
	}
}
