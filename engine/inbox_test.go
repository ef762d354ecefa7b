package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
)

// laggard is a store that takes three seconds for a family's key, and a moment for each
// commit, one after the other.
type laggard struct {
	*mem.Store
	mu   sync.Mutex
	last chan struct{} // closed when the newest commit is done
}

func (s *laggard) FamilyKey(ctx context.Context, family stint.ID) ([]byte, error) {
	<-time.After(3 * time.Second)
	return s.Store.FamilyKey(ctx, family)
}

func (s *laggard) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	s.mu.Lock()
	before, mine := s.last, make(chan struct{})
	s.last = mine
	s.mu.Unlock()
	go func() {
		defer close(mine)
		if before != nil {
			<-before
		}
		<-time.After(1500 * time.Millisecond)
		s.Store.Append(ctx, l, b, done)
	}()
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
				e, err := engine.New(r.t.Context(), &laggard{Store: r.store.Store}, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
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

// strict is a store that honours the context of a read, as SQLite does.
type strict struct {
	*mem.Store
	claims int
	stop   chan struct{}
}

func (s *strict) Entries(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, stint.Unavailable.Errorf("entries", "%w", err)
	}
	return s.Store.Entries(ctx, r)
}

func (s *strict) Claim(ctx context.Context, c stint.Claim) ([]stint.Lease, error) {
	if s.claims++; s.claims > 1000 { // or virtual time would never go on
		select {
		case <-s.stop:
		case <-time.After(time.Hour):
		}
	}
	return s.Store.Claim(ctx, c)
}

// TestAnUrgentMessageBehindARestart: what cancels the agent does not cancel what the
// driver itself reads, or messages before an urgent one could never be obeyed.
func TestAnUrgentMessageBehindARestart(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("a", func(context.Context, stint.Loop) (stint.Next, error) {
			return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, nil
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		r.settles(id, stint.Waiting)
		n.stop()
		one := 1
		r.send(id, stint.Rollback, journal.Command{From: &one})
		r.send(id, stint.Pause, journal.Command{Now: true})
		s := &strict{Store: r.store.Store, stop: make(chan struct{})}
		e, err := engine.New(r.t.Context(), s, engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
		if err != nil {
			r.t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(r.t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Serve(ctx) }()
		<-time.After(10 * time.Second)
		close(s.stop)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if ses := r.row(id).Session; s.claims > 1000 || ses.At.Line != 1 {
			t.Errorf("line %d after %d claims\n%s", ses.At.Line, s.claims, r.journal(id))
		}
	})
}

// unhurried is a store whose reads of sessions take a second and a half, if their
// context lets them.
type unhurried struct{ *mem.Store }

func (s *unhurried) Session(ctx context.Context, id stint.ID) (stint.Row, error) {
	select {
	case <-ctx.Done():
		return stint.Row{}, stint.Unavailable.Errorf("session", "%w", ctx.Err())
	case <-time.After(1500 * time.Millisecond):
		return s.Store.Session(ctx, id)
	}
}

// TestAKillThatArrivesDuringTheClaim: a kill that is delivered while the session is
// being read takes effect with this claim, and not when the lease has run out.
func TestAKillThatArrivesDuringTheClaim(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("a", func(context.Context, stint.Loop) (stint.Next, error) {
			return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, nil
		})
		e, err := engine.New(r.t.Context(), &unhurried{r.store.Store}, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		if err != nil {
			r.t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(r.t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Serve(ctx) }()
		id := r.start(e, a, "")
		r.settles(id, stint.Waiting)
		r.send(id, stint.Kill, journal.Command{})
		<-time.After(10 * time.Second)
		if s := r.row(id).Session; s.Status != stint.Canceled {
			t.Errorf("%s ten seconds after it was killed", s.Status)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
