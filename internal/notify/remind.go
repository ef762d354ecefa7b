package notify

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/journal"
)

const (
	// rows is how many sessions are looked at at once.
	rows = 500
	// lookShare is how many times as long as looking took nobody looks again, so that many
	// sessions that wait cost little of a processor.
	lookShare = 50
)

// remind makes pending what is due of what people are still asked, and returns for how long
// nothing more is. The place is a time: all that was due until then is dealt with, so that
// it costs the same for a million sessions, and nothing is there twice after a restart.
func (s *sender) remind(ctx context.Context) (time.Duration, error) {
	now := clock()
	switch {
	case s.Remind.Never():
		return pollEvery, nil
	case now.Before(s.due):
		return min(s.due.Sub(now), pollEvery), nil
	}
	s.n.mu.Lock()
	from, room := s.held.Reminded, maxPending-len(s.held.Pending)
	s.n.mu.Unlock()
	all, next, err := s.waits(ctx, from, now)
	if err != nil {
		return 0, err
	}
	until := now
	if len(all) > room { // the oldest, and all that are due at the same time as the last of them
		cut := max(room, 1)
		for cut < len(all) && all[cut].Due.Equal(all[cut-1].Due) {
			cut++
		}
		if cut < len(all) {
			until, next = all[cut-1].Due, now
		}
		all = all[:cut]
	}
	s.add(all, until)
	s.due = next
	if took := clock().Sub(now); took > 0 && s.due.Before(now.Add(lookShare*took)) {
		s.due = now.Add(lookShare * took)
	}
	clear(s.late)
	if len(all) == 0 {
		return pollEvery, nil
	}
	return 0, s.n.flush(ctx) // it is known before it is sent
}

// waits finds the reminders that are due after from and not after now, the oldest first, of
// each wait and each order the newest, and when the next one is.
func (s *sender) waits(ctx context.Context, from, now time.Time) (all []Pending, next time.Time, err error) {
	next = now.Add(24 * time.Hour)
	due := func(is *stint.Session, since time.Time) (p Pending, yes bool) {
		if at, ok := s.Remind.Next(since, now); ok && at.Before(next) {
			next = at
		}
		after := from
		if told := s.late[is.ID]; told.After(after) {
			after = told
		}
		n, at := s.Remind.Due(since, after, now)
		return Pending{Event: endpoint.Reminder, Session: is.ID, Since: now, Next: now, Nth: n, Due: at}, n > 0
	}
	err = s.each(ctx, stint.Filter{Statuses: []stint.Status{stint.Waiting}}, func(is *stint.Session) error {
		if !s.asks(is) {
			return nil
		}
		p, yes := due(is, is.Wait.Since)
		if !yes {
			return nil
		}
		p.Waiting = is.Wait.Since
		var err error
		p.Seq, err = s.began(ctx, is)
		all = append(all, p)
		return err
	})
	if err != nil {
		return nil, next, err
	}
	err = s.each(ctx, stint.Filter{Asking: true}, func(is *stint.Session) error {
		for i := range is.At.Approvals {
			a := &is.At.Approvals[i]
			if !a.OfOrder() || a.State != stint.ApprovalOpen || !s.wants(&happened{event: endpoint.Asked}, is.Agent.Name) {
				continue
			}
			if p, yes := due(is, a.Since); yes {
				p.Seq = a.Seq
				all = append(all, p)
			}
		}
		return nil
	})
	slices.SortStableFunc(all, func(a, b Pending) int { return a.Due.Compare(b.Due) })
	return all, next, err
}

// each calls do for all sessions of a filter.
func (s *sender) each(ctx context.Context, f stint.Filter, do func(*stint.Session) error) error {
	for f.Limit = rows; ; {
		page, err := s.n.source.Sessions(ctx, f)
		if err != nil {
			return err
		}
		for i := range page {
			if err := do(&page[i].Session); err != nil {
				return err
			}
		}
		if len(page) < rows {
			return nil
		}
		f.After = page[len(page)-1].Session.ID
	}
}

// asks reports whether a session waits for something that this endpoint is told of.
func (s *sender) asks(is *stint.Session) bool {
	if is.Status != stint.Waiting || is.Wait == nil || !endpoint.NeedsPerson(is.Wait.For) {
		return false
	}
	what := happened{event: endpoint.Waiting, status: stint.Waiting, wait: is.Wait}
	if is.Wait.For == stint.ForApproval {
		what.event = endpoint.Asked
	}
	return s.wants(&what, is.Agent.Name)
}

// began finds the entry with which the wait of a session began.
func (s *sender) began(ctx context.Context, is *stint.Session) (stint.Seq, error) {
	es, err := s.n.source.Entries(ctx, stint.Range{Session: is.ID, Until: is.Head, Kinds: []stint.Kind{stint.SessionWaiting, stint.LineStarted}, Last: true, Limit: 1})
	if err != nil || len(es) == 0 {
		return is.Head, err
	}
	return es[0].Seq, nil
}

