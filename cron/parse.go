package cron

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
)

// maxLength bounds an expression, in bytes. The longest sensible one lists sixty values.
const maxLength = 1000

// Options are what an expression does not say itself.
type Options struct {
	// Zone is the name of the time zone, see [Zone]. It is needed.
	Zone string

	// Seconds makes the expression one of six fields, the first of which is seconds.
	Seconds bool

	// Anchor is what @every is counted from: the first time is one length after it, cut
	// to the second. It has to be kept with the schedule; one that is taken anew at each
	// start of a program makes a schedule that never fires. The zero Anchor is
	// 1970-01-01T00:00:00Z, which is the same everywhere: @every 10m then fires at full
	// tens of minutes in UTC.
	Anchor time.Time
}

// Parse reads an expression. Whatever it refuses is [stint.Invalid], and the error names
// the field and the value and says what would be accepted. It also refuses what would
// never fire, like 31 February.
func Parse(expr string, o Options) (*Schedule, error) {
	zone, err := Zone(o.Zone)
	if err != nil {
		return nil, err
	}
	if err := checkText(expr); err != nil {
		return nil, err
	}
	s := &Schedule{zone: zone, seconds: o.Seconds}
	switch words := strings.Fields(expr); {
	case len(words) == 0:
		return nil, refuse("expression", expr, "there is none", fieldsHint(o.Seconds))
	case namesZone(words[0]):
		return nil, refuse("expression", expr, "it names a time zone itself", "give the zone in its own field, and the expression without "+words[0])
	case strings.EqualFold(words[0], "@every"):
		err = s.parseEvery(expr, words[1:], o.Anchor)
	case words[0][0] == '@':
		err = s.parseMacro(words)
	default:
		s.text = strings.ToUpper(strings.Join(words, " "))
		err = s.parseFields(strings.Fields(s.text))
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func namesZone(word string) bool {
	name, _, ok := strings.Cut(strings.ToUpper(word), "=")
	return ok && (name == "TZ" || name == "CRON_TZ")
}

func checkText(expr string) error {
	if len(expr) > maxLength {
		return refuse("expression", expr, fmt.Sprintf("it is longer than %d bytes", maxLength), "use ranges and steps instead of long lists")
	}
	for _, r := range expr {
		if (r < ' ' || r > '~') && r != '\t' {
			return refuse("expression", expr, fmt.Sprintf("it has the character %U", r), "use digits, names in Latin letters, and plain spaces")
		}
	}
	return nil
}

func fieldsHint(seconds bool) string {
	if seconds {
		return "write six fields: second minute hour day-of-month month day-of-week, like 0 0 6 * * MON-FRI"
	}
	return "write five fields: minute hour day-of-month month day-of-week, like 0 6 * * MON-FRI; or @daily, or @every 90m"
}

// macro returns what a short form stands for.
func macro(word string) (fields string, ok bool) {
	switch word {
	case "@hourly":
		return "0 * * * *", true
	case "@daily", "@midnight":
		return "0 0 * * *", true
	case "@weekly":
		return "0 0 * * 0", true
	case "@monthly":
		return "0 0 1 * *", true
	case "@yearly", "@annually":
		return "0 0 1 1 *", true
	}
	return "", false
}

func (s *Schedule) parseMacro(words []string) error {
	word := strings.ToLower(words[0])
	const known = "@hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, @every 90m"
	fields, ok := macro(word)
	switch {
	case word == "@reboot":
		return refuse("expression", word, "that is no time: it means each start of a cron daemon", "start the session where the machine's start is known, or take one of "+known)
	case !ok:
		return refuse("expression", word, "there is no such short form", "there are "+known)
	case len(words) > 1:
		return refuse("expression", strings.Join(words, " "), "something stands after "+word, word+" stands alone")
	}
	s.text = word
	if s.seconds {
		fields = "0 " + fields
	}
	return s.parseFields(strings.Fields(fields))
}

// parseEvery reads the length of an @every.
func (s *Schedule) parseEvery(expr string, words []string, anchor time.Time) error {
	const hint = "write a length of whole seconds, at least one, like @every 90m, @every 36h or @every 1h30m"
	if len(words) != 1 {
		return refuse("expression", expr, "@every takes one length", hint)
	}
	word := strings.ToLower(words[0])
	d, err := time.ParseDuration(word)
	switch {
	case err != nil && strings.ContainsAny(word, "dw"):
		return refuse("length", word, "there are no days and weeks here: they are not always equally long", "write 24h for a day of 24 hours; for calendar days take @daily or a weekday")
	case err != nil:
		return refuse("length", word, "it is none", hint)
	case d < time.Second:
		return refuse("length", word, "it is less than a second", hint)
	case d%time.Second != 0:
		return refuse("length", word, "it is not a whole number of seconds", hint)
	}
	if !anchor.IsZero() {
		if y := anchor.UTC().Year(); y < 1 || y > 9999 {
			return refuse("anchor", anchor.UTC().Format(time.RFC3339), "it is outside the years 1 to 9999", "give the time when the schedule was made")
		}
		s.anchor = anchor.Unix()
	}
	s.every = int64(d / time.Second)
	s.text = "@every " + length(d)
	return nil
}

// length writes a length as short as it can be read again.
func length(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// parseFields reads the five or six fields, in capitals.
func (s *Schedule) parseFields(words []string) error {
	table := fields()
	if !s.seconds {
		table = table[1:]
	}
	if len(words) != len(table) {
		return s.refuseCount(words, len(table))
	}
	if !s.seconds {
		words = append([]string{"0"}, words...)
	}
	s.fields = words
	c := &s.calendar
	for i, f := range fields() {
		var err error
		switch f.name {
		case "second":
			c.clock.seconds, err = f.parse(words[i], nil)
		case "minute":
			c.clock.minutes, err = f.parse(words[i], nil)
		case "hour":
			c.clock.hours, err = f.parse(words[i], nil)
		case "day-of-month":
			c.days.dates, err = f.parse(words[i], c.days.datePart)
		case "month":
			c.days.months, err = f.parse(words[i], nil)
		case "day-of-week":
			c.days.weekdays, err = f.parse(words[i], c.days.weekdayPart)
		}
		if err != nil {
			return err
		}
	}
	star := func(i int) bool { return words[i][0] == '*' }
	s.interval = star(0) || star(1) || star(2)
	c.days.either = !star(3) && !star(5)
	return s.checkFires()
}

func (s *Schedule) refuseCount(words []string, want int) error {
	is := fmt.Sprintf("it has %d fields instead of %d", len(words), want)
	if len(words) == 1 {
		is = fmt.Sprintf("it has one field instead of %d", want)
	}
	hint := fieldsHint(s.seconds)
	switch {
	case len(words) == 6 && !s.seconds:
		hint = "leave out the seconds, or allow a field of seconds (--seconds); there is no field of years"
	case len(words) > want && slices.Contains([]int{6, 7}, len(words)):
		hint = "there is no field of years; " + hint
	}
	return refuse("expression", strings.Join(words, " "), is, hint)
}

// checkFires refuses what would never fire.
func (s *Schedule) checkFires() error {
	from, _ := split(farOff)
	if _, ok := s.calendar.days.next(from, from+cycle*366); !ok {
		date, month, weekday := s.fields[3], s.fields[4], s.fields[5]
		if weekday[0] == '*' {
			return refuse("day-of-month", date, fmt.Sprintf("there is no such day in month %q, so it never fires", month),
				"take a day that the month has; L is the last one, whichever that is")
		}
		return refuse("day-of-month", date, fmt.Sprintf("no such day in month %q is a day-of-week %q, so it never fires", month, weekday),
			"leave one of the fields at *")
	}
	if !s.interval {
		return nil // a skipped time fires after the gap
	}
	if _, ok := s.nextShown(farOff, farOff+cycle*366*daySeconds); !ok {
		return refuse("hour", s.fields[2], fmt.Sprintf("on these days the clock in %s skips it, so it never fires", s.zone),
			"list the minutes instead of *: fixed times fire once, right after the gap")
	}
	return nil
}

// refuse makes the error of what was read.
func refuse(field, value, problem, hint string) error {
	if len(value) > 60 {
		value = strings.ToValidUTF8(value[:57], "") + "..."
	}
	e := stint.Invalid.Errorf("schedule", "%s %q: %s", field, value, problem)
	e.Hint = hint
	return e
}
