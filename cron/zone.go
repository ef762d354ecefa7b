package cron

import (
	"strings"
	"time"
)

// Instants are seconds since 1970-01-01T00:00:00Z. A schedule knows the years 1 to
// 9999, those that RFC 3339 can write.
const (
	minInstant = -62135596800
	maxInstant = 253402300799

	// farOff is the year 2100: later on all zones keep to rules that repeat each year.
	farOff = 4102444800

	// longestOffset bounds how far any clock has ever been from UTC, in seconds.
	longestOffset = 16 * 3600

	// longestRepeat bounds how far any clock was ever set back: a day, where the date
	// line moved.
	longestRepeat = 26 * 3600
)

// Zone returns the time zone of a name of the IANA database, like Europe/Berlin or UTC.
// It refuses with [stint.Invalid] the empty name, names for whatever this machine is
// set to, and what is no zone: a schedule means the same on each machine.
func Zone(name string) (*time.Location, error) {
	const hint = "take a name of the IANA database, like Europe/Berlin or America/New_York, or UTC"
	switch plain := strings.ToLower(name); {
	case name == "":
		return nil, refuse("zone", name, "a schedule needs a time zone", hint)
	case plain == "local", plain == "localtime", plain == "posixrules":
		return nil, refuse("zone", name, "it is another one on each machine", hint)
	case strings.HasPrefix(plain, "posix/"), strings.HasPrefix(plain, "right/"), !zoneName(name):
		return nil, refuse("zone", name, "there is no such time zone", hint)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, refuse("zone", name, "there is no such time zone", hint)
	}
	return loc, nil
}

// zoneName reports whether a name could be one of a zone: it is looked up as a file.
func zoneName(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.Trim(part, ".") == "" {
			return false
		}
	}
	other := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("/_+-", r)
	}
	return len(name) <= 64 && !strings.ContainsFunc(name, other)
}

// period is a time in which a clock was not set: the instants in [start, end), and what
// it is ahead of UTC. Neighbours may have the same offset.
type period struct{ start, end, offset int64 }

// periodAt returns the period of an instant. What [time.Time.ZoneBounds] says of starts
// is used with care: in the year in which a zone's table ends and its rule begins, the
// start it gives may lie before other periods.
func periodAt(loc *time.Location, instant int64) period {
	start, _ := time.Unix(instant, 0).In(loc).ZoneBounds()
	p := period{start: minInstant}
	if !start.IsZero() {
		p.start = max(minInstant, min(start.Unix(), instant))
	}
	for p.end, p.offset = until(loc, p.start); p.end <= instant; p.end, p.offset = until(loc, p.end) {
		p.start = p.end
	}
	return p
}

// until returns when the period of an instant ends, and its offset.
func until(loc *time.Location, instant int64) (end, offset int64) {
	t := time.Unix(instant, 0).In(loc)
	_, ahead := t.Zone()
	_, bound := t.ZoneBounds()
	end = maxInstant + 1
	if !bound.IsZero() {
		if end = bound.Unix(); end <= instant {
			// By a rule a period ends with the year, and ZoneBounds takes each year for
			// one of 365 days: on 31 December of a leap year its end has passed.
			end = time.Date(t.UTC().Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
		}
	}
	return min(end, maxInstant+1), int64(ahead)
}

// reached returns the latest time that a clock has shown up to an instant. It is more
// than the clock shows then while an hour is repeated.
func reached(loc *time.Location, instant int64) wall {
	p := periodAt(loc, instant)
	t := instant + p.offset
	for p.start > max(instant-longestRepeat, minInstant) {
		p = periodAt(loc, p.start-1)
		t = max(t, p.end-1+p.offset)
	}
	return t
}

// firstAt returns the first instant at which a clock shows a time or a later one: the
// end of the gap for a time that is skipped, the first pass of one that is repeated.
func firstAt(loc *time.Location, t wall) int64 {
	for p := periodAt(loc, t-longestOffset); ; p = periodAt(loc, p.end) {
		if instant := max(p.start, t-p.offset); instant < p.end || p.end > maxInstant {
			return instant
		}
	}
}
