package cases_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/trigger"
)

// event is something that happens to schedules and their server.
type event struct {
	what  string
	which string // the schedule
	n     int
	d     time.Duration
}

func (e event) String() string { return fmt.Sprintf("%s %s %d %v", e.what, e.which, e.n, e.d) }

// events is a life of a server: what happens, in that order.
func events(jumps bool) *rapid.Generator[[]event] {
	whats := []string{"pass", "pass", "pass", "down", "edit", "policy", "drop", "mistake", "pause", "resume", "resume", "fire", "backfill", "takes", "ends", "when", "when"}
	if jumps {
		whats = append(whats, "jump", "jump")
	}
	one := rapid.Custom(func(t *rapid.T) event {
		return event{
			what:  rapid.SampledFrom(whats).Draw(t, "what"),
			which: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "which"),
			n:     rapid.IntRange(0, 1000).Draw(t, "n"),
			d: rapid.OneOf(
				rapid.Map(rapid.IntRange(0, 100), func(n int) time.Duration { return time.Duration(n) * time.Second }),
				rapid.Map(rapid.IntRange(0, 60), func(n int) time.Duration { return time.Duration(n) * time.Minute }),
			).Draw(t, "d"),
		}
	})
	most := 12
	if long() {
		most = 40
	}
	return rapid.SliceOfN(one, 3, most)
}

// life is a rota to which events happen.
type life struct {
	*rota
	t     *testing.T
	now   map[string]*trigger.Schedule // the schedules as the file has them; nil: it has not
	alone map[string]bool              // schedules whose sessions never may run beside another
	spans map[string][][2]time.Time    // in which they were paused
	when  map[string]*atomic.Int64     // what the condition says
	slow  atomic.Int64                 // how long it takes to, in nanoseconds
	jump  func(d time.Duration)
}

func newLife(t *testing.T, r *rota, jump func(time.Duration)) *life {
	l := &life{rota: r, t: t, now: map[string]*trigger.Schedule{}, alone: map[string]bool{"a": true, "b": true}, spans: map[string][][2]time.Time{}, when: map[string]*atomic.Int64{"a": {}, "b": {}}, jump: jump}
	for _, name := range []string{"a", "b"} {
		sc := r.schedule(name, "*/7 * * * *", "UTC", func(sc *trigger.Schedule) { sc.Gate = l.gate(name) })
		l.now[name] = &sc
	}
	return l
}

// gate is a condition that now and then says no, or cannot be asked, and takes its time.
func (l *life) gate(name string) func(context.Context) (bool, string, error) {
	return func(ctx context.Context) (bool, string, error) {
		kind := l.when[name].Load()
		if kind >= 3 {
			select {
			case <-time.After(time.Duration(l.slow.Load())):
			case <-ctx.Done():
				return false, "", ctx.Err()
			}
		}
		switch kind % 3 {
		case 1:
			return false, "nothing is new", nil
		case 2:
			return false, "", errors.New("nobody answers")
		}
		return true, "", nil
	}
}

// file is the schedules that stint.yaml has.
func (l *life) file() (all []trigger.Schedule) {
	for _, name := range []string{"a", "b"} {
		broken := false
		for _, b := range l.broken {
			broken = broken || b == name
		}
		if sc := l.now[name]; sc != nil && !broken {
			all = append(all, *sc)
		}
	}
	return all
}

func timings() []trigger.Timing {
	return []trigger.Timing{
		{Cron: "* * * * *", Zone: "UTC"}, {Cron: "*/7 * * * *", Zone: "UTC"}, {Cron: "0 * * * *", Zone: "Europe/Berlin"}, {Cron: "@every 90s", Zone: "UTC"},
		{Cron: "30 2 * * *", Zone: "America/New_York"}, {Cron: "0 0 31 * *", Zone: "UTC"}, {At: time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC)},
	}
}

// happen has one event happen.
func (l *life) happen(e event) {
	sc := l.now[e.which]
	held := len(l.eras[e.which]) > 0 && l.eras[e.which][len(l.eras[e.which])-1].until.IsZero() // the server has it
	switch e.what {
	case "pass":
		l.pass(e.d)
	case "down":
		l.down()
		<-time.After(e.d * time.Duration(1+e.n%3*e.n/10)) // up to a week
		l.up(l.file()...)
	case "edit":
		if all := timings(); sc != nil {
			sc.Timing = all[e.n%len(all)]
		}
		l.set(l.file()...)
	case "policy":
		l.policy(e)
	case "drop":
		if l.now[e.which] = nil; sc == nil {
			put := l.schedule(e.which, "*/5 * * * *", "UTC", func(sc *trigger.Schedule) { sc.Gate = l.gate(e.which) })
			l.now[e.which] = &put
		}
		if l.set(l.file()...); l.now[e.which] == nil {
			l.resumed(e.which)
		}
	case "mistake":
		if l.broken = nil; e.n%2 == 0 {
			l.broken = []string{e.which}
		}
		l.set(l.file()...)
	case "pause":
		if held && !l.paused[e.which] {
			l.asks(trigger.Pause, e.which)
			if l.paused[e.which] {
				l.spans[e.which] = append(l.spans[e.which], [2]time.Time{faultpoint.Now()})
			}
		}
	case "resume":
		l.asks(trigger.Resume, e.which)
		l.resumed(e.which)
	case "fire":
		l.asks(trigger.Fire, e.which)
	case "backfill":
		l.asks(trigger.Backfill, e.which, func(c *trigger.Command) { c.To = faultpoint.Now(); c.From = c.To.Add(-e.d) })
	case "takes":
		l.takes(e.d)
	case "ends":
		l.ends([]stint.Status{stint.Completed, stint.Failed}[e.n%2])
	case "when":
		l.when[e.which].Store(int64(e.n % 6))
		l.slow.Store(int64(e.d))
	case "jump":
		l.jump(time.Duration(e.n-500) * e.d / 100) // up to 17 hours, back and forth
	}
	synctest.Wait()
}

