package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/policy"
)

// maxAsked is how much of a step's input stands in the line that asks about it, in bytes.
const maxAsked = 200

// judge has the agent's policy say what is to become of c: its verdict stands over what the
// step says of itself. A step whose answer a person is to give is not a policy's business,
// and one that has begun is past it.
func (l *loop) judge(c *call) {
	p := l.d.agent.Policy
	if p == nil || c.intended || c.step.Answer != nil {
		return
	}
	s := l.d.w.session()
	call := policy.Call{
		Session: s.ID, Agent: s.Agent.Name, Trigger: s.Trigger.Kind, Labels: s.Labels, Tool: c.step.Name, Kind: c.step.Kind, Effect: c.step.Effect,
		Input: c.step.Input, Tainted: c.step.Tainted || s.Trigger.Kind == "hook", Cost: c.step.Reserve.Cost, Spent: s.Totals.Usage.Cost, Approve: c.step.Approve,
	}
	v := p.Judge(call)
	c.intent.Rule = v.Rule
	if g, yes := l.granted(v, call, faultpoint.Now()); yes && l.question(c.pos) == nil {
		c.step.Ask, c.intent.Rule = "", "grant:"+g.ID
		return
	}
	switch v.Do {
	case policy.Allow:
		c.step.Ask = ""
	case policy.Deny:
		text := "denied by the policy, rule " + v.Rule
		if v.Message != "" {
			text += ": " + v.Message
		}
		c.step.Ask, c.decided = "", true
		c.err = stint.Definite(&stint.Error{Code: stint.Denied, Err: fmt.Errorf("%s", text)})
	case policy.Ask:
		if c.step.Ask == "" {
			c.step.Ask = clip(strings.TrimSpace(c.step.Name+" "+string(c.step.Input)), maxAsked)
		}
		c.step.Why, c.verdict = v.Why, &v
	}
}

// wants fills in what the policy wants of a question.
func (c *call) wants(d *journal.ApprovalRequested) error {
	v := c.verdict
	d.Editable = c.step.Edit != nil && (v == nil || v.Edit)
	if v == nil {
		return nil
	}
	d.Approvers = v.Approvers
	if v.Quorum > 1 {
		d.Quorum = v.Quorum
	}
	if v.Deadline > 0 {
		d.Until = faultpoint.Now().Add(v.Deadline)
	}
	var err error
	d.Policy, err = stint.Marshal(v)
	return err
}

// asked reads what was recorded with a question: the verdict that it comes from, nil for one
// that no policy asked.
func (d *driver) asked(a *stint.Approval) (*policy.Verdict, *journal.ApprovalRequested, error) {
	_, q, err := d.requested(a)
	if err != nil || q.Policy == nil {
		return nil, &q, err
	}
	var v policy.Verdict
	if err := json.Unmarshal(q.Policy, &v); err != nil {
		return nil, &q, stint.Corrupt.Errorf("approval", "the verdict in entry %d cannot be read: %v", a.Seq, err)
	}
	return &v, &q, nil
}

// requested is the entry that asks a question, and its data.
func (d *driver) requested(a *stint.Approval) (e *stint.Entry, q journal.ApprovalRequested, err error) {
	if err := d.w.sync(); err != nil { // it may be one of this drive
		return nil, q, err
	}
	es, err := d.e.store.Entries(d.io, stint.Range{Session: d.lease.Session, After: a.Seq - 1, Until: a.Seq})
	if err != nil {
		return nil, q, err
	}
	if len(es) != 1 {
		return nil, q, stint.Corrupt.Errorf("approval", "entry %d, which asks, is not there", a.Seq)
	}
	q, err = journal.Decode[journal.ApprovalRequested](&es[0])
	return &es[0], q, err
}

