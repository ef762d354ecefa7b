package cron_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/cron"
)

// refusal is an expression, and what is in the error and the hint; without says it is
// accepted.
type refusal struct{ expr, says, hint string }

func refusedForms() []refusal {
	return []refusal{
		{"", `expression "": there is none`, "five fields"},
		{"  \t ", `there is none`, "five fields"},
		{"* * * *", `it has 4 fields instead of 5`, "minute hour day-of-month month day-of-week"},
		{"daily", `it has one field instead of 5`, "@daily"},
		{"0 0 6 * * *", `it has 6 fields instead of 5`, "seconds"},
		{"0 0 6 * * * 2027", `it has 7 fields`, "no field of years"},
		{"TZ=UTC 0 6 * * *", "names a time zone", "without TZ=UTC"},
		{"CRON_TZ=Europe/Berlin 0 6 * * *", "names a time zone", "without CRON_TZ=Europe/Berlin"},
		{"TZ=", "names a time zone", "its own field"},
		{"@reboot", "no time", "@daily"},
		{"@fortnightly", "no such short form", "@weekly"},
		{"@", "no such short form", "@weekly"},
		{"@daily 5", "stands after @daily", "alone"},
		{"@every", "takes one length", "90m"},
		{"@every 1h 30m", "takes one length", "1h30m"},
		{"@every 0s", `length "0s": it is less than a second`, "at least one"},
		{"@every -1s", `length "-1s": it is less than a second`, "at least one"},
		{"@every 999ms", "less than a second", "whole seconds"},
		{"@every 1500ms", "not a whole number of seconds", "whole seconds"},
		{"@every 7d", "no days and weeks", "24h"},
		{"@every soon", "it is none", "90m"},
		{"@every 9999999h", "it is none", "90m"},
	}
}

func refusedFields() []refusal {
	return []refusal{
		{"60 * * * *", `minute "60": 60 is not from 0 to 59`, "minute takes 0 to 59"},
		{"0 24 * * *", `hour "24"`, "0 to 23"},
		{"0 0 0 * *", `day-of-month "0"`, "1 to 31"},
		{"0 0 32 * *", `day-of-month "32"`, "L"},
		{"0 2 1 0 *", `month "0": 0 is not from 1 to 12`, "JAN to DEC"},
		{"0 0 1 13 *", `month "13"`, "1 to 12"},
		{"0 0 * * 8", `day-of-week "8"`, "0 and 7 are Sunday"},
		{"*/0 * * * *", `minute "*/0": the step "0"`, "*/2"},
		{"*/70 * * * *", `minute "*/70": the step 70 is longer than the 60 values`, "*/2"},
		{"10-20/15 * * * *", `the step 15 is longer than the 11 values`, "1-5/2"},
		{"*/ * * * *", `the step ""`, ""},
		{"*/2/3 * * * *", `the step "2/3"`, ""},
		{"*/-1 * * * *", `the step "-1"`, ""},
		{"*5 * * * *", `"*5" is no value`, ""},
		{"1,,2 * * * *", "a value is missing", ""},
		{"5- * * * *", `minute "5-": a value is missing`, ""},
		{"-5 * * * *", `minute "-5": a value is missing`, ""},
		{"+5 * * * *", `"+5" is no value`, ""},
		{"1-2-3 * * * *", `"2-3" is no value`, ""},
		{"5.5 * * * *", `"5.5" is no value`, ""},
		{"99999999999999999999 * * * *", "is no value", ""},
		{"0 0 ? * *", `"?" is no value of this field; write *`, ""},
		{"H 6 * * *", "nothing is chosen at random", ""},
		{"0~30 6 * * *", "nothing is chosen at random", ""},
		{"JAN * * * *", `minute "JAN"`, ""},
		{"0 0 * JANUARY *", "names have three letters", "JAN"},
		{"0 0 * * MONDAY", "names have three letters", "SUN to SAT"},
		{"0 0 * * ANM", `"ANM" is no value`, ""},
		{"0 0 * * L", "say which day: 5L", "5L"},
		{"0 0 * * 5#6", `"6" is no number from 1 to 5`, "FRI#2"},
		{"0 0 * * 5#", `"" is no number from 1 to 5`, ""},
		{"0 0 * * 9#1", "9 is not", ""},
		{"0 0 * * 8L", "8 is not", ""},
		{"0 0 * * MON-FRI#1", `"MON-FRI" is no value`, ""},
		{"0 0 L-31 * *", `"31" is no number of days from 1 to 30`, ""},
		{"0 0 L-0 * *", `"0" is no number of days`, ""},
		{"0 0 W * *", `"" is no day from 1 to 31`, "15W"},
		{"0 0 32W * *", `"32" is no day`, ""},
		{"0 0 1-15W * *", `"1-15" is no day`, ""},
		{"0 0 31 2 *", `day-of-month "31": there is no such day in month "2"`, "L is the last one"},
		{"0 0 30 2 *", "never fires", ""},
		{"0 0 31 4,6,9,11 *", "never fires", ""},
		{"0 0 L-30 4 *", "never fires", ""},
		{"0 0 31W 2 *", "never fires", ""},
		{"0 0 */31 2 */3", "", ""}, // 1 February on a Sunday, Wednesday or Saturday: it fires
		{"0 0 30 2 */7", "never fires", ""},
		{"0 6\u00a0* * *", "U+00A0", "plain spaces"},
		{"0 6 * * *\n", "U+000A", "plain spaces"},
		{"０ 6 * * *", "U+FF10", "digits"},
		{"0 6 * * \x1b[2J", "U+001B", ""},
		{strings.Repeat("1,", 600) + "1 * * * *", "longer than 1000 bytes", "ranges"},
	}
}

