package cases_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/trigger"
)

// era is a stretch of time in which a schedule was due in one way.
type era struct {
	timing trigger.Timing
	since  time.Time // times up to it are not of this era
	until  time.Time // times after it are not; zero: it goes on
	lines  int       // how many it had when it ended, without what people fired
	clock  int       // rises when a clock that was ahead was set right
}

// everyTimeOnce proves from the ledger of a schedule, newest line first, and from what the
// schedule was that every nominal time is in exactly one line: that the lines of each era
// follow one another, from its beginning to its end, without a gap, without an overlap
// and without a time that is none. The era that goes on must be covered up to settled.
//
// Lines that were written by a clock that was ahead, of times that had not come when it was
// set right, do not count: these times come once more.
//
// Besides, no nominal time has two sessions, no session has two lines, and each line that
// says that there is none says why.
func everyTimeOnce(ledger []trigger.Occurrence, eras []era, settled time.Time) error {
	own := map[int][]trigger.Occurrence{} // by clock, oldest first, without what people fired
	type nominal struct {
		clock int
		at    int64
	}
	sessions, due := map[stint.ID]bool{}, map[nominal]bool{}
	for i := len(ledger) - 1; i >= 0; i-- {
		o := ledger[i]
		if !o.Manual {
			own[o.Era] = append(own[o.Era], o)
		}
		if err := wellFormed(&o); err != nil {
			return err
		}
		if o.Session.IsZero() {
			continue
		}
		if sessions[o.Session] {
			return fmt.Errorf("the session of %s has another line", lineOf(&o))
		}
		sessions[o.Session] = true
		if o.Manual && !o.Backfill {
			continue
		}
		if due[nominal{o.Era, o.To.Unix()}] {
			return fmt.Errorf("%v has two sessions", o.To.UTC())
		}
		due[nominal{o.Era, o.To.Unix()}] = true
	}
	return inEras(own, eras, settled)
}

// inEras checks that the lines of a ledger, by clock, follow one another through its eras.
func inEras(own map[int][]trigger.Occurrence, eras []era, settled time.Time) error {
	for i, e := range eras {
		times, err := e.timing.Times()
		if err != nil {
			return err
		}
		at := e.since                                        // everything up to it is settled
		void := i+1 < len(eras) && eras[i+1].clock > e.clock // its lines may go on beyond it
		lines := own[e.clock]
		n := len(lines)
		if !e.until.IsZero() {
			n = min(n, e.lines)
		}
		for ; n > 0 && (e.until.IsZero() || void || !lines[0].To.After(e.until)); n, lines = n-1, lines[1:] {
			if at, err = follows(times, at, &lines[0]); err != nil {
				return err
			}
		}
		own[e.clock] = lines
		end := e.until
		if end.IsZero() {
			end = settled
		}
		if next, ok := times.Next(at); ok && !next.After(end) {
			return fmt.Errorf("%v of %+v has no line; the newest before it ends at %v", next.UTC(), e.timing, at.UTC())
		}
	}
	for _, left := range own {
		if len(left) > 0 {
			return fmt.Errorf("%s is of no era", lineOf(&left[0]))
		}
	}
	return nil
}

// wellFormed checks what a line says by itself.
func wellFormed(o *trigger.Occurrence) error {
	switch {
	case (o.Outcome == trigger.Ran) == o.Session.IsZero():
		return fmt.Errorf("%s has the session %v", lineOf(o), o.Session)
	case o.Outcome == trigger.Ran && (o.Count != 1 || !o.From.Equal(o.To)):
		return fmt.Errorf("%s is one session of several times", lineOf(o))
	case o.Outcome != trigger.Ran && o.Reason == "":
		return fmt.Errorf("%s does not say why", lineOf(o))
	case o.Manual && o.By == "":
		return fmt.Errorf("%s does not say who fired", lineOf(o))
	}
	return nil
}

// walked is up to how many times of a line are gone through one by one.
const walked = 3000

// follows checks that a line begins with the first time after at, ends with a time, and
// counts those in between right. It returns its end.
func follows(times trigger.Times, at time.Time, o *trigger.Occurrence) (time.Time, error) {
	first, ok := times.Next(at)
	if !ok || !first.Equal(o.From) {
		return at, fmt.Errorf("after %v comes %v, and the line is %s", at.UTC(), first.UTC(), lineOf(o))
	}
	if last, ok := times.Prev(o.To); !ok || !last.Equal(o.To) || o.To.Before(o.From) {
		return at, fmt.Errorf("%s does not end with a time: the last is %v", lineOf(o), last.UTC())
	}
	n := times.Count(at, o.To)
	if n <= walked {
		n = 0
		for t, ok := times.Next(at); ok && !t.After(o.To); t, ok = times.Next(t) {
			n++
		}
	}
	if n != o.Count {
		return at, fmt.Errorf("%s has %d times", lineOf(o), n)
	}
	return o.To, nil
}

// lineOf is a line as a person reads it.
func lineOf(o *trigger.Occurrence) string {
	s := fmt.Sprint(o.Outcome, " ", o.From.UTC().Format("02T15:04:05"))
	if o.Count != 1 {
		s += fmt.Sprintf("..%s x%d", o.To.UTC().Format("02T15:04:05"), o.Count)
	}
	switch {
	case o.Backfill:
		s += " made good"
	case o.Manual:
		s += " by hand"
	}
	if o.Reason != "" {
		s += " " + o.Reason
	}
	return s
}

// linesOf is a ledger, oldest line first.
func linesOf(ledger []trigger.Occurrence) string {
	var all []string
	for i := len(ledger) - 1; i >= 0; i-- {
		all = append(all, lineOf(&ledger[i]))
	}
	return strings.Join(all, ", ")
}