// add puts reminders behind what is pending, each in the place of an older one of the same
// wait or order, and where that itself is still to be told, not at all.
func (s *sender) add(all []Pending, until time.Time) {
	s.n.mu.Lock()
	var was []Pending
	keep := slices.Clone(s.held.Pending)
	for i := range all {
		keep = slices.DeleteFunc(keep, func(p Pending) bool {
			older := p.Nth > 0 && p.Session == all[i].Session && p.order() == all[i].order()
			if older {
				was = append(was, p)
			}
			return older
		})
		if !slices.ContainsFunc(keep, func(p Pending) bool {
			if order := all[i].order(); order != 0 {
				return p.Event == endpoint.Asked && p.Session == all[i].Session && p.Seq == order
			}
			return p.Session == all[i].Session && (p.Event == endpoint.Waiting || p.Event == endpoint.Asked)
		}) {
			keep = append(keep, all[i])
		}
	}
	s.held.Pending, s.held.Reminded = keep, until
	s.n.moved, s.n.dirty = true, s.n.dirty || len(all) > 0
	s.n.mu.Unlock()
	for i := range was {
		s.settle(was[i], Moot, Answer{}, "a newer reminder took its place", "")
	}
}

// repeat sends a reminder, unless what it is of is over.
func (s *sender) repeat(ctx context.Context, p Pending, row *stint.Row) error {
	is := &row.Session
	what := p.still(is)
	if what != nil && row.Unread > 0 { // an answer may be there that nobody has taken up
		inbox, err := s.n.source.Inbox(ctx, p.Session)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(inbox, func(m stint.Message) bool { return p.answered(is, &m) }) {
			what = nil
		}
	}
	if what == nil {
		s.settle(p, Moot, Answer{}, "it does not wait for that any more", "")
		return nil
	}
	s.owed = true
	return s.attempt(ctx, p, what, is, p.Due, "")
}

// order is the entry of the question about an order that a reminder is of; 0: it is of a wait.
func (p *Pending) order() stint.Seq {
	if p.Nth == 0 || !p.Waiting.IsZero() {
		return 0
	}
	return p.Seq
}

// still is what the reminder says of a session that asks for the same as when the reminder
// was made; nil if it does not.
func (p *Pending) still(is *stint.Session) *happened {
	if p.order() == 0 {
		if is.Status != stint.Waiting || is.Wait == nil || !is.Wait.Since.Equal(p.Waiting) {
			return nil
		}
		return &happened{event: endpoint.Reminder, status: stint.Waiting, wait: is.Wait}
	}
	i := slices.IndexFunc(is.At.Approvals, func(a stint.Approval) bool { return a.Seq == p.Seq && a.State == stint.ApprovalOpen })
	if i < 0 {
		return nil
	}
	a := &is.At.Approvals[i]
	return &happened{event: endpoint.Reminder, approval: &Question{ident.ApprovalID(is.ID, a.Seq), a.Name, a.Text, a.Why, a.Since.UTC()}}
}

// answered reports whether a message that nobody has taken yet is what the reminder asks for.
func (p *Pending) answered(is *stint.Session, m *stint.Message) bool {
	if p.order() == 0 {
		return is.WokenBy(m.Kind)
	}
	var d journal.Decision
	return m.Kind == stint.Decision && json.Unmarshal(m.Data, &d) == nil && d.Approval == p.Seq
}

// arm looks at an entry after which a reminder may be due.
func (s *sender) arm(e *stint.Entry) {
	order := e.Kind == stint.ApprovalRequested && e.Pos.Step == 0
	if s.Remind.Never() || e.Kind != stint.SessionWaiting && e.Kind != stint.LineStarted && !order {
		return
	}
	if at, ok := s.Remind.Next(e.At, e.At); ok && at.Before(s.due) {
		s.due = at
	}
}

// old reports whether what happened then is told so late that a reminder of it would be due.
func (s *sender) old(at time.Time) bool {
	first, ok := s.Remind.Next(at, at)
	return ok && !s.Remind.Never() && !clock().Before(first)
}

// stands reports whether what an entry told of is still so. Only what waits can change.
func (h *happened) stands(of *stint.Session, e *stint.Entry) bool {
	switch h.event {
	case endpoint.Waiting:
		return of.Status == stint.Waiting && of.Wait != nil && of.Wait.Since.Equal(e.At)
	case endpoint.Asked:
		return slices.ContainsFunc(of.At.Approvals, func(a stint.Approval) bool { return a.Seq == e.Seq && a.State == stint.ApprovalOpen })
	case endpoint.Created, endpoint.Ended, endpoint.Failed, endpoint.Reminder, endpoint.Sample, endpoint.NeedsYou, endpoint.BadEnd:
	}
	return true
}
