package cases_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// grace is how long agent/exec lets a program take that it has told to end.
const grace = 2 * time.Second

// TestG03DrainInTime: a runner that is told to end is gone within five seconds, with
// the time that a program may take to end, while a step hangs that may be run again,
// or an agent that is in no step (detent#2081).
func TestG03DrainInTime(t *testing.T) {
	hangs := func(ctx context.Context) error {
		<-ctx.Done()
		<-time.After(grace)
		return context.Cause(ctx)
	}
	for name, fn := range map[string]stint.AgentFunc{
		"in a step": func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			_, err := l.Do(ctx, stint.Step{Name: "x", Effect: stint.Read}, func(ctx context.Context, _ string) (stint.Result, error) {
				return stint.Result{}, hangs(ctx)
			})
			return stint.Next{}, err
		},
		"between steps": func(ctx context.Context, _ stint.Loop) (stint.Next, error) { return stint.Next{}, hangs(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, p *place) {
				a := goAgent(fn)
				e := p.engine(a)
				ctx, cancel := context.WithCancel(t.Context())
				served := make(chan error, 1)
				go func() { served <- e.Serve(ctx) }()
				created, err := e.Start(t.Context(), engine.Request{Agent: a})
				if err != nil {
					t.Fatal(err)
				}
				<-time.After(10 * time.Second)
				begun := time.Now()
				cancel()
				if err := <-served; err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				if took := time.Since(begun); took > 4500*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				if row := p.row(created.ID); row.Live || row.Session.Status != stint.Pending {
					t.Errorf("it is left as %s, live %v", row.Session.Status, row.Live)
				}
				p.closes(e)
			})
		})
	}
}
