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

// TestInterruptedEffect: a step that is done again under its key is done with the same input,
// so a loop whose first step was canceled in the middle of its effect, or whose runner died
// there, hears no more than before.
func TestInterruptedEffect(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprintf("dies=%v", dies), func(t *testing.T) { inBubble(t, func(r *rig) { interruptedEffect(r, dies) }) })
	}
}

func interruptedEffect(r *rig, dies bool) {
	inputs := map[string][]string{}
	a := agent("post", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		if l.Session().At.Loop > 1 {
			return stint.Next{End: &stint.End{}}, nil
		}
		input, err := stint.Marshal(len(l.Inbox()))
		if err != nil {
			return stint.Next{}, err
		}
		_, err = l.Do(ctx, stint.Step{Name: "post", Effect: stint.Idempotent, Input: input}, func(ctx context.Context, key string) (stint.Result, error) {
			inputs[key] = append(inputs[key], string(input))
			if len(inputs[key]) == 1 {
				<-ctx.Done()
			}
			return stint.Result{}, ctx.Err()
		})
		return stint.Next{}, err
	})
	n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
	id := r.start(n.Engine, a, "go")
	<-time.After(time.Minute)
	if dies {
		r.store.Kill("r1")
	}
	r.send(id, stint.Interrupt, journal.Command{})
	if dies {
		n = r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
	}
	<-time.After(time.Minute)
	r.message(id, stint.Message{Kind: stint.Prompt, Body: []byte("stop")})
	<-time.After(time.Minute)
	r.settles(id, stint.Completed)
	n.stop()
	for key, all := range inputs {
		if len(all) != 2 || all[0] != all[1] {
			r.t.Errorf("under %s it was done with the inputs %q\n%s", key, all, r.journal(id))
		}
	}
	r.verifies(id)
}
