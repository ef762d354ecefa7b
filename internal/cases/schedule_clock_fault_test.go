//go:build faultinject

package cases_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/trigger"
)

// moved runs fn on every store as served does, with a clock that can be moved.
func moved(t *testing.T, fn func(t *testing.T, r *rota, jump func(time.Duration))) {
	t.Helper()
	movedOn(t, stores(), fn)
}

func movedOn(t *testing.T, on []string, fn func(t *testing.T, r *rota, jump func(time.Duration))) {
	t.Helper()
	c := newClock(t)
	servedOn(t, on, func(t *testing.T, r *rota) {
		fn(t, r, c.mover())
	})
}

// mover sets the clock right, and returns what moves it.
func (c movable) mover() func(time.Duration) {
	off := time.Duration(0)
	c.set(off)
	return func(d time.Duration) {
		off += d
		c.set(off)
		synctest.Wait()
	}
}

// TestMovedSchedules: a server whose clock is moved.
func TestMovedSchedules(t *testing.T) {
	for name, fn := range map[string]func(t *testing.T, r *rota, jump func(time.Duration)){
		"asleep for more than a year": func(_ *testing.T, r *rota, jump func(time.Duration)) {
			r.up(r.schedule("m", "* * * * *", "UTC"), r.schedule("d", "0 6 * * *", "UTC"))
			r.until("00:02:30")
			jump(399 * 24 * time.Hour)
			r.until("00:03:30")
			r.has("m", "ran 01T00:01:00, ran 01T00:02:00, missed 01T00:03:00..03T00:02:00 x574560 newer, ran 03T00:03:00")
			r.has("d", "missed 01T06:00:00..02T06:00:00 x399 asleep")
		},
		"asleep over lunch": func(_ *testing.T, r *rota, jump func(time.Duration)) {
			r.up(r.schedule("h", "*/30 * * * *", "UTC"))
			r.until("00:10:00")
			jump(100 * time.Minute)
			r.until("00:12:00")
			r.has("h", "missed 01T00:30:00..01T01:00:00 x2 newer, ran 01T01:30:00")
		},
		"set back by an hour": func(_ *testing.T, r *rota, jump func(time.Duration)) {
			r.up(r.schedule("m", "*/20 * * * *", "UTC"))
			r.until("01:10:00")
			jump(-time.Hour)
			r.until("02:30:00") // it shows 01:30
			r.has("m", "ran 01T00:20:00, ran 01T00:40:00, ran 01T01:00:00, ran 01T01:20:00")
		},
		"set forward by a day, and right again": func(_ *testing.T, r *rota, jump func(time.Duration)) {
			r.up(r.schedule("h", "0 * * * *", "UTC"))
			r.until("01:30:00")
			jump(24 * time.Hour)
			r.until("01:31:00")
			jump(-24 * time.Hour)
			r.until("05:30:00")
			r.down()
			r.up(r.schedule("h", "0 * * * *", "UTC"))
			r.pass(23 * time.Hour)
			r.has("h", "ran 01T01:00:00, missed 01T02:00:00..02T00:00:00 x23 asleep, ran 02T01:00:00, ran 02T02:00:00, ran 02T03:00:00, ran 02T04:00:00")
		},
	} {
		t.Run(name, func(t *testing.T) {
			moved(t, func(t *testing.T, r *rota, jump func(time.Duration)) {
				fn(t, r, jump)
				if err := r.settled(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestClockFarAhead: a clock that was days ahead pauses its schedules when it is set
// right, and they begin anew where somebody says so: also long after, and after a restart.
func TestClockFarAhead(t *testing.T) {
	const before = "ran 01T01:00:00, missed 01T02:00:00..02T06:00:00 x29 asleep, ran 02T07:00:00"
	ahead := func(r *rota, jump func(time.Duration)) trigger.Schedule {
		h := r.schedule("h", "0 * * * *", "UTC")
		r.up(h)
		r.until("01:30:00")
		jump(30 * time.Hour)
		r.until("01:31:00")
		jump(-30 * time.Hour)
		r.until("05:30:00")
		if p := r.held()["h"].Paused; p == nil {
			r.t.Errorf("it is not paused: %+v", r.held())
		}
		return h
	}
	for name, fn := range map[string]func(t *testing.T, r *rota, h trigger.Schedule){
		"resumed": func(_ *testing.T, r *rota, h trigger.Schedule) {
			r.asks(trigger.Resume, "h")
			r.until("07:30:00")
		},
		"resumed when its newest line is less than a day ahead": func(_ *testing.T, r *rota, h trigger.Schedule) {
			r.until("09:30:00")
			r.asks(trigger.Resume, "h")
			r.until("11:30:00")
		},
		"taken out and put back": func(_ *testing.T, r *rota, h trigger.Schedule) {
			r.set()
			r.set(h)
			r.until("07:30:00")
		},
	} {
		t.Run(name, func(t *testing.T) {
			movedOn(t, []string{"mem"}, func(t *testing.T, r *rota, jump func(time.Duration)) { // it takes days, and TestMovedSchedules shows that the stores are alike
				h := ahead(r, jump)
				r.has("h", before)
				fn(t, r, h)
				sessions := func() int { return len(r.ledger("h")) }
				for range 4 { // through the time that the clock has shown already
					n := sessions()
					r.down()
					r.up(h)
					r.pass(8 * time.Hour)
					if sessions() != n+8 {
						t.Errorf("at %v there are %d lines more, want 8\n%s", faultpoint.Now(), sessions()-n, linesOf(r.ledger("h")))
					}
				}
				if err := r.settled(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestMovedLives is TestEveryTimeOnce with a clock that is set as well.
func TestMovedLives(t *testing.T) {
	c := newClock(t)
	lives(t, func() func(time.Duration) { return c.mover() })
}