// A checker that accepts must be seen to reject.
func TestEveryTimeOnceRejects(t *testing.T) {
	at := func(clock string) time.Time {
		when, err := time.Parse(time.DateTime, "2026-11-29 "+clock)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	ran := func(n byte, clock string) trigger.Occurrence {
		return trigger.Occurrence{Outcome: trigger.Ran, From: at(clock), To: at(clock), Count: 1, Session: stint.ID{n}}
	}
	missed := func(from, to string, n int64) trigger.Occurrence {
		return trigger.Occurrence{Outcome: trigger.Missed, From: at(from), To: at(to), Count: n, Reason: trigger.Down}
	}
	with := func(o trigger.Occurrence, change func(o *trigger.Occurrence)) trigger.Occurrence {
		change(&o)
		return o
	}
	hourly, halves := trigger.Timing{Cron: "0 * * * *", Zone: "UTC"}, trigger.Timing{Cron: "30 * * * *", Zone: "UTC"}
	edited := func(clock string) []era {
		return []era{{timing: hourly, since: at("00:00:00"), until: at(clock), lines: 1}, {timing: halves, since: at(clock)}}
	}
	right := []era{{timing: hourly, since: at("00:00:00"), until: at("02:10:00"), lines: 1}, {timing: hourly, since: at("02:10:00"), clock: 1}}
	second := func(o trigger.Occurrence) trigger.Occurrence {
		return with(o, func(o *trigger.Occurrence) { o.Era = 1 })
	}
	made := with(ran(9, "03:00:00"), func(o *trigger.Occurrence) { o.Manual, o.Backfill, o.By = true, true, "human:ana" })
	for name, c := range map[string]struct {
		want string // a part of what it says; empty: nothing
		eras []era
		rows []trigger.Occurrence // oldest first
	}{
		"all is well":         {"", nil, []trigger.Occurrence{ran(1, "01:00:00"), missed("02:00:00", "04:00:00", 3), made, ran(2, "05:00:00")}},
		"a time has no line":  {"after 2026-11-29 01:00:00 +0000 UTC comes", nil, []trigger.Occurrence{ran(1, "01:00:00"), missed("03:00:00", "04:00:00", 2), ran(2, "05:00:00")}},
		"the first has none":  {"comes 2026-11-29 01:00:00", nil, []trigger.Occurrence{missed("02:00:00", "05:00:00", 4)}},
		"the last has none":   {"has no line", nil, []trigger.Occurrence{ran(1, "01:00:00"), missed("02:00:00", "04:00:00", 3)}},
		"nothing has one":     {"has no line", nil, nil},
		"two lines":           {"and the line is", nil, []trigger.Occurrence{ran(1, "01:00:00"), missed("02:00:00", "04:00:00", 3), missed("04:00:00", "05:00:00", 2)}},
		"one inside another":  {"and the line is", nil, []trigger.Occurrence{ran(1, "01:00:00"), ran(2, "03:00:00"), missed("02:00:00", "05:00:00", 4)}},
		"a wrong count":       {"has 3 times", nil, []trigger.Occurrence{ran(1, "01:00:00"), missed("02:00:00", "04:00:00", 2), ran(2, "05:00:00")}},
		"no nominal time":     {"and the line is", nil, []trigger.Occurrence{ran(1, "01:10:00"), missed("02:00:00", "05:00:00", 4)}},
		"no end":              {"does not end with a time", nil, []trigger.Occurrence{missed("01:00:00", "05:10:00", 5)}},
		"no reason":           {"does not say why", nil, []trigger.Occurrence{with(missed("01:00:00", "05:00:00", 5), func(o *trigger.Occurrence) { o.Reason = "" })}},
		"ran without session": {"has the session", nil, []trigger.Occurrence{ran(0, "01:00:00"), missed("02:00:00", "05:00:00", 4)}},
		"one session twice":   {"has another line", nil, []trigger.Occurrence{ran(1, "01:00:00"), ran(1, "02:00:00"), missed("03:00:00", "05:00:00", 3)}},
		"ran and made good":   {"has two sessions", nil, []trigger.Occurrence{missed("01:00:00", "02:00:00", 2), made, ran(1, "03:00:00"), missed("04:00:00", "05:00:00", 2)}},
		"two eras": {"", edited("03:10:00"),
			[]trigger.Occurrence{missed("01:00:00", "03:00:00", 3), ran(1, "03:30:00"), ran(2, "04:30:00")}},
		"a clock that was ahead":           {"", right, []trigger.Occurrence{missed("01:00:00", "05:00:00", 5), second(ran(1, "03:00:00")), second(missed("04:00:00", "05:00:00", 2))}},
		"a clock that was ahead counts on": {"has no line", right, []trigger.Occurrence{missed("01:00:00", "05:00:00", 5), second(ran(1, "03:00:00"))}},
		"an edit that fires": {"and the line is", edited("03:40:00"),
			[]trigger.Occurrence{missed("01:00:00", "03:00:00", 3), ran(1, "03:30:00"), ran(2, "04:30:00")}},
		"an edit that forgets": {"has no line", edited("03:10:00"),
			[]trigger.Occurrence{missed("01:00:00", "02:00:00", 2), ran(1, "03:30:00"), ran(2, "04:30:00")}},
	} {
		eras := c.eras
		if eras == nil {
			eras = []era{{timing: hourly, since: at("00:00:00")}}
		}
		var ledger []trigger.Occurrence
		for i := range c.rows {
			ledger = append(ledger, c.rows[len(c.rows)-1-i])
		}
		err := everyTimeOnce(ledger, eras, at("05:20:00"))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
