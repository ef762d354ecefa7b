package cron

import (
	"math/bits"
	"time"
)

// A wall is a time on a wall clock: the seconds since 1970-01-01 00:00:00 there, as if
// its days had 86400 seconds each. Times on a wall know no zone and no change of the
// clock; those are in zone.go.
type wall = int64

const (
	daySeconds = 86400

	// cycle is how many years it takes until all dates have the same weekdays again.
	cycle = 400
)

// calendar is which times on a wall clock are meant.
type calendar struct {
	clock clock
	days  days
}

// next returns the first time in [from, limit).
func (c *calendar) next(from, limit wall) (wall, bool) {
	day, second := split(from)
	if c.days.has(day) {
		if s := c.clock.next(second); s >= 0 {
			t := day*daySeconds + s
			return t, t < limit
		}
	}
	last, _ := split(limit)
	day, ok := c.days.next(day+1, last)
	if !ok {
		return 0, false
	}
	t := day*daySeconds + c.clock.next(0)
	return t, t < limit
}

// prev returns the last time in [floor, upto].
func (c *calendar) prev(upto, floor wall) (wall, bool) {
	day, second := split(upto)
	if c.days.has(day) {
		if s := c.clock.prev(second); s >= 0 {
			t := day*daySeconds + s
			return t, t >= floor
		}
	}
	first, _ := split(floor)
	day, ok := c.days.prev(day-1, first)
	if !ok {
		return 0, false
	}
	t := day*daySeconds + c.clock.prev(daySeconds-1)
	return t, t >= floor
}

// count returns how many times are in (after, upto]. It looks at months, not at times.
func (c *calendar) count(after, upto wall) int64 {
	if after >= upto {
		return 0
	}
	first, from := split(after + 1)
	last, to := split(upto)
	n := c.days.count(first, last) * c.clock.below(daySeconds)
	if c.days.has(first) {
		n -= c.clock.below(from)
	}
	if c.days.has(last) {
		n -= c.clock.below(daySeconds) - c.clock.below(to+1)
	}
	return n
}

// split returns the day of a time, counted from 1970-01-01, and the second of that day.
func split(t wall) (day, second int64) {
	day, second = t/daySeconds, t%daySeconds
	if second < 0 {
		day, second = day-1, second+daySeconds
	}
	return day, second
}

// A set of small numbers, each a bit. None of ours is empty.
type set uint64

func (s set) has(n int) bool { return s>>n&1 != 0 }

func (s set) size() int64 { return int64(bits.OnesCount64(uint64(s))) }

// from returns the least number that is not below n; negative if there is none.
func (s set) from(n int) int {
	if s = s >> n << n; s == 0 {
		return -1
	}
	return bits.TrailingZeros64(uint64(s))
}

// upTo returns the greatest number that is not above n; negative if there is none.
func (s set) upTo(n int) int {
	return bits.Len64(uint64(s)<<(63-n)>>(63-n)) - 1
}

// below returns how many numbers are below n, which is at most 63.
func (s set) below(n int) int64 { return (s & (1<<n - 1)).size() }

// clock is which seconds of a day are meant.
type clock struct{ seconds, minutes, hours set }

// next returns the first of them that is not before a second; negative if there is none.
func (c *clock) next(second int64) int64 {
	h, m, s := int(second/3600), int(second/60%60), int(second%60)
	if c.hours.has(h) {
		if c.minutes.has(m) {
			if s = c.seconds.from(s); s >= 0 {
				return at(h, m, s)
			}
		}
		if m = c.minutes.from(m + 1); m >= 0 {
			return at(h, m, c.seconds.from(0))
		}
	}
	if h = c.hours.from(h + 1); h >= 0 {
		return at(h, c.minutes.from(0), c.seconds.from(0))
	}
	return -1
}

// prev returns the last of them that is not after a second; negative if there is none.
func (c *clock) prev(second int64) int64 {
	h, m, s := int(second/3600), int(second/60%60), int(second%60)
	if c.hours.has(h) {
		if c.minutes.has(m) {
			if s = c.seconds.upTo(s); s >= 0 {
				return at(h, m, s)
			}
		}
		if m > 0 {
			if m = c.minutes.upTo(m - 1); m >= 0 {
				return at(h, m, c.seconds.upTo(59))
			}
		}
	}
	if h > 0 {
		if h = c.hours.upTo(h - 1); h >= 0 {
			return at(h, c.minutes.upTo(59), c.seconds.upTo(59))
		}
	}
	return -1
}

// below returns how many of them are before a second, or in the whole day.
func (c *clock) below(second int64) int64 {
	h, m, s := int(second/3600), int(second/60%60), int(second%60)
	n := c.hours.below(h) * c.minutes.size() * c.seconds.size()
	if c.hours.has(h) {
		n += c.minutes.below(m) * c.seconds.size()
		if c.minutes.has(m) {
			n += c.seconds.below(s)
		}
	}
	return n
}

