package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
)

// slowKey is a store that takes three seconds for a family's key.
type slowKey struct{ *mem.Store }

func (s *slowKey) FamilyKey(ctx context.Context, family stint.ID) ([]byte, error) {
	<-time.After(3 * time.Second)
	return s.Store.FamilyKey(ctx, family)
}

// TestAMessageIsTakenOnce: a message that has left the driver's list for its entry to
// be made is not put back by what the watcher delivers meanwhile.
func TestAMessageIsTakenOnce(t *testing.T) {
	for _, c := range []struct {
		name string
		m    stint.Message
	}{
		{"a long prompt", stint.Message{Kind: stint.Prompt, Body: []byte(strings.Repeat("say ", 1000))}},
		{"a long command", stint.Message{Kind: stint.SetLimit, Data: []byte(`{"limits":{"loops":9},"reason":"` + strings.Repeat("x", 20<<10) + `"}`)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				a := agent("a", func(_ context.Context, l stint.Loop) (stint.Next, error) {
					if l.Session().At.Loop%3 != 1 { // three loops at a stretch
						return stint.Next{}, nil
					}
					return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, nil
				})
				e, err := engine.New(r.t.Context(), &slowKey{r.store.Store}, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				if err != nil {
					r.t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(r.t.Context())
				done := make(chan error, 1)
				go func() { done <- e.Serve(ctx) }()
				id := r.start(e, a, "")
				r.settles(id, stint.Waiting)
				r.message(id, c.m)
				<-time.After(10 * time.Second)
				r.message(id, stint.Message{Kind: stint.Prompt, Body: []byte("and now")})
				<-time.After(2 * time.Minute)
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				taken := map[string]int{}
				for _, entry := range r.entries(id) {
					if entry.Kind == stint.LeaseLost {
						t.Errorf("the session was lost\n%s", r.journal(id))
					}
					if entry.Kind == stint.MessageTaken || entry.Kind == stint.MessageRefused {
						d, err := journal.Decode[journal.Taken](&entry)
						if err != nil {
							r.t.Fatal(err)
						}
						if taken[d.ID]++; taken[d.ID] > 1 {
							t.Errorf("%s was taken twice\n%s", d.Kind, r.journal(id))
						}
					}
				}
				if len(taken) != 2 {
					t.Errorf("%d messages were taken\n%s", len(taken), r.journal(id))
				}
			})
		})
	}
}
