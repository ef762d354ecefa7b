//go:build faultinject

package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// setClock moves the wall clock of this process; timers and monotonic readings do not
// follow, as when a person or NTP sets a machine's time.
func setClock(t *testing.T, path string, by time.Duration) {
	t.Helper()
	if err := os.WriteFile(path+".next", []byte(by.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".next", path); err != nil {
		t.Fatal(err)
	}
}

// TestAClockThatIsSet moves the wall clock at every place of a session that runs for
// three minutes: what it has run, what its steps took and which limits are used up must
// not depend on that.
func TestAClockThatIsSet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clock")
	t.Setenv("STINT_TEST_CLOCK", path)
	for _, by := range []time.Duration{2 * time.Hour, -2 * time.Hour, 100 * 24 * time.Hour} {
		for _, where := range []string{"before", "in a step", "between steps", "at the end of a loop", "at a failure", "at a park", "at the end"} {
			t.Run(by.String()+" "+where, func(t *testing.T) {
				setClock(t, path, 0)
				inBubble(t, func(r *rig) {
					at := func(place string) {
						if place == where {
							setClock(t, path, by)
						}
					}
					a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
						ses := l.Session().At
						for _, name := range []string{"one", "two"} {
							if _, err := step(ctx, l, name, stint.Read, func() (string, error) {
								at("in a step")
								<-time.After(30 * time.Second)
								return "", nil
							}); err != nil {
								return stint.Next{}, err
							}
							at("between steps")
						}
						switch {
						case ses.Loop == 1 && ses.Attempt == 1:
							at("at a failure")
							return stint.Next{}, stint.Retry(1000*24*time.Hour, errBoom) // the store has another clock, which nobody sets
						case ses.Loop == 1:
							at("at the end of a loop")
							return stint.Next{}, nil
						case ses.Loop == 2:
							at("at a park")
							return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, nil
						}
						at("at the end")
						return stint.Next{End: &stint.End{}}, nil
					})
					n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
					at("before")
					c, err := n.Start(r.t.Context(), engine.Request{Agent: a, Limits: &stint.Limits{Wall: time.Hour, Idle: time.Minute}})
					if err != nil {
						r.t.Fatal(err)
					}
					r.settles(c.ID, stint.Waiting)
					r.send(c.ID, stint.Resume, journal.Command{})
					for i := 0; ; i++ {
						if w := r.row(c.ID).Session.Wait; w != nil && w.For == stint.ForMessage {
							break
						}
						if <-time.After(time.Second); i > 600 {
							r.t.Fatal(r.journal(c.ID))
						}
					}
					r.message(c.ID, stint.Message{Kind: stint.Prompt, Body: []byte("go on")})
					s := r.settles(c.ID, stint.Completed)
					n.stop()
					if s.Totals.Running.Round(time.Millisecond) != 3*time.Minute {
						t.Errorf("it ran for %v", s.Totals.Running)
					}
					for _, e := range r.entries(c.ID) {
						switch e.Kind {
						case stint.StepCompleted:
							if d, err := journal.Decode[journal.StepDone](&e); err != nil || d.MS != 30_000 {
								t.Errorf("a step took %d ms (%v)", d.MS, err)
							}
						case stint.LoopCompleted:
							if d, err := journal.Decode[journal.LoopCompleted](&e); err != nil || d.MS != 0 && d.MS != 60_000 {
								t.Errorf("a loop took %d ms (%v)", d.MS, err)
							}
						}
					}
					r.verifies(c.ID)
				})
			})
		}
	}
}

// TestAClockThatIsSetWhileNobodyRuns has a runner die and its successor begin on a
// clock that went back: nothing else than the clock tells how long the first one ran.
func TestAClockThatIsSetWhileNobodyRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clock")
	t.Setenv("STINT_TEST_CLOCK", path)
	setClock(t, path, 0)
	inBubble(t, func(r *rig) {
		hang := make(chan struct{})
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if l.Session().At.Attempt > 1 {
				return stint.Next{End: &stint.End{}}, nil
			}
			setClock(t, path, -2*time.Hour)
			l.(stint.Reporter).Log("log", []byte("after the clock was set\n"))
			<-hang
			return stint.Next{}, errBoom
		})
		one := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		c, err := one.Start(r.t.Context(), engine.Request{Agent: a, Limits: &stint.Limits{Wall: time.Hour}})
		if err != nil {
			r.t.Fatal(err)
		}
		r.settles(c.ID, stint.Running)
		<-time.After(time.Second)
		r.store.Kill("r1")
		two := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
		s := r.settles(c.ID, stint.Completed)
		if s.Totals.Running < 0 || s.Totals.Running > time.Minute {
			t.Errorf("it ran for %v\n%s", s.Totals.Running, r.journal(c.ID))
		}
		close(hang)
		one.stop()
		two.stop()
	})
}
