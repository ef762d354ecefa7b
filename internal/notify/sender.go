package notify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/faultpoint"
)

// sender sends events to one endpoint, one at a time: first what it has not taken before
// and is due, then what is new, in turns.
type sender struct {
	Endpoint

	n    *Notifier
	kick chan struct{}
	held held // under n.mu

	cancel context.CancelFunc // nil: it does not run
	over   chan struct{}

	entries []stint.Entry // of the feed, read and not dealt with
	cursors []string      // behind each of them, and where to go on

	owed bool                   // a reminder was sent that is not written down
	due  time.Time              // no reminder is due before
	late map[stint.ID]time.Time // when it was told of waits that were old by then
}

const (
	// maxPending is how many events of an endpoint may wait for another attempt. Beyond it
	// the endpoint's sender goes no further in the feed.
	maxPending = 100
	// page is how many entries of the feed are read at once.
	page = 256
)

// end stops the sender and waits for it. What was on its way will be sent again.
func (s *sender) end() {
	if s.cancel != nil {
		s.cancel()
		<-s.over
		s.cancel = nil
	}
}

// poke makes the sender look at the feed.
func (s *sender) poke() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

func (s *sender) run(ctx context.Context) {
	for ctx.Err() == nil {
		wait, err := s.turn(ctx)
		if err != nil && ctx.Err() == nil {
			s.n.log.Warn("notify", "endpoint", s.Name, "error", err)
			wait = pollEvery
		}
		if wait <= 0 {
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-s.kick:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// turn sends at most one event that is due again and one that is new, and returns for how
// long there is nothing more to do.
func (s *sender) turn(ctx context.Context) (wait time.Duration, err error) {
	s.n.mu.Lock()
	is, full := s.held, len(s.n.lines) >= maxLines
	s.n.mu.Unlock()
	switch {
	case is.Paused != nil:
		return pausedWait, nil
	case full:
		return pollEvery, nil
	}
	now, wait := faultpoint.Now(), pollEvery
	if end, quiet := s.Quiet.Until(now); quiet {
		return min(end.Sub(now), pollEvery), nil // a clock may be set meanwhile
	}
	if i := soonest(is.Pending); i >= 0 && !is.Pending[i].Next.After(now) {
		if err := s.again(ctx, is.Pending[i]); err != nil {
			return 0, err
		}
		wait = 0
	} else if i >= 0 {
		wait = is.Pending[i].Next.Sub(now)
	}
	s.n.mu.Lock()
	room := len(s.held.Pending) < maxPending && s.held.Paused == nil
	s.n.mu.Unlock()
	if !room {
		return wait, nil
	}
	if more, err := s.next(ctx); more || err != nil {
		return 0, err
	}
	due, err := s.remind(ctx) // after all that is new, which it would repeat
	if wait = min(wait, due); err != nil || wait <= 0 || !s.owed {
		return wait, err
	}
	s.owed = false
	return wait, s.n.flush(ctx) // before a crash has it sent again
}

// clock is the time as documents have it.
func clock() time.Time { return faultpoint.Now().UTC().Truncate(time.Microsecond) }

// soonest is the pending event that is due first; -1 if there is none.
func soonest(all []Pending) int {
	best := -1
	for i := range all {
		if best < 0 || all[i].Next.Before(all[best].Next) {
			best = i
		}
	}
	return best
}

// again sends a pending event once more.
func (s *sender) again(ctx context.Context, p Pending) error {
	row, err := s.n.source.Session(ctx, p.Session)
	if err != nil {
		if stint.CodeOf(err) == stint.NotFound {
			s.settle(p, Gone, Answer{}, "", "")
			return nil
		}
		return err
	}
	if p.Nth > 0 {
		return s.repeat(ctx, p, &row)
	}
	es, err := s.n.source.Entries(ctx, stint.Range{Session: p.Session, After: p.Seq - 1, Until: p.Seq, Limit: 1})
	if err != nil {
		return err
	}
	if len(es) == 0 {
		s.settle(p, Gone, Answer{}, "", "")
		return nil
	}
	what, err := read(&es[0])
	if err != nil {
		return err
	}
	if what == nil {
		s.settle(p, Gone, Answer{}, "", "")
		return nil
	}
	return s.attempt(ctx, p, what, &row.Session, es[0].At, "")
}

// next deals with the next entry of the feed, and reports whether there was one.
func (s *sender) next(ctx context.Context) (more bool, err error) {
	if len(s.entries) == 0 {
		if more, err = s.read(ctx); err != nil || !more {
			return more, err
		}
	}
	if len(s.entries) == 0 {
		return true, nil
	}
	e, cursor := &s.entries[0], s.cursors[0]
	s.arm(e)
	what, row, err := s.meant(ctx, e)
	if err != nil {
		return false, err
	}
	if what == nil {
		s.pass(cursor)
	} else if err := s.first(ctx, what, &row.Session, e, cursor); err != nil {
		return false, err
	}
	s.entries, s.cursors = s.entries[1:], s.cursors[1:]
	return true, nil
}

// first tells of an entry that is new.
func (s *sender) first(ctx context.Context, what *happened, of *stint.Session, e *stint.Entry, cursor string) error {
	p := Pending{Event: what.event, Session: e.Session, Seq: e.Seq, Since: clock()}
	if _, held := s.Quiet.Until(e.At); held && !what.stands(of, e) {
		s.settle(p, Moot, Answer{}, "it was over before the quiet hours were", cursor)
		return nil
	}
	if s.old(e.At) {
		s.late[e.Session] = p.Since
	}
	return s.attempt(ctx, p, what, of, e.At, cursor)
}

// read reads a page of the feed, and reports whether its place moved.
func (s *sender) read(ctx context.Context) (bool, error) {
	s.n.mu.Lock()
	from := s.held.Cursor
	s.n.mu.Unlock()
	es, cursors, err := s.n.source.Feed(ctx, from, page)
	if code := stint.CodeOf(err); code == stint.Conflict || code == stint.Invalid { // a copy of the store was put back
		s.n.log.Warn("notify: the place in the feed is of another store; going on from its end", "endpoint", s.Name, "error", err)
		es, cursors, err = s.n.source.Feed(ctx, "", 0)
	}
	if err != nil {
		return false, err
	}
	last := cursors[len(cursors)-1]
	if len(es) == 0 { // all that may be there is of the system journal, where this is written down itself
		s.n.mu.Lock()
		s.held.Cursor = last
		s.n.mu.Unlock()
	}
	s.entries, s.cursors = es, cursors
	return last != from, nil
}

// pass moves the place in the feed beyond what this endpoint is not told of.
func (s *sender) pass(cursor string) {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	s.held.Cursor, s.n.moved = cursor, true
}

// meant says what an entry tells this endpoint of; nil: of nothing.
func (s *sender) meant(ctx context.Context, e *stint.Entry) (*happened, stint.Row, error) {
	if !slices.Contains(kinds(), e.Kind) {
		return nil, stint.Row{}, nil
	}
	what, err := read(e)
	if err != nil || what == nil {
		return nil, stint.Row{}, err
	}
	row, err := s.n.source.Session(ctx, e.Session)
	if err != nil && stint.CodeOf(err) == stint.NotFound {
		return nil, row, nil
	}
	if err != nil || !s.wants(what, row.Session.Agent.Name) {
		return nil, row, err
	}
	if what.event == endpoint.Ended || what.event == endpoint.Failed { // after a restart nobody is told of the end again
		before, err := s.n.source.Entries(ctx, stint.Range{Session: e.Session, Until: e.Seq - 1, Kinds: []stint.Kind{stint.SessionEnded}, Limit: 1})
		if err != nil || len(before) > 0 {
			return nil, row, err
		}
	}
	return what, row, nil
}

// attempt sends an event, and remembers what came of it. at is when it happened, cursor the
// place behind it, "" for one that was pending. An error is none of the endpoint's.
func (s *sender) attempt(ctx context.Context, p Pending, what *happened, of *stint.Session, at time.Time, cursor string) error {
	n, err := what.notification(of, &p, at)
	if err != nil {
		return err
	}
	p.Attempts++
	got, err := s.Channel.Send(ctx, n)
	if ctx.Err() != nil {
		return ctx.Err() // it counts for nothing
	}
	switch {
	case err == nil:
		s.settle(p, Delivered, got, got.Said, cursor)
	case got.Final:
		s.settle(p, Refused, got, err.Error(), cursor)
	default:
		s.refused(p, got, err, cursor)
	}
	return nil
}

// moveTo moves the place in the feed together with what came of the event before it. n.mu
// is held.
func (s *sender) moveTo(cursor string) {
	s.n.dirty = true
	if cursor != "" {
		s.held.Cursor = cursor
	}
}

// settle ends what is to be done about an event.
func (s *sender) settle(p Pending, result Result, got Answer, why, cursor string) {
	sent := Sent{ID: p.id(), Endpoint: s.Name, Event: p.Event, Session: p.Session, At: clock(),
		Result: result, Attempts: p.Attempts, Status: got.Status, Error: oneLine(why)}
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	s.held.Pending = others(s.held.Pending, &p)
	if result == Delivered {
		s.held.Failing = time.Time{}
	}
	if result.Lost() {
		s.n.note(engine.Note{What: "notify.lost", Name: s.Name, Reason: sent.Error, Data: sent})
		s.n.log.Warn("an endpoint did not take an event", "endpoint", s.Name, "event", sent.ID, "reason", sent.Error)
	}
	s.n.lines = append(s.n.lines, sent.line())
	s.moveTo(cursor)
}

// others are all pending events but one.
func others(all []Pending, p *Pending) []Pending {
	var out []Pending // what a reader has is not changed
	for i := range all {
		if all[i].id() != p.id() {
			out = append(out, all[i])
		}
	}
	return out
}

// hopeless reports whether an event was sent often enough, while the endpoint took others.
// Where it takes nothing at all the event is not the reason, and is kept.
func (s *sender) hopeless(p *Pending) bool {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	return p.Attempts >= maxAttempts && (s.held.Failing.IsZero() || s.held.Failing.After(p.Since))
}

// refused plans the next attempt at an event, or gives it up, and pauses an endpoint that
// took nothing for too long or says that it is no more.
func (s *sender) refused(p Pending, got Answer, err error, cursor string) {
	now := clock()
	p.Error = oneLine(err.Error())
	p.Next = now.Add(max(backoff(p.Attempts, rand.Float64()), got.After)).Truncate(time.Microsecond)
	if s.hopeless(&p) {
		s.settle(p, GivenUp, got, p.Error, cursor)
		return
	}
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	s.moveTo(cursor)
	s.held.Pending = append(others(s.held.Pending, &p), p)
	if s.held.Failing.IsZero() {
		s.held.Failing = now
	}
	reason := ""
	switch {
	case got.Closed:
		reason = p.Error
	case now.Sub(s.held.Failing) >= PauseAfter:
		reason = fmt.Sprintf("it took nothing for %d days; last: %s", PauseAfter/(24*time.Hour), p.Error)
	default:
		return
	}
	s.held.Paused = &Parked{At: now, By: stint.ByEngine, Reason: reason}
	s.n.note(engine.Note{What: "notify.paused", Name: s.Name, Reason: reason})
	s.n.log.Warn("endpoint paused", "endpoint", s.Name, "reason", reason)
}