// resumed notes the end of a pause.
func (l *life) resumed(name string) {
	if all := l.spans[name]; len(all) > 0 && all[len(all)-1][1].IsZero() && !l.paused[name] {
		all[len(all)-1][1] = faultpoint.Now()
	}
}

// policy gives a schedule other policies.
func (l *life) policy(e event) {
	sc := l.now[e.which]
	if sc == nil {
		return
	}
	p := &sc.Policy
	p.Overlap = []trigger.Overlap{trigger.Skip, trigger.Queue, trigger.Replace, trigger.Allow}[e.n%4]
	p.Window, p.Most, p.PauseAfter = e.d, 1, e.n%5
	if p.Overlap == trigger.Allow || p.Overlap == trigger.Queue {
		p.Most = 1 + e.n%12
	}
	p.Jitter = time.Duration(e.n%3) * 25 * time.Second
	if p.Overlap == trigger.Allow || p.Overlap == trigger.Replace {
		l.alone[e.which] = false
	}
	l.set(l.file()...)
}

// calm lets all that was begun come to its end, and checks what there is then.
func (l *life) calm() error {
	l.takes(time.Second)
	for _, when := range l.when {
		when.Store(0)
	}
	l.broken = nil
	l.set(l.file()...)
	l.pass(3 * time.Hour)
	l.pass(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + 20*time.Second)))
	held := l.held()
	l.down()
	if err := l.soundUpTo(func(name string) time.Time {
		if held[name].Paused != nil {
			return time.Time{}
		}
		return faultpoint.Now().Add(-2 * time.Minute) // for jitter
	}); err != nil {
		return err
	}
	return l.policies()
}

// policies checks that no session began during a pause, and none beside another one that
// its schedule does not let run.
func (l *life) policies() error {
	if l.jump != nil {
		return nil // by a clock that is set, nobody can say what was before what
	}
	for name := range l.eras {
		var before stint.Session
		ledger := l.ledger(name)
		for i := len(ledger) - 1; i >= 0; i-- {
			o := ledger[i]
			if o.Manual || o.Session.IsZero() {
				continue
			}
			s := l.row(o.Session).Session
			for _, p := range l.spans[name] {
				if s.Created.After(p[0]) && (p[1].IsZero() || s.Created.Before(p[1])) {
					return fmt.Errorf("%s: %s began at %v, and it was paused from %v to %v", name, lineOf(&o), s.Created, p[0], p[1])
				}
			}
			if l.alone[name] && !before.ID.IsZero() && (before.Ended.IsZero() || before.Ended.After(s.Created)) {
				return fmt.Errorf("%s: %s began at %v, and the one before it ended at %v", name, lineOf(&o), s.Created, before.Ended)
			}
			before = s
		}
	}
	return nil
}

// lives checks the lives that there may be. clock makes a right clock for one, and returns
// what moves it; nil: it cannot be moved.
func lives(t *testing.T, clock func() (jump func(d time.Duration))) {
	rapid.Check(t, func(rt *rapid.T) {
		name := "mem"
		if rapid.IntRange(0, 19).Draw(rt, "store") == 19 {
			name = "sqlite"
		}
		all := events(clock != nil).Draw(rt, "events")
		dir, err := os.MkdirTemp("", "stint-life-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // it is in the folder of temporary files
		var wrong error
		synctest.Test(t, func(t *testing.T) {
			var jump func(time.Duration)
			if clock != nil {
				jump = clock()
			}
			p := newPlace(t, name, dir)
			l := newLife(t, newRota(p), jump)
			l.up(l.file()...)
			for _, e := range all {
				l.happen(e)
			}
			wrong = l.calm()
			p.close()
		})
		if wrong != nil {
			rt.Fatal(wrong)
		}
	})
}

// TestEveryTimeOnce: whatever happens to a server and its schedules, every nominal time is
// in exactly one line of the ledger, and leads to one session at most. Time passes; the
// server ends and another one comes; schedules are edited, taken out, put back, and have
// mistakes in them; people pause, resume and fire them, and make times good; sessions
// take long or fail, and conditions say no, cannot be asked or take their time.
func TestEveryTimeOnce(t *testing.T) { lives(t, nil) }
