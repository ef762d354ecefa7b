package cases_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/ident"
)

// TestChildrenShareTheCap: each child opened a fresh allowance, and a resume reset the
// counters, so $2.00 were spent on a cap of $1.25 (strands PR#2166, LightAgent#70, nodetool
// PR#5489).
func TestChildrenShareTheCap(t *testing.T) {
	const quarter = stint.Money(25e7)
	inTime(t, func(t *testing.T, p *place) {
		calls := 0
		tree := func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			s := l.Session()
			if s.At.Loop == 1 && len(s.Name) < 4 {
				for i := range 2 {
					if _, err := l.(stint.Spawner).Spawn(ctx, stint.Child{Agent: "tree", Name: fmt.Sprint(s.Name, i)}); err != nil {
						return stint.Next{}, err
					}
				}
			}
			_, err := l.Do(ctx, stint.Step{Name: "model", Kind: stint.Model, Effect: stint.Read, Reserve: stint.Usage{Cost: quarter}},
				func(context.Context, string) (stint.Result, error) {
					calls++
					return stint.Result{Usage: stint.Usage{Cost: quarter}}, nil
				})
			return stint.Next{}, err
		}
		a := engine.Agent{Name: "tree", Loop: stint.AgentFunc(tree)}
		e, err := engine.New(t.Context(), p.store, engine.Options{Agents: []engine.Agent{a}, Concurrency: 1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Serve(ctx) }()
		c, err := e.Start(t.Context(), engine.Request{Agent: a, Name: "t", Limits: &stint.Limits{Cost: 5 * quarter}})
		if err != nil {
			t.Fatal(err)
		}
		family := func() []stint.Row {
			rows, err := p.store.Sessions(t.Context(), stint.Filter{Family: c.ID})
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
		for range 2 {
			<-time.After(time.Minute)
			for _, row := range family() {
				if s := row.Session; s.Status != stint.Waiting || s.Wait.For != stint.ForBudget {
					t.Errorf("%s is %s (%s)", s.Name, s.Status, s.Reason)
				}
				m := stint.Message{ID: ident.New().String(), Kind: stint.Resume, From: "human:ana"}
				if err := p.store.Send(t.Context(), row.Session.ID, m); err != nil {
					t.Error(err)
				}
			}
		}
		<-time.After(time.Minute)
		var sum stint.Money
		for _, row := range family() {
			sum += row.Session.Totals.Usage.Cost
		}
		if calls != 5 || sum != 5*quarter {
			t.Errorf("%d calls for $%v, on a cap of $%v", calls, sum, 5*quarter)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
