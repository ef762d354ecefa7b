package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// looksBack is a loop that can read what an earlier step gave.
type looksBack interface {
	Outcome(ctx context.Context, at stint.Position) (json.RawMessage, error)
}

// TestOutcome: an agent reads what an earlier loop's step gave, and only that.
func TestOutcome(t *testing.T) {
	inBubble(t, func(r *rig) {
		long := `"` + strings.Repeat("x", 5000) + `"`
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			n := l.Session().At.Loop
			if n < 3 {
				_, err := step(ctx, l, "read", stint.Read, text(long[1:len(long)-1]))
				return stint.Next{State: json.RawMessage(fmt.Sprint(n))}, err
			}
			back := l.(looksBack)
			got, err := back.Outcome(ctx, stint.Position{Loop: 1, Step: 1})
			if err != nil || string(got) != long {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			for _, pos := range []stint.Position{{Loop: 1, Step: 2}, {Loop: 9, Step: 1}, {Line: 1, Loop: 1, Step: 1}, {Loop: 1, Step: 1, Sub: 1}} {
				if got, err := back.Outcome(ctx, pos); !errors.Is(err, stint.NotFound) {
					t.Errorf("%v: %q, %v", pos, got, err)
				}
			}
			return stint.Next{End: &stint.End{}}, nil
		})
		one := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(one.Engine, a, "")
		r.settles(id, stint.Completed)
		one.stop()
	})
}

// TestOutcomeBeforeABranch: what a branch knows from its state lies with the session that
// did it, and what that one did later is not its past.
func TestOutcomeBeforeABranch(t *testing.T) {
	inBubble(t, func(r *rig) {
		var back looksBack
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			back = l.(looksBack)
			s := l.Session()
			_, err := step(ctx, l, "read", stint.Read, text(fmt.Sprintf("%s %d", s.Name, s.At.Loop)))
			next := stint.Next{State: json.RawMessage(fmt.Sprint(s.At.Loop))}
			if s.At.Loop == 6 {
				next.End = &stint.End{}
			}
			return next, err
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		one, two, four := 1, 2, 4
		c, err := n.Start(t.Context(), engine.Request{Agent: a, Name: "root", Actor: "human:ana"})
		if err != nil {
			t.Fatal(err)
		}
		root := c.ID
		r.settles(root, stint.Completed)
		first := r.branch(n.Engine, root, engine.Branch{From: &two, Name: "first"})
		r.settles(first, stint.Completed)
		second := r.branch(n.Engine, first, engine.Branch{From: &four, Name: "second"})
		r.settles(second, stint.Completed)
		branch := back
		for loop, want := range map[int]string{1: "root", 2: "root", 3: "first", 4: "first", 5: "second"} {
			got, err := branch.Outcome(t.Context(), stint.Position{Loop: loop, Step: 1})
			if want := fmt.Sprintf(`"%s %d"`, want, loop); err != nil || string(got) != want {
				t.Errorf("loop %d gave %s, %v, not %s", loop, got, err, want)
			}
		}
		// A line of the root that began behind the place is not of it either.
		r.send(root, stint.Restart, journal.Command{From: &one})
		<-time.After(time.Second)
		r.settles(root, stint.Completed)
		if got, err := branch.Outcome(t.Context(), stint.Position{Line: 1, Loop: 2, Step: 1}); !errors.Is(err, stint.NotFound) {
			t.Errorf("what the root did since is %s, %v", got, err)
		}
		n.stop()
	})
}
