package endpoint_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/endpoint"
)

// Who is told of what, by what they name.
func TestTold(t *testing.T) {
	type told struct {
		event  endpoint.Event
		status stint.Status
		wait   stint.WaitFor
	}
	all := []told{{endpoint.Created, stint.Pending, ""}, {endpoint.Asked, stint.Waiting, ""}}
	for _, w := range []stint.WaitFor{stint.ForApproval, stint.ForMessage, stint.ForBudget, stint.ForDoubt, stint.ForHealth, stint.ForOperator} {
		all = append(all, told{endpoint.Waiting, stint.Waiting, w})
	}
	for _, status := range []stint.Status{stint.Completed, stint.Stopped, stint.Canceled} {
		all = append(all, told{endpoint.Ended, status, ""})
	}
	all = append(all, told{endpoint.Failed, stint.Failed, ""})
	for names, want := range map[string]string{
		"":                        "created requested message budget doubt health operator completed stopped canceled failed",
		"needs-you":               "requested budget doubt health operator",
		"bad-end":                 "stopped failed",
		"needs-you bad-end":       "requested budget doubt health operator stopped failed",
		"session.waiting":         "message budget doubt health operator",
		"session.failed":          "failed",
		"session.ended":           "completed stopped canceled",
		"approval.requested":      "requested",
		"session.created bad-end": "created stopped failed",
	} {
		var events []endpoint.Event
		for _, name := range strings.Fields(names) {
			events = append(events, endpoint.Event(name))
		}
		var got []string
		for _, e := range all {
			if !endpoint.Told(events, e.event, e.status, e.wait) {
				continue
			}
			switch e.event {
			case endpoint.Waiting:
				got = append(got, string(e.wait))
			case endpoint.Ended, endpoint.Failed:
				got = append(got, string(e.status))
			default:
				_, word, _ := strings.Cut(string(e.event), ".")
				got = append(got, word)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %v, want %s", names, got, want)
		}
	}
}

// The reminders of a wait, one after the other.
func TestRemind(t *testing.T) {
	since := time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC)
	for want, r := range map[string]endpoint.Remind{
		"15m0s 1h0m0s 4h0m0s 28h0m0s 52h0m0s":      endpoint.DefaultRemind(),
		"1m0s 2m0s":                                {After: []time.Duration{time.Minute, 2 * time.Minute}},
		"24h0m0s 48h0m0s 72h0m0s 96h0m0s 120h0m0s": {Daily: true},
		"": {},
	} {
		var got []string
		at := since
		for ok := !r.Never(); ok && len(got) < 5; {
			if at, ok = r.Next(since, at); ok {
				got = append(got, at.Sub(since).String())
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

// Whatever the windows are that one looks at, one after the other, each wait has the newest
// reminder of a window, none twice, and none that is missing.
func TestRemindWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := endpoint.Remind{Daily: rapid.Bool().Draw(t, "daily")}
		after := time.Duration(0)
		for range rapid.IntRange(0, 4).Draw(t, "many") {
			after += time.Duration(rapid.IntRange(1, 600).Draw(t, "minutes")) * time.Minute
			r.After = append(r.After, after)
		}
		since := time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC)
		at, last := since.Add(-time.Hour), 0
		for range rapid.IntRange(1, 30).Draw(t, "windows") {
			until := at.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "minutes")) * time.Minute)
			n, due := r.Due(since, at, until)
			next, more := r.Next(since, at)
			if (n > 0) != (more && !next.After(until)) {
				t.Fatalf("window %v to %v: %d, and the next is due %v", at, until, n, next)
			}
			if n > 0 {
				if n <= last || due.After(until) || !due.After(at) {
					t.Fatalf("window %v to %v: %d after %d, due %v", at, until, n, last, due)
				}
				if later, ok := r.Next(since, due); ok && !later.After(until) {
					t.Fatalf("window %v to %v: %d is not the newest", at, until, n)
				}
				last = n
			}
			at = until
		}
	})
}

// Hours that are quiet, over midnight and over the days on which clocks change.
func TestQuiet(t *testing.T) {
	night := endpoint.Quiet{From: 22 * time.Hour, To: 7 * time.Hour, Zone: "Europe/Berlin"}
	noon := endpoint.Quiet{From: 12 * time.Hour, To: 13*time.Hour + 30*time.Minute, Zone: "UTC"}
	for _, c := range []struct {
		q    endpoint.Quiet
		at   string
		want string
	}{
		{night, "2026-11-30T20:59:59Z", ""},
		{night, "2026-11-30T21:00:00Z", "2026-12-01T06:00:00Z"},
		{night, "2026-12-01T05:59:59Z", "2026-12-01T06:00:00Z"},
		{night, "2026-12-01T06:00:00Z", ""},
		{night, "2026-12-31T23:30:00Z", "2027-01-01T06:00:00Z"},
		{night, "2026-03-28T22:00:00Z", "2026-03-29T05:00:00Z"}, // 8 hours: clocks go forward
		{night, "2026-10-24T20:00:00Z", "2026-10-25T06:00:00Z"}, // 10 hours: clocks go back
		{noon, "2026-11-30T12:00:00Z", "2026-11-30T13:30:00Z"},
		{noon, "2026-11-30T13:30:00Z", ""},
		{noon, "2026-11-30T23:30:00Z", ""},
		{endpoint.Quiet{}, "2026-11-30T00:00:00Z", ""},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if end, ok := c.q.Until(at); ok {
			got = end.UTC().Format(time.RFC3339)
		}
		if got != c.want {
			t.Errorf("%v at %s: quiet until %q, want %q", c.q, c.at, got, c.want)
		}
	}
}

// The events have names that differ, and each of them is told to who names it alone.
func TestEvents(t *testing.T) {
	seen := map[endpoint.Event]bool{}
	for _, e := range endpoint.Events() {
		if seen[e] || e == "" {
			t.Errorf("%q is there twice", e)
		}
		seen[e] = true
	}
	if d := fmt.Sprint(endpoint.DefaultExec().Timeout, endpoint.DefaultSMTP().TLS); d != "30sstarttls" {
		t.Errorf("got %s", d)
	}
}
