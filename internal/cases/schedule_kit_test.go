package cases_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/trigger"
)

// rota is a store whose schedules are served, by one server after the other, and a note
// of what the schedules were at what time.
type rota struct {
	*place
	pace   atomic.Pointer[pace] // of sessions that begin now
	broken []string             // schedules that the next server cannot read

	servers int
	stop    func() // ends the server that is there; nil: there is none
	runner  *engine.Engine
	sched   *trigger.Scheduler
	system  *engine.System

	eras   map[string][]era
	paused map[string]bool
}

// pace is how long a session lasts, and how it ends.
type pace struct {
	takes time.Duration
	ends  stint.Status
}

// takes says how long sessions last that begin from now on.
func (r *rota) takes(d time.Duration) { r.pace.Store(&pace{d, r.pace.Load().ends}) }

// ends says how sessions end that begin from now on.
func (r *rota) ends(s stint.Status) { r.pace.Store(&pace{r.pace.Load().takes, s}) }

// served runs fn on every store, in bubbles in which it is midnight of 2000-01-01. After
// it every nominal time must be in one line of its schedule's ledger.
func served(t *testing.T, fn func(t *testing.T, r *rota)) {
	t.Helper()
	servedOn(t, stores(), fn)
}

// servedOn does the same on these stores.
func servedOn(t *testing.T, on []string, fn func(t *testing.T, r *rota)) {
	t.Helper()
	inTimeOn(t, on, func(t *testing.T, p *place) {
		r := newRota(p)
		fn(t, r)
		r.down()
		if err := r.sound(); err != nil {
			t.Error(err)
		}
	})
}

func newRota(p *place) *rota {
	r := &rota{place: p, eras: map[string][]era{}, paused: map[string]bool{}}
	r.pace.Store(&pace{time.Second, stint.Completed})
	return r
}

func (r *rota) agent() engine.Agent {
	return goAgent(func(ctx context.Context, _ stint.Loop) (stint.Next, error) {
		p := r.pace.Load()
		select {
		case <-time.After(p.takes):
		case <-ctx.Done():
			return stint.Next{}, ctx.Err()
		}
		return stint.Next{End: &stint.End{Outcome: p.ends}}, nil
	})
}

// schedule is one with the policies that stint.yaml has if it says nothing.
func (r *rota) schedule(name, cron, zone string, changes ...func(*trigger.Schedule)) trigger.Schedule {
	sc := trigger.Schedule{
		Name: name, Timing: trigger.Timing{Cron: cron, Zone: zone}, Policy: trigger.Policy{Overlap: trigger.Skip, Window: time.Hour, Most: 1},
		Request: func() (engine.Request, error) { return engine.Request{Agent: r.agent(), Input: []byte("go")}, nil },
	}
	for _, c := range changes {
		c(&sc)
	}
	return sc
}

// overlaps is the change of a schedule to another strategy.
func overlaps(o trigger.Overlap) func(*trigger.Schedule) {
	return func(sc *trigger.Schedule) { sc.Policy.Overlap = o }
}

// catchesUp is the change of a schedule to another way of catching up.
func catchesUp(window time.Duration, most int) func(*trigger.Schedule) {
	return func(sc *trigger.Schedule) { sc.Policy.Window, sc.Policy.Most = window, most }
}

// up starts a server with these schedules.
func (r *rota) up(all ...trigger.Schedule) {
	r.t.Helper()
	r.servers++
	e, err := engine.New(r.t.Context(), r.store, engine.Options{Holder: fmt.Sprint("server-", r.servers), Poll: time.Minute, TTL: 10 * time.Minute, Agents: []engine.Agent{r.agent()}, Drain: time.Second})
	if err != nil {
		r.t.Fatal(err)
	}
	if r.system, err = e.System(r.t.Context(), func(err error) { r.t.Errorf("the system journal is lost: %v", err) }); err != nil {
		r.t.Fatal(err)
	}
	if r.sched, err = trigger.NewScheduler(e, r.system, r.store, nil); err != nil {
		r.t.Fatal(err)
	}
	r.runner = e
	system := r.system
	r.set(all...)
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error, 2)
	go func() { ended <- e.Serve(ctx) }()
	go func() { ended <- r.sched.Run(ctx) }()
	r.stop = func() {
		cancel()
		for range cap(ended) {
			if err := <-ended; err != nil {
				r.t.Error(err)
			}
		}
		if err := errors.Join(system.Close(), e.Close()); err != nil {
			r.t.Error(err)
		}
	}
	synctest.Wait()
}

