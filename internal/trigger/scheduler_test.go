package trigger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/store/storetest"
)

// shop is a store that servers come to and go from.
type shop struct {
	*testing.T
	store *mem.Store
	takes time.Duration // how long a session lasts
	ends  stint.Status  // how it ends
	n     int           // servers that there were
	close func()        // ends the server that is there
	sched *trigger.Scheduler
	sys   *engine.System

	broken []string // schedules that the next server cannot read
}

func (s *shop) agent() engine.Agent {
	return engine.Agent{Name: "a", Runtime: "go/a", Loop: stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		select {
		case <-time.After(s.takes):
		case <-ctx.Done():
			return stint.Next{}, ctx.Err()
		}
		return stint.Next{End: &stint.End{Outcome: s.ends}}, nil
	})}
}

// schedule returns one that is due as cron says.
func (s *shop) schedule(name, cron string, changes ...func(*trigger.Schedule)) trigger.Schedule {
	sc := trigger.Schedule{
		Name: name, Timing: trigger.Timing{Cron: cron, Zone: "UTC"}, Policy: trigger.Policy{Overlap: trigger.Skip, Window: time.Hour, Most: 1},
		Request: func() (engine.Request, error) { return engine.Request{Agent: s.agent(), Input: []byte("go")}, nil },
	}
	for _, c := range changes {
		c(&sc)
	}
	return sc
}

// serve starts a server with these schedules.
func (s *shop) serve(all ...trigger.Schedule) {
	s.Helper()
	s.n++
	e, err := engine.New(s.Context(), s.store, engine.Options{Holder: fmt.Sprint("server-", s.n), Agents: []engine.Agent{s.agent()}, Drain: time.Second})
	if err != nil {
		s.Fatal(err)
	}
	sys, err := e.System(s.Context(), func(err error) { s.Errorf("the system journal is lost: %v", err) })
	if err != nil {
		s.Fatal(err)
	}
	sched, err := trigger.NewScheduler(e, sys, s.store, nil)
	if err != nil {
		s.Fatal(err)
	}
	if err := sched.Set(s.Context(), all, s.broken...); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error, 2)
	go func() { ended <- e.Serve(ctx) }()
	go func() { ended <- sched.Run(ctx) }()
	s.sched, s.sys = sched, sys
	s.close = func() {
		s.Helper()
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				s.Error(err)
			}
		}
		if err := errors.Join(sys.Close(), e.Close()); err != nil {
			s.Error(err)
		}
	}
}

// until waits for a time of the day.
func (s *shop) until(clock string) {
	d := at(time.Now().UTC().Format("2006-01-02 ") + clock).Sub(time.Now())
	if d < 0 {
		d += 24 * time.Hour
	}
	<-time.After(d)
	synctest.Wait()
}

