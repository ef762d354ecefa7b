package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/store/sqlite"
)

// TestWaitingSessionsCostNoGoroutine: a session that waits is a row in the store. Ten
// thousand of them, for a message or for a far time, leave no more goroutines than
// their runner has without them.
func TestWaitingSessionsCostNoGoroutine(t *testing.T) {
	for _, c := range []struct {
		name     string
		sessions int
		wait     stint.Wait
	}{
		{"for a message", 10_000, stint.Wait{For: stint.ForMessage}},
		{"for a time", 1_000, stint.Wait{Until: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sessions := c.sessions
			if raced {
				sessions /= 10
			}
			synctest.Test(t, func(t *testing.T) {
				a := engine.Agent{Name: "a", Loop: stint.AgentFunc(func(context.Context, stint.Loop) (stint.Next, error) {
					w := c.wait
					return stint.Next{Wait: &w}, nil
				})}
				store, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "stint.db")})
				if err != nil {
					t.Fatal(err)
				}
				e, err := engine.New(t.Context(), store, engine.Options{Agents: []engine.Agent{a}, Holder: "r1", Concurrency: sessions})
				if err != nil {
					t.Fatal(err)
				}
				var starts sync.WaitGroup
				for range sessions {
					starts.Go(func() {
						if _, err := e.Start(t.Context(), engine.Request{Agent: a}); err != nil {
							t.Error(err)
						}
					})
				}
				starts.Wait()
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				before := runtime.NumGoroutine()
				go func() { done <- e.Serve(ctx) }()
				<-time.After(10 * time.Second)
				synctest.Wait()
				delta := runtime.NumGoroutine() - before
				waiting, err := store.Sessions(t.Context(), stint.Filter{Statuses: []stint.Status{stint.Waiting}, Limit: sessions + 1})
				if err != nil || len(waiting) != sessions {
					t.Errorf("%d sessions wait: %v", len(waiting), err)
				}
				if delta > 10 {
					t.Errorf("%d goroutines more than before, for %d sessions that wait", delta, sessions)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if err := errors.Join(e.Close(), store.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
