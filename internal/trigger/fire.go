package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/ident"
)

// kind is the trigger of sessions of schedules.
const kind = "schedule"

// begin makes the session of an occurrence, and its line with it. id tells those apart that
// people fired.
func (s *Scheduler) begin(ctx context.Context, t *timed, o Occurrence, id string) (stint.ID, error) {
	r, err := t.Request()
	if err != nil {
		return stint.ID{}, err
	}
	o = o.inUTC()
	o.Era = s.held[t.Name].Era
	line := o.line(id, faultpoint.Now())
	if r.Trigger = (stint.Trigger{Kind: kind, Ref: t.Name, Due: o.To}); o.Manual && !o.Backfill {
		r.Trigger.Due = time.Time{}
	}
	if r.Actor == "" {
		r.Actor = stint.Actor("schedule:" + t.Name)
	}
	if r.Name == "" {
		r.Name = t.Name + "-" + o.To.In(t.zone()).Format("0102-1504")
	}
	r.Keys = append(r.Keys, line)
	made, err := s.engine.Start(ctx, r)
	if err != nil {
		return stint.ID{}, err
	}
	faultpoint.Hit(faultpoint.ScheduleDurable)
	if !o.Manual {
		t.since = o.To
	}
	t.open = append(t.open, made.ID)
	s.log.Info("schedule fired", "schedule", t.Name, "session", made.ID, "due", o.To)
	return made.ID, nil
}

// zone is where the schedule's times are local.
func (t *timed) zone() *time.Location {
	if z, ok := t.times.(interface{ Zone() *time.Location }); ok {
		return z.Zone()
	}
	return time.UTC
}

// without records what led to no session.
func (s *Scheduler) without(ctx context.Context, t *timed, d Decision, detail string) error {
	o := Occurrence{Schedule: t.Name, Outcome: d.Outcome, From: d.From.UTC(), To: d.To.UTC(), Count: d.Count, Reason: d.Reason, Detail: clip(detail, 500), Era: s.held[t.Name].Era}
	err := s.system.Record(ctx, engine.Note{What: "occurrence." + string(d.Outcome), Name: t.Name, Reason: d.Reason, Data: o, Keys: []stint.Key{o.line("", faultpoint.Now())}})
	if err != nil && stint.CodeOf(err) == stint.Conflict { // the line is there: it was asked for twice
		t.read = false
		return nil
	}
	if err != nil {
		return err
	}
	faultpoint.Hit(faultpoint.ScheduleDurable)
	t.since = d.To
	s.log.Info("schedule did not fire", "schedule", t.Name, "outcome", d.Outcome, "reason", d.Reason, "detail", o.Detail, "from", o.From, "to", o.To, "times", d.Count)
	return nil
}

// withHint is what went wrong and, where it is known, what to do about it: whoever looks
// at the history was not there.
func withHint(err error) string {
	if e, ok := errors.AsType[*stint.Error](err); ok && e.Hint != "" {
		return err.Error() + "; " + e.Hint
	}
	return err.Error()
}

