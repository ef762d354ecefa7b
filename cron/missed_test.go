package cron_test

import (
	"testing"
	"time"

	"github.com/stint-dev/stint/cron"
)

// What was due while nobody looked is counted, not walked through: a machine that slept
// for a year costs as much as one that was restarted.
func TestMissed(t *testing.T) {
	up := moment(t, "2026-03-01T12:00:30Z")
	for _, c := range []struct {
		expr, zone string
		down       time.Duration
		count      int64
		newest     string
	}{
		{"* * * * *", "UTC", 2 * time.Second, 0, "2026-03-01T12:00:00Z"},
		{"* * * * *", "UTC", 210 * time.Second, 3, "2026-03-01T12:00:00Z"},
		{"* * * * *", "UTC", 130 * time.Minute, 130, "2026-03-01T12:00:00Z"},
		{"* * * * *", "Europe/Berlin", 400 * 24 * time.Hour, 576000, "2026-03-01T12:00:00Z"},
		{"@every 1s", "UTC", 400 * 24 * time.Hour, 34560000, "2026-03-01T12:00:30Z"},
		{"30 2 * * *", "America/New_York", 400 * 24 * time.Hour, 400, "2026-03-01T07:30:00Z"}, // with a gap and a repeated hour
		{"30 1 * * *", "America/New_York", 400 * 24 * time.Hour, 400, "2026-03-01T06:30:00Z"},
		{"0 6 * * 1-5", "Europe/Berlin", 60 * time.Hour, 1, "2026-02-27T05:00:00Z"}, // a Friday; up is on a Sunday
		{"0 0 29 2 *", "UTC", 400 * 24 * time.Hour, 0, "2024-02-29T00:00:00Z"},
	} {
		s := parse(t, c.expr, c.zone)
		if got := s.Count(up.Add(-c.down), up); got != c.count {
			t.Errorf("%q in %s after %s: %d were missed, want %d", c.expr, c.zone, c.down, got, c.count)
		}
		if prev, ok := s.Prev(up); !ok || !prev.Equal(moment(t, c.newest)) {
			t.Errorf("%q in %s: the newest is %s, %v, want %s", c.expr, c.zone, prev, ok, c.newest)
		}
	}
}

// An edited schedule knows nothing of the one before it: its next time follows from the
// new expression and the new zone alone.
func TestEdited(t *testing.T) {
	saturday := moment(t, "2026-11-28T07:30:00Z")
	for _, c := range []struct{ expr, zone, want string }{
		{"*/1 * * * *", "UTC", "2026-11-28T07:31:00Z"},
		{"0 9 * * 1-5", "UTC", "2026-11-30T09:00:00Z"},
		{"0 9 * * 1-5", "Europe/Vilnius", "2026-11-30T07:00:00Z"},
		{"0 9 * * 1-6", "Europe/Vilnius", "2026-11-30T07:00:00Z"}, // Saturday's nine o'clock there was half an hour ago
		{"0 9 * * 1-6", "Europe/Lisbon", "2026-11-28T09:00:00Z"},
	} {
		if got := nextN(parse(t, c.expr, c.zone), saturday, 1)[0]; got != c.want {
			t.Errorf("%q in %s: %s, want %s", c.expr, c.zone, got, c.want)
		}
	}
}

// Who asks does not matter: a preview in one zone and a server in another agree, and the
// answer is in the zone of the schedule.
func TestZoneOfWhoAsks(t *testing.T) {
	s := parse(t, "0 14 * * *", "UTC")
	at := moment(t, "2026-11-28T12:00:00Z")
	for _, name := range []string{"UTC", "America/Chicago", "Asia/Tokyo", "Pacific/Kiritimati"} {
		zone, err := cron.Zone(name)
		if err != nil {
			t.Fatal(err)
		}
		next, ok := s.Next(at.In(zone))
		if want := moment(t, "2026-11-28T14:00:00Z"); !ok || !next.Equal(want) || next.Location() != s.Zone() {
			t.Errorf("asked in %s: %s, %v, want %s", name, next, ok, want)
		}
		if n := s.Count(at.In(zone), at.Add(24*time.Hour)); n != 1 {
			t.Errorf("asked in %s: %d times in a day", name, n)
		}
	}
}
