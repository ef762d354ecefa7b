package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// chatter is an interactive agent: it answers each prompt and waits for the next.
func chatter(heard *[]string) stint.AgentFunc {
	return func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		for _, m := range l.Inbox() {
			*heard = append(*heard, string(m.Body))
		}
		if _, err := step(ctx, l, "answer", stint.Read, text("hello")); err != nil {
			return stint.Next{}, err
		}
		return stint.Next{State: json.RawMessage(`{"talked":true}`), Wait: &stint.Wait{For: stint.ForMessage, What: "what next?"}}, nil
	}
}

// slow is an agent whose one step takes ten minutes, or until it is canceled.
func slow(effect stint.Effect, canceled *int) stint.AgentFunc {
	return func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		_, err := stint.Do(ctx, l, stint.Step{Name: "slow", Effect: effect, Timeout: time.Hour}, func(ctx context.Context, _ string) (string, error) {
			select {
			case <-ctx.Done():
				*canceled++
				return "", context.Cause(ctx)
			case <-time.After(10 * time.Minute):
				return "done", nil
			}
		})
		return stint.Next{End: &stint.End{}}, err
	}
}

func TestPromptsWakeAWaitingSession(t *testing.T) {
	inBubble(t, func(r *rig) {
		var heard []string
		a := agent("chat", chatter(&heard))
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "one")
		r.settles(id, stint.Waiting)
		r.message(id, stint.Message{Kind: stint.Prompt, Body: []byte("two")})
		<-time.After(time.Second)
		s := r.settles(id, stint.Waiting)
		if len(heard) != 2 || heard[1] != "two" || s.Totals.Loops != 2 {
			t.Errorf("heard %q in %d loops", heard, s.Totals.Loops)
		}
		r.send(id, stint.Stop, journal.Command{Reason: "enough"})
		r.settles(id, stint.Canceled)
		n.stop()
		r.show(id)
		r.golden("chat")
	})
}

func TestControlOfARunningStep(t *testing.T) {
	for _, c := range []struct {
		name     string
		kind     stint.MessageKind
		command  journal.Command
		status   stint.Status
		waits    stint.WaitFor
		canceled int
		took     time.Duration
	}{
		{"stop", stint.Stop, journal.Command{}, stint.Canceled, "", 1, time.Minute}, // the grace of 90 s
		{"kill", stint.Kill, journal.Command{}, stint.Canceled, "", 1, 0},
		{"pause", stint.Pause, journal.Command{}, stint.Waiting, stint.ForOperator, 0, 10 * time.Minute},
		{"pause-now", stint.Pause, journal.Command{Now: true}, stint.Waiting, stint.ForOperator, 1, 0},
		{"interrupt", stint.Interrupt, journal.Command{}, stint.Waiting, stint.ForMessage, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				canceled := 0
				a := agent("slow", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
					next, err := slow(stint.Read, &canceled)(ctx, l)
					next.End = nil
					return next, err
				})
				n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(n.Engine, a, "")
				r.settles(id, stint.Running)
				begun := time.Now()
				r.send(id, c.kind, c.command)
				s := r.settles(id, c.status)
				took := time.Since(begun).Truncate(time.Minute)
				n.stop()
				if canceled != c.canceled || took != c.took {
					t.Errorf("canceled %d steps and took %v", canceled, took)
				}
				if s.Wait != nil && s.Wait.For != c.waits {
					t.Errorf("waits for %s", s.Wait.For)
				}
			})
		})
	}
}

func TestPauseAndResume(t *testing.T) {
	inBubble(t, func(r *rig) {
		var heard []string
		a := agent("chat", chatter(&heard))
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "one")
		r.settles(id, stint.Waiting)
		r.send(id, stint.Pause, journal.Command{Reason: "month end"})
		<-time.After(time.Second)
		s := r.settles(id, stint.Waiting)
		if s.Wait.For != stint.ForOperator || s.Wait.What != "month end" {
			t.Fatalf("waits for %s: %s", s.Wait.For, s.Wait.What)
		}
		r.message(id, stint.Message{Kind: stint.Prompt, Body: []byte("two")})
		<-time.After(time.Minute)
		if len(heard) != 1 {
			t.Error("a prompt woke a paused session")
		}
		r.send(id, stint.Resume, journal.Command{})
		<-time.After(time.Second)
		r.settles(id, stint.Waiting)
		n.stop()
		if len(heard) != 2 {
			t.Errorf("heard %q; the prompt was to be taken after the resume", heard)
		}
		r.show(id)
		r.golden("pause")
	})
}

