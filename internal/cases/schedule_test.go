package cases_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/trigger"
)

// TestA07MissedWhileDown: a server that is down loses no time silently and replays no
// more than its policy says; what was missed is one line with its count, and a schedule
// of one time follows the same policy (openclaw/openclaw#104412, openclaw/openclaw#73644,
// FoundatioFx/Foundatio#317, SamSaffron/term-llm#925).
func TestA07MissedWhileDown(t *testing.T) {
	served(t, func(t *testing.T, r *rota) {
		all := []trigger.Schedule{
			r.schedule("none", "* * * * *", "UTC", catchesUp(0, 1)),
			r.schedule("once", "* * * * *", "UTC"),
			r.schedule("all", "* * * * *", "UTC", overlaps(trigger.Allow), catchesUp(time.Hour, 10)),
			r.schedule("two", "* * * * *", "UTC", overlaps(trigger.Allow), catchesUp(time.Hour, 2)),
			r.schedule("young", "* * * * *", "UTC", overlaps(trigger.Allow), catchesUp(2*time.Minute, 10)),
			r.schedule("at", "", "", at("00:03:00"), catchesUp(time.Hour, 1)),
			r.schedule("at-none", "", "", at("00:03:00"), catchesUp(0, 1)),
		}
		r.up(all...)
		r.until("00:01:10")
		r.down()
		r.pass(3*time.Minute + 30*time.Second)
		r.up(all...)
		r.until("00:05:10")
		r.has("none", "ran 01T00:01:00, missed 01T00:02:00..01T00:03:00 x2 down, ran 01T00:04:00, ran 01T00:05:00")
		r.has("once", "ran 01T00:01:00, missed 01T00:02:00..01T00:03:00 x2 newer, ran 01T00:04:00, ran 01T00:05:00")
		r.has("all", "ran 01T00:01:00, ran 01T00:02:00, ran 01T00:03:00, ran 01T00:04:00, ran 01T00:05:00")
		r.has("two", "ran 01T00:01:00, missed 01T00:02:00 newer, ran 01T00:03:00, ran 01T00:04:00, ran 01T00:05:00")
		r.has("young", "ran 01T00:01:00, missed 01T00:02:00 down, ran 01T00:03:00, ran 01T00:04:00, ran 01T00:05:00")
		r.has("at", "ran 01T00:03:00")
		r.has("at-none", "missed 01T00:03:00 down")
		r.isSettled()
	})
}

// TestA08ManyMissed: however many times were missed, the schedule goes on within a minute,
// and they are one line (kubernetes/kubernetes#36311, kubernetes/kubernetes#81557,
// k3d-io/k3d#523).
func TestA08ManyMissed(t *testing.T) {
	served(t, func(t *testing.T, r *rota) {
		m := r.schedule("m", "* * * * *", "UTC")
		r.up(m)
		r.until("00:01:10")
		r.down()
		r.pass(130 * time.Minute)
		r.up(m)
		r.until("02:12:10")
		r.has("m", "ran 01T00:01:00, missed 01T00:02:00..01T02:10:00 x129 newer, ran 01T02:11:00, ran 01T02:12:00")
		r.isSettled()
		r.down()
		r.pass(399 * 24 * time.Hour)
		r.up(m)
		r.pass(time.Minute)
		ledger := r.ledger("m")
		if got := linesOf(ledger[:3]); got != "missed 01T02:13:00..03T02:11:00 x574559 newer, ran 03T02:12:00, ran 03T02:13:00" {
			t.Errorf("it goes on with %s", got)
		}
		r.isSettled()
	})
}

