package cron

import (
	"fmt"
	"strconv"
	"strings"
)

// field is what one field of an expression may hold.
type field struct {
	name  string
	lo    int
	hi    int
	names string // of the values, from lo on; three letters each
	also  string // forms that no other field has
}

func fields() []field {
	return []field{
		{name: "second", hi: 59},
		{name: "minute", hi: 59},
		{name: "hour", hi: 23},
		{name: "day-of-month", lo: 1, hi: 31, also: "; L, L-2, 15W, LW"},
		{name: "month", lo: 1, hi: 12, names: "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"},
		{name: "day-of-week", hi: 6, names: "SUNMONTUEWEDTHUFRISAT", also: "; 5L, FRI#2"},
	}
}

// sunday is what a weekday may be called besides 0.
const sunday = 7

func (f *field) refuse(value, problem string) error {
	wants := fmt.Sprintf("%d to %d", f.lo, f.hi)
	if f.isWeekday() {
		wants = "0 to 7, 0 and 7 are Sunday"
	}
	if f.names != "" {
		wants += fmt.Sprintf(", or %s to %s", f.names[:3], f.names[len(f.names)-3:])
	}
	return refuse(f.name, value, problem, fmt.Sprintf("%s takes %s; *, a list 1,3, a range 1-5, steps */2 or 1-5/2%s", f.name, wants, f.also))
}

func (f *field) isWeekday() bool { return f.name == "day-of-week" }

// parse reads a field, in capitals: a list of parts. special takes parts that are no set
// of values; it reports whether a part was one.
func (f *field) parse(text string, special func(f *field, part string) (bool, error)) (set, error) {
	all := set(0)
	for part := range strings.SplitSeq(text, ",") {
		if special != nil {
			switch ok, err := special(f, part); {
			case err != nil:
				return 0, err
			case ok:
				continue
			}
		}
		s, err := f.part(part)
		if err != nil {
			return 0, err
		}
		all |= s
	}
	return all, nil
}

// part reads a value, a range, or one of these with a step.
func (f *field) part(text string) (set, error) {
	span, step, stepped := strings.Cut(text, "/")
	first, n, err := f.span(text, span, stepped)
	if err != nil {
		return 0, err
	}
	every := 1
	if stepped {
		every, err = number(step)
		switch {
		case err != nil || every == 0:
			return 0, f.refuse(text, fmt.Sprintf("the step %q is no number from 1 on", step))
		case every > n:
			return 0, f.refuse(text, fmt.Sprintf("the step %d is longer than the %d values that it goes through", every, n))
		}
	}
	s := set(0)
	for i := 0; i < n; i += every {
		s |= 1 << (f.lo + (first-f.lo+i)%(f.hi-f.lo+1))
	}
	return s, nil
}

// span returns the first value of a part, and how many there are from there on; after
// the greatest value the least one follows. text is the part with its step.
func (f *field) span(text, span string, stepped bool) (first, n int, err error) {
	width := f.hi - f.lo + 1
	if span == "*" {
		return f.lo, width, nil
	}
	from, to, ranged := strings.Cut(span, "-")
	if first, err = f.value(text, from); err != nil {
		return 0, 0, err
	}
	last := first
	if ranged {
		if last, err = f.value(text, to); err != nil {
			return 0, 0, err
		}
	}
	switch {
	case f.isWeekday() && ranged && last == sunday && first < sunday:
		return first, sunday - first + 1, nil // 0-7 is all, 5-7 ends with Sunday
	case f.isWeekday():
		first, last = first%sunday, last%sunday
	}
	switch {
	case !ranged && stepped:
		last = f.hi
	case last < first:
		last += width
	}
	return first, last - first + 1, nil
}

// value reads a number or a name. text is the part that it is from.
func (f *field) value(text, word string) (int, error) {
	if len(word) == 3 {
		if i := strings.Index(f.names, word); i >= 0 && i%3 == 0 {
			return f.lo + i/3, nil
		}
	}
	n, err := number(word)
	switch {
	case word == "":
		return 0, f.refuse(text, "a value is missing")
	case err != nil:
		return 0, f.refuse(text, fmt.Sprintf("%q is no value of this field", word)+f.habit(word))
	case f.isWeekday() && n == sunday:
		return n, nil
	case n < f.lo || n > f.hi:
		return 0, f.refuse(text, fmt.Sprintf("%d is not from %d to %d", n, f.lo, f.hi))
	}
	return n, nil
}

// habit says what people mean who come from other schedulers.
func (f *field) habit(word string) string {
	switch {
	case word == "?":
		return "; write *"
	case word == "L" && f.isWeekday():
		return "; say which day: 5L is the last Friday of the month"
	case word == "H" || strings.HasPrefix(word, "H(") || strings.Contains(word, "~"):
		return "; nothing is chosen at random"
	case len(word) > 3 && f.names != "" && strings.Contains(f.names, word[:3]):
		return "; names have three letters"
	}
	return ""
}

// number reads digits, up to four.
func number(word string) (int, error) {
	if word == "" || len(word) > 4 || strings.Trim(word, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(word)
}

// datePart takes what only a day of the month can be: L, L-2, 15W, LW.
func (d *days) datePart(f *field, part string) (bool, error) {
	switch before, isBefore := strings.CutPrefix(part, "L-"); {
	case part == "L":
		d.beforeLast |= 1
		return true, nil
	case part == "LW":
		d.lastWeekday = true
		return true, nil
	case isBefore:
		n, err := number(before)
		if err != nil || n < 1 || n > 30 {
			return false, f.refuse(part, fmt.Sprintf("%q is no number of days from 1 to 30", before))
		}
		d.beforeLast |= 1 << n
		return true, nil
	}
	date, ok := strings.CutSuffix(part, "W")
	if !ok {
		return false, nil
	}
	n, err := number(date)
	if err != nil || n < f.lo || n > f.hi {
		return false, f.refuse(part, fmt.Sprintf("%q is no day from 1 to 31", date))
	}
	d.nearest |= 1 << n
	return true, nil
}

// weekdayPart takes what only a day of the week can be: 5L, FRI#2.
func (d *days) weekdayPart(f *field, part string) (bool, error) {
	if day, n, ok := strings.Cut(part, "#"); ok {
		weekday, err := f.value(part, day)
		if err != nil {
			return false, err
		}
		nth, err := number(n)
		if err != nil || nth < 1 || nth > 5 {
			return false, f.refuse(part, fmt.Sprintf("%q is no number from 1 to 5: no month has more", n))
		}
		d.nth[weekday%sunday] |= 1 << nth
		return true, nil
	}
	day, ok := strings.CutSuffix(part, "L")
	if !ok || day == "" {
		return false, nil
	}
	weekday, err := f.value(part, day)
	if err != nil {
		return false, err
	}
	d.last |= 1 << (weekday % sunday)
	return true, nil
}
