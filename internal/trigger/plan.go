package trigger

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/stint-dev/stint"
)

// Times are the nominal times of a schedule: a [cron.Schedule], or one time.
type Times interface {
	Next(after time.Time) (time.Time, bool) // the first after a time
	Prev(upto time.Time) (time.Time, bool)  // the last that is not after a time
	Count(after, upto time.Time) int64      // how many are after one and not after another
}

// Overlap is what becomes of a time that comes while a session of the schedule is open.
type Overlap string

// The strategies.
const (
	Skip    Overlap = "skip"    // it is skipped
	Queue   Overlap = "queue"   // it waits for that session's end
	Replace Overlap = "replace" // that session is stopped
	Allow   Overlap = "allow"   // both run
)

// Policy is how a schedule deals with times that do not simply come one after the other.
type Policy struct {
	Overlap Overlap
	// Window is how late a time may still lead to a session; 0: not at all, but for Late.
	Window time.Duration
	// Most is how many times that are late may, the newest ones; at least 1. With [Skip]
	// and [Replace] it is 1: they would not let two run.
	Most int
	// Jitter spreads the sessions: each begins up to so much later, as its name and time
	// decide.
	Jitter time.Duration
	// PauseAfter is after how many sessions in a row that did not complete the schedule
	// is paused; 0: never.
	PauseAfter int
}

// Late is how late a time may be and still count as in time: a server looks at least
// twice in it.
const Late = time.Minute

// queued is how many times of a schedule with [Queue] may wait.
const queued = 10

// Standing is what is known of a schedule.
type Standing struct {
	Name  string
	Since time.Time  // what is after it has no line yet
	Up    time.Time  // since when this server looks
	Open  []stint.ID // its sessions that have not ended, oldest first
}

// Outcome is what becomes of nominal times.
type Outcome string

// The outcomes.
const (
	Ran     Outcome = "ran"
	Skipped Outcome = "skipped"
	Missed  Outcome = "missed"
)

// Decision is what becomes of one time, or of several that share their fate.
type Decision struct {
	Outcome Outcome
	From    time.Time // the first of them
	To      time.Time // the last of them; the same for one
	Count   int64
	Reason  string     // why there is no session; see the constants
	Stop    []stint.ID // sessions to stop before
}

// Reasons why a time led to no session.
const (
	Down      = "down"      // no server looked
	Asleep    = "asleep"    // this server did not get to look: the machine slept, or its clock was set
	Newer     = "newer"     // a newer one was late as well, and that one ran
	Overlaps  = "overlap"   // a session of the schedule was open
	Paused    = "paused"    // the schedule was paused
	Condition = "condition" // its condition did not hold
	Edited    = "edited"    // the schedule was changed, and its older times were not yet recorded
	Failed    = "failed"    // no session could be made
	MadeGood  = "made good" // a backfill made a session of it before its turn came
)

// Decide says what becomes of the times of a schedule that are due at now and have no
// line yet, oldest first. Each of them is in one decision, but for those of a schedule
// with [Queue] that wait for an open session's end. next is when to ask again at the
// latest; zero: never. A schedule that is paused is not asked for.
func Decide(t Times, p Policy, s Standing, now time.Time) (ds []Decision, next time.Time) {
	if n, ok := t.Next(now); ok {
		next = p.begins(s.Name, n)
	}
	last, ok := t.Prev(now)
	for ok && p.begins(s.Name, last).After(now) {
		next = p.begins(s.Name, last)
		last, ok = t.Prev(last.Add(-1))
	}
	if !ok || !last.After(s.Since) {
		return nil, next
	}
	late := newest(t, p, s, last, now)
	if len(late) == 0 {
		return []Decision{missed(t, p, s, last)}, next
	}
	if before, ok := t.Prev(late[0].Add(-1)); ok && before.After(s.Since) {
		d := missed(t, p, s, before)
		if !p.begins(s.Name, before).Before(now.Add(-p.window())) {
			d.Reason = Newer
		}
		ds = append(ds, d)
	}
	open := s.Open
	for _, due := range late {
		d := Decision{Outcome: Ran, From: due, To: due, Count: 1}
		switch {
		case len(open) == 0 || p.Overlap == Allow:
		case p.Overlap == Queue:
			return ds, next
		case p.Overlap == Replace:
			d.Stop = open
		default:
			d.Outcome, d.Reason = Skipped, Overlaps
		}
		ds = append(ds, d)
		if d.Outcome == Ran && p.Overlap != Allow {
			open = append(open[:len(open):len(open)], stint.ID{}) // the one that this leads to
		}
	}
	return ds, next
}

// begins is when the session of a time begins: it is late from then on.
func (p Policy) begins(name string, due time.Time) time.Time {
	return due.Add(jitter(name, due, p.Jitter))
}

// window is how late a time may be.
func (p Policy) window() time.Duration { return max(p.Window, Late) }

// newest returns the times that may still lead to a session, oldest first.
func newest(t Times, p Policy, s Standing, last, now time.Time) []time.Time {
	from, most := now.Add(-p.window()), max(p.Most, 1)
	switch p.Overlap {
	case Queue:
		most = max(most, queued)
	case Skip, Replace:
		most = 1
	case Allow:
	}
	var back []time.Time
	for due, ok := last, true; ok && len(back) < most && due.After(s.Since) && !p.begins(s.Name, due).Before(from); due, ok = t.Prev(due.Add(-1)) {
		back = append(back, due)
	}
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	return back
}

// missed is the one decision on all times without a line, up to one.
func missed(t Times, p Policy, s Standing, upto time.Time) Decision {
	d := Gap(t, s.Since, upto, Asleep)
	switch {
	case p.Overlap == Queue && len(s.Open) > 0:
		d.Reason = Overlaps // they waited for longer than may be
	case d.From.Before(s.Up):
		d.Reason = Down
	}
	return d
}

// Gap is one decision on all times after one and not after another: that they led to
// nothing, and why.
func Gap(t Times, after, upto time.Time, reason string) Decision {
	d := Decision{Outcome: Missed, To: upto, Count: t.Count(after, upto), Reason: reason}
	d.From, _ = t.Next(after)
	return d
}

// jitter is by how much the session of one time begins later: the same at each look, and
// in each process.
func jitter(name string, due time.Time, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s@%d", name, due.Unix())
	return time.Duration(h.Sum64() % uint64(most))
}
