package trigger

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// MaxBackfill is how many times one backfill may have.
const MaxBackfill = 100

// Planned is a nominal time of the past, and what a backfill makes of it.
type Planned struct {
	Due time.Time `json:"due"`
	// Was is what the ledger says of the time; empty: nothing, it was before the schedule.
	Was     Outcome  `json:"was,omitempty"`
	Session stint.ID `json:"session,omitzero"` // that it led to
	Runs    bool     `json:"runs"`             // the backfill makes a session of it
}

// PlanBackfill says what a backfill of a schedule from one time to another does: each
// nominal time between them leads to a session, unless one did, or was made by a
// backfill before. More than [MaxBackfill] times, and times that are not past, are
// refused.
func PlanBackfill(ctx context.Context, r stint.Reader, name string, times Times, from, to, now time.Time) ([]Planned, error) {
	if to.After(now) || from.After(to) {
		err := stint.Invalid.Errorf("schedule", "%s to %s is no stretch of the past", from.Format(time.RFC3339), to.Format(time.RFC3339))
		err.Hint = "give --from before --to, and --to not after now"
		return nil, err
	}
	if n := times.Count(from.Add(-1), to); n > MaxBackfill {
		err := stint.Limit.Errorf("schedule", "%d times lie between, and a backfill has at most %d", n, MaxBackfill)
		err.Hint = "do it in parts"
		return nil, err
	}
	var all []Planned
	at := map[int64]int{}
	for due, ok := times.Next(from.Add(-1)); ok && !due.After(to); due, ok = times.Next(due) {
		at[due.Unix()] = len(all)
		all = append(all, Planned{Due: due.UTC(), Runs: true})
	}
	err := each(ctx, r, name, time.Time{}, func(o Occurrence) (bool, error) {
		mark(all, at, o)
		return o.To.Before(from), nil
	})
	return all, err
}

// mark notes in a plan what one line of the ledger says.
func mark(all []Planned, at map[int64]int, o Occurrence) {
	switch i, one := at[o.To.Unix()]; {
	case o.Manual && !o.Backfill: // it is of no time
	case o.Outcome == Ran && one:
		all[i].Was, all[i].Session, all[i].Runs = Ran, o.Session, false
	case o.Outcome != Ran:
		for i := range all {
			if p := &all[i]; p.Was == "" && !p.Due.Before(o.From) && !p.Due.After(o.To) {
				p.Was = o.Outcome
			}
		}
	}
}

// madeGood is the name of the line of a backfill of one time, within its schedule.
func madeGood(due time.Time) string { return "backfill@" + due.UTC().Format(time.RFC3339) }

// isMadeGood reports whether a backfill has made a session of a time. One that waits, as for
// the end of another session, has no line when somebody asks for it to be made good.
func (s *Scheduler) isMadeGood(ctx context.Context, name string, due time.Time) (bool, error) {
	line := Occurrence{Schedule: name, To: due, Manual: true}.line(madeGood(due), due)
	keys, err := s.store.Keys(ctx, stint.Key{Scope: line.Scope, Name: line.Name}, 1)
	return len(keys) > 0, err
}

// backfill makes the sessions of a plan, each once however often it is asked for.
func (s *Scheduler) backfill(ctx context.Context, t *timed, c Command, m *stint.Message) error {
	note := engine.Note{What: string(Backfill) + ".refused", Name: t.Name, Actor: m.From, Takes: m}
	plan, err := PlanBackfill(ctx, s.store, t.Name, t.times, c.From, c.To, m.At)
	made := 0
	for i := range plan {
		if p := plan[i]; err == nil && p.Runs {
			o := Occurrence{Schedule: t.Name, Outcome: Ran, From: p.Due, To: p.Due, Count: 1, Manual: true, Backfill: true, By: string(m.From), Detail: clip(c.Reason, 500)}
			if _, err = s.begin(ctx, t, o, madeGood(p.Due)); err == nil {
				made++
			}
		}
	}
	if ctx.Err() != nil || stint.CodeOf(err) == stint.Unavailable {
		return err // the message stays, and what was made is found again
	}
	if note.Reason = c.Reason; err == nil {
		note.What, note.Data = "schedule.backfilled", map[string]any{"from": c.From, "to": c.To, "sessions": made}
	} else {
		note.Reason = fmt.Sprintf("%v, after %d sessions", err, made)
	}
	return s.system.Record(ctx, note)
}