// TestA09Overrun: a session that takes longer than it is to the next time neither wedges
// the schedule nor piles up: what may not run is recorded with the reason
// (go-co-op/gocron#683, go-co-op/gocron#676, enonic/xp#12272, openclaw/openclaw#18120).
func TestA09Overrun(t *testing.T) {
	served(t, func(t *testing.T, r *rota) {
		r.takes(5 * time.Second)
		var all []trigger.Schedule
		for _, o := range []trigger.Overlap{trigger.Skip, trigger.Queue, trigger.Replace, trigger.Allow} {
			all = append(all, r.schedule(string(o), "@every 2s", "UTC", overlaps(o)))
		}
		r.up(all...)
		r.pass(61 * time.Second)
		for _, want := range []struct {
			name      string
			ran       int // of 30, at least
			most      int // at once
			otherwise string
		}{
			{"skip", 10, 1, trigger.Overlaps},
			{"queue", 10, 1, trigger.Newer}, // ten wait
			{"replace", 30, 3, ""},          // they are told to stop, and do so where a loop ends
			{"allow", 30, 3, ""},
		} {
			ledger := r.ledger(want.name)
			ran := 0
			for _, o := range ledger {
				switch {
				case o.Outcome == trigger.Ran:
					ran++
				case o.Reason != want.otherwise:
					t.Errorf("%s: %s", want.name, lineOf(&o))
				}
			}
			if most := r.atOnce(want.name); ran < want.ran || most > want.most {
				t.Errorf("%s: %d sessions, %d at once, want %d and %d\n%s", want.name, ran, most, want.ran, want.most, linesOf(ledger))
			}
			if last := ledger[0]; time.Since(last.To) > 25*time.Second {
				t.Errorf("%s: it stopped at %s", want.name, lineOf(&last))
			}
		}
		r.takes(0)
		r.pass(time.Minute)
		r.isSettled()
	})
}

