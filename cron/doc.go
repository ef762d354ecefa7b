// Package cron says when a schedule fires. It is pure: no clock, no timers, no I/O but
// the table of time zones that [time.LoadLocation] reads. A program imports time/tzdata
// so that the table is there on every machine.
//
// # Expressions
//
//	minute  hour  day-of-month  month  day-of-week
//	0-59    0-23  1-31          1-12   0-7, 0 and 7 are Sunday
//
// Months and weekdays also have names, JAN to DEC and SUN to SAT, in any case.
//
//	5          one value
//	*          every value
//	5,20       several
//	9-17       from 9 to 17; FRI-MON and 22-2 go on at the beginning
//	*/15       every 15th value: 0, 15, 30, 45; also of a range, 9-17/2
//	5/15       from 5 to the end of the field, every 15th
//	L  L-2     day of month: the last one; two days before it
//	15W  LW    day of month: the weekday nearest to the 15th, within its month; the last weekday
//	5L  FRI#2  day of week: the last Friday of the month; its second Friday
//
//	@hourly @daily @midnight @weekly @monthly @yearly @annually
//	@every 90m whole seconds of elapsed time, a length as in Go: 1h30m
//
// With [Options].Seconds there is a field of seconds in front of the five.
//
// If day-of-month and day-of-week are both restricted, a day that fits either is one.
// A field that begins with * does not count as restricted: */2 with a weekday means the
// days that fit both. This is cronie's rule.
//
// # The clock changes
//
// A schedule whose second, minute or hour begins with * is an interval: it fires
// whenever the clock on the wall shows such a time, in both passes of a repeated hour,
// and never in a skipped one. Any other schedule has fixed times, and none of them is
// lost or doubled: what falls into a skipped hour fires once, at the first instant after
// the gap, and of a repeated hour the first pass counts. With @every the clock on the
// wall plays no part.
package cron
