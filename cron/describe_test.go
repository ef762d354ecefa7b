package cron_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint/cron"
)

func TestDescribe(t *testing.T) {
	for expr, want := range map[string]string{
		"0 6 * * 1-5":         "at 06:00 on weekdays, Europe/Berlin",
		"0 6 * * MON-FRI":     "at 06:00 on weekdays, Europe/Berlin",
		"@daily":              "at 00:00 every day, Europe/Berlin",
		"0 6,18 * * *":        "at 06:00 and 18:00 every day, Europe/Berlin",
		"0,30 6,18 * * *":     "at 06:00, 06:30, 18:00 and 18:30 every day, Europe/Berlin",
		"0 6 * 1,7 *":         "at 06:00 every day in January and July, Europe/Berlin",
		"30 9 * * 6,0":        "at 09:30 on weekends, Europe/Berlin",
		"@weekly":             "at 00:00 on Sunday, Europe/Berlin",
		"0 9 * * MON,THU":     "at 09:00 on Monday and Thursday, Europe/Berlin",
		"0 9 * JUN MON":       "at 09:00 on Monday in June, Europe/Berlin",
		"@monthly":            "at 00:00 on the 1st of the month, Europe/Berlin",
		"@yearly":             "at 00:00 on the 1st of January, Europe/Berlin",
		"0 0 1,2,3,23 * *":    "at 00:00 on the 1st, 2nd, 3rd and 23rd of the month, Europe/Berlin",
		"0 0 11,12,13,22 * *": "at 00:00 on the 11th, 12th, 13th and 22nd of the month, Europe/Berlin",
		"0 0 L * *":           "at 00:00 on the last day of the month, Europe/Berlin",
		"0 0 LW 3 *":          "at 00:00 on the last weekday of March, Europe/Berlin",
		"0 0 * * 5L":          "at 00:00 on the last Friday of the month, Europe/Berlin",
		"0 0 * * 5#2":         "at 00:00 on the 2nd Friday of the month, Europe/Berlin",
		"0 0 13 * 5":          "at 00:00 on the 13th of the month or on Friday, Europe/Berlin",
		"* * * * *":           "every minute, Europe/Berlin",
		"*/15 * * * *":        "every 15 minutes, Europe/Berlin",
		"*/15 * * * 1-5":      "every 15 minutes on weekdays, Europe/Berlin",
		"@hourly":             "every hour at minute 0, Europe/Berlin",
		"*/20 9-17 * * *":     "every 20 minutes from 09:00 to 17:40, Europe/Berlin",
		"* 9 * * *":           "every minute from 09:00 to 09:59, Europe/Berlin",
		"@every 90m":          "every 1h30m of elapsed time",
		// What has no short words.
		"*/7 * * * *":          "*/7 * * * *, Europe/Berlin",
		"0 0-23 * * *":         "0 0-23 * * *, Europe/Berlin",
		"0 */6 * * *":          "0 */6 * * *, Europe/Berlin",
		"0 0 15w * *":          "0 0 15W * *, Europe/Berlin",
		"0 0 */2 * wed":        "0 0 */2 * WED, Europe/Berlin",
		"0 0 1-31 * 1":         "0 0 1-31 * 1, Europe/Berlin",
		"0 0 1,2,3,4,5 * *":    "0 0 1,2,3,4,5 * *, Europe/Berlin",
		"0 0 * * 5#2,1#1":      "0 0 * * 5#2,1#1, Europe/Berlin",
		"1,2,3,4,5 6 * * *":    "1,2,3,4,5 6 * * *, Europe/Berlin",
		"59 20,21,22,23 * * *": "at 20:59, 21:59, 22:59 and 23:59 every day, Europe/Berlin",
	} {
		if got := parse(t, expr, "Europe/Berlin").Describe(); got != want {
			t.Errorf("%q is %q, want %q", expr, got, want)
		}
	}
	s, err := cron.Parse("*/10 0 6 * * *", cron.Options{Zone: "UTC", Seconds: true})
	if err != nil || s.Describe() != "*/10 0 6 * * *, UTC" {
		t.Errorf("with seconds: %q, %v", s.Describe(), err)
	}
	s, err = cron.Parse("@every 36h", cron.Options{Zone: "UTC", Anchor: moment(t, "2026-11-30T08:00:07Z")})
	if err != nil || s.Describe() != "every 36h of elapsed time, counted from 2026-11-30T08:00:07Z" {
		t.Errorf("with an anchor: %q, %v", s.Describe(), err)
	}
}

// Two schedules with the same description fire at the same times: through a year with
// both changes of the clock, and a leap day.
func TestDescribeTellsApart(t *testing.T) {
	seen := map[string]string{}
	from := moment(t, "2028-01-01T00:00:00Z")
	rapid.Check(t, func(rt *rapid.T) {
		a, b := drawSimple(rt, "a"), drawSimple(rt, "b")
		for _, expr := range []string{a, b} {
			s, err := cron.Parse(expr, cron.Options{Zone: "Europe/Berlin"})
			if err != nil {
				continue
			}
			words := s.Describe()
			other, ok := seen[words]
			if !ok {
				seen[words] = expr
				continue
			}
			if got, want := nextN(s, from, 400), nextN(parse(t, other, "Europe/Berlin"), from, 400); !slices.Equal(got, want) {
				rt.Fatalf("%q and %q are both %q", expr, other, words)
			}
			if got, want := s.Count(from, from.AddDate(1, 0, 0)), parse(t, other, "Europe/Berlin").Count(from, from.AddDate(1, 0, 0)); got != want {
				rt.Fatalf("%q and %q are both %q, with %d and %d times a year", expr, other, words, got, want)
			}
		}
	})
}

// drawSimple draws an expression that is likely to have words, and to have the same as
// another.
func drawSimple(t *rapid.T, label string) string {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label+name) }
	return pick("minute", "0", "*", "*/15", "0,15,30,45", "0-59", "*/7", "30", "0,30") + " " +
		pick("hour", "*", "0-23", "2", "1-3", "1,2,3", "*/12", "0,12", "2-2", "*/24") + " " +
		pick("date", "*", "1", "1-31", "*/1", "*/2", "13", "L", "LW", "1,L", "L-1", "1W", "29") + " " +
		pick("month", "*", "3", "1-12", "10", "3,10", "2") + " " +
		pick("weekday", "*", "1-5", "0", "7", "SAT-SUN", "0-6", "5L", "5#2", "MON-FRI", "*/2", "5")
}