// atOnce is how many sessions of a schedule were open at once, at most.
func (r *rota) atOnce(name string) int {
	r.t.Helper()
	var sessions []stint.Session
	for _, o := range r.ledger(name) {
		if !o.Session.IsZero() {
			sessions = append(sessions, r.row(o.Session).Session)
		}
	}
	most := 0
	for _, s := range sessions {
		n := 0
		for _, other := range sessions {
			if !other.Created.After(s.Created) && (other.Ended.IsZero() || other.Ended.After(s.Created)) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// TestA10Edited: a schedule that was edited, its zone alone as well, also while no server
// ran, is due as it says now, and the edit begins no session (openclaw/openclaw#152592,
// openclaw/openclaw#27996, railgrid/railgrid#426, NousResearch/hermes-agent#93069).
func TestA10Edited(t *testing.T) {
	served(t, func(t *testing.T, r *rota) { // 2000-01-01 is a Saturday
		r.up(r.schedule("s", "*/1 * * * *", "UTC"))
		r.until("00:02:10")
		vilnius := r.schedule("s", "0 9 * * 1-5", "Europe/Vilnius")
		r.set(vilnius)
		r.until("00:05:00")
		r.down()
		r.pass(30 * time.Hour) // Saturday's nine o'clock, and Sunday's
		r.up(vilnius)
		r.has("s", "ran 01T00:01:00, ran 01T00:02:00")
		r.set(r.schedule("s", "0 9 * * 1-5", "Europe/Lisbon"))
		r.down()
		r.pass(26*time.Hour + 30*time.Minute) // it is Monday, 08:35 in Lisbon
		r.up(r.schedule("s", "0 9 * * 1-5", "Europe/Lisbon"))
		r.until("09:30:00")
		r.has("s", "ran 01T00:01:00, ran 01T00:02:00, ran 03T09:00:00")
		r.down()
		r.pass(14 * time.Hour) // it is 23:30
		r.up(r.schedule("s", "0 9 * * 1-5", "Asia/Tokyo"))
		r.until("00:30:00")
		r.has("s", "ran 01T00:01:00, ran 01T00:02:00, ran 03T09:00:00, ran 04T00:00:00")
		r.isSettled()
	})
}

// TestA12FrequentRestarts: an interval is counted from a fixed instant, not from the start
// of a server that never lives that long (riverqueue/river#791).
func TestA12FrequentRestarts(t *testing.T) {
	served(t, func(_ *testing.T, r *rota) {
		r.pass(7 * time.Second)
		for range 15 {
			r.up(r.schedule("s", "@every 60s", "UTC"))
			r.pass(20 * time.Second)
			r.down()
		}
		r.up(r.schedule("s", "@every 60s", "UTC"))
		r.has("s", "ran 01T00:01:00, ran 01T00:02:00, ran 01T00:03:00, ran 01T00:04:00, ran 01T00:05:00")
		r.isSettled()
	})
}

// TestA13OneTimeOfThePast: a schedule of one time that is past when it is added leads to
// nothing, and not to a session a year later (ohdearquant/lionagi#1611).
func TestA13OneTimeOfThePast(t *testing.T) {
	served(t, func(_ *testing.T, r *rota) {
		r.until("10:00:00")
		s := r.schedule("s", "", "", at("09:55:00"))
		r.up(s)
		r.pass(time.Minute)
		r.down()
		r.pass(367 * 24 * time.Hour)
		r.up(s)
		r.pass(time.Minute)
		r.has("s", "")
		r.isSettled()
	})
}

// A server that ends in the second in which a time is due, and another one that begins in
// it, make one session of it.
func TestRestartInTheSecond(t *testing.T) {
	served(t, func(_ *testing.T, r *rota) {
		m := r.schedule("m", "* * * * *", "UTC")
		r.up(m)
		<-time.After(time.Minute) // nobody waits for what happens now
		r.down()
		r.up(m)
		r.down()
		r.until("00:02:00")
		for range 3 {
			r.up(m)
			r.down()
		}
		r.up(m)
		r.until("00:02:30")
		r.has("m", "ran 01T00:01:00, ran 01T00:02:00")
		r.isSettled()
	})
}

// A second server is refused, and the first one goes on.
func TestSecondServerIsRefused(t *testing.T) {
	served(t, func(t *testing.T, r *rota) {
		r.up(r.schedule("m", "* * * * *", "UTC"))
		for range 3 {
			e, err := engine.New(t.Context(), r.store, engine.Options{Holder: "second", Agents: []engine.Agent{r.agent()}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.System(t.Context(), func(error) {}); !errors.Is(err, stint.Conflict) || !strings.Contains(err.Error(), "server-1") {
				t.Errorf("a second server: %v", err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			r.pass(61 * time.Second)
		}
		r.has("m", "ran 01T00:01:00, ran 01T00:02:00, ran 01T00:03:00")
		r.isSettled()
	})
}

// What people fire, pause and have made good stands beside the times of the schedule, and
// none of them leads to two sessions.
func TestFiredAndMadeGood(t *testing.T) {
	served(t, func(t *testing.T, r *rota) {
		all := []trigger.Schedule{r.schedule("h", "0 * * * *", "UTC"), r.schedule("q", "*/20 * * * *", "UTC", overlaps(trigger.Queue), catchesUp(24*time.Hour, 10))}
		r.up(all...)
		r.until("01:00:00")
		r.asks(trigger.Fire, "h")
		r.until("01:30:00")
		r.asks(trigger.Pause, "h")
		r.asks(trigger.Fire, "h")
		r.until("03:30:00")
		for range 2 {
			r.asks(trigger.Backfill, "h", between("00:30:00", "03:30:00"))
		}
		r.asks(trigger.Resume, "h")
		r.has("h", "ran 01T01:00:00 by hand, ran 01T01:00:00, ran 01T01:30:00 by hand, ran 01T02:00:00 made good, ran 01T03:00:00 made good, skipped 01T02:00:00..01T03:00:00 x2 paused")
		r.takes(50 * time.Minute)
		r.until("04:25:00")
		r.takes(time.Second)
		r.asks(trigger.Backfill, "q", between("00:00:00", "04:25:00")) // two of them wait
		r.until("04:50:00")
		if !slices.ContainsFunc(r.ledger("q"), func(o trigger.Occurrence) bool { return o.Reason == trigger.MadeGood }) {
			t.Errorf("no time that waited was made good: %s", linesOf(r.ledger("q")))
		}
		r.isSettled()
	})
}

// at is the change of a schedule to one time of the first day.
func at(clock string) func(*trigger.Schedule) {
	return func(sc *trigger.Schedule) {
		when, _ := time.Parse(time.DateTime, "2000-01-01 "+clock)
		sc.Timing = trigger.Timing{At: when}
	}
}

// isSettled checks that every time up to now has one line.
func (r *rota) isSettled() {
	r.t.Helper()
	synctest.Wait()
	if err := r.settled(); err != nil {
		r.t.Error(err)
	}
}
