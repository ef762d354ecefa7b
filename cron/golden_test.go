package cron_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/cron"
)

func rows(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil || len(all) < 10 {
		t.Fatalf("%s has %d rows: %v", name, len(all), err)
	}
	return all[1:]
}

// Faults that users of other schedulers reported: nights when the clock changes, rare
// dates. The file has a column for each rule of gaps; ours is the end of the gap.
func TestNextOfReportedFaults(t *testing.T) {
	for _, row := range rows(t, "cron-next.csv") {
		n, err := strconv.Atoi(row[4])
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(nextN(parse(t, row[1], row[2]), moment(t, row[3]), n), " ")
		if got != row[5] {
			t.Errorf("%s %q in %s from %s:\ngot  %s\nwant %s", row[0], row[1], row[2], row[3], got, row[5])
		}
	}
}

func TestVerdictsOfReportedFaults(t *testing.T) {
	for _, row := range rows(t, "cron-valid.csv") {
		_, err := cron.Parse(row[1], cron.Options{Zone: "UTC"})
		// L is documented, so that row is valid; what never fires is refused.
		want := strings.HasPrefix(row[2], "valid") || strings.HasSuffix(row[2], "or documented")
		if (err == nil) != want {
			t.Errorf("%q: %v, want %s", row[1], err, row[2])
		}
		if err != nil && stint.CodeOf(err) != stint.Invalid {
			t.Errorf("%q: code %s", row[1], stint.CodeOf(err))
		}
	}
}

