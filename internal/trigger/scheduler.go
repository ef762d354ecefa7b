package trigger

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/faultpoint"
)

// Schedule is a schedule as a server runs it.
type Schedule struct {
	Name   string
	Timing Timing
	Policy Policy
	// Request says what session a time leads to. Name, Trigger, Actor and Keys are filled
	// in if they are empty.
	Request func() (engine.Request, error)
	// Gate is asked before: no session is made if it is false or fails, and what it says
	// is recorded. nil: there is no condition.
	Gate func(ctx context.Context) (open bool, says string, err error)
}

// Parked says who paused a schedule, when and why.
type Parked struct {
	At     time.Time   `json:"at"`
	By     stint.Actor `json:"by"`
	Reason string      `json:"reason,omitempty"`
}

// Held is what the system journal knows of a schedule.
type Held struct {
	Timing Timing    `json:"timing"`
	Since  time.Time `json:"since"` // times up to it are settled, or are not this schedule's: it began, or was changed, then
	Paused *Parked   `json:"paused,omitempty"`
	// Resumed is when a pause ended last: sessions before it do not count as failed in a
	// row.
	Resumed time.Time `json:"resumed,omitzero"`
	// Era rises when a clock that was ahead is set right and somebody resumes the schedule.
	// Lines of an era before that are of times after Since do not count: there were none
	// of these times yet.
	Era int `json:"era,omitempty"`
}

// tooFar is how far in the future a line may be. Beyond it the clock was wrong when the
// line was written, or it is now.
const tooFar = 24 * time.Hour

// Section is the part of the system journal's state that is of schedules.
const Section = "schedules"

// ReadHeld returns what a section of the system journal's state says of schedules.
func ReadHeld(raw json.RawMessage) (map[string]Held, error) {
	all := map[string]Held{}
	if len(raw) == 0 {
		return all, nil
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, stint.Corrupt.Errorf("schedule", "what the system journal says of schedules cannot be read: %v", err)
	}
	return all, nil
}

// Scheduler makes sessions of the times of schedules. There is one in a store, with the
// server that has the system journal. Its methods may be called from any goroutine.
type Scheduler struct {
	engine *engine.Engine
	system *engine.System
	store  stint.Store
	log    *slog.Logger
	kick   chan struct{}

	gates sync.WaitGroup

	mu   sync.Mutex
	held map[string]Held
	all  map[string]*timed

	beat  sync.Mutex
	pulse Pulse // of the newest look; behind beat
}

// Pulse is how a scheduler does.
type Pulse struct {
	Looked    time.Time // when it looked last, and was done with it; zero: it never has
	Next      time.Time // when the next schedule is due; zero: none is
	Schedules int
	Paused    int // of them
}

// Pulse says how the scheduler does. It does not wait for a look that is under way.
func (s *Scheduler) Pulse() Pulse {
	s.beat.Lock()
	defer s.beat.Unlock()
	return s.pulse
}

// timed is a schedule and what is known of it.
type timed struct {
	Schedule
	times Times
	up    time.Time  // since when it is looked at
	since time.Time  // what is after it has no line
	open  []stint.ID // sessions that may be open
	next  time.Time  // when to look again; zero: no time comes
	read  bool       // since and open were read from the store
	asks  bool       // its condition is being asked
}

// NewScheduler makes a scheduler without schedules. log may be nil.
func NewScheduler(e *engine.Engine, system *engine.System, store stint.Store, log *slog.Logger) (*Scheduler, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	held, err := ReadHeld(system.State(Section))
	if err != nil {
		return nil, err
	}
	return &Scheduler{engine: e, system: system, store: store, log: log, kick: make(chan struct{}, 1), held: held, all: map[string]*timed{}}, nil
}

