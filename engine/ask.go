package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// maxOrders is how many orders of a session may wait for a decision at a time.
const maxOrders = 20

// askOrder records the question by which an order is decided, instead of obeying it. The
// session stays as it is, and goes on meanwhile.
func (d *driver) askOrder(s *stint.Session, m stint.Message, c journal.Command) error {
	q := *c.Ask
	c.Ask = nil
	open := 0
	for i := range s.At.Approvals {
		if s.At.Approvals[i].OfOrder() {
			open++
		}
	}
	switch {
	case m.Kind != stint.Restart && m.Kind != stint.Rollback && m.Kind != stint.BranchOff:
		return d.refuse(m, "nobody is asked about messages of kind "+string(m.Kind))
	case open >= maxOrders:
		return d.refuse(m, fmt.Sprintf("%d orders of this session wait for a decision; decide some of them first", open))
	}
	if why := d.refusal(s, c); why != "" {
		return d.refuse(m, why)
	}
	order, err := stint.Marshal(c)
	if err != nil {
		return d.refuse(m, plain(err))
	}
	if err := d.take(m, ""); err != nil {
		return err
	}
	taken := d.w.session().Head
	q.StepRequested = journal.StepRequested{Name: string(m.Kind), Input: past.InputSum(order), Rule: clip(q.Rule, maxName)}
	q.Text, q.Why, q.Schema, q.Editable, q.Order = clip(firstLine(q.Text), maxQuestion), clip(firstLine(q.Why), maxQuestion), nil, false, clip(m.ID, 255)
	_, err = d.w.add(journal.Draft{Kind: stint.ApprovalRequested, Pos: d.here(), Actor: m.From, Cause: taken, Data: q, Body: order})
	return err
}

// decideOrder ends a question about an order, and has a yes carried out with it. What
// cannot be done any more is no yes: the question is void, and whoever decided is told why.
func (d *driver) decideOrder(s *stint.Session, m stint.Message, c *journal.Decision, a *stint.Approval) error {
	data := journal.ApprovalDecided{Approval: a.Seq, State: c.State, Note: clip(firstLine(c.Note), maxQuestion)}
	if c.State == stint.ApprovalDenied {
		if err := d.take(m, ""); err != nil {
			return err
		}
		return d.end(a, m.From, data, nil)
	}
	order, cmd, err := d.orderOf(a)
	if err != nil {
		return err
	}
	var back wayBack
	why, err := d.movedSince(s, a, &cmd)
	switch {
	case err != nil || why != "":
	case order.Kind == stint.BranchOff:
		var made Created
		// It is found again where this is cut short before it is recorded.
		made, err = d.e.branch(d.io, s.ID, branchOf(order, cmd, "approval/"+ident.ApprovalID(s.ID, a.Seq)), !d.inLoop())
		if err != nil && stint.CodeOf(err) != stint.Unavailable {
			why, err = plain(err), nil
		}
		data.Branches = []stint.ID{made.ID}
	default:
		back, why, err = d.wayBack(s, order, cmd)
	}
	if err != nil {
		return err
	}
	if why != "" {
		if err := d.refuse(m, why); err != nil {
			return err
		}
		return d.void(a, stint.ApprovalInvalidated, clip(firstLine(why), maxQuestion))
	}
	if err := d.take(m, ""); err != nil {
		return err
	}
	if err := d.end(a, m.From, data, nil); err != nil || order.Kind == stint.BranchOff {
		return err
	}
	back.cause = d.w.session().Head
	return d.goes(s, back)
}

// inLoop reports whether a loop of the session is under way here.
func (d *driver) inLoop() bool { s := d.w.session(); return !s.At.Since.IsZero() }

// aside reports whether m is about orders that wait for a decision, and moves nothing: it
// asks, says no, or yes to a branch. d.mu is held.
func (d *driver) aside(m *stint.Message) bool {
	a, yes := d.ofOrder(m)
	return a != nil && (!yes || a.Name == string(stint.BranchOff)) || m.Kind.Control() && command(*m).Ask != nil
}

// ofOrder returns the question about an order that m decides, and whether it says yes; nil:
// it is no such decision.
func (d *driver) ofOrder(m *stint.Message) (a *stint.Approval, yes bool) {
	var c journal.Decision
	if m.Kind != stint.Decision || json.Unmarshal(m.Data, &c) != nil {
		return nil, false
	}
	s := d.w.session()
	i := slices.IndexFunc(s.At.Approvals, func(a stint.Approval) bool { return a.Seq == c.Approval && a.OfOrder() })
	if i < 0 {
		return nil, false
	}
	return &s.At.Approvals[i], c.State == stint.ApprovalApproved
}

// heedOrders acts, while a loop runs, on what is about orders and does not end the loop.
func (d *driver) heedOrders() error {
	if !d.orders.Swap(false) {
		return nil
	}
	return d.obeyThose(d.aside)
}

// orderOf reads the order that a question is about.
func (d *driver) orderOf(a *stint.Approval) (m stint.Message, c journal.Command, err error) {
	e, q, err := d.requested(a)
	if err != nil {
		return m, c, err
	}
	body, err := past.Body(d.io, d.e.store, d.family, e)
	if err == nil {
		err = json.Unmarshal(body, &c)
	}
	if err != nil {
		return m, c, stint.Corrupt.Errorf("approval", "the order in entry %d cannot be read: %v", a.Seq, err)
	}
	return stint.Message{ID: q.Order, Kind: stint.MessageKind(a.Name), From: e.Actor, At: e.At, Data: body}, c, nil
}

// movedSince is why a plan that somebody agreed to is not the one that would be carried out:
// the session went on. What only asks and decides moves nothing. The command is left without
// the head that it was made at.
func (d *driver) movedSince(s *stint.Session, a *stint.Approval, c *journal.Command) (string, error) {
	if c.Head == 0 {
		return "", nil // it was for a session that ran
	}
	c.Head = 0
	for after := a.Seq; ; {
		es, err := d.e.store.Entries(d.io, stint.Range{Session: s.ID, After: after, Limit: 1000})
		if err != nil || len(es) == 0 {
			return "", err
		}
		i := slices.IndexFunc(es, func(e stint.Entry) bool {
			switch e.Kind {
			case stint.MessageTaken, stint.MessageRefused, stint.ApprovalRequested, stint.ApprovalChanged, stint.ApprovalDecided, stint.LimitChanged, stint.LeaseLost, stint.SessionReleased:
				return false
			}
			return true
		})
		if i >= 0 {
			return fmt.Sprintf("the session went on since it was ordered, with entry %d, %s, at %s: order it again", es[i].Seq, es[i].Kind, es[i].At.Format(time.RFC3339)), nil
		}
		after = es[len(es)-1].Seq
	}
}

// branchOf is the branch that an order asks for.
func branchOf(m stint.Message, c journal.Command, key string) Branch {
	b := Branch{From: c.From, Name: c.Name, State: c.State, Say: c.Say, Reason: c.Reason, Labels: c.Labels, Limits: c.Limits, Actor: m.From, InDoubt: c.InDoubt, Dedupe: key}
	if c.Key != "" {
		b.Dedupe = c.Key
	}
	if c.Agent != nil {
		b.Agent = &Agent{Name: c.Agent.Name, Runtime: c.Agent.Runtime, Config: c.Config}
	}
	return b
}