// What schedulers in Go and JavaScript were measured to do differently, and what is
// right by docs/schedules.md.
func TestNextWhereSchedulersDiffer(t *testing.T) {
	for _, c := range []struct{ why, expr, zone, from, want string }{
		{"skipped hour: once, right after", "30 2 * * *", "America/New_York", "2026-03-08T05:00:00Z", "2026-03-08T07:00:00Z 2026-03-09T06:30:00Z"},
		{"repeated hour: once, first pass", "30 1 * * *", "America/New_York", "2026-11-01T04:00:00Z", "2026-11-01T05:30:00Z 2026-11-02T06:30:00Z"},
		{"asked between the passes", "30 1 * * *", "America/New_York", "2026-11-01T05:45:00Z", "2026-11-02T06:30:00Z"},
		{"asked in the second pass, before the minute", "30 1 * * *", "America/New_York", "2026-11-01T06:10:00Z", "2026-11-02T06:30:00Z"},
		{"each hour of a repeated one", "15 * * * *", "America/New_York", "2026-11-01T04:00:00Z", "2026-11-01T04:15:00Z 2026-11-01T05:15:00Z 2026-11-01T06:15:00Z 2026-11-01T07:15:00Z"},
		{"interval of three hours at a gap", "*/30 1-3 * * *", "America/New_York", "2026-03-08T05:00:00Z", "2026-03-08T06:00:00Z 2026-03-08T06:30:00Z 2026-03-08T07:00:00Z 2026-03-08T07:30:00Z 2026-03-09T05:00:00Z"},
		{"several fixed times in one gap: once", "0,30 1-3 * * *", "America/New_York", "2026-03-08T06:15:00Z", "2026-03-08T06:30:00Z 2026-03-08T07:00:00Z 2026-03-08T07:30:00Z 2026-03-09T05:00:00Z"},
		{"no midnight", "0 0 * * *", "Asia/Beirut", "2026-03-28T12:00:00Z", "2026-03-28T22:00:00Z 2026-03-29T21:00:00Z"},
		{"no midnight", "0 0 4 11 *", "America/Sao_Paulo", "2018-01-01T00:00:00Z", "2018-11-04T03:00:00Z 2019-11-04T03:00:00Z"},
		{"half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", "2026-10-03T15:30:00Z 2026-10-04T15:15:00Z"},
		{"two hours", "30 1 * * *", "Antarctica/Troll", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-29T23:30:00Z"},
		{"no such day", "0 6 30 12 *", "Pacific/Apia", "2011-01-01T00:00:00Z", "2011-12-30T10:00:00Z 2012-12-29T16:00:00Z"},
		{"the date or the weekday", "0 0 13 * 5", "UTC", "2026-02-08T00:00:00Z", "2026-02-13T00:00:00Z 2026-02-20T00:00:00Z 2026-02-27T00:00:00Z 2026-03-06T00:00:00Z 2026-03-13T00:00:00Z"},
		{"*/2 does not count as restricted", "0 0 */2 * 3", "UTC", "2026-01-01T00:00:00Z", "2026-01-07T00:00:00Z 2026-01-21T00:00:00Z 2026-02-11T00:00:00Z"},
		{"short months", "0 0 31 * *", "UTC", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z 2026-05-31T00:00:00Z"},
		{"29 February on a Monday", "0 0 * 2 1#5", "UTC", "2026-02-03T00:00:00Z", "2044-02-29T00:00:00Z 2072-02-29T00:00:00Z 2112-02-29T00:00:00Z"},
		{"a century without a leap day", "0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"last day", "0 0 L * *", "UTC", "2028-01-15T00:00:00Z", "2028-01-31T00:00:00Z 2028-02-29T00:00:00Z 2028-03-31T00:00:00Z"},
		{"two days before the last", "0 0 L-2 2 *", "UTC", "2027-01-15T00:00:00Z", "2027-02-26T00:00:00Z 2028-02-27T00:00:00Z"},
		{"last weekday", "0 0 LW * *", "UTC", "2026-01-15T00:00:00Z", "2026-01-30T00:00:00Z 2026-02-27T00:00:00Z 2026-03-31T00:00:00Z"},
		{"nearest weekday", "0 0 15W * *", "UTC", "2026-02-01T00:00:00Z", "2026-02-16T00:00:00Z 2026-03-16T00:00:00Z 2026-04-15T00:00:00Z 2026-05-15T00:00:00Z 2026-06-15T00:00:00Z 2026-07-15T00:00:00Z 2026-08-14T00:00:00Z"},
		{"nearest weekday stays in its month", "0 0 1W * *", "UTC", "2026-07-15T00:00:00Z", "2026-08-03T00:00:00Z 2026-09-01T00:00:00Z"},
		{"nearest weekday stays in its month", "0 0 31W * *", "UTC", "2026-05-01T00:00:00Z", "2026-05-29T00:00:00Z 2026-07-31T00:00:00Z"},
		{"second Friday", "0 0 * * 5#2", "UTC", "2026-01-01T00:00:00Z", "2026-01-09T00:00:00Z 2026-02-13T00:00:00Z"},
		{"fifth Friday", "0 0 * * FRI#5", "UTC", "2026-01-01T00:00:00Z", "2026-01-30T00:00:00Z 2026-05-29T00:00:00Z"},
		{"last Friday", "0 0 * * 5L", "UTC", "2026-01-01T00:00:00Z", "2026-01-30T00:00:00Z 2026-02-27T00:00:00Z"},
		{"Sunday is 7 too", "0 0 * * 7", "UTC", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z 2026-01-11T00:00:00Z"},
		{"over the weekend", "0 0 * * FRI-MON", "UTC", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z 2026-01-03T00:00:00Z 2026-01-04T00:00:00Z 2026-01-05T00:00:00Z 2026-01-09T00:00:00Z"},
		{"over midnight", "0 22-1/2 * * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T22:00:00Z 2026-01-02T00:00:00Z 2026-01-02T22:00:00Z"},
		{"over the new year", "0 0 1 NOV-FEB *", "UTC", "2026-01-02T00:00:00Z", "2026-02-01T00:00:00Z 2026-11-01T00:00:00Z 2026-12-01T00:00:00Z 2027-01-01T00:00:00Z"},
		{"elapsed time", "@every 90m", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T01:30:00Z 2026-10-25T03:00:00Z"},
		{"the last day of a leap year", "0 12 * * *", "Europe/Berlin", "2028-12-30T12:00:00Z", "2028-12-31T11:00:00Z 2029-01-01T11:00:00Z"},
		{"the last day of a leap year", "*/30 12 * * *", "Europe/Berlin", "2104-12-30T12:00:00Z", "2104-12-31T11:00:00Z 2104-12-31T11:30:00Z 2105-01-01T11:00:00Z"},
	} {
		want := strings.Fields(c.want)
		got := strings.Join(nextN(parse(t, c.expr, c.zone), moment(t, c.from), len(want)), " ")
		if got != c.want {
			t.Errorf("%s: %q in %s\ngot  %s\nwant %s", c.why, c.expr, c.zone, got, c.want)
		}
	}
}

func TestSeconds(t *testing.T) {
	s, err := cron.Parse("*/20 59 23 31 12 *", cron.Options{Zone: "UTC", Seconds: true})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(nextN(s, moment(t, "2026-12-31T23:59:00Z"), 3), " ")
	if want := "2026-12-31T23:59:20Z 2026-12-31T23:59:40Z 2027-12-31T23:59:00Z"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if daily, err := cron.Parse("@daily", cron.Options{Zone: "UTC", Seconds: true}); err != nil {
		t.Error(err)
	} else if got := nextN(daily, moment(t, "2026-12-31T23:59:00Z"), 1)[0]; got != "2027-01-01T00:00:00Z" {
		t.Errorf("@daily with a field of seconds: %s", got)
	}
}

// A program that starts again and again still sees an @every: it is counted from what is
// kept, not from the start.
func TestEveryOutlivesRestarts(t *testing.T) {
	made := moment(t, "2026-11-30T08:00:07Z")
	fired := 0
	for start := made; start.Before(made.Add(300e9)); start = start.Add(20e9) { // restarted every 20 s
		s, err := cron.Parse("@every 60s", cron.Options{Zone: "UTC", Anchor: made})
		if err != nil {
			t.Fatal(err)
		}
		next, ok := s.Next(start)
		if ok && !next.After(start.Add(20e9)) {
			fired++
		}
	}
	if fired != 5 {
		t.Errorf("it fired %d times in five minutes, want 5", fired)
	}
	s := parse(t, "@every 168h", "UTC")
	if got := nextN(s, moment(t, "2026-11-30T08:00:07Z"), 2); got[0] != "2026-12-03T00:00:00Z" || got[1] != "2026-12-10T00:00:00Z" {
		t.Errorf("without an anchor a week is counted from 1970-01-01: %s", got)
	}
}
