package trigger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/trigger"
)

func at(s string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", s)
	if err != nil {
		panic(err)
	}
	return t
}

func timesOf(t interface{ Fatal(...any) }, expr string) trigger.Times {
	times, err := trigger.Timing{Cron: expr, Zone: "UTC"}.Times()
	if err != nil {
		t.Fatal(err)
	}
	return times
}

// told is decisions as a person reads them.
func told(ds []trigger.Decision) string {
	var all []string
	for _, d := range ds {
		s := string(d.Outcome) + " " + d.From.Format("02T15:04:05")
		if d.Count != 1 {
			s += fmt.Sprintf("..%s x%d", d.To.Format("02T15:04:05"), d.Count)
		}
		if d.Reason != "" {
			s += " " + d.Reason
		}
		if len(d.Stop) > 0 {
			s += fmt.Sprintf(" stops %d", len(d.Stop))
		}
		all = append(all, s)
	}
	return strings.Join(all, ", ")
}

func TestDecide(t *testing.T) {
	const hourly, minutely, daily = "0 * * * *", "* * * * *", "0 6 * * *"
	open := []stint.ID{{1}}
	usual := trigger.Policy{Overlap: trigger.Skip, Window: time.Hour, Most: 1}
	with := func(change func(p *trigger.Policy)) trigger.Policy {
		p := usual
		change(&p)
		return p
	}
	queue := with(func(p *trigger.Policy) { p.Overlap = trigger.Queue })
	allow5 := with(func(p *trigger.Policy) { p.Overlap, p.Most = trigger.Allow, 5 })
	none := with(func(p *trigger.Policy) { p.Window = 0 })
	spread := with(func(p *trigger.Policy) { p.Window, p.Jitter = 0, 3*time.Hour }) // the time of the case begins at 06:47:40
	for _, c := range []struct {
		name, cron      string
		policy          trigger.Policy
		since, up, now  string
		open            []stint.ID
		want, wantsNext string
	}{
		{"nothing is due", hourly, usual, "2026-11-29 10:00:00", "2026-11-29 09:00:00", "2026-11-29 10:59:59", nil, "", "11:00:00"},
		{"one is due to the second", hourly, usual, "2026-11-29 10:00:00", "2026-11-29 09:00:00", "2026-11-29 11:00:00", nil, "ran 29T11:00:00", "12:00:00"},
		{"it has its line", hourly, usual, "2026-11-29 11:00:00", "2026-11-29 09:00:00", "2026-11-29 11:00:00", nil, "", "12:00:00"},
		{"a restart in the second", hourly, usual, "2026-11-29 10:00:00", "2026-11-29 11:00:00", "2026-11-29 11:00:00", nil, "ran 29T11:00:00", "12:00:00"},
		{"a short outage", minutely, usual, "2026-11-29 10:00:00", "2026-11-29 10:03:30", "2026-11-29 10:03:30", nil, "missed 29T10:01:00..29T10:02:00 x2 newer, ran 29T10:03:00", "10:04:00"},
		{"a short outage of all that may be late", minutely, allow5, "2026-11-29 10:00:00", "2026-11-29 10:03:30", "2026-11-29 10:03:30", nil, "ran 29T10:01:00, ran 29T10:02:00, ran 29T10:03:00", "10:04:00"},
		{"a short outage without catching up", minutely, none, "2026-11-29 10:00:00", "2026-11-29 10:03:30", "2026-11-29 10:03:30", nil, "missed 29T10:01:00..29T10:02:00 x2 down, ran 29T10:03:00", "10:04:00"},
		{"late by more than the window", daily, usual, "2026-11-28 06:00:00", "2026-11-29 07:30:00", "2026-11-29 07:30:00", nil, "missed 29T06:00:00 down", "06:00:00"},
		{"before its jitter is over", daily, spread, "2026-11-28 06:00:00", "2026-11-28 09:00:00", "2026-11-29 06:00:00", nil, "", "06:47:40"},
		{"in time after its jitter", daily, spread, "2026-11-28 06:00:00", "2026-11-28 09:00:00", "2026-11-29 06:48:00", nil, "ran 29T06:00:00", "06:46:46"},
		{"late within the window", daily, usual, "2026-11-28 06:00:00", "2026-11-29 06:59:00", "2026-11-29 06:59:00", nil, "ran 29T06:00:00", "06:00:00"},
		{"late at the end of the window", daily, usual, "2026-11-28 06:00:00", "2026-11-29 07:00:00", "2026-11-29 07:00:00", nil, "ran 29T06:00:00", "06:00:00"},
		{"400 days asleep", hourly, usual, "2026-11-29 10:00:00", "2026-11-29 10:00:00", "2028-01-03 10:30:00", nil, "missed 29T11:00:00..03T09:00:00 x9599 asleep, ran 03T10:00:00", "11:00:00"},
		{"an open session", hourly, usual, "2026-11-29 10:00:00", "2026-11-29 09:00:00", "2026-11-29 11:00:01", open, "skipped 29T11:00:00 overlap", "12:00:00"},
		{"an open session is replaced", hourly, with(func(p *trigger.Policy) { p.Overlap = trigger.Replace }), "2026-11-29 10:00:00", "2026-11-29 09:00:00", "2026-11-29 11:00:01", open, "ran 29T11:00:00 stops 1", "12:00:00"},
		{"an open session beside", hourly, allow5, "2026-11-29 10:00:00", "2026-11-29 09:00:00", "2026-11-29 11:00:01", open, "ran 29T11:00:00", "12:00:00"},
		{"an open session is waited for", minutely, queue, "2026-11-29 10:00:00", "2026-11-29 09:00:00", "2026-11-29 10:03:01", open, "", "10:04:00"},
		{"the oldest that waited", minutely, queue, "2026-11-29 10:00:00", "2026-11-29 09:00:00", "2026-11-29 10:03:01", nil, "ran 29T10:01:00", "10:04:00"},
		{"more wait than may", minutely, queue, "2026-11-29 10:00:00", "2026-11-29 09:00:00", "2026-11-29 10:13:01", open, "missed 29T10:01:00..29T10:03:00 x3 newer", "10:14:00"},
		{"they wait for too long", "*/30 * * * *", queue, "2026-11-29 10:00:00", "2026-11-29 09:00:00", "2026-11-29 13:00:01", open, "missed 29T10:30:00..29T12:00:00 x4 overlap", "13:30:00"},
		{"the clock was set back", hourly, usual, "2026-11-29 11:00:00", "2026-11-29 09:00:00", "2026-11-29 10:00:00", nil, "", "11:00:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds, next := trigger.Decide(timesOf(t, c.cron), c.policy, trigger.Standing{Name: "n", Since: at(c.since), Up: at(c.up), Open: c.open}, at(c.now))
			if got := told(ds); got != c.want || next.Format("15:04:05") != c.wantsNext {
				t.Errorf("%s\nwant %s\nnext %s, want %s", got, c.want, next.Format("15:04:05"), c.wantsNext)
			}
		})
	}
}

