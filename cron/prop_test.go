package cron_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint/cron"
)

// drawField draws one field: a list of values, ranges and steps.
func drawField(t *rapid.T, name string, lo, hi int, special ...string) string {
	part := rapid.Custom(func(t *rapid.T) string {
		value := rapid.IntRange(lo, hi)
		switch rapid.IntRange(0, 6+len(special)).Draw(t, "kind") {
		case 0, 1:
			return "*"
		case 2:
			return fmt.Sprint(value.Draw(t, "value"))
		case 3:
			return fmt.Sprintf("%d-%d", value.Draw(t, "from"), value.Draw(t, "to"))
		case 4:
			return fmt.Sprintf("*/%d", rapid.IntRange(1, hi-lo+1).Draw(t, "step"))
		case 5:
			a, b := value.Draw(t, "from"), value.Draw(t, "to")
			return fmt.Sprintf("%d-%d/%d", a, b, rapid.IntRange(1, (b-a+hi-lo+1)%(hi-lo+1)+1).Draw(t, "step"))
		case 6:
			a := value.Draw(t, "from")
			return fmt.Sprintf("%d/%d", a, rapid.IntRange(1, hi-a+1).Draw(t, "step"))
		}
		return rapid.SampledFrom(special).Draw(t, "special")
	})
	return strings.Join(rapid.SliceOfN(part, 1, 3).Draw(t, name), ",")
}

func drawExpr(t *rapid.T) string {
	return strings.Join([]string{
		drawField(t, "minute", 0, 59),
		drawField(t, "hour", 0, 23),
		drawField(t, "day-of-month", 1, 31, "L", "LW", "15W", "31W", "1W", "L-3", "L-30"),
		drawField(t, "month", 1, 12, "JAN", "dec", "Nov-feb"),
		drawField(t, "day-of-week", 0, 6, "7", "FRI-MON", "5L", "sun#5", "1#1", "0-7", "5-7"),
	}, " ")
}

// drawSchedule draws a schedule that can fire.
func drawSchedule(t *rapid.T) *cron.Schedule {
	zone := rapid.SampledFrom([]string{
		"UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Beirut", "Pacific/Apia", "Antarctica/Troll", "Africa/Casablanca", "America/Sao_Paulo",
	}).Draw(t, "zone")
	o := cron.Options{Zone: zone}
	if rapid.IntRange(0, 9).Draw(t, "every") == 0 {
		o.Anchor = rapid.Custom(drawMoment).Draw(t, "anchor")
		s, err := cron.Parse(fmt.Sprintf("@every %ds", rapid.IntRange(1, 5e6).Draw(t, "seconds")), o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	expr := drawExpr(t)
	s, err := cron.Parse(expr, o)
	if err != nil {
		if !strings.Contains(err.Error(), "never fires") {
			t.Fatalf("%q: %v", expr, err)
		}
		return drawSchedule(t)
	}
	return s
}

// drawMoment draws a time from 1900 to 2150, near a change of the clock more often than
// not by chance.
func drawMoment(t *rapid.T) time.Time {
	if rapid.Bool().Draw(t, "change") {
		at := rapid.SampledFrom([]time.Time{
			time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC), time.Date(2026, 11, 1, 6, 0, 0, 0, time.UTC), time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC),
			time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC), time.Date(2011, 12, 30, 10, 0, 0, 0, time.UTC), time.Date(2028, 12, 31, 0, 0, 0, 0, time.UTC),
			time.Date(2104, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(2026, 4, 4, 15, 0, 0, 0, time.UTC), time.Date(2087, 5, 11, 2, 0, 0, 0, time.UTC),
		}).Draw(t, "at")
		return at.Add(time.Duration(rapid.IntRange(-3*3600, 3*3600).Draw(t, "seconds")) * time.Second)
	}
	return time.Unix(rapid.Int64Range(-2208988800, 5680281600).Draw(t, "unix"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC()
}

// Next goes forward and leaves nothing out, Prev goes the same way back, and Count counts
// the steps.
func TestNextPrevCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchedule(t)
		from := drawMoment(t)
		at := from
		for n := int64(0); n < 30; n++ {
			next, ok := s.Next(at)
			if !ok || !next.After(at) {
				t.Fatalf("%s: after %s comes %s, %v", s, at, next, ok)
			}
			if next.Nanosecond() != 0 || next.Location() != s.Zone() {
				t.Fatalf("%s: %s is no whole second in %s", s, next, s.Zone())
			}
			if got := s.Count(at, next.Add(-1)); got != 0 {
				t.Fatalf("%s: %d times between %s and the next, %s", s, got, at, next)
			}
			if got := s.Count(from, next); got != n+1 {
				t.Fatalf("%s: %d times from %s to %s, want %d", s, got, from, next, n+1)
			}
			if prev, ok := s.Prev(next); !ok || !prev.Equal(next) {
				t.Fatalf("%s: the last time up to %s is %s, %v", s, next, prev, ok)
			}
			if prev, ok := s.Prev(next.Add(-1)); n > 0 && (!ok || !prev.Equal(at)) {
				t.Fatalf("%s: before %s comes %s, %v, want %s", s, next, prev, ok, at)
			} else if n == 0 && ok && prev.After(from) {
				t.Fatalf("%s: Next(%s) is %s, but there is %s", s, from, next, prev)
			}
			at = next
		}
	})
}

