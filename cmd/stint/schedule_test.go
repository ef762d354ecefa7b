package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint/internal/term"
)

// scheduleTranscript is what a terminal shows of some command lines; there is no store.
func scheduleTranscript(t *testing.T, lines ...string) []byte {
	t.Helper()
	var b strings.Builder
	s := newShop(t)
	for _, line := range lines {
		code, out, talk := s.stint(words("schedule " + line)...)
		b.WriteString("$ stint schedule " + term.Escape(line) + "\n" + out + talk)
		if code == exitInvalid {
			b.WriteString("(exit status 2)\n")
		} else if code != exitOK {
			t.Errorf("stint schedule %s: exit status %d", line, code)
		}
		b.WriteString("\n")
	}
	if left, err := filepath.Glob(filepath.Join(s.dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("a dry run left %q, %v", left, err)
	}
	return []byte(b.String())
}

func TestScheduleNext(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"schedule.txt": {
			"next --cron '30 2 * * *' --tz America/New_York --from 2026-03-07T00:00:00-05:00 -n 3",
			"next --cron '30 1 * * *' --tz America/New_York --from 2026-10-31T12:00:00-04:00 -n 3",
			"next --cron '*/15 * * * *' --tz Europe/Berlin --from 2026-10-25T02:50:00+02:00 -n 3",
			"next --cron '0 6 13 * FRI' --from 2026-01-01",
			"next --cron '0 0 29 2 *' --tz UTC --from '2026-01-01 12:00' -n 2",
			"next --cron '*/20 59 23 * * *' --seconds --tz Asia/Tokyo --from 2026-01-01 -n 4",
			"next --cron '@every 36h' --anchor 2026-11-30T08:00:00Z --from 2026-12-01T00:00:00Z -n 2",
			"next --cron '0 12 31 12 *' --from 9998-01-01",
		},
		"schedule-json.txt": {
			"next --cron '30 2 * * *' --tz America/New_York --from 2026-03-07T00:00:00-05:00 -n 3 --json",
			"next --cron '@every 90m' --tz Europe/Berlin --from 2026-10-25T00:00:00Z -n 2 --json",
			"next --cron '@yearly' --from 9999-06-01 --json",
			"next --cron '0 0 31 2 *' --json",
			"next --cron '0 6 * * *' --tz Nowhere/City --json",
		},
		"schedule-refused.txt": {
			"nosuch", "next", "next extra --cron @daily", "next --cron ''", "next --cron '* * * *'", "next --cron '0 0 6 * * *'", "next --cron '61 * * * *'",
			"next --cron '0 2 1 0 *'", "next --cron '0 0 31 2 *'", "next --cron '*/70 * * * *'", "next --cron 'TZ=UTC 0 6 * * *'", "next --cron @reboot",
			"next --cron '@every 0s'", "next --cron '*/15 2 * 3 0L' --tz Europe/Berlin", "next --cron '0 6 * * \x1b[2J'", "next --cron @daily --tz ''",
			"next --cron @daily --tz Local", "next --cron @daily --tz ../UTC", "next --cron @daily --from noon", "next --cron @daily --anchor noon",
			"next --cron @daily -n 0", "next --cron @daily -n 1001", "next --cron '0 6 * * *' --seconds",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, scheduleTranscript(t, lines...))
		})
	}
}

// Without --from it lists what comes after now.
func TestScheduleNextFromNow(t *testing.T) {
	s := newShop(t)
	synctest.Test(t, func(t *testing.T) {
		s.t = t
		code, out, talk := s.stint("schedule", "next", "--cron", "@hourly", "-n", "2", "--json")
		var got []time.Time
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK || talk != "" {
			t.Fatalf("exit status %d, %v: %s%s", code, err, out, talk)
		}
		want := time.Now().UTC().Truncate(time.Hour).Add(time.Hour)
		if len(got) != 2 || !got[0].Equal(want) || !got[1].Equal(want.Add(time.Hour)) {
			t.Errorf("after %s: %s, want %s", time.Now().UTC(), got, want)
		}
	})
}

// Where no time comes any more that is said, and not shown as a table of nothing.
func TestScheduleNextOfNone(t *testing.T) {
	d := newDesk(t)
	if out := d.ok("schedule", "next", "--cron", "0 0 29 2 *", "--from", "9998-01-01"); !strings.Contains(out, "No time comes after 9998-01-01 00:00:00 UTC.") || strings.Contains(out, "LOCAL TIME") {
		t.Errorf("got\n%s", out)
	}
	if out := d.ok("schedule", "next", "--cron", "0 0 29 2 *", "--from", "9998-01-01", "--json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("got %s", out)
	}
}