// Set replaces all schedules. A time of a schedule that is new, or due at other times
// than before, leads to a session only if it comes after now; times of the old one that
// have no line yet get one that says so. What is broken, by name, stays as it was: a
// mistake in a file is no wish to end a schedule.
func (s *Scheduler) Set(ctx context.Context, all []Schedule, broken ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, next := faultpoint.Now(), map[string]*timed{}
	for _, sc := range all {
		times, err := sc.Timing.Times()
		if err != nil {
			return err
		}
		next[sc.Name] = &timed{Schedule: sc, times: times, up: now}
		if old := s.all[sc.Name]; old != nil && old.Timing == sc.Timing {
			next[sc.Name] = old // its condition may be being asked
		}
	}
	for _, name := range broken {
		if old := s.all[name]; old != nil {
			next[name] = old
		}
	}
	if err := s.changes(ctx, all, next, broken, now); err != nil {
		for _, t := range s.all {
			t.read = false // some may have got a line
		}
		return err
	}
	for _, sc := range all {
		next[sc.Name].Schedule = sc
	}
	s.all = next
	s.poke()
	return nil
}

// changes records what differs from what was held.
func (s *Scheduler) changes(ctx context.Context, all []Schedule, next map[string]*timed, broken []string, now time.Time) error {
	for _, sc := range all {
		was, known := s.held[sc.Name]
		if known && was.Timing == sc.Timing {
			continue
		}
		what := "schedule.added"
		if known {
			what = "schedule.changed"
			if err := s.close(ctx, sc.Name, was, now); err != nil {
				return err
			}
		}
		is := was
		if is.Timing, is.Since = sc.Timing, now; !known {
			var err error
			if is.Era, err = s.newEra(ctx, sc.Name, now); err != nil {
				return err
			}
		}
		if err := s.note(ctx, engine.Note{What: what, Name: sc.Name, Data: sc.Timing}, &is); err != nil {
			return err
		}
	}
	for name, was := range s.held {
		if next[name] != nil || slices.Contains(broken, name) {
			continue
		}
		if err := s.close(ctx, name, was, now); err != nil {
			return err
		}
		if err := s.note(ctx, engine.Note{What: "schedule.removed", Name: name}, nil); err != nil {
			return err
		}
	}
	return nil
}

// close records the times of a schedule that is no longer, or no longer so.
func (s *Scheduler) close(ctx context.Context, name string, was Held, now time.Time) error {
	times, err := was.Timing.Times()
	if err != nil {
		return nil //nolint:nilerr // an older program could read it: nothing can be said of its times
	}
	t := &timed{Schedule: Schedule{Name: name}, times: times}
	if err := s.read(ctx, t); err != nil {
		return err
	}
	reason := Edited
	if was.Paused != nil {
		reason = Paused
	}
	return s.gap(ctx, t, now, reason)
}

// gap records that the times of t that have no line and are not after upto led to
// nothing.
func (s *Scheduler) gap(ctx context.Context, t *timed, upto time.Time, reason string) error {
	last, ok := t.times.Prev(upto)
	if !ok || !last.After(t.since) {
		return nil
	}
	d := Gap(t.times, t.since, last, reason)
	if reason == Paused {
		d.Outcome = Skipped
	}
	return s.without(ctx, t, d, "")
}

// note records n and what is held of its schedule after it; nil: nothing any more. The
// lock is held.
func (s *Scheduler) note(ctx context.Context, n engine.Note, is *Held) error {
	next := map[string]Held{}
	for name, h := range s.held {
		next[name] = h
	}
	if is == nil {
		delete(next, n.Name)
	} else {
		next[n.Name] = *is
	}
	raw, err := json.Marshal(next)
	if err != nil {
		return stint.Internal.Errorf("schedule", "what is held of schedules is no JSON: %v", err)
	}
	n.Section, n.State = Section, raw
	if err := s.system.Record(ctx, n); err != nil {
		return err
	}
	s.held = next
	return nil
}

// newEra is the era of a schedule that is new, or was taken out and is put back, which
// begins anew: also if a line of it lies too far in the future.
func (s *Scheduler) newEra(ctx context.Context, name string, now time.Time) (era int, err error) {
	seen, ahead := 0, false
	err = each(ctx, s.store, name, time.Time{}, func(o Occurrence) (bool, error) {
		if !o.Manual {
			era, ahead = max(era, o.Era), ahead || o.To.After(now.Add(tooFar))
		}
		seen++
		return !o.To.After(now) && seen > page, nil
	})
	if ahead {
		era++
	}
	return era, err
}