// Whatever lies between, the parts of a span add up.
func TestCountAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchedule(t)
		a, b, c := drawMoment(t), drawMoment(t), drawMoment(t)
		if b.Before(a) {
			a, b = b, a
		}
		if c.Before(b) {
			b, c = c, b
		}
		if b.Before(a) {
			a, b = b, a
		}
		if ab, bc, ac := s.Count(a, b), s.Count(b, c), s.Count(a, c); ab+bc != ac || ab < 0 || bc < 0 {
			t.Fatalf("%s: %d up to %s and %d up to %s are not %d", s, ab, b, bc, c, ac)
		}
		if n := s.Count(b, a); b.After(a) && n != 0 {
			t.Fatalf("%s: %d backwards", s, n)
		}
	})
}

// same reports whether two schedules are the same but for how they were written.
func same(a, b *cron.Schedule) bool { return reflect.DeepEqual(a, b) }

// What is printed is read as the same schedule.
func TestStringParses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchedule(t)
		if strings.HasPrefix(s.String(), "@every") {
			return // its anchor is not printed; the fuzz target reads those
		}
		again, err := cron.Parse(s.String(), cron.Options{Zone: s.Zone().String()})
		if err != nil || !same(s, again) {
			t.Fatalf("%s: read again it is %s, %v", s, again, err)
		}
	})
}

func TestString(t *testing.T) {
	for expr, want := range map[string]string{
		" 0\t9  * jan Mon-fri ": "0 9 * JAN MON-FRI",
		"@DAILY":                "@daily",
		"@Every 90M":            "@every 1h30m",
		"@every 3600s":          "@every 1h",
		"@every 100h":           "@every 100h",
		"@every 61s":            "@every 1m1s",
		"@every 20m":            "@every 20m",
		"@every 10h0m10s":       "@every 10h0m10s",
		"0 0 l * 5#2":           "0 0 L * 5#2",
	} {
		if got := parse(t, expr, "UTC").String(); got != want {
			t.Errorf("%q prints %q, want %q", expr, got, want)
		}
	}
}

// No text makes the parser panic or spin, and what it takes prints, reads and fires the
// same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"0 6 * * 1-5", "*/15 0-23/2 1,15 JAN-MAR *", "0 0 L-3 * *", "0 0 15W,LW * *", "0 0 * * 5L,1#2", "0 0 * * FRI-MON", "@daily", "@every 1h30m",
		"TZ=", "CRON_TZ=UTC", "TZ=UTC 0 6 * * *", "0 0 31 2 *", "@every 0s", "@every -1s", "* * * * 7", "0 0 29 2 *", "@reboot", "*/70 * * * *",
		"0 0 1-", "0 0 */ * *", "0 0 W * #", "L L L L L", "7#7 * * * *", "60-0/0 * * * *", "0 0 30 2 */7", "@", "=", "*/2 2 * 3 0L",
	} {
		f.Add(seed, false)
		f.Add("0 "+seed, true)
	}
	f.Fuzz(func(t *testing.T, expr string, seconds bool) {
		o := cron.Options{Zone: "Europe/Berlin", Seconds: seconds}
		s, err := cron.Parse(expr, o)
		if err != nil {
			return
		}
		again, err := cron.Parse(s.String(), o)
		if err != nil || !same(s, again) {
			t.Fatalf("%q prints %q, which is read as %v, %v", expr, s, again, err)
		}
		from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		next, ok := s.Next(from)
		if !ok || !next.After(from) || s.Count(from, next) != 1 {
			t.Fatalf("%q: after %s comes %s, %v", expr, from, next, ok)
		}
		if s.Describe() == "" {
			t.Fatalf("%q has no description", expr)
		}
	})
}

func FuzzZone(f *testing.F) {
	for _, seed := range []string{"", "UTC", "Europe/Berlin", "Local", "..", "../../etc/passwd", "a/../UTC", "\x00", "right/UTC", "CON", "/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		loc, err := cron.Zone(name)
		if err == nil && (loc == time.Local || strings.Contains(name, "..") || loc.String() != name) {
			t.Fatalf("%q is %s", name, loc)
		}
	})
}

// A day of a machine with many schedules is milliseconds of work.
func BenchmarkNext(b *testing.B) {
	for _, expr := range []string{"0 6 * * 1-5", "*/15 * * * *", "0 0 * 2 1#5", "* * * * *"} {
		b.Run(strings.ReplaceAll(expr, " ", "_"), func(b *testing.B) {
			s, at := parse(b, expr, "Europe/Berlin"), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
			for b.Loop() {
				if _, ok := s.Next(at); !ok {
					b.Fatal("none")
				}
			}
		})
	}
}

// What was missed in 400 days.
func BenchmarkCount(b *testing.B) {
	for _, expr := range []string{"* * * * *", "0-59 0-23 * * *", "@every 1s"} {
		b.Run(strings.ReplaceAll(expr, " ", "_"), func(b *testing.B) {
			s, at := parse(b, expr, "Europe/Berlin"), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
			for b.Loop() {
				if s.Count(at, at.AddDate(0, 0, 400)) < 500000 {
					b.Fatal("too few")
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, expr := range []string{"0 6 * * 1-5", "0 0 31 2 *", "*/15 2 * 3 0L"} {
		b.Run(strings.ReplaceAll(expr, " ", "_"), func(b *testing.B) {
			for b.Loop() {
				_, _ = cron.Parse(expr, cron.Options{Zone: "Europe/Berlin"})
			}
		})
	}
}
