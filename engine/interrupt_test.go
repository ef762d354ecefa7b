package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// turn is a turn of an agent: it thinks, and then looks and pays. What hangs does so the
// first time, until it is canceled.
type turn struct {
	hangs string
	ran   []string
	heard []string // of the inbox, by loop and attempt
	gave  []string // errors of what it looked at and paid
}

func (u *turn) do(ctx context.Context, l stint.Loop) (stint.Next, error) {
	var said []string
	for _, m := range l.Inbox() {
		said = append(said, string(m.Body))
	}
	u.heard = append(u.heard, strings.Join(said, "+"))
	if l.Session().At.Loop > 1 {
		return stint.Next{End: &stint.End{}}, nil
	}
	step := func(name string, effect stint.Effect, yields bool, ask string) error {
		_, err := l.Do(ctx, stint.Step{Name: name, Effect: effect, Yields: yields, Ask: ask}, func(ctx context.Context, _ string) (stint.Result, error) {
			u.ran = append(u.ran, name)
			if name == u.hangs && len(slices.DeleteFunc(slices.Clone(u.ran), func(s string) bool { return s != name })) == 1 {
				<-ctx.Done()
				return stint.Result{}, context.Cause(ctx)
			}
			return stint.Result{}, nil
		})
		return err
	}
	if err := step("think", stint.Read, false, ""); err != nil {
		return stint.Next{}, err
	}
	ask := ""
	if u.hangs == "" {
		ask = "may I look?"
	}
	u.gave = nil
	for _, next := range []struct {
		name   string
		effect stint.Effect
		ask    string
	}{{"look", stint.Read, ask}, {"pay", stint.Once, ""}} {
		err := step(next.name, next.effect, true, next.ask)
		if err != nil && stint.CodeOf(err) != stint.Denied {
			return stint.Next{}, err
		}
		u.gave = append(u.gave, fmt.Sprint(err))
	}
	return stint.Next{}, nil
}

// TestInterruptedTurn: a loop that was interrupted goes on with what is on record and
// begins no step that yields; one with nothing on record also gets the message that woke
// the session.
func TestInterruptedTurn(t *testing.T) {
	for _, c := range []struct {
		hangs string // empty: a person is asked before it looks
		ran   string
		heard string
		gave  string
	}{
		{"think", "think think look pay", "go/go+stop/", "<nil>|<nil>"},
		{"look", "think look", "go/go/stop", "it may have been begun, and has no result: the turn was interrupted by human:ana|it was not begun: the turn was interrupted by human:ana"},
		{"", "think", "go/go/stop", "it may have been begun, and has no result: the turn was interrupted by human:ana|it was not begun: the turn was interrupted by human:ana"},
	} {
		t.Run(c.hangs, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				u := &turn{hangs: c.hangs}
				a := agent("turn", u.do)
				n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(n.Engine, a, "go")
				<-time.After(time.Minute)
				r.send(id, stint.Interrupt, journal.Command{})
				<-time.After(time.Minute)
				s := r.settles(id, stint.Waiting)
				if s.Wait.For != stint.ForMessage || len(s.At.Approvals) != 0 {
					t.Errorf("it waits for %s with the questions %v", s.Wait.For, s.At.Approvals)
				}
				r.message(id, stint.Message{Kind: stint.Prompt, Body: []byte("stop")})
				<-time.After(time.Minute)
				r.settles(id, stint.Completed)
				n.stop()
				for what, got := range map[string][2]string{"ran": {strings.Join(u.ran, " "), c.ran}, "heard": {strings.Join(u.heard, "/"), c.heard}, "gave": {strings.Join(u.gave, "|"), c.gave}} {
					if got[0] != got[1] {
						t.Errorf("it %s %q, want %q\n%s", what, got[0], got[1], r.journal(id))
					}
				}
				canceled := 0
				for _, e := range r.entries(id) {
					if d, err := journal.Decode[journal.ApprovalDecided](&e); e.Kind == stint.ApprovalDecided && err == nil && d.State == stint.ApprovalCanceled {
						canceled++
					}
				}
				if want := map[bool]int{true: 1}[c.hangs == ""]; canceled != want {
					t.Errorf("%d questions were canceled, want %d", canceled, want)
				}
				r.verifies(id)
			})
		})
	}
}

// TestAnInterruptKeepsTheInputOfAKey: what an idempotent step was given may be done where
// its try failed, or its process died. Its key must not stand for another input, so the
// message that comes next is for the loop after.
func TestAnInterruptKeepsTheInputOfAKey(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprintf("dies=%v", dies), func(t *testing.T) {
			inBubble(t, func(r *rig) {
				given, tries, attempts := map[string]string{}, 0, 0
				a := agent("turn", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
					input := fmt.Sprintf("%q", inboxOf(l))
					if l.Session().At.Loop > 1 {
						return ends(input), nil
					}
					if attempts++; dies && attempts == 2 { // it is interrupted before the step is begun again
						<-ctx.Done()
						return stint.Next{}, context.Cause(ctx)
					}
					_, err := l.Do(ctx, stint.Step{Name: "write", Effect: stint.Idempotent, Input: []byte(input)}, func(ctx context.Context, key string) (stint.Result, error) {
						if was, ok := given[key]; ok && was != input {
							t.Errorf("one key stands for %s and for %s", was, input)
						}
						given[key] = input
						switch tries++; {
						case tries == 1 && !dies:
							return stint.Result{}, fmt.Errorf("no answer came")
						case tries == 1, tries == 2 && !dies:
							<-ctx.Done()
						}
						return stint.Result{}, context.Cause(ctx)
					})
					return stint.Next{}, err
				})
				first := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(first.Engine, a, "go")
				<-time.After(10 * time.Second)
				second := first
				if dies {
					r.store.Kill("r1")
					second = r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
					<-time.After(10 * time.Second)
				}
				r.send(id, stint.Interrupt, journal.Command{})
				<-time.After(10 * time.Second)
				r.message(id, stint.Message{Kind: stint.Prompt, Body: []byte("other")})
				s := r.settles(id, stint.Completed)
				if heard := r.entries(id)[s.Head-1].Body; string(heard) != `"other"` {
					t.Errorf("the loop after heard %s\n%s", heard, r.journal(id))
				}
				second.stop()
				if dies {
					first.stop()
				}
			})
		})
	}
}