// read finds out what is known of t.
func (s *Scheduler) read(ctx context.Context, t *timed) error {
	is := s.held[t.Name]
	since := is.Since
	err := each(ctx, s.store, t.Name, time.Time{}, func(o Occurrence) (bool, error) {
		if !o.To.After(is.Since) {
			return true, nil
		}
		if o.Manual || o.Era < is.Era {
			return false, nil
		}
		since = o.To
		return true, nil
	})
	if err != nil {
		return err
	}
	open, err := s.opened(ctx, t.Name)
	if err != nil {
		return err
	}
	t.since, t.open, t.read = since, open, true
	return nil
}

// opened returns the sessions of a schedule that have not ended, oldest first. The ledger
// does not tell: one that is open for long lies far behind its newest lines.
func (s *Scheduler) opened(ctx context.Context, name string) ([]stint.ID, error) {
	var open []stint.ID
	f := stint.Filter{Trigger: kind, Open: true, Limit: page}
	for {
		rows, err := s.store.Sessions(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if f.After = rows[i].Session.ID; rows[i].Session.Trigger.Ref == name {
				open = append(open, f.After)
			}
		}
		if len(rows) < page {
			slices.Reverse(open)
			return open, nil
		}
	}
}

// poke makes Run look again soon, as after a message or a session's end.
func (s *Scheduler) poke() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// lookEvery is how often the clock on the wall is looked at, however far away the next
// time is: it may be set, and a machine may sleep.
const lookEvery = Late / 2