// ask sends a command, as a person does, and has the server obey.
func (s *shop) ask(verb trigger.Verb, name string, more ...func(c *trigger.Command)) {
	s.Helper()
	c := trigger.Command{Verb: verb, Schedule: name, Reason: "because"}
	for _, change := range more {
		change(&c)
	}
	id, err := engine.SystemJournal(s.Context(), s.store)
	if err != nil {
		s.Fatal(err)
	}
	body, err := json.Marshal(c)
	if err != nil {
		s.Fatal(err)
	}
	if err := s.store.Send(s.Context(), id, stint.Message{ID: ident.New().String(), Kind: stint.Prompt, From: "human:ben", Body: body}); err != nil {
		s.Fatal(err)
	}
	in, err := s.sys.Inbox(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for i := range in {
		if known, err := s.sched.Obey(s.Context(), &in[i]); !known || err != nil {
			s.Fatalf("%v %v", known, err)
		}
	}
}

// ledger is the ledger of a schedule, oldest first, as a person reads it.
func (s *shop) ledger(name string) string {
	s.Helper()
	all, err := trigger.History(s.Context(), s.store, name, time.Time{}, 1000)
	if err != nil {
		s.Fatal(err)
	}
	var lines []string
	for i := len(all) - 1; i >= 0; i-- {
		o := all[i]
		line := fmt.Sprint(o.Outcome, " ", o.From.UTC().Format("15:04"))
		if o.Count != 1 {
			line += fmt.Sprintf("..%s x%d", o.To.UTC().Format("15:04"), o.Count)
		}
		switch {
		case o.Backfill:
			line += " made good"
		case o.Manual:
			line += " by hand"
		}
		if o.Reason != "" {
			line += " " + o.Reason
		}
		if (o.Outcome == trigger.Ran) == o.Session.IsZero() {
			s.Errorf("%s, and its session is %v", line, o.Session)
		}
		if !o.Session.IsZero() {
			row, err := s.store.Session(s.Context(), o.Session)
			if err != nil {
				s.Error(err)
			}
			if tr := row.Session.Trigger; tr.Kind != "schedule" || tr.Ref != name || tr.Due.Equal(o.To) == (o.Manual && !o.Backfill) {
				s.Errorf("%s led to a session with the trigger %+v", line, tr)
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

func (s *shop) wants(name, want string) {
	s.Helper()
	if got := s.ledger(name); got != want {
		s.Errorf("the ledger of %s has\n%s\nwant\n%s", name, got, want)
	}
}

// inShop runs what in a bubble, in which it is midnight of 2000-01-01.
func inShop(t *testing.T, what func(s *shop)) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{T: t, store: mem.New(), takes: time.Second, ends: stint.Completed}
		what(s)
		s.close()
		storetest.Check(t, s.store)
	})
}

// tell tells each tale in a shop of its own.
func tell(t *testing.T, tales map[string]func(s *shop)) {
	t.Helper()
	for name, what := range tales {
		t.Run(name, func(t *testing.T) { inShop(t, what) })
	}
}

// Times that come, that came while nobody served, and that come while a session runs.
func TestDue(t *testing.T) {
	tell(t, map[string]func(s *shop){
		"each time leads to one session": func(s *shop) {
			s.serve(s.schedule("h", "0 * * * *"), s.schedule("m", "*/20 * * * *"))
			s.until("02:10:00")
			s.wants("h", "ran 01:00, ran 02:00")
			s.wants("m", "ran 00:20, ran 00:40, ran 01:00, ran 01:20, ran 01:40, ran 02:00")
		},
		"a server that was down": func(s *shop) {
			s.serve(s.schedule("m", "* * * * *"))
			s.until("00:02:30")
			s.close()
			s.until("00:06:00")
			s.serve(s.schedule("m", "* * * * *"))
			s.until("00:07:30")
			s.wants("m", "ran 00:01, ran 00:02, missed 00:03..00:05 x3 newer, ran 00:06, ran 00:07")
		},
		"a server that was down for a year": func(s *shop) {
			s.serve(s.schedule("d", "0 6 * * *"))
			s.until("07:00:00")
			s.close()
			<-time.After(365 * 24 * time.Hour)
			s.serve(s.schedule("d", "0 6 * * *"))
			s.until("07:30:00")
			s.wants("d", "ran 06:00, missed 06:00..06:00 x364 down, ran 06:00")
		},
		"a server that was down for longer than lines are kept": func(s *shop) {
			for _, days := range []int{0, 40, 500} {
				<-time.After(time.Duration(days) * 24 * time.Hour)
				s.serve(s.schedule("d", "0 6 * * *"), s.schedule("leap", "0 6 29 2 *"))
				s.until("06:00:30")
				s.close()
			}
			s.serve(s.schedule("d", "0 6 * * *"), s.schedule("leap", "0 6 29 2 *"))
			s.wants("d", "missed 06:00..06:00 x499 down, ran 06:00, ran 06:00") // and no line of the 40 days
			s.wants("leap", "missed 06:00 down")
		},
		"an overrun is skipped, and the time after it is not": func(s *shop) {
			s.takes = 25 * time.Minute
			s.serve(s.schedule("m", "*/10 * * * *"))
			s.until("00:45:00")
			s.wants("m", "ran 00:10, skipped 00:20 overlap, skipped 00:30 overlap, ran 00:40")
		},
		"an overrun is waited for": func(s *shop) {
			s.takes = 25 * time.Minute
			s.serve(s.schedule("m", "*/20 * * * *", func(sc *trigger.Schedule) { sc.Policy.Overlap = trigger.Queue }))
			s.until("01:36:00")
			s.wants("m", "ran 00:20, ran 00:40, ran 01:00, ran 01:20")
		},
		"an overrun is replaced": func(s *shop) {
			s.takes = 25 * time.Minute
			s.serve(s.schedule("m", "*/20 * * * *", func(sc *trigger.Schedule) { sc.Policy.Overlap = trigger.Replace }))
			s.until("01:10:00")
			s.wants("m", "ran 00:20, ran 00:40, ran 01:00")
			rows, err := s.store.Sessions(s.Context(), stint.Filter{Statuses: []stint.Status{stint.Canceled}})
			if err != nil || len(rows) != 2 {
				s.Errorf("%d sessions were canceled, %v", len(rows), err)
			}
		},
	})
}

// Times of a schedule that was changed are of the one that it was then.
func TestEdits(t *testing.T) {
	tell(t, map[string]func(s *shop){
		"an edit never fires what is past": func(s *shop) {
			s.serve(s.schedule("d", "0 6 * * *"))
			s.until("08:00:00")
			if err := s.sched.Set(s.Context(), []trigger.Schedule{s.schedule("d", "45 7 * * *")}); err != nil {
				s.Fatal(err)
			}
			s.until("07:50:00")
			s.wants("d", "ran 06:00, ran 07:45")
		},
		"an edit while no server runs": func(s *shop) {
			s.serve(s.schedule("d", "0 * * * *"))
			s.until("01:30:00")
			s.close()
			s.until("03:30:00")
			s.serve(s.schedule("d", "15 * * * *"))
			s.until("04:20:00")
			s.wants("d", "ran 01:00, missed 02:00..03:00 x2 edited, ran 04:15")
		},
		"a mistake in it": func(s *shop) {
			s.serve(s.schedule("d", "0 * * * *"))
			s.until("01:30:00")
			if err := s.sched.Set(s.Context(), nil, "d"); err != nil {
				s.Fatal(err)
			}
			s.until("02:30:00") // it goes on as it was
			s.close()
			s.serve()
			s.until("02:31:00")
			s.wants("d", "ran 01:00, ran 02:00")
		},
		"a mistake in it when a server starts": func(s *shop) {
			s.serve(s.schedule("d", "0 * * * *"))
			s.until("01:30:00")
			s.close()
			s.broken = []string{"d"}
			s.serve()
			s.until("03:30:00") // nothing says what to do
			s.broken = nil
			if err := s.sched.Set(s.Context(), []trigger.Schedule{s.schedule("d", "0 * * * *")}); err != nil {
				s.Fatal(err)
			}
			s.until("04:10:00")
			s.wants("d", "ran 01:00, missed 02:00 down, ran 03:00, ran 04:00")
		},
		"a pause of one with a mistake in it": func(s *shop) {
			s.serve(s.schedule("d", "0 * * * *"))
			s.until("01:30:00")
			s.close()
			s.broken = []string{"d"}
			s.serve()
			s.ask(trigger.Pause, "d")
			s.ask(trigger.Fire, "d") // nothing says what to begin
			s.until("02:30:00")
			s.ask(trigger.Resume, "d")
			s.close()
			s.broken = nil
			s.serve(s.schedule("d", "0 * * * *"))
			s.until("03:10:00")
			s.wants("d", "ran 01:00, skipped 02:00 paused, ran 03:00")
		},
		"a schedule that is taken out and put back": func(s *shop) {
			s.serve(s.schedule("d", "0 * * * *"))
			s.until("01:30:00")
			if err := s.sched.Set(s.Context(), nil); err != nil {
				s.Fatal(err)
			}
			s.until("03:30:00")
			if err := s.sched.Set(s.Context(), []trigger.Schedule{s.schedule("d", "0 * * * *")}); err != nil {
				s.Fatal(err)
			}
			s.until("04:10:00")
			s.wants("d", "ran 01:00, ran 04:00")
		},
	})
}

// A backfill makes sessions of times that had none, each once.
func TestBackfill(t *testing.T) {
	between := func(from, to string) func(c *trigger.Command) {
		return func(c *trigger.Command) { c.From, c.To = at("2000-01-01 "+from), at("2000-01-01 "+to) }
	}
	tell(t, map[string]func(s *shop){
		"of a time without a server": func(s *shop) {
			s.serve(s.schedule("h", "0 * * * *"))
			s.until("01:30:00")
			s.close()
			s.until("04:30:00")
			s.serve(s.schedule("h", "0 * * * *"))
			s.until("05:30:00")
			for range 2 {
				s.ask(trigger.Backfill, "h", between("01:00:00", "05:00:00"))
			}
			s.until("05:31:00")
			s.wants("h", "ran 01:00, ran 02:00 made good, ran 03:00 made good, missed 02:00..03:00 x2 down, ran 04:00, ran 05:00")
			s.until("06:30:00")
			s.wants("h", "ran 01:00, ran 02:00 made good, ran 03:00 made good, missed 02:00..03:00 x2 down, ran 04:00, ran 05:00, ran 06:00")
		},
		"of times that still wait": func(s *shop) {
			s.takes = 25 * time.Minute
			s.serve(s.schedule("q", "*/10 * * * *", func(sc *trigger.Schedule) { sc.Policy.Overlap = trigger.Queue }))
			s.until("00:32:00") // that of 00:10 runs, two wait
			s.ask(trigger.Backfill, "q", between("00:20:00", "00:20:00"))
			s.until("00:36:00")
			s.wants("q", "ran 00:10, ran 00:20 made good")
			s.until("01:05:00")
			s.wants("q", "ran 00:10, ran 00:20 made good, skipped 00:20 made good, ran 00:30")
		},
		"of a time at which somebody fired": func(s *shop) {
			s.serve(s.schedule("d", "0 6 * * *"))
			s.until("05:59:00")
			s.ask(trigger.Pause, "d")
			s.until("06:00:00")
			s.ask(trigger.Fire, "d")
			s.until("06:10:00")
			s.ask(trigger.Backfill, "d", between("06:00:00", "06:00:00"))
			s.ask(trigger.Resume, "d")
			s.wants("d", "ran 06:00 by hand, ran 06:00 made good, skipped 06:00 paused")
		},
		"of what is no stretch of the past, or too long a one": func(s *shop) {
			s.serve(s.schedule("m", "* * * * *"))
			s.until("03:30:30")
			for _, c := range [][2]string{{"01:00:00", "03:31:00"}, {"02:00:00", "01:00:00"}, {"00:30:00", "03:00:00"}} {
				s.ask(trigger.Backfill, "m", between(c[0], c[1]))
			}
			rows, err := s.store.Sessions(s.Context(), stint.Filter{Limit: 1000})
			if err != nil || len(rows) != 210 {
				s.Errorf("%d sessions, %v", len(rows), err)
			}
		},
	})
}

// Who pauses a schedule, and what somebody asks of it.
func TestPauses(t *testing.T) {
	tell(t, map[string]func(s *shop){
		"a pause": func(s *shop) {
			s.serve(s.schedule("d", "0 * * * *"))
			s.until("01:30:00")
			s.ask(trigger.Pause, "d")
			s.until("03:30:00")
			s.close()
			s.serve(s.schedule("d", "0 * * * *"))
			s.until("04:30:00")
			s.wants("d", "ran 01:00")
			s.ask(trigger.Resume, "d")
			s.until("05:30:00")
			s.wants("d", "ran 01:00, skipped 02:00..04:00 x3 paused, ran 05:00")
		},
		"fired by hand": func(s *shop) {
			s.serve(s.schedule("d", "0 6 * * *"))
			s.until("01:30:00")
			s.ask(trigger.Fire, "d")
			s.until("06:30:00")
			s.wants("d", "ran 01:30 by hand, ran 06:00")
		},
		"three that fail pause it": func(s *shop) {
			s.ends = stint.Failed
			s.serve(s.schedule("d", "0 * * * *", func(sc *trigger.Schedule) { sc.Policy.PauseAfter = 3 }))
			s.until("06:30:00")
			s.wants("d", "ran 01:00, ran 02:00, ran 03:00")
			s.ends = stint.Completed
			s.ask(trigger.Resume, "d")
			s.until("08:30:00")
			s.wants("d", "ran 01:00, ran 02:00, ran 03:00, skipped 04:00..06:00 x3 paused, ran 07:00, ran 08:00")
		},
	})
}

// What stands between a time and its session.
func TestConditions(t *testing.T) {
	tell(t, map[string]func(s *shop){
		"a condition": func(s *shop) {
			n := 0
			s.serve(s.schedule("d", "0 * * * *", func(sc *trigger.Schedule) {
				sc.Gate = func(context.Context) (bool, string, error) {
					n++
					<-time.After(40 * time.Minute) // other schedules do not wait for it
					if n == 3 {
						return false, "", &stint.Error{Code: stint.Denied, Op: "when", Err: errors.New("10.0.0.1 is a private network"), Hint: "allow_private: true lets it"}
					}
					return n%2 == 0, "no new issues", nil
				}
			}), s.schedule("m", "*/30 * * * *"))
			s.until("03:50:00")
			s.wants("d", "skipped 01:00 condition, ran 02:00, skipped 03:00 condition")
			s.wants("m", "ran 00:30, ran 01:00, ran 01:30, ran 02:00, ran 02:30, ran 03:00, ran 03:30")
			if last, err := trigger.History(s.Context(), s.store, "d", time.Time{}, 1); err != nil || last[0].Detail != "when: 10.0.0.1 is a private network; allow_private: true lets it" {
				s.Errorf("the history does not say what to do: %+v, %v", last, err)
			}
		},
		"once": func(s *shop) {
			once := func(sc *trigger.Schedule) { sc.Timing = trigger.Timing{At: at("2000-01-01 02:30:00")} }
			s.serve(s.schedule("o", "", once))
			s.until("02:31:00")
			s.close()
			s.serve(s.schedule("o", "", once), s.schedule("past", "", once))
			s.until("09:00:00")
			s.wants("o", "ran 02:30")
			s.wants("past", "")
		},
		"a request that cannot be made": func(s *shop) {
			s.serve(s.schedule("d", "0 * * * *", func(sc *trigger.Schedule) {
				sc.Request = func() (engine.Request, error) {
					return engine.Request{}, stint.NotFound.Errorf("agent", "there is no agent x")
				}
			}))
			s.until("02:30:00")
			s.wants("d", "missed 01:00 failed, missed 02:00 failed")
		},
	})
}

// What is said of a schedule while its condition is asked counts, and the answer not.
func TestAnswersThatComeLate(t *testing.T) {
	slow := func(s *shop, cron string) trigger.Schedule {
		return s.schedule("d", cron, func(sc *trigger.Schedule) {
			sc.Gate = func(context.Context) (bool, string, error) {
				<-time.After(40 * time.Minute)
				return true, "", nil
			}
		})
	}
	set := func(s *shop, all ...trigger.Schedule) {
		if err := s.sched.Set(s.Context(), all); err != nil {
			s.Fatal(err)
		}
	}
	tell(t, map[string]func(s *shop){
		"to a schedule that was edited": func(s *shop) {
			s.serve(slow(s, "*/10 * * * *"))
			s.until("00:35:00")
			set(s, slow(s, "5 * * * *"))
			s.until("01:50:00")
			s.wants("d", "missed 00:10..00:30 x3 edited, ran 01:05")
		},
		"to one whose times stay": func(s *shop) {
			s.serve(slow(s, "*/10 * * * *"))
			s.until("00:35:00")
			set(s, slow(s, "*/10 * * * *"))
			s.until("00:55:00")
			s.wants("d", "ran 00:10, missed 00:20..00:40 x3 newer, skipped 00:50 overlap")
		},
		"to one that was taken out": func(s *shop) {
			s.serve(slow(s, "*/10 * * * *"))
			s.until("00:35:00")
			set(s)
			s.until("01:35:00")
			s.wants("d", "missed 00:10..00:30 x3 edited")
		},
		"to one that is paused": func(s *shop) {
			s.serve(slow(s, "*/10 * * * *"))
			s.until("00:35:00")
			s.ask(trigger.Pause, "d")
			s.until("00:55:00")
			s.wants("d", "")
			s.ask(trigger.Resume, "d")
			s.wants("d", "skipped 00:10..00:50 x5 paused")
		},
		"to one that was paused and goes on": func(s *shop) {
			s.serve(slow(s, "*/10 * * * *"))
			s.until("00:25:00")
			s.ask(trigger.Pause, "d")
			s.until("00:35:00")
			s.ask(trigger.Resume, "d")
			s.until("00:51:00")
			s.wants("d", "skipped 00:10..00:30 x3 paused, missed 00:40 newer")
		},
	})
}

// What lies far back in the ledger is not forgotten.
func TestLongLedgers(t *testing.T) {
	sessions := func(s *shop, want int) {
		s.Helper()
		rows, err := s.store.Sessions(s.Context(), stint.Filter{Trigger: "schedule"})
		if err != nil || len(rows) != want {
			s.Errorf("%d sessions, want %d, %v\n%s", len(rows), want, err, s.ledger("m"))
		}
	}
	tell(t, map[string]func(s *shop){
		"a session that is open for hours, and another server": func(s *shop) {
			s.takes = 12 * time.Hour
			s.serve(s.schedule("m", "* * * * *"))
			s.until("02:30:30")
			s.close()
			s.serve(s.schedule("m", "* * * * *"))
			s.until("02:35:30")
			sessions(s, 1)
		},
		"failures between which there is much": func(s *shop) {
			s.takes, s.ends = 25*time.Minute, stint.Failed
			s.serve(s.schedule("m", "* * * * *", func(sc *trigger.Schedule) { sc.Policy.PauseAfter = 3 }))
			s.until("06:00:30")
			sessions(s, 3)
		},
		"failures while others run": func(s *shop) {
			s.takes, s.ends = 25*time.Minute, stint.Failed
			s.serve(s.schedule("m", "*/10 * * * *", func(sc *trigger.Schedule) { sc.Policy.PauseAfter, sc.Policy.Overlap = 3, trigger.Allow }))
			s.until("06:00:30")
			sessions(s, 5) // three have failed at 00:55, two more had begun
		},
	})
}

// A page of a ledger has all lines of its last time, so that the next one goes on after it.
func TestPagesOfAHistory(t *testing.T) {
	inShop(t, func(s *shop) {
		s.serve(s.schedule("h", "0 * * * *"))
		s.until("01:30:00")
		s.close()
		s.until("04:30:00")
		s.serve(s.schedule("h", "0 * * * *"))
		s.ask(trigger.Backfill, "h", func(c *trigger.Command) { c.From, c.To = at("2000-01-01 03:00:00"), at("2000-01-01 03:30:00") })
		s.until("05:30:00")
		seen, pages := 0, 0
		for before := (time.Time{}); ; pages++ {
			all, err := trigger.History(s.Context(), s.store, "h", before, 1)
			if err != nil {
				s.Fatal(err)
			}
			if len(all) == 0 {
				break
			}
			seen, before = seen+len(all), all[len(all)-1].To
		}
		if seen != 5 || pages != 4 { // two lines are of 03:00
			s.Errorf("%d lines on %d pages\n%s", seen, pages, s.ledger("h"))
		}
	})
}
