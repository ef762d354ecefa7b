package endpoint

import (
	"slices"
	"time"

	"github.com/stint-dev/stint"
)

// NeedsPerson reports whether a wait of that kind is left by a person's act alone, and is
// one that nobody chose: one for a message is how many agents live.
func NeedsPerson(w stint.WaitFor) bool {
	switch w {
	case stint.ForApproval, stint.ForDoubt, stint.ForBudget, stint.ForHealth, stint.ForOperator:
		return true
	case stint.ForMessage, stint.ForTime, stint.ForChild, stint.ForRetry:
	}
	return false
}

// Told reports whether somebody who is told of events, of all if there are none, is told of
// one: what it is, what the session's status is then, and what it waits for. A wait for an
// approval is not told, since [Asked] was.
func Told(events []Event, what Event, status stint.Status, wait stint.WaitFor) bool {
	if what == Waiting && wait == stint.ForApproval {
		return false
	}
	if len(events) == 0 || slices.Contains(events, what) {
		return true
	}
	switch what {
	case Asked:
		return slices.Contains(events, NeedsYou)
	case Waiting:
		return slices.Contains(events, NeedsYou) && NeedsPerson(wait)
	case Failed, Ended:
		return slices.Contains(events, BadEnd) && (status == stint.Failed || status == stint.Stopped)
	}
	return false
}

// Remind is when somebody is told again of what a session still waits for.
type Remind struct {
	After []time.Duration `json:"after_ns,omitempty"` // since the wait began, ascending
	Daily bool            `json:"daily,omitempty"`    // and then each day after the last of them
}

// DefaultRemind is for endpoints that name [NeedsYou] and say nothing else.
func DefaultRemind() Remind {
	return Remind{After: []time.Duration{15 * time.Minute, time.Hour, 4 * time.Hour}, Daily: true}
}

// Never reports whether nobody is told again.
func (r Remind) Never() bool { return len(r.After) == 0 && !r.Daily }

// at is when the n-th reminder of a wait is due, from 1 on; ok is false beyond the last.
func (r Remind) at(since time.Time, n int) (t time.Time, ok bool) {
	if n <= len(r.After) {
		return since.Add(r.After[n-1]), true
	}
	if len(r.After) > 0 {
		since = since.Add(r.After[len(r.After)-1])
	}
	return since.Add(time.Duration(n-len(r.After)) * day), r.Daily
}

const day = 24 * time.Hour

// Due returns the newest reminder of a wait that is due after from and not after until: its
// number, and when it is. 0 says that there is none.
func (r Remind) Due(since, from, until time.Time) (n int, at time.Time) {
	n = r.before(since, until)
	if n == 0 {
		return 0, time.Time{}
	}
	if at, _ = r.at(since, n); !at.After(from) {
		return 0, time.Time{}
	}
	return n, at
}

// Next returns when the first reminder of a wait after t is due; ok is false if none is.
func (r Remind) Next(since, t time.Time) (at time.Time, ok bool) {
	return r.at(since, r.before(since, t)+1)
}

// before is how many reminders of a wait are due until t.
func (r Remind) before(since, t time.Time) int {
	n := 0
	for n < len(r.After) && !since.Add(r.After[n]).After(t) {
		n++
	}
	if n < len(r.After) || !r.Daily {
		return n
	}
	if n > 0 {
		since = since.Add(r.After[n-1])
	}
	return n + int(max(t.Sub(since), 0)/day)
}

// Quiet is the hours of each day in which only what is urgent is told. The zero one has
// none.
type Quiet struct {
	From time.Duration `json:"from_ns"` // since midnight, by the clock on the wall
	To   time.Duration `json:"to_ns"`   // before From: of the next day
	Zone string        `json:"tz"`      // of the time zone database
}

// Until returns when the quiet hours end in which t is; ok is false if it is in none.
func (q Quiet) Until(t time.Time) (end time.Time, ok bool) {
	if q.From == q.To {
		return time.Time{}, false
	}
	zone, err := time.LoadLocation(q.Zone)
	if err != nil {
		zone = time.UTC // it was checked when it was read
	}
	year, month, today := t.In(zone).Date()
	clock := func(date int, at time.Duration) time.Time {
		return time.Date(year, month, date, 0, int(at/time.Minute), 0, 0, zone)
	}
	for _, date := range []int{today - 1, today} {
		last := date
		if q.To < q.From {
			last++
		}
		if end := clock(last, q.To); !t.Before(clock(date, q.From)) && t.Before(end) {
			return end, true
		}
	}
	return time.Time{}, false
}
