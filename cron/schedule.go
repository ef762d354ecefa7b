package cron

import "time"

// Schedule says when something is due. [Parse] makes one; it does not change, and any
// number of goroutines may use it. Its times are whole seconds in its zone, from the
// year 1 to the year 9999.
type Schedule struct {
	text    string
	fields  []string // the expression's, in capitals; of @daily what it stands for
	zone    *time.Location
	seconds bool // the expression has a field of seconds

	// Of @every: its length in seconds, and the instant that it is counted from.
	every, anchor int64

	// Of any other: times on the wall, and whether the clock is followed through its
	// changes or each of the times is met once.
	calendar calendar
	interval bool
}

// Next returns the first time after a given one. It is false if there is none up to the
// year 9999. The cost does not depend on how far the next time is away by more than a
// few hundred nanoseconds a year.
func (s *Schedule) Next(after time.Time) (time.Time, bool) {
	from := clamp(after)
	if from >= maxInstant {
		return time.Time{}, false
	}
	var next int64
	ok := true
	switch {
	case s.every > 0:
		next = s.anchor + s.every*(s.elapsed(from)+1)
	case s.interval:
		next, ok = s.nextShown(from+1, maxInstant)
	default:
		var t wall
		if t, ok = s.calendar.next(reached(s.zone, from)+1, maxInstant+longestOffset); ok {
			next = firstAt(s.zone, t)
		}
	}
	return s.result(next, ok)
}

// Prev returns the last time that is not after a given one: what was due newest. It is
// false if there is none down to the year 1; for @every, down to the anchor.
func (s *Schedule) Prev(upto time.Time) (time.Time, bool) {
	to := clamp(upto)
	if to < minInstant {
		return time.Time{}, false
	}
	var prev int64
	ok := true
	switch {
	case s.every > 0:
		n := s.elapsed(to)
		prev, ok = s.anchor+s.every*n, n > 0
	case s.interval:
		prev, ok = s.prevShown(to)
	default:
		var t wall
		if t, ok = s.calendar.prev(reached(s.zone, to), minInstant-longestOffset); ok {
			prev = firstAt(s.zone, t)
		}
	}
	return s.result(prev, ok)
}

// Count returns how many times are after one time and not after another: what was due
// in between. It does not go through them; a year costs a few microseconds.
func (s *Schedule) Count(after, upto time.Time) int64 {
	from, to := max(clamp(after), minInstant-1), clamp(upto)
	switch {
	case from >= to:
		return 0
	case s.every > 0:
		return s.elapsed(to) - s.elapsed(from)
	case s.interval:
		n := int64(0)
		for from < to {
			p := periodAt(s.zone, from+1)
			end := min(to, p.end-1)
			n += s.calendar.count(from+p.offset, end+p.offset)
			from = end
		}
		return n
	}
	n := s.calendar.count(reached(s.zone, from), reached(s.zone, to))
	for p := periodAt(s.zone, from); p.end <= to; {
		p = periodAt(s.zone, p.end)
		// All that the clock passed over in one step fires there, once.
		if skipped := s.calendar.count(reached(s.zone, p.start-1), reached(s.zone, p.start)); skipped > 1 {
			n -= skipped - 1
		}
	}
	return n
}

// Zone returns the time zone.
func (s *Schedule) Zone() *time.Location { return s.zone }

// String returns the expression in one spelling: names in capitals, single spaces.
// [Parse] makes the same schedule of it, given the same [Options].
func (s *Schedule) String() string { return s.text }

// nextShown returns the first instant in [from, limit] at which the clock shows one of
// the times.
func (s *Schedule) nextShown(from, limit int64) (int64, bool) {
	for from <= limit {
		p := periodAt(s.zone, from)
		if t, ok := s.calendar.next(from+p.offset, p.end+p.offset); ok {
			return t - p.offset, t-p.offset <= limit
		}
		from = p.end
	}
	return 0, false
}

// prevShown returns the last instant up to another at which the clock shows one of the
// times.
func (s *Schedule) prevShown(to int64) (int64, bool) {
	for to >= minInstant {
		p := periodAt(s.zone, to)
		if t, ok := s.calendar.prev(to+p.offset, p.start+p.offset); ok {
			return t - p.offset, true
		}
		to = p.start - 1
	}
	return 0, false
}

// elapsed returns how many times of an @every are up to an instant.
func (s *Schedule) elapsed(instant int64) int64 {
	return max(0, (instant-s.anchor)/s.every)
}

func (s *Schedule) result(instant int64, ok bool) (time.Time, bool) {
	if !ok || instant < minInstant || instant > maxInstant {
		return time.Time{}, false
	}
	return time.Unix(instant, 0).In(s.zone), true
}

// clamp returns the instant of a time, or one just outside the years of a schedule.
func clamp(t time.Time) int64 {
	switch year := t.UTC().Year(); {
	case year < 1:
		return minInstant - 1
	case year > 9999:
		return maxInstant
	}
	return t.Unix()
}
