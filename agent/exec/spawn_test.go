package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/stint-dev/stint"
)

// Spawn begins children of the agent worker, and knows no other.
func (l *fakeLoop) Spawn(ctx context.Context, c stint.Child) (stint.ID, error) {
	l.children = append(l.children, c)
	res, err := l.Do(ctx, stint.Step{Name: "spawn " + c.Agent, Effect: stint.Idempotent, Input: c.Input}, func(context.Context, string) (stint.Result, error) {
		if c.Agent != "worker" {
			return stint.Result{}, stint.Definite(errors.New("there is no agent " + strconv.Quote(c.Agent)))
		}
		return stint.Result{Data: json.RawMessage(`"01jd0f3kx6ewx8ts2gt4hg1m5s"`)}, nil
	})
	if err != nil {
		return stint.ID{}, err
	}
	var id stint.ID
	return id, json.Unmarshal(res.Data, &id)
}

// TestSpawn: children are begun in the order of the steps, and waited for by name.
func TestSpawn(t *testing.T) {
	s := newScript(t, "spawn", nil)
	l := newLoop(3)
	next, err := loop(t, s.agent, l)
	if err != nil {
		t.Fatal(err)
	}
	s.golden(t, false)
	if w := next.Wait; w == nil || w.For != stint.ForChild || w.What != "01jd0f3kx6ewx8ts2gt4hg1m5s" {
		t.Errorf("it waits for %+v", w)
	}
	if len(l.children) != 2 || l.order[2] != "3" {
		t.Fatalf("%d children, the steps are %v", len(l.children), l.order)
	}
	first, second := l.children[0], l.children[1]
	if first.Name != "part-1" || string(first.Input) != `{"n":1}` || first.Labels["of"] != "a" || first.Limits == nil || first.Limits.Loops != 3 || first.Limits.Cost != 500_000_000 {
		t.Errorf("the first child is %+v with %+v", first, first.Limits)
	}
	if string(second.Input) != "a text" || !second.Detach || second.Limits != nil {
		t.Errorf("the second child is %+v", second)
	}
}