// Run makes sessions until ctx ends. It returns early only when it cannot record any
// more.
func (s *Scheduler) Run(ctx context.Context) error {
	defer s.gates.Wait()
	for {
		wait, err := s.look(ctx)
		if err != nil && ctx.Err() == nil {
			if stint.CodeOf(err) == stint.Fenced {
				return err
			}
			s.log.Warn("schedules", "error", err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-s.kick:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// look does all that is due, and returns how long nothing will be.
func (s *Scheduler) look(ctx context.Context) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait, first, p := lookEvery, error(nil), Pulse{Schedules: len(s.all)}
	defer func() {
		s.beat.Lock()
		defer s.beat.Unlock()
		if p.Looked = s.pulse.Looked; first == nil {
			p.Looked = faultpoint.Now()
		}
		s.pulse = p
	}()
	for _, t := range s.all {
		if s.held[t.Name].Paused != nil {
			p.Paused++
			continue
		}
		if t.asks {
			continue
		}
		if err := s.due(ctx, t); err != nil {
			if first == nil {
				first = err
			}
			wait = min(wait, time.Second)
			continue
		}
		if !t.next.IsZero() {
			if p.Next.IsZero() || t.next.Before(p.Next) {
				p.Next = t.next
			}
			wait = min(wait, max(t.next.Sub(faultpoint.Now()), 0))
		}
		if t.Policy.Overlap == Queue && len(t.open) > 0 {
			wait = min(wait, time.Second) // for the end of a session
		}
	}
	return wait, first
}

// due does what is due of one schedule.
func (s *Scheduler) due(ctx context.Context, t *timed) error {
	if !t.read {
		if err := s.read(ctx, t); err != nil {
			return err
		}
	}
	now := faultpoint.Now()
	if t.since.After(now.Add(tooFar)) {
		is := s.held[t.Name]
		is.Paused = &Parked{At: now.UTC().Truncate(time.Microsecond), By: stint.ByEngine, Reason: "its newest occurrence is of " + t.since.UTC().Format(time.RFC3339) +
			": the clock was wrong then, or it is now; set it right, then resume"}
		return s.note(ctx, engine.Note{What: "schedule.paused", Name: t.Name, Reason: is.Paused.Reason}, &is)
	}
	at := Standing{Name: t.Name, Since: t.since, Up: t.up}
	ds, next := Decide(t.times, t.Policy, at, now)
	if t.next = next; len(ds) == 0 { // most looks end here, without a question to the store
		return nil
	}
	if err := s.stillOpen(ctx, t); err != nil {
		return err
	}
	at.Open = t.open
	ds, _ = Decide(t.times, t.Policy, at, now)
	for _, d := range ds {
		if err := s.do(ctx, t, d); err != nil {
			return err
		}
		if s.held[t.Name].Paused != nil || t.asks {
			return nil
		}
	}
	return s.keep(ctx, t)
}

// noted is how far the lines of a ledger may be ahead of what the system journal holds.
const noted = 30 * 24 * time.Hour

// keep has the system journal hold how far t is settled, now and then: lines are forgotten
// after [lineLife], also those of a schedule that is due once in four years.
func (s *Scheduler) keep(ctx context.Context, t *timed) error {
	is := s.held[t.Name]
	if !t.read || t.since.Sub(is.Since) < noted {
		return nil
	}
	is.Since = t.since
	return s.note(ctx, engine.Note{What: "schedule.settled", Name: t.Name, Data: is.Since}, &is)
}

// stillOpen forgets the sessions of t that have ended.
func (s *Scheduler) stillOpen(ctx context.Context, t *timed) error {
	var open []stint.ID
	for _, id := range t.open {
		row, err := s.store.Session(ctx, id)
		switch {
		case stint.CodeOf(err) == stint.NotFound && err != nil:
		case err != nil:
			return err
		case !row.Session.Status.Ended():
			open = append(open, id)
		}
	}
	t.open = open
	return nil
}

// do does what was decided.
func (s *Scheduler) do(ctx context.Context, t *timed, d Decision) error {
	faultpoint.Hit(faultpoint.ScheduleDecided)
	if d.Outcome != Ran {
		return s.without(ctx, t, d, "")
	}
	if bad, err := s.bad(ctx, t); err != nil {
		return err
	} else if bad {
		return nil
	}
	if t.Gate == nil {
		return s.run(ctx, t, d)
	}
	t.asks = true // it may take its time, and the other schedules do not wait for it
	gate := t.Gate
	s.gates.Go(func() {
		open, says, err := gate(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		defer s.poke()
		t.asks = false
		switch {
		case ctx.Err() != nil: // the server ends, and its successor asks again
			return
		case !s.undecided(t, d): // it was changed, paused or resumed meanwhile, and what that said of the time counts
			return
		case err != nil:
			d.Outcome, d.Reason = Skipped, Condition
			s.log.Warn("a condition could not be asked", "schedule", t.Name, "error", err)
			err = s.without(ctx, t, d, withHint(err))
		case !open:
			d.Outcome, d.Reason = Skipped, Condition
			err = s.without(ctx, t, d, says)
		default:
			err = s.run(ctx, t, d)
		}
		if err != nil {
			s.log.Warn("schedules", "schedule", t.Name, "error", err)
		}
	})
	return nil
}

// undecided reports whether a decision of t is still to be carried out.
func (s *Scheduler) undecided(t *timed, d Decision) bool {
	return s.all[t.Name] == t && s.held[t.Name].Paused == nil && t.read && d.From.After(t.since)
}

// run makes the session of a time that leads to one.
func (s *Scheduler) run(ctx context.Context, t *timed, d Decision) error {
	if made, err := s.isMadeGood(ctx, t.Name, d.To); err != nil {
		return err
	} else if made {
		d.Outcome, d.Reason = Skipped, MadeGood
		return s.without(ctx, t, d, "")
	}
	for _, id := range d.Stop {
		if err := s.stop(ctx, t, id); err != nil {
			return err
		}
	}
	_, err := s.begin(ctx, t, Occurrence{Schedule: t.Name, Outcome: Ran, From: d.From, To: d.To, Count: 1}, "")
	if err == nil || stint.CodeOf(err) == stint.Unavailable || ctx.Err() != nil {
		return err
	}
	d.Outcome, d.Reason = Missed, Failed // it will not be better the next time
	return s.without(ctx, t, d, withHint(err))
}