// down ends the server, if there is one.
func (r *rota) down() {
	r.t.Helper()
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// set has the server work by these schedules, and notes what that makes of their eras.
func (r *rota) set(all ...trigger.Schedule) {
	r.t.Helper()
	now := faultpoint.Now()
	if err := r.sched.Set(r.t.Context(), all, r.broken...); err != nil {
		r.t.Fatal(err)
	}
	timing := map[string]trigger.Timing{}
	for _, sc := range all {
		timing[sc.Name] = sc.Timing
	}
	for name, eras := range r.eras {
		last := &eras[len(eras)-1]
		if is, there := timing[name]; last.until.IsZero() && !(there && is == last.timing) && !slices.Contains(r.broken, name) {
			last.until, last.lines = r.latest(name, now), r.lines(name)-r.before(name)
			if !there {
				delete(r.paused, name)
			}
		}
	}
	for name, is := range timing {
		if eras := r.eras[name]; len(eras) == 0 || !eras[len(eras)-1].until.IsZero() {
			e := era{timing: is, since: r.latest(name, now), clock: r.held()[name].Era}
			if len(eras) > 0 && e.clock > eras[len(eras)-1].clock {
				e.since = now
			}
			r.eras[name] = append(eras, e)
		}
	}
}

// latest is now, or the newest time of the ledger: a clock may have been set back, and a
// time that has a line gets no other one.
func (r *rota) latest(name string, now time.Time) time.Time {
	for _, o := range r.ledger(name) {
		if !o.Manual && o.To.After(now) && o.Era == r.held()[name].Era {
			return o.To
		}
	}
	return now
}

// lines is how many a schedule has, without what people fired.
func (r *rota) lines(name string) (n int) {
	for _, o := range r.ledger(name) {
		if !o.Manual {
			n++
		}
	}
	return n
}

// before is how many of these are of eras that have ended.
func (r *rota) before(name string) (n int) {
	for _, e := range r.eras[name] {
		n += e.lines
	}
	return n
}

// until waits for a time of the day, and for all that happens then.
func (r *rota) until(clock string) {
	r.t.Helper()
	now := time.Now().UTC()
	at, err := time.Parse(time.DateTime, now.Format("2006-01-02 ")+clock)
	if err != nil {
		r.t.Fatal(err)
	}
	if at.Before(now) {
		at = at.Add(24 * time.Hour)
	}
	r.pass(at.Sub(now))
}

// pass lets time pass.
func (r *rota) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// asks sends what a person wants of a schedule, and has the server obey.
func (r *rota) asks(verb trigger.Verb, name string, more ...func(c *trigger.Command)) {
	r.t.Helper()
	c := trigger.Command{Verb: verb, Schedule: name, Reason: "because"}
	for _, change := range more {
		change(&c)
	}
	id, err := engine.SystemJournal(r.t.Context(), r.store)
	if err != nil {
		r.t.Fatal(err)
	}
	body, err := json.Marshal(c)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.store.Send(r.t.Context(), id, stint.Message{ID: ident.New().String(), Kind: stint.Prompt, From: "human:ana", Body: body}); err != nil {
		r.t.Fatal(err)
	}
	in, err := r.system.Inbox(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range in {
		if known, err := r.sched.Obey(r.t.Context(), &in[i]); !known || err != nil {
			r.t.Fatalf("%v %v", known, err)
		}
	}
	synctest.Wait()
	switch verb {
	case trigger.Pause:
		r.paused[name] = r.held()[name].Paused != nil // one that the server cannot read it refuses
	case trigger.Resume:
		delete(r.paused, name)
		r.setRight(name)
	case trigger.Fire, trigger.Backfill:
	}
}

// setRight notes that a schedule began anew with a clock that was set right.
func (r *rota) setRight(name string) {
	r.t.Helper()
	eras := r.eras[name]
	if len(eras) == 0 || r.held()[name].Era == eras[len(eras)-1].clock {
		return
	}
	last := &eras[len(eras)-1]
	last.until, last.lines = faultpoint.Now(), r.lines(name)-r.before(name)
	r.eras[name] = append(eras, era{timing: last.timing, since: last.until, clock: r.held()[name].Era})
}

// held is what the system journal says of schedules.
func (r *rota) held() map[string]trigger.Held {
	r.t.Helper()
	held, err := trigger.ReadHeld(r.system.State(trigger.Section))
	if err != nil {
		r.t.Fatal(err)
	}
	return held
}

// between are the times of a backfill, of the day that it is in a bubble.
func between(from, to string) func(c *trigger.Command) {
	return func(c *trigger.Command) {
		c.From, _ = time.Parse(time.DateTime, "2000-01-01 "+from)
		c.To, _ = time.Parse(time.DateTime, "2000-01-01 "+to)
	}
}

// ledger is the whole ledger of a schedule, newest line first.
func (r *rota) ledger(name string) []trigger.Occurrence {
	r.t.Helper()
	all, err := trigger.History(r.t.Context(), r.store, name, time.Time{}, 1e6)
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// has checks the ledger of a schedule, oldest line first.
func (r *rota) has(name, want string) {
	r.t.Helper()
	if got := linesOf(r.ledger(name)); got != want {
		r.t.Errorf("the ledger of %s has\n%s\nwant\n%s", name, got, want)
	}
}

// sound checks every schedule there ever was: its ledger, and that its sessions are those
// of the ledger. Times of the present era that have no line yet are not told.
func (r *rota) sound() error { return r.soundUpTo(func(string) time.Time { return time.Time{} }) }

// settled checks the same, and that all is decided that was due up to now but for
// schedules that are paused. Nothing may run or be asked any more.
func (r *rota) settled() error {
	return r.soundUpTo(func(name string) time.Time {
		if r.paused[name] {
			return time.Time{}
		}
		return faultpoint.Now()
	})
}

func (r *rota) soundUpTo(settled func(name string) time.Time) error {
	made := map[string]int{} // sessions by schedule
	rows, err := r.store.Sessions(r.t.Context(), stint.Filter{Trigger: "schedule", Limit: 1e6})
	if err != nil {
		return err
	}
	by, kept := map[stint.ID]stint.Session{}, faultpoint.Now().Add(-400*24*time.Hour) // lines are forgotten then
	for _, row := range rows {
		if by[row.Session.ID] = row.Session; row.Session.Created.After(kept) {
			made[row.Session.Trigger.Ref]++
		}
	}
	for name, eras := range r.eras {
		ledger := r.ledger(name)
		if err := everyTimeOnce(ledger, eras, settled(name)); err != nil {
			return fmt.Errorf("%s: %w\n%s", name, err, linesOf(ledger))
		}
		for _, o := range ledger {
			if o.Session.IsZero() {
				continue
			}
			s, due := by[o.Session], o.To
			if o.Manual && !o.Backfill {
				due = time.Time{}
			}
			if tr := s.Trigger; tr.Ref != name || !tr.Due.Equal(due) {
				return fmt.Errorf("%s: %s led to a session with the trigger %+v", name, lineOf(&o), tr)
			}
			if s.Created.After(kept) {
				made[name]--
			}
		}
		if made[name] != 0 {
			return fmt.Errorf("%s: %d sessions have no line\n%s", name, made[name], linesOf(ledger))
		}
	}
	return nil
}
