package cron_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint/cron"
	"github.com/stint-dev/stint/internal/plaintest"
)

// sample is a schedule that is also written down as a plain question to a wall clock.
type sample struct {
	expr     string
	interval bool // begins with * in minute or hour
	is       func(t time.Time) bool
}

func samples() []sample {
	hm := func(h, m int) func(time.Time) bool {
		return func(t time.Time) bool { return t.Hour() == h && t.Minute() == m }
	}
	oneOf := func(n int, set ...int) bool {
		for _, x := range set {
			if n == x {
				return true
			}
		}
		return false
	}
	lastDay := func(t time.Time) bool { return t.AddDate(0, 0, 1).Month() != t.Month() }
	return []sample{
		{"* * * * *", true, func(time.Time) bool { return true }},
		{"*/15 * * * *", true, func(t time.Time) bool { return t.Minute()%15 == 0 }},
		{"15 * * * *", true, func(t time.Time) bool { return t.Minute() == 15 }},
		{"*/20 1-3 * * *", true, func(t time.Time) bool { return t.Minute()%20 == 0 && t.Hour() >= 1 && t.Hour() <= 3 }},
		{"30 */2 * * *", true, func(t time.Time) bool { return t.Minute() == 30 && t.Hour()%2 == 0 }},
		{"0 0 * * *", false, hm(0, 0)},
		{"30 0 * * *", false, hm(0, 30)},
		{"30 1 * * *", false, hm(1, 30)},
		{"15 2 * * *", false, hm(2, 15)},
		{"30 2 * * *", false, hm(2, 30)},
		{"0 3 * * *", false, hm(3, 0)},
		{"30 23 * * *", false, hm(23, 30)},
		{"0 12 * * SUN", false, func(t time.Time) bool { return hm(12, 0)(t) && t.Weekday() == time.Sunday }},
		{"0,30 0-3 * * *", false, func(t time.Time) bool { return t.Minute()%30 == 0 && t.Hour() <= 3 }},
		{"45 22-1 * * *", false, func(t time.Time) bool { return t.Minute() == 45 && oneOf(t.Hour(), 22, 23, 0, 1) }},
		{"0-59/10 1,2 * 3,10 *", false, func(t time.Time) bool {
			return t.Minute()%10 == 0 && oneOf(t.Hour(), 1, 2) && oneOf(int(t.Month()), 3, 10)
		}},
		{"30 2 13 * 0", false, func(t time.Time) bool { return hm(2, 30)(t) && (t.Day() == 13 || t.Weekday() == time.Sunday) }},
		{"30 2 */2 * 0", false, func(t time.Time) bool { return hm(2, 30)(t) && t.Day()%2 == 1 && t.Weekday() == time.Sunday }},
		{"0 1 * * FRI-MON", false, func(t time.Time) bool { return hm(1, 0)(t) && oneOf(int(t.Weekday()), 5, 6, 0, 1) }},
		{"5 0 L * *", false, func(t time.Time) bool { return hm(0, 5)(t) && lastDay(t) }},
		{"5 2 * * 0L", false, func(t time.Time) bool {
			return hm(2, 5)(t) && t.Weekday() == time.Sunday && t.AddDate(0, 0, 7).Month() != t.Month()
		}},
		{"5 2 * * SUN#2", false, func(t time.Time) bool { return hm(2, 5)(t) && t.Weekday() == time.Sunday && (t.Day()-1)/7 == 1 }},
		{"0 0 29 2 *", false, func(t time.Time) bool { return hm(0, 0)(t) && t.Day() == 29 && t.Month() == time.February }},
		{"10 4 1W * *", false, func(t time.Time) bool {
			d, w := t.Day(), t.Weekday()
			return hm(4, 10)(t) && w != time.Sunday && w != time.Saturday && (d == 1 || w == time.Monday && (d == 2 || d == 3))
		}},
	}
}