func at(h, m, s int) int64 { return int64(h)*3600 + int64(m)*60 + int64(s) }

// days is which days are meant.
type days struct {
	months set

	// Of the day of the month: numbers, how many days before the last one, what a
	// weekday has to be nearest to, the last weekday.
	dates, beforeLast, nearest set
	lastWeekday                bool

	// Of the day of the week, 0 to 6: each, the nth of a month, the last one of it.
	weekdays, last set
	nth            [7]set

	either bool // one that fits the date or the weekday will do; else it has to fit both
}

// has reports whether a day, counted from 1970-01-01, is one.
func (d *days) has(day int64) bool {
	m, date := monthOf(day)
	return d.of(m).has(date)
}

// next returns the first one in [from, last].
func (d *days) next(from, last int64) (int64, bool) {
	m, date := monthOf(from)
	for ; m.first+int64(date)-1 <= last; m, date = m.after(1), 1 {
		if n := d.of(m).from(date); n > 0 {
			day := m.first + int64(n) - 1
			return day, day <= last
		}
	}
	return 0, false
}

// prev returns the last one in [first, upto].
func (d *days) prev(upto, first int64) (int64, bool) {
	m, date := monthOf(upto)
	for ; m.first+int64(date)-1 >= first; m, date = m.after(-1), 31 {
		if n := d.of(m).upTo(date); n > 0 {
			day := m.first + int64(n) - 1
			return day, day >= first
		}
		if m.first <= first {
			break
		}
	}
	return 0, false
}

// count returns how many there are in [first, last].
func (d *days) count(first, last int64) int64 {
	n := int64(0)
	for m, date := monthOf(first); m.first+int64(date)-1 <= last; m, date = m.after(1), 1 {
		dates := d.of(m) >> date << date
		if end := last - m.first + 1; end < 31 {
			dates &= 1<<(end+1) - 1
		}
		n += dates.size()
	}
	return n
}

// month is one month of one year.
type month struct {
	year    int
	month   time.Month
	first   int64 // its first day, counted from 1970-01-01
	length  int
	weekday int // of the first day; 0 is Sunday
}

func newMonth(year int, name time.Month) month {
	first := time.Date(year, name, 1, 0, 0, 0, 0, time.UTC)
	day, _ := split(first.Unix())
	next, _ := split(time.Date(year, name+1, 1, 0, 0, 0, 0, time.UTC).Unix())
	return month{first.Year(), first.Month(), day, int(next - day), int(first.Weekday())}
}

// after returns the month that is n months later.
func (m month) after(n int) month { return newMonth(m.year, m.month+time.Month(n)) }

// monthOf returns the month and the date of a day.
func monthOf(day int64) (month, int) {
	year, name, date := time.Unix(day*daySeconds, 0).UTC().Date()
	return newMonth(year, name), date
}

// of returns the dates of the days of a month.
func (d *days) of(m month) set {
	if !d.months.has(int(m.month)) {
		return 0
	}
	all := set(1)<<(m.length+1) - 2
	dates, weekdays := d.byDate(m)&all, d.byWeekday(m)&all
	if d.either {
		return dates | weekdays
	}
	return dates & weekdays
}

func (d *days) byDate(m month) set {
	dates := d.dates
	for n := d.beforeLast.from(0); n >= 0 && n < m.length; n = d.beforeLast.from(n + 1) {
		dates |= 1 << (m.length - n)
	}
	for n := d.nearest.from(0); n >= 0 && n <= m.length; n = d.nearest.from(n + 1) {
		dates |= 1 << m.nearestWeekday(n)
	}
	if d.lastWeekday {
		dates |= 1 << m.nearestWeekday(m.length) // the last day's neighbour after it is in the next month
	}
	return dates
}

func (d *days) byWeekday(m month) set {
	const weekly = 1<<1 | 1<<8 | 1<<15 | 1<<22 | 1<<29
	dates := set(0)
	for day := range 7 {
		first := (day - m.weekday + 7) % 7 // days from the 1st to the first one
		if d.weekdays.has(day) {
			dates |= weekly << first
		}
		for n := d.nth[day].from(0); n >= 0; n = d.nth[day].from(n + 1) {
			dates |= 1 << (first + 7*n - 6)
		}
		if d.last.has(day) {
			dates |= 1 << (first + 1 + (m.length-1-first)/7*7)
		}
	}
	return dates
}

// nearestWeekday returns the date of the day from Monday to Friday that is nearest to a
// date and in the same month.
func (m month) nearestWeekday(date int) int {
	switch (m.weekday + date - 1) % 7 {
	case int(time.Saturday):
		if date == 1 {
			return 3
		}
		return date - 1
	case int(time.Sunday):
		if date == m.length {
			return date - 2
		}
		return date + 1
	}
	return date
}