// Whatever happens to the clock and the server, each nominal time has one fate, and
// each that had one session within its jitter ran or was skipped.
func TestEachTimeHasOneFate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		times := timesOf(rt, rapid.SampledFrom([]string{"* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "@every 90s", "0 0 31 * *"}).Draw(rt, "cron"))
		p := trigger.Policy{
			Overlap: rapid.SampledFrom([]trigger.Overlap{trigger.Skip, trigger.Queue, trigger.Replace, trigger.Allow}).Draw(rt, "overlap"),
			Window:  time.Duration(rapid.IntRange(0, 7200).Draw(rt, "window")) * time.Second,
			Most:    rapid.IntRange(1, 5).Draw(rt, "most"),
			Jitter:  time.Duration(rapid.SampledFrom([]int{0, 0, 20, 50, 600}).Draw(rt, "jitter")) * time.Second,
		}
		begun := at("2026-11-29 00:00:00")
		now, s := begun, trigger.Standing{Name: "n", Since: begun, Up: begun}
		covered, ran := int64(0), map[time.Time]bool{}
		look := func() {
			ds, next := trigger.Decide(times, p, s, now)
			if !next.IsZero() && !next.After(now) {
				rt.Fatalf("at %v it wants to look again at %v", now, next)
			}
			for _, d := range ds {
				if !d.From.After(s.Since) || d.To.Before(d.From) || d.To.After(now) || d.Count != times.Count(s.Since, d.To) {
					rt.Fatalf("after %v: %s", s.Since, told(ds))
				}
				if d.Outcome == trigger.Ran {
					if late := now.Sub(d.To); d.Count != 1 || late > max(p.Window, trigger.Late)+p.Jitter || ran[d.To] {
						rt.Fatalf("%v late: %s", late, told(ds))
					}
					ran[d.To] = true
				}
				covered, s.Since = covered+d.Count, d.To
			}
		}
		for range rapid.IntRange(1, 60).Draw(rt, "looks") {
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0: // a long gap, after which the server is another one
				now = now.Add(time.Duration(rapid.IntRange(1, 400*24).Draw(rt, "hours")) * time.Hour)
				s.Up = now
			case 1:
				now = now.Add(-time.Duration(rapid.IntRange(1, 3600).Draw(rt, "back")) * time.Second)
			case 2:
				s.Open = []stint.ID{{1}}
			case 3:
				s.Open = nil
			default:
				now = now.Add(time.Duration(rapid.IntRange(1, 120).Draw(rt, "seconds")) * time.Second)
			}
			look()
		}
		now, s.Open = now.Add(2*time.Hour), nil
		for range 20 { // what waited in a queue comes one by one
			look()
		}
		now = now.Add(-p.Jitter)
		if want := times.Count(begun, s.Since); covered != want {
			rt.Fatalf("%d times have a fate, of %d", covered, want)
		}
		if last, ok := times.Prev(now); ok && last.After(s.Since) {
			rt.Fatalf("%v has no fate", last)
		}
	})
}