// world is where and from which year on the oracle looks: zones whose clocks change at
// midnight, by half an hour, by two hours, by a day, and not at all.
func world() map[string]int {
	return map[string]int{
		"UTC": 2015, "America/New_York": 2020, "America/Chicago": 2010, "America/St_Johns": 2008, "America/Sao_Paulo": 2012,
		"America/Santiago": 2018, "America/Asuncion": 2010, "America/Havana": 2016, "America/Caracas": 2010, "America/Nuuk": 2018,
		"Europe/Berlin": 2020, "Europe/London": 2010, "Europe/Dublin": 2018, "Europe/Istanbul": 2010, "Europe/Moscow": 2008,
		"Europe/Lisbon": 2024, "Africa/Casablanca": 2014, "Africa/Cairo": 2015, "Asia/Beirut": 2018, "Asia/Tehran": 2014,
		"Asia/Gaza": 2014, "Asia/Kolkata": 2010, "Asia/Kathmandu": 2010, "Asia/Pyongyang": 2012, "Australia/Lord_Howe": 2020,
		"Australia/Adelaide": 2014, "Pacific/Auckland": 2020, "Pacific/Chatham": 2012, "Pacific/Apia": 2008, "Antarctica/Troll": 2019,
	}
}

// oracle is cron itself, as slow as it can be made: it wakes at each minute of real time
// and looks at the clock. Intervals run whenever the clock shows their time. Fixed times
// run when the clock reaches them, or passes over them, for the first time.
type oracle struct {
	zone    *time.Location
	reached time.Time // the latest time on the wall so far, as if it were UTC
}

// minute lets a minute begin and reports which of the samples run.
func (o *oracle) minute(at time.Time, all []sample, runs func(i int)) {
	local := at.In(o.zone)
	_, offset := local.Zone()
	shown := at.UTC().Add(time.Duration(offset) * time.Second)
	for i := range all {
		if all[i].interval && all[i].is(shown) {
			runs(i)
		}
	}
	if o.reached.IsZero() {
		o.reached = shown.Add(-time.Minute)
	}
	if !shown.After(o.reached) {
		return
	}
	ran := make([]bool, len(all))
	for t := o.reached.Add(time.Minute); !t.After(shown); t = t.Add(time.Minute) {
		for i := range all {
			if !all[i].interval && !ran[i] && all[i].is(t) {
				ran[i] = true
				runs(i)
			}
		}
	}
	o.reached = shown
}

// Over ten years in thirty zones every schedule of the sample fires at exactly the
// minutes at which the oracle runs it. Without STINT_LONG=1 it is one of the ten years,
// another one in each zone.
func TestOracle(t *testing.T) {
	if plaintest.Instead(t) {
		return
	}
	all, place := samples(), 0
	for zone, year := range world() {
		years := 10
		if place++; !long() {
			year, years = year+len(zone)%10, 1
		}
		t.Run(strings.ReplaceAll(zone, "/", "-"), func(t *testing.T) {
			t.Parallel()
			from := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			check(t, zone, from, from.AddDate(years, 0, 1), all)
		})
	}
	if place != 30 {
		t.Errorf("%d zones", place)
	}
}

func check(t *testing.T, zone string, from, to time.Time, all []sample) {
	t.Helper()
	schedules, next, count := make([]*cron.Schedule, len(all)), make([]time.Time, len(all)), make([]int64, len(all))
	o := oracle{}
	for i, s := range all {
		schedules[i] = parse(t, s.expr, zone)
		o.zone = schedules[i].Zone()
	}
	// What the clock reached before: nothing begins in the middle of a repeated hour.
	for at := from.Add(-48 * time.Hour); at.Before(from); at = at.Add(time.Minute) {
		o.minute(at, all, func(int) {})
	}
	begin := from.Add(-time.Second)
	for i, s := range schedules {
		next[i], _ = s.Next(begin)
	}
	for at := from; at.Before(to) && !t.Failed(); at = at.Add(time.Minute) {
		o.minute(at, all, func(i int) {
			count[i]++
			if !next[i].Equal(at) {
				t.Errorf("%q in %s runs at %s, and Next said %s", all[i].expr, zone, at.In(o.zone), next[i])
			}
			if prev, ok := schedules[i].Prev(at.Add(59 * time.Second)); !ok || !prev.Equal(at) {
				t.Errorf("%q in %s ran at %s, and Prev says %s", all[i].expr, zone, at.In(o.zone), prev)
			}
			next[i], _ = schedules[i].Next(at)
		})
	}
	for i, s := range schedules {
		if next[i].Before(to) {
			t.Errorf("%q in %s does not run at %s", all[i].expr, zone, next[i])
		}
		if n := s.Count(begin, to.Add(-time.Second)); n != count[i] {
			t.Errorf("%q in %s ran %d times, and Count says %d", all[i].expr, zone, count[i], n)
		}
	}
}
