package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

func TestGroup(t *testing.T) {
	inBubble(t, func(r *rig) {
		var mu sync.Mutex
		ran := map[string]int{}
		hang := make(chan struct{})
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			steps := []stint.Step{{Name: "a", Effect: stint.Read}, {Name: "b", Effect: stint.Read}, {Name: "c", Effect: stint.Read}}
			var delays = []time.Duration{3 * time.Second, time.Second, 2 * time.Second}
			res, err := l.DoAll(ctx, steps, func(_ context.Context, i int, _ string) (stint.Result, error) {
				<-time.After(delays[i])
				mu.Lock()
				ran[steps[i].Name]++
				first := i == 0 && ran["a"] == 1
				mu.Unlock()
				if first {
					<-hang
				}
				return stint.Result{Data: json.RawMessage(`"` + steps[i].Name + `"`)}, nil
			})
			if err != nil {
				return stint.Next{}, err
			}
			got := string(res[0].Data) + string(res[1].Data) + string(res[2].Data)
			return stint.Next{End: &stint.End{Result: json.RawMessage(`[` + got[:3] + `]`)}}, nil
		})
		one := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(one.Engine, a, "")
		<-time.After(10 * time.Second)
		r.store.Kill("r1")
		two := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
		r.settles(id, stint.Completed)
		mu.Lock()
		defer mu.Unlock()
		if ran["b"] != 1 || ran["c"] != 1 {
			t.Errorf("finished members ran again: %v", ran)
		}
		r.show(id)
		close(hang)
		one.stop()
		two.stop()
		r.golden("group")
	})
}

// TestASiblingDoesNotForgetAPark: once a member of a group has parked the loop, no
// later member takes that back, not even one whose doubt a rule settles. Otherwise
// DoAll would return the first member's own error, an agent that lives with errors
// would complete the loop, and nobody would ever be asked whether the first effect
// took place.
func TestASiblingDoesNotForgetAPark(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			_, err := l.DoAll(ctx, []stint.Step{{Name: "pay"}, {Name: "mail"}}, func(_ context.Context, i int, _ string) (stint.Result, error) {
				<-time.After(time.Duration(i+1) * time.Second)
				return stint.Result{}, errors.New("connection reset")
			})
			if errors.Is(err, stint.ErrParked) {
				return stint.Next{}, err
			}
			return stint.Next{State: json.RawMessage(`"lived with it"`), End: &stint.End{}}, nil
		})
		a.Doubt = func(name string) engine.Doubt { return engine.Doubt{Unknown: name == "mail"} }
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		<-time.After(10 * time.Second)
		n.stop()
		if s := r.row(id).Session; s.Status != stint.Waiting || s.Wait.For != stint.ForDoubt {
			t.Errorf("%s, and the step pay is in doubt\n%s", s.Status, r.journal(id))
		}
		r.verifies(id)
	})
}
