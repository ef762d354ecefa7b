package notify

import (
	"context"
	"slices"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/endpoint"
)

const (
	// rows is how many sessions are looked at at once.
	rows = 500
	// lookShare is how many times as long as looking took nobody looks again, so that many
	// sessions that wait cost little of a processor.
	lookShare = 50
)

// remind makes pending what is due of sessions that still wait, and returns for how long
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
// each wait the newest, and when the next one is.
func (s *sender) waits(ctx context.Context, from, now time.Time) (all []Pending, next time.Time, err error) {
	next = now.Add(24 * time.Hour)
	f := stint.Filter{Statuses: []stint.Status{stint.Waiting}, Limit: rows}
	for {
		page, err := s.n.source.Sessions(ctx, f)
		if err != nil {
			return nil, next, err
		}
		for i := range page {
			is := &page[i].Session
			if !s.asks(is) {
				continue
			}
			if at, ok := s.Remind.Next(is.Wait.Since, now); ok && at.Before(next) {
				next = at
			}
			after := from
			if told := s.late[is.ID]; told.After(after) {
				after = told
			}
			n, at := s.Remind.Due(is.Wait.Since, after, now)
			if n == 0 {
				continue
			}
			seq, err := s.began(ctx, is)
			if err != nil {
				return nil, next, err
			}
			all = append(all, Pending{Event: endpoint.Reminder, Session: is.ID, Seq: seq, Since: now, Next: now, Nth: n, Waiting: is.Wait.Since, Due: at})
		}
		if len(page) < rows {
			break
		}
		f.After = page[len(page)-1].Session.ID
	}
	slices.SortStableFunc(all, func(a, b Pending) int { return a.Due.Compare(b.Due) })
	return all, next, nil
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

// add puts reminders behind what is pending, each in the place of an older one of its
// session, and where the session's question itself is still to be told, not at all.
func (s *sender) add(all []Pending, until time.Time) {
	s.n.mu.Lock()
	var was []Pending
	keep := slices.Clone(s.held.Pending)
	for i := range all {
		keep = slices.DeleteFunc(keep, func(p Pending) bool {
			older := p.Nth > 0 && p.Session == all[i].Session
			if older {
				was = append(was, p)
			}
			return older
		})
		if !slices.ContainsFunc(keep, func(p Pending) bool {
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

// repeat sends a reminder, unless its session does not wait for that any more.
func (s *sender) repeat(ctx context.Context, p Pending, row *stint.Row) error {
	is := &row.Session
	open := is.Status == stint.Waiting && is.Wait != nil && is.Wait.Since.Equal(p.Waiting)
	if open && row.Unread > 0 { // an answer may be there that nobody has taken up
		inbox, err := s.n.source.Inbox(ctx, p.Session)
		if err != nil {
			return err
		}
		open = !slices.ContainsFunc(inbox, func(m stint.Message) bool { return is.WokenBy(m.Kind) })
	}
	if !open {
		s.settle(p, Moot, Answer{}, "it does not wait for that any more", "")
		return nil
	}
	s.owed = true
	return s.attempt(ctx, p, &happened{event: endpoint.Reminder, status: stint.Waiting, wait: is.Wait}, is, p.Due, "")
}

// arm looks at an entry after which a reminder may be due.
func (s *sender) arm(e *stint.Entry) {
	if s.Remind.Never() || e.Kind != stint.SessionWaiting && e.Kind != stint.LineStarted {
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