func TestDrain(t *testing.T) {
	t.Run("a read is cut short and begun again in the same attempt", func(t *testing.T) {
		inBubble(t, func(r *rig) {
			canceled := 0
			a := agent("slow", slow(stint.Read, &canceled))
			n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
			id := r.start(n.Engine, a, "")
			r.settles(id, stint.Running)
			n.stop()
			row := r.row(id)
			if s, _ := row.Status(); s != stint.Pending || canceled != 1 || row.Live {
				t.Fatalf("%s, %d canceled, live %v", s, canceled, row.Live)
			}
			two := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
			s := r.settles(id, stint.Completed)
			two.stop()
			if s.At.Attempt != 1 {
				t.Errorf("attempt %d, want 1: a drain does not count", s.At.Attempt)
			}
		})
	})
	t.Run("a once step gets the drain time", func(t *testing.T) {
		inBubble(t, func(r *rig) {
			canceled := 0
			a := agent("slow", slow(stint.Once, &canceled))
			n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1", Drain: time.Hour})
			id := r.start(n.Engine, a, "")
			r.settles(id, stint.Running)
			n.stop()
			if canceled != 0 {
				t.Error("the once step was canceled within its drain time")
			}
			two := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
			r.settles(id, stint.Completed)
			two.stop()
		})
	})
	t.Run("a once step beyond it is in doubt", func(t *testing.T) {
		inBubble(t, func(r *rig) {
			canceled := 0
			a := agent("slow", slow(stint.Once, &canceled))
			n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1", Drain: time.Minute})
			id := r.start(n.Engine, a, "")
			r.settles(id, stint.Running)
			n.stop()
			two := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
			s := r.settles(id, stint.Waiting)
			two.stop()
			if canceled != 1 || s.Wait.For != stint.ForDoubt {
				t.Errorf("canceled %d, waits for %s", canceled, s.Wait.For)
			}
		})
	})
}

func TestDivergence(t *testing.T) {
	inBubble(t, func(r *rig) {
		name, hang := "read the mail", make(chan struct{})
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if _, err := step(ctx, l, name, stint.Read, text("x")); err != nil {
				return stint.Next{}, err
			}
			_, err := step(ctx, l, "then", stint.Read, func() (string, error) { <-hang; return "", nil })
			return stint.Next{End: &stint.End{}}, err
		})
		one := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(one.Engine, a, "")
		r.settles(id, stint.Running)
		r.store.Kill("r1")
		name = "delete the mail" // the code changed between two attempts
		two := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
		s := r.settles(id, stint.Waiting)
		if s.Wait.For != stint.ForDoubt {
			t.Errorf("waits for %s", s.Wait.For)
		}
		r.note("%s", s.Wait.What)
		close(hang)
		one.stop()
		two.stop()
		r.golden("divergence")
	})
}

func TestBrakeOnDeaths(t *testing.T) {
	inBubble(t, func(r *rig) {
		hang := make(chan struct{})
		a := agent("a", func(context.Context, stint.Loop) (stint.Next, error) { <-hang; return stint.Next{}, nil })
		var runners []*runner
		var id stint.ID
		for i, name := range []string{"r1", "r2", "r3"} {
			n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: name})
			if runners = append(runners, n); i == 0 {
				id = r.start(n.Engine, a, "")
			}
			r.settles(id, stint.Running)
			<-time.After(2 * time.Second)
			r.store.Kill(name)
		}
		last := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r4"})
		// The third death is known once its successor begins; then the brake holds.
		<-time.After(5 * time.Second)
		r.store.Kill("r4")
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r5"})
		s := r.settles(id, stint.Failed)
		r.note("%s", s.Reason)
		close(hang)
		for _, n := range append(runners, last, n) {
			n.stop()
		}
		r.golden("brake")
	})
}

// TestFencedRunner: a runner that was paused beyond its lease wakes up and finds
// that another has taken over. It writes nothing and tells nobody.
func TestFencedRunner(t *testing.T) {
	inBubble(t, func(r *rig) {
		hang := make(chan struct{})
		calls := 0
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			calls++
			first := calls == 1
			_, err := step(ctx, l, "act", stint.Idempotent, func() (string, error) {
				if first {
					<-hang
				}
				return "x", nil
			})
			return stint.Next{State: json.RawMessage(`{"by":"first"}`), End: &stint.End{}}, err
		})
		one := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(one.Engine, a, "")
		r.settles(id, stint.Running)
		r.store.Stall("r1")
		two := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
		<-time.After(40 * time.Second)
		s := r.settles(id, stint.Completed)
		head := s.Head
		r.store.Unstall("r1")
		close(hang)
		<-time.After(time.Minute)
		if got := r.row(id).Session.Head; got != head {
			t.Errorf("the fenced runner wrote entries %d to %d", head+1, got)
		}
		r.show(id)
		one.stop()
		two.stop()
		r.golden("fenced")
	})
}

// TestALargeCommandIsNotLost: a message that was sent is in the inbox or in the
// journal, and never in neither, and it acts, however long its arguments are. The
// data of an entry has a bound that the data of a message does not have.
func TestALargeCommandIsNotLost(t *testing.T) {
	inBubble(t, func(r *rig) {
		var heard []string
		a := agent("chat", chatter(&heard))
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "one")
		r.settles(id, stint.Waiting)
		r.send(id, stint.Stop, journal.Command{Reason: strings.Repeat("x", 70<<10)})
		<-time.After(10 * time.Second)
		n.stop()
		kinds := map[stint.Kind]int{}
		for _, e := range r.entries(id) {
			kinds[e.Kind]++
		}
		ms, err := r.store.Inbox(r.t.Context(), id)
		if err != nil {
			r.t.Fatal(err)
		}
		if n := len(ms) + kinds[stint.MessageTaken] + kinds[stint.MessageRefused]; n != 1 {
			t.Errorf("the message that Send took is in %d places\n%s", n, r.journal(id))
		}
		if s := r.row(id).Session; s.Status != stint.Canceled {
			t.Errorf("%s: the stop had no effect", s.Status)
		}
	})
}
