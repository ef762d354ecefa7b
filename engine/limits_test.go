package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits stint.Limits
		wait   stint.WaitFor // or
		status stint.Status
		reason string
	}{
		{"loops", stint.Limits{Loops: 3}, stint.ForBudget, "", "loops: 3 of 3 loops"},
		{"loops stop", stint.Limits{Loops: 3, Stop: true}, "", stint.Stopped, "loops: 3 of 3 loops"},
		{"steps", stint.Limits{Steps: 5}, stint.ForBudget, "", "steps: 5 of 5 steps"},
		{"wall", stint.Limits{Wall: 25 * time.Minute}, stint.ForBudget, "", "wall: 30m0s of 25m0s running time"},
		{"deadline", stint.Limits{Deadline: time.Date(2000, 1, 1, 0, 25, 0, 0, time.UTC)}, "", stint.Stopped, "deadline: 2000-01-01T00:25:00Z"},
		{"idle", stint.Limits{Idle: 2 * time.Minute}, stint.ForBudget, "", "idle: no sign of life for 2m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				canceled := 0
				a := agent("slow", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
					for range 2 {
						if _, err := slow(stint.Read, &canceled)(ctx, l); err != nil {
							return stint.Next{}, err
						}
					}
					return stint.Next{}, nil
				})
				a.Grace = 10 * time.Minute
				n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				res, err := n.Start(t.Context(), engine.Request{Agent: a, Limits: &c.limits})
				if err != nil {
					t.Fatal(err)
				}
				if c.wait != "" {
					s := r.settles(res.ID, stint.Waiting)
					if s.Wait.For != c.wait || s.Wait.What != c.reason {
						t.Errorf("waits for %s: %s", s.Wait.For, s.Wait.What)
					}
					more := stint.Limits{}
					r.send(res.ID, stint.SetLimit, journal.Command{Limits: &more})
					r.settles(res.ID, stint.Running)
					r.send(res.ID, stint.Kill, journal.Command{})
					r.settles(res.ID, stint.Canceled)
				} else if s := r.settles(res.ID, c.status); s.Reason != c.reason {
					t.Errorf("reason %q", s.Reason)
				}
				n.stop()
			})
		})
	}
}

// TestALimitSetDuringADriveIsWatched: a limit counts from the moment it is set,
// also for a session that had none when its drive began. A person who bounds a
// session that seems to hang must not have to wait for the step that hangs.
func TestALimitSetDuringADriveIsWatched(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			_, err := stint.Do(ctx, l, stint.Step{Name: "slow", Effect: stint.Read, Timeout: time.Hour}, func(ctx context.Context, _ string) (string, error) {
				d := 30 * time.Minute
				if l.Session().At.Loop == 1 {
					d = time.Second
				}
				select {
				case <-ctx.Done():
					return "", context.Cause(ctx)
				case <-time.After(d):
					return "done", nil
				}
			})
			return stint.Next{}, err
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		<-time.After(500 * time.Millisecond)
		r.send(id, stint.SetLimit, journal.Command{Limits: &stint.Limits{Idle: time.Minute}})
		<-time.After(5 * time.Minute)
		if s := r.row(id).Session; s.Status != stint.Waiting || s.Limits.Idle == 0 {
			t.Errorf("%s after 5 minutes without a sign of life; idle limit %v\n%s", s.Status, s.Limits.Idle, r.journal(id))
		}
		r.send(id, stint.Kill, journal.Command{})
		r.settles(id, stint.Canceled)
		n.stop()
	})
}

// TestADeadlineStopsAWaitingSession: a deadline is a time of the calendar and stops
// a session whatever it waits for; so the deadline makes it claimable.
func TestADeadlineStopsAWaitingSession(t *testing.T) {
	inBubble(t, func(r *rig) {
		var heard []string
		a := agent("chat", chatter(&heard))
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		c, err := n.Start(r.t.Context(), engine.Request{Agent: a, Limits: &stint.Limits{Deadline: time.Now().Add(time.Hour)}})
		if err != nil {
			r.t.Fatal(err)
		}
		r.settles(c.ID, stint.Waiting)
		<-time.After(2 * time.Hour)
		if s := r.row(c.ID).Session; s.Status != stint.Stopped {
			t.Errorf("%s an hour after its deadline", s.Status)
		}
		n.stop()
	})
}

// TestAGroupKeepsTheStepLimit: each member of a group counts the siblings before
// it, so that a group cannot pass a limit with room for one. One step too many is
// allowed, as it is outside a group.
func TestAGroupKeepsTheStepLimit(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			steps := make([]stint.Step, 50)
			for i := range steps {
				steps[i] = stint.Step{Name: "s", Effect: stint.Read}
			}
			_, err := l.DoAll(ctx, steps, func(context.Context, int, string) (stint.Result, error) {
				return stint.Result{Data: json.RawMessage(`1`)}, nil
			})
			return stint.Next{End: &stint.End{}}, err
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		c, err := n.Start(r.t.Context(), engine.Request{Agent: a, Limits: &stint.Limits{Steps: 5}})
		if err != nil {
			r.t.Fatal(err)
		}
		<-time.After(time.Minute)
		if s := r.row(c.ID).Session; s.Totals.Steps > 6 {
			t.Errorf("%d steps under a limit of 5", s.Totals.Steps)
		}
		n.stop()
	})
}