// What is refused names the field and the value, and says what would be accepted.
func TestRefused(t *testing.T) {
	for _, c := range slices.Concat(refusedForms(), refusedFields()) {
		_, err := cron.Parse(c.expr, cron.Options{Zone: "UTC"})
		if c.says == "" {
			if err != nil {
				t.Errorf("%q: %v", c.expr, err)
			}
			continue
		}
		var e *stint.Error
		if !errors.As(err, &e) || e.Code != stint.Invalid || !strings.Contains(e.Error(), c.says) || !strings.Contains(e.Hint, c.hint) || e.Hint == "" {
			t.Errorf("%q: %v\nhint %q\nwant %q, hint %q", c.expr, err, e.Hint, c.says, c.hint)
		}
	}
}

func TestRefusedZones(t *testing.T) {
	for _, zone := range []string{
		"", "Local", "local", "localtime", "posixrules", "posix/Europe/Berlin", "right/UTC", "Nowhere/City", "Europe/Berlin ",
		"../../etc/localtime", "Europe/../UTC", "..", ".", "/etc/localtime", "Europe//Berlin", `Europe\Berlin`, "UTC\x00", "UTC;", "Zürich",
		strings.Repeat("a", 65),
	} {
		_, err := cron.Parse("0 6 * * *", cron.Options{Zone: zone})
		var e *stint.Error
		if !errors.As(err, &e) || e.Code != stint.Invalid || !strings.HasPrefix(err.Error(), "schedule: zone \"") || !strings.Contains(e.Hint, "Europe/Berlin") {
			t.Errorf("zone %q: %v", zone, err)
		}
	}
	for _, zone := range []string{"UTC", "Etc/GMT+5", "America/Argentina/Buenos_Aires", "America/Port-au-Prince", "EST"} {
		if _, err := cron.Parse("0 6 * * *", cron.Options{Zone: zone}); err != nil {
			t.Errorf("zone %q: %v", zone, err)
		}
	}
}

// An interval whose only times are in an hour that is always skipped never fires. Fixed
// times there do.
func TestRefusedInTheGap(t *testing.T) {
	_, err := cron.Parse("*/15 2 * 3 0L", cron.Options{Zone: "Europe/Berlin"})
	if err == nil || !strings.Contains(err.Error(), `hour "2"`) {
		t.Errorf("it never fires: %v", err)
	}
	parse(t, "*/15 2 * 3 0L", "America/New_York")
	if got := nextN(parse(t, "0,15,30,45 2 * 3 0L", "Europe/Berlin"), moment(t, "2026-01-01T00:00:00Z"), 2); got[0] != "2026-03-29T01:00:00Z" || got[1] != "2027-03-28T01:00:00Z" {
		t.Errorf("fixed times in the skipped hour: %s", got)
	}
}

func TestRefusedWithSeconds(t *testing.T) {
	for expr, says := range map[string]string{
		"0 6 * * *":        "5 fields instead of 6",
		"60 0 6 * * *":     `second "60"`,
		"0 0 6 * * * 2027": "7 fields instead of 6",
	} {
		if _, err := cron.Parse(expr, cron.Options{Zone: "UTC", Seconds: true}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %s", expr, err, says)
		}
	}
	_, err := cron.Parse("@every 1h", cron.Options{Zone: "UTC", Anchor: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)})
	if err == nil || !strings.Contains(err.Error(), "anchor") {
		t.Errorf("an anchor in the year 10000: %v", err)
	}
}

// Outside the years 1 to 9999 there is nothing, and asking does no harm.
func TestEndOfTime(t *testing.T) {
	far := []time.Time{time.Unix(1<<60, 0), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 1, time.UTC)}
	early := []time.Time{time.Unix(-1<<60, 0), {}, time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, zone := range []string{"UTC", "Europe/Berlin", "Pacific/Kiritimati", "Pacific/Pago_Pago"} {
		for _, expr := range []string{"0 6 * * *", "*/15 * * * *", "0 0 29 2 *", "@every 1h"} {
			s := parse(t, expr, zone)
			for _, at := range far {
				if next, ok := s.Next(at); ok {
					t.Errorf("%s %s: after %s comes %s", expr, zone, at, next)
				}
				if _, ok := s.Prev(at); !ok {
					t.Errorf("%s %s: nothing up to %s", expr, zone, at)
				}
			}
			for _, at := range early {
				if prev, ok := s.Prev(at); ok && prev.Year() != 1 && prev.Year() != 0 {
					t.Errorf("%s %s: before %s is %s", expr, zone, at, prev)
				}
				if _, ok := s.Next(at); !ok {
					t.Errorf("%s %s: nothing after %s", expr, zone, at)
				}
			}
		}
	}
}