func clip(s string, most int) string {
	if len(s) > most {
		s = s[:most] + " …"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// stop asks a session to end in favour of the next one.
func (s *Scheduler) stop(ctx context.Context, t *timed, id stint.ID) error {
	data, _ := json.Marshal(map[string]string{"reason": "schedule " + t.Name + " replaces it"}) // it is plain text
	m := stint.Message{ID: "replaced-" + ident.New().String(), Kind: stint.Stop, From: stint.Actor("schedule:" + t.Name), Data: data}
	err := s.store.Send(ctx, id, m)
	if err == nil {
		err = s.engine.Settle(ctx, id)
	}
	if code := stint.CodeOf(err); err != nil && (code == stint.Conflict || code == stint.NotFound) {
		return nil // it has ended meanwhile, or somebody holds it who will see the message
	}
	return err
}

// bad pauses a schedule whose newest sessions all came to nothing, and says so.
func (s *Scheduler) bad(ctx context.Context, t *timed) (bool, error) {
	n := t.Policy.PauseAfter
	if n <= 0 {
		return false, nil
	}
	is, failed := s.held[t.Name], 0
	err := each(ctx, s.store, t.Name, time.Time{}, func(o Occurrence) (bool, error) {
		if o.Session.IsZero() || !o.To.After(is.Resumed) {
			return !o.To.After(is.Resumed), nil
		}
		row, err := s.store.Session(ctx, o.Session)
		if stint.CodeOf(err) == stint.NotFound && err != nil {
			return true, nil // it was deleted, and those before it as well
		}
		if err != nil {
			return false, err
		}
		switch st := row.Session.Status; {
		case st == stint.Failed || st == stint.Stopped:
			failed++
		case st.Ended():
			return true, nil
		}
		return failed == n, nil
	})
	if err != nil || failed < n {
		return false, err
	}
	is.Paused = &Parked{At: now(), By: stint.ByPolicy, Reason: fmt.Sprintf("%d sessions in a row did not complete", n)}
	return true, s.note(ctx, engine.Note{What: "schedule.paused", Name: t.Name, Actor: stint.ByPolicy, Reason: is.Paused.Reason}, &is)
}

// Verb is what a person asks of a schedule.
type Verb string

// The verbs.
const (
	Pause    Verb = "schedule.pause"
	Resume   Verb = "schedule.resume"
	Fire     Verb = "schedule.fire"
	Backfill Verb = "schedule.backfill"
)

// Command is the body of a message to the system journal that asks something of a
// schedule.
type Command struct {
	Verb     Verb   `json:"verb"`
	Schedule string `json:"schedule"`
	Reason   string `json:"reason,omitempty"`
	// From and To bound the times of Backfill, both included.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
}

// Obey does what a message to the system journal asks, and takes it. known is false for
// a message that is none for schedules. What cannot be done is recorded with why.
func (s *Scheduler) Obey(ctx context.Context, m *stint.Message) (known bool, err error) {
	var c Command
	if json.Unmarshal(m.Body, &c) != nil || !strings.HasPrefix(string(c.Verb), "schedule.") {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.poke()
	is, held := s.held[c.Schedule]
	t, err := s.known(c.Schedule, is)
	if err != nil {
		return true, err
	}
	now := now()
	refuse := func(why string) (bool, error) {
		return true, s.system.Record(ctx, engine.Note{What: string(c.Verb) + ".refused", Name: c.Schedule, Actor: m.From, Reason: why, Takes: m})
	}
	switch {
	case !held:
		return refuse("there is no such schedule")
	case t.Request == nil && (c.Verb == Fire || c.Verb == Backfill):
		return refuse("there is no such schedule in the stint.yaml of this server, or it has a mistake there")
	case c.Verb == Pause && is.Paused != nil:
		return refuse("it is paused already")
	case c.Verb == Pause:
		is.Paused = &Parked{At: now, By: m.From, Reason: c.Reason}
		return true, s.note(ctx, engine.Note{What: "schedule.paused", Name: c.Schedule, Actor: m.From, Reason: c.Reason, Takes: m}, &is)
	case c.Verb == Resume && is.Paused == nil:
		return refuse("it is not paused")
	case c.Verb == Resume:
		return true, s.resume(ctx, t, is, m, c.Reason)
	case c.Verb == Backfill:
		return true, s.backfill(ctx, t, c, m)
	case c.Verb == Fire:
		_, err = s.begin(ctx, t, Occurrence{Schedule: t.Name, Outcome: Ran, From: now, To: now, Count: 1, Manual: true, By: string(m.From), Detail: clip(c.Reason, 500)}, m.ID)
		if err != nil {
			return refuse(err.Error())
		}
		return true, s.system.Record(ctx, engine.Note{What: "schedule.fired", Name: c.Schedule, Actor: m.From, Reason: c.Reason, Takes: m})
	}
	return refuse(fmt.Sprintf("%q is nothing that a schedule can do", c.Verb))
}

// known returns a schedule: one of the file, or what the system journal knows of one whose
// definition cannot be read. That can begin nothing, and be paused and resumed.
func (s *Scheduler) known(name string, is Held) (*timed, error) {
	if t := s.all[name]; t != nil || is.Timing == (Timing{}) {
		return t, nil
	}
	times, err := is.Timing.Times()
	return &timed{Schedule: Schedule{Name: name}, times: times}, err
}

// resume ends a pause: what was due in it gets one line.
func (s *Scheduler) resume(ctx context.Context, t *timed, is Held, m *stint.Message, reason string) error {
	now := faultpoint.Now()
	if err := s.read(ctx, t); err != nil {
		return err
	}
	ahead := is.Paused.By == stint.ByEngine && t.since.After(now) // it was paused for a line in the future
	if ahead || t.since.After(now.Add(tooFar)) {
		is.Since, is.Era, t.read = now, is.Era+1, false
	} else if err := s.gap(ctx, t, now, Paused); err != nil {
		return err
	}
	is.Paused, is.Resumed = nil, now
	return s.note(ctx, engine.Note{What: "schedule.resumed", Name: t.Name, Actor: m.From, Reason: reason, Takes: m}, &is)
}