// expire ends or escalates the questions whose time is up, as their policy says. p stops the
// session, if that is what it says.
func (d *driver) expire() (p *parking, err error) {
	s := d.w.session()
	now, woken := faultpoint.Now(), false
	for i := range s.At.Approvals {
		a := &s.At.Approvals[i]
		if a.State != stint.ApprovalOpen || a.Until.IsZero() || now.Before(a.Until) {
			continue
		}
		woken = woken || !a.OfOrder()
		v, _, err := d.asked(a)
		if err != nil {
			return nil, err
		}
		if stops, err := d.late(a, v); err != nil || stops != nil {
			return stops, err
		}
	}
	if !woken {
		return nil, nil
	}
	s = d.w.session()
	if s.Status != stint.Waiting || s.Wait.For != stint.ForApproval {
		return nil, nil
	}
	if until, open := nextExpiry(&s); open { // it waits on, for the next of them
		if _, err := d.w.add(journal.Draft{Kind: stint.SessionResumed, Pos: d.here(), Data: journal.Resumed{Why: "time"}}); err != nil {
			return nil, err
		}
		w := *s.Wait
		w.Until = until
		return &parking{wait: &w}, nil
	}
	_, err = d.w.add(journal.Draft{Kind: stint.SessionResumed, Pos: d.here(), Data: journal.Resumed{Why: "time"}})
	return nil, err
}

// nextExpiry is when the first open question about a step expires; open says that there is one.
func nextExpiry(s *stint.Session) (until time.Time, open bool) {
	for i := range s.At.Approvals {
		a := &s.At.Approvals[i]
		if a.State != stint.ApprovalOpen || a.OfOrder() {
			continue
		}
		open = true
		if !a.Until.IsZero() && (until.IsZero() || a.Until.Before(until)) {
			until = a.Until
		}
	}
	return until, open
}

// tooLate is why a decision that came at a time is none any more, whoever has noticed; empty:
// it came before the deadline, or the question outlives that.
func (d *driver) tooLate(a *stint.Approval, at time.Time) (string, error) {
	if a.Until.IsZero() || at.Before(a.Until) {
		return "", nil
	}
	v, _, err := d.asked(a)
	if what, _ := atDeadline(a, v); err != nil || what == policy.Escalate || what == policy.ExpireAsk {
		return "", err
	}
	return "it expired at " + a.Until.Format(time.RFC3339) + ": nobody had decided", nil
}

// atDeadline is what the policy does with a question whose time is up, and who may decide
// from then on.
func atDeadline(a *stint.Approval, v *policy.Verdict) (policy.OnExpire, []string) {
	if v == nil {
		return policy.ExpireDeny, nil
	}
	n := 0
	if v.Deadline > 0 {
		n = int(a.Until.Sub(a.Since) / v.Deadline)
	}
	return v.Expired(n)
}

// late does with a question whose time is up what its policy says. Its first deadline may
// lead to others, who get as long.
func (d *driver) late(a *stint.Approval, v *policy.Verdict) (*parking, error) {
	what, others := atDeadline(a, v)
	pos := d.here()
	pos.Step, pos.Sub = a.Step.Step, a.Step.Sub
	switch what {
	case policy.Escalate, policy.ExpireAsk:
		c := journal.ApprovalChanged{Approval: a.Seq, Until: a.Until.Add(v.Deadline), Approvers: a.Approvers, Note: "nobody decided in time: asked again"}
		if what == policy.Escalate {
			c.Approvers, c.Note = others, "nobody decided in time: others are asked"
		}
		for now := faultpoint.Now(); !c.Until.After(now); { // deadlines that went by unseen
			c.Until = c.Until.Add(v.Deadline)
		}
		_, err := d.w.add(journal.Draft{Kind: stint.ApprovalChanged, Pos: pos, Actor: stint.ByPolicy, Cause: a.Seq, Data: c})
		return nil, err
	}
	if err := d.end(a, stint.ByPolicy, journal.ApprovalDecided{Approval: a.Seq, State: stint.ApprovalExpired, Note: "nobody decided in time"}, nil); err != nil {
		return nil, err
	}
	if what == policy.ExpireStop && !a.OfOrder() {
		return &parking{end: &stint.End{Outcome: stint.Stopped, Reason: "approval: nobody decided in time about " + clip(a.Text, maxAsked)}}, nil
	}
	return nil, nil
}
