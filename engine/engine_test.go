package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// counter is an agent that counts loops in its state, with a model call and a tool
// a loop, and ends at to.
func counter(to int, ran *[]string) stint.AgentFunc {
	return func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		var st struct{ N int }
		if l.State() != nil {
			if err := json.Unmarshal(l.State(), &st); err != nil {
				return stint.Next{}, err
			}
		}
		for _, s := range []stint.Step{
			{Name: "think", Kind: stint.Model, Effect: stint.Read},
			{Name: "act", Kind: stint.Tool, Effect: stint.Idempotent, Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, st.N))},
		} {
			_, err := l.Do(ctx, s, func(context.Context, string) (stint.Result, error) {
				*ran = append(*ran, fmt.Sprintf("%s %d", s.Name, st.N))
				return stint.Result{Data: json.RawMessage(`"ok"`)}, nil
			})
			if err != nil {
				return stint.Next{}, err
			}
		}
		st.N++
		state, err := stint.Marshal(st)
		next := stint.Next{State: state, Headline: fmt.Sprintf("n is %d", st.N)}
		if st.N == to {
			next.End = &stint.End{Reason: "counted", Result: state}
		}
		return next, err
	}
}

func TestPlainSession(t *testing.T) {
	inBubble(t, func(r *rig) {
		var ran []string
		a := agent("counter", counter(3, &ran))
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "go")
		s := r.settles(id, stint.Completed)
		n.stop()
		if s.Totals.Loops != 3 || s.Totals.Steps != 6 || s.Reason != "counted" {
			t.Errorf("totals %+v, reason %q", s.Totals, s.Reason)
		}
		r.show(id)
		r.golden("plain")
	})
}

// TestDeathAndRecovery: a runner dies while a tool runs; another takes over at
// once, answers the finished step from the journal and runs only the rest.
func TestDeathAndRecovery(t *testing.T) {
	inBubble(t, func(r *rig) {
		var thinks, acts int
		hang := make(chan struct{})
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if _, err := step(ctx, l, "think", stint.Read, func() (string, error) { thinks++; return "t", nil }); err != nil {
				return stint.Next{}, err
			}
			_, err := step(ctx, l, "act", stint.Idempotent, func() (string, error) {
				acts++
				if acts == 1 {
					<-hang
				}
				return "a", nil
			})
			return stint.Next{End: &stint.End{}}, err
		})
		one := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(one.Engine, a, "")
		r.settles(id, stint.Running)
		r.store.Kill("r1") // its lock is gone, as after kill -9
		two := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
		s := r.settles(id, stint.Completed)
		if thinks != 1 || acts != 2 {
			t.Errorf("think ran %d times, act %d; want 1 and 2", thinks, acts)
		}
		if s.At.Attempt != 2 {
			t.Errorf("attempt %d, want 2", s.At.Attempt)
		}
		close(hang) // the dead runner's step ends now: its result must not get in
		<-time.After(time.Second)
		r.show(id)
		one.stop()
		two.stop()
		r.golden("death")
	})
}

func TestDoubt(t *testing.T) {
	for _, c := range []struct {
		name    string
		command journal.Command
		charges int
		result  string
	}{
		{"happened", journal.Command{Verdict: journal.Happened, Result: json.RawMessage(`"paid"`), Reason: "saw the receipt"}, 1, `"paid"`},
		{"not", journal.Command{Verdict: journal.NotHappened}, 2, `"charged"`},
		{"unknown", journal.Command{Verdict: journal.Unknown}, 1, `{"stint":"unknown","note":"interrupted; whether the effect took place is not known"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				charges, keys := 0, map[string]bool{}
				hang := make(chan struct{})
				var got json.RawMessage
				a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
					res, err := l.Do(ctx, stint.Step{Name: "charge", Input: json.RawMessage(`{"eur":5}`)}, func(_ context.Context, key string) (stint.Result, error) {
						charges++
						keys[key] = true
						if charges == 1 {
							<-hang
						}
						return stint.Result{Data: json.RawMessage(`"charged"`)}, nil
					})
					got = res.Data
					return stint.Next{End: &stint.End{}}, err
				})
				one := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(one.Engine, a, "")
				r.settles(id, stint.Running)
				r.store.Kill("r1")
				two := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
				s := r.settles(id, stint.Waiting)
				if s.Wait.For != stint.ForDoubt || charges != 1 {
					t.Fatalf("waits for %s after %d charges", s.Wait.For, charges)
				}
				step := s.Wait.Step
				c.command.Step = &step
				r.send(id, stint.Resolve, c.command)
				r.settles(id, stint.Completed)
				if charges != c.charges || len(keys) != 1 || string(got) != c.result {
					t.Errorf("%d charges under %d keys, result %s", charges, len(keys), got)
				}
				r.show(id)
				close(hang)
				one.stop()
				two.stop()
				r.golden("doubt-" + c.name)
			})
		})
	}
}

func TestRetryThenSuccess(t *testing.T) {
	inBubble(t, func(r *rig) {
		tries, listed := 0, 0
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if _, err := step(ctx, l, "list", stint.Read, func() (string, error) { listed++; return "l", nil }); err != nil {
				return stint.Next{}, err
			}
			_, err := step(ctx, l, "fetch", stint.Read, func() (string, error) {
				if tries++; tries < 3 {
					return "", errBoom
				}
				return "f", nil
			})
			return stint.Next{End: &stint.End{}}, err
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		s := r.settles(id, stint.Completed)
		n.stop()
		if tries != 3 || listed != 1 || s.At.Attempt != 3 {
			t.Errorf("fetch ran %d times, list %d, attempt %d", tries, listed, s.At.Attempt)
		}
		r.show(id)
		r.golden("retry")
	})
}

func TestRetryExhausted(t *testing.T) {
	inBubble(t, func(r *rig) {
		tries := 0
		a := agent("a", func(context.Context, stint.Loop) (stint.Next, error) { tries++; return stint.Next{}, errBoom })
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		s := r.settles(id, stint.Failed)
		if tries != 5 {
			t.Errorf("%d attempts, want 5; %s", tries, s.Reason)
		}
		// A person may begin it again; the same loop, a new attempt.
		r.send(id, stint.Restart, journal.Command{Reason: "mended"})
		<-time.After(100 * time.Millisecond)
		r.settles(id, stint.Failed)
		n.stop()
		if tries != 6 {
			t.Errorf("%d attempts after the restart, want 6", tries)
		}
	})
}
