package cron

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Describe says in words when the schedule fires, with its zone: "at 06:00 on weekdays,
// Europe/Berlin". What has no short words is described by its expression. Two schedules
// with equal descriptions fire at the same times.
func (s *Schedule) Describe() string {
	if s.every > 0 {
		from := ""
		if s.anchor != 0 {
			from = ", counted from " + time.Unix(s.anchor, 0).UTC().Format(time.RFC3339)
		}
		return "every " + length(time.Duration(s.every)*time.Second) + " of elapsed time" + from
	}
	words, ok := s.clockWords()
	if ok {
		var days string
		days, ok = s.calendar.days.words()
		if !s.interval && (days == "" || strings.HasPrefix(days, "in ")) {
			words += " every day"
		}
		if days != "" {
			words += " " + days
		}
	}
	if !ok {
		words = strings.Join(s.fields, " ")
		if !s.seconds {
			words = strings.Join(s.fields[1:], " ")
		}
	}
	return words + ", " + s.zone.String()
}

// most is how many values words list at the most.
const most = 4

// clockWords says which times of a day are meant.
func (s *Schedule) clockWords() (string, bool) {
	c := &s.calendar.clock
	if c.seconds != 1 {
		return "", false
	}
	if !s.interval {
		var times []string
		for t := c.next(0); t >= 0 && len(times) <= most; t = c.next(t + 1) {
			times = append(times, hourMinute(t))
		}
		return "at " + list(times), len(times) <= most
	}
	const allMinutes, allHours = 1<<60 - 1, 1<<24 - 1
	step := c.minutes.step(60)
	switch {
	case c.minutes == allMinutes && c.hours == allHours:
		return "every minute", true
	case c.minutes.size() == 1 && c.hours == allHours:
		return fmt.Sprintf("every hour at minute %d", c.minutes.from(0)), true
	case step == 0:
		return "", false
	case c.hours == allHours:
		return every(step), true
	case c.hours.run():
		return fmt.Sprintf("%s from %s to %s", every(step), hourMinute(c.next(0)), hourMinute(c.prev(daySeconds-1))), true
	}
	return "", false
}

func every(minutes int) string {
	if minutes == 1 {
		return "every minute"
	}
	return fmt.Sprintf("every %d minutes", minutes)
}

// step returns n if s is every nth number below limit, which n divides; else 0.
func (s set) step(limit int) int {
	n := s.from(1)
	if s.from(0) != 0 || n < 0 || limit%n != 0 || s.size() != int64(limit/n) {
		return 0
	}
	for i := 0; i < limit; i += n {
		if !s.has(i) {
			return 0
		}
	}
	return n
}

// run reports whether the numbers follow one another.
func (s set) run() bool { return int64(s.upTo(63)-s.from(0)+1) == s.size() }

// words says which days are meant; nothing for all of them.
func (d *days) words() (string, bool) {
	const allDates, allMonths, allDays = 1<<32 - 2, 1<<13 - 2, 1<<7 - 1
	months, ok := d.months.list(allMonths, func(n int) string { return time.Month(n).String() })
	if !ok {
		return "", false
	}
	of, in := " of the month", ""
	if months != "" {
		of, in = " of "+months, " in "+months
	}
	dates, datesOK := d.dateWords(allDates)
	weekdays, monthly, weekdaysOK := d.weekdayWords(allDays)
	if monthly {
		weekdays += of
	} else if weekdays != "" {
		weekdays += in
	}
	switch {
	case !datesOK || !weekdaysOK:
		return "", false
	case dates == "" && weekdays == "":
		return strings.TrimSpace(in), !d.either // of two full lists one is enough
	case dates == "" && !d.either:
		return weekdays, true
	case weekdays == "" && !d.either:
		return dates + of, true
	case dates != "" && weekdays != "" && d.either:
		return dates + of + " or " + weekdays, true
	}
	return "", false
}

// dateWords says which days of a month are meant; nothing for all of them.
func (d *days) dateWords(all set) (string, bool) {
	last := ""
	switch {
	case d.nearest != 0 || d.beforeLast&^1 != 0:
		return "", false
	case d.lastWeekday && (d.beforeLast != 0 || d.dates != 0):
		return "", false
	case d.lastWeekday:
		return "on the last weekday", true
	case d.beforeLast != 0:
		last = "on the last day"
	}
	dates, ok := d.dates.list(all, ordinal)
	switch {
	case last == "":
		if dates != "" {
			dates = "on the " + dates
		}
		return dates, ok
	case d.dates == 0:
		return last, true
	}
	return "", false
}

// weekdayWords says which days of the week are meant, nothing for all of them, and
// whether these are counted within a month.
func (d *days) weekdayWords(all set) (words string, monthly, ok bool) {
	const workdays, weekend = 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5, 1<<0 | 1<<6
	var counted []string
	for day := range 7 {
		for n := d.nth[day].from(0); n >= 0; n = d.nth[day].from(n + 1) {
			counted = append(counted, ordinal(n)+" "+time.Weekday(day).String())
		}
		if d.last.has(day) {
			counted = append(counted, "last "+time.Weekday(day).String())
		}
	}
	switch {
	case len(counted) > 1 || len(counted) == 1 && d.weekdays != 0:
		return "", false, false
	case len(counted) == 1:
		return "on the " + counted[0], true, true
	case d.weekdays == workdays:
		return "on weekdays", false, true
	case d.weekdays == weekend:
		return "on weekends", false, true
	}
	words, ok = d.weekdays.list(all, func(n int) string { return time.Weekday(n).String() })
	if words != "" {
		words = "on " + words
	}
	return words, false, ok
}

// list names the numbers of a set, nothing if it is all of them.
func (s set) list(all set, name func(int) string) (string, bool) {
	if s == all {
		return "", true
	}
	var names []string
	for n := s.from(0); n >= 0 && n < 63; n = s.from(n + 1) {
		names = append(names, name(n))
	}
	return list(names), len(names) <= most
}

func list(names []string) string {
	switch n := len(names); n {
	case 0:
		return ""
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

func ordinal(n int) string {
	suffix := "th"
	if n/10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

func hourMinute(second int64) string {
	return fmt.Sprintf("%02d:%02d", second/3600, second/60%60)
}
