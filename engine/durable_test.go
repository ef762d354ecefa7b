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
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
)

// late is a store whose appends reach it a second late, in order.
type late struct {
	*mem.Store
	mu   sync.Mutex
	last chan struct{}
}

func (s *late) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	s.mu.Lock()
	before, mine := s.last, make(chan struct{})
	s.last = mine
	s.mu.Unlock()
	go func() {
		<-time.After(time.Second)
		if before != nil {
			<-before
		}
		s.Store.Append(ctx, l, b, done)
		close(mine)
	}()
}

// TestAnIdempotentStepWaitsForAllItMayDependOn: an idempotent step that is done
// again must send the same input under its key. So what may come out otherwise when
// it is lost has to be durable before it acts: a read, but also the result of a once
// step, which a person's word may replace, and a definite error, which the next try
// may not have.
func TestAnIdempotentStepWaitsForAllItMayDependOn(t *testing.T) {
	for _, c := range []struct {
		name   string
		effect stint.Effect
		err    error
	}{
		{"a read", stint.Read, nil},
		{"a once step", stint.Once, nil},
		{"a definite error of a read", stint.Read, stint.Definite(errors.New("no such file"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				recorded := false
				a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
					_, err := l.Do(ctx, stint.Step{Name: "first", Effect: c.effect}, func(context.Context, string) (stint.Result, error) {
						return stint.Result{Data: json.RawMessage(`1`)}, c.err
					})
					if errors.Is(err, stint.ErrParked) {
						return stint.Next{}, err
					}
					_, err = l.Do(ctx, stint.Step{Name: "second", Effect: stint.Idempotent}, func(context.Context, string) (stint.Result, error) {
						for _, e := range r.entries(l.Session().ID) {
							if e.Pos.Step == 1 && (e.Kind == stint.StepCompleted || e.Kind == stint.StepFailed) {
								recorded = true
							}
						}
						return stint.Result{}, nil
					})
					return stint.Next{End: &stint.End{}}, err
				})
				e, err := engine.New(r.t.Context(), &late{Store: r.store.Store}, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				if err != nil {
					r.t.Fatal(err)
				}
				id := r.start(e, a, "")
				if _, err := e.Run(r.t.Context(), id); err != nil {
					t.Error(err)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if !recorded {
					t.Errorf("the second step acted before the first one's outcome was durable")
				}
			})
		})
	}
}

// TestADriveThatCannotLeaveKeepsItsLease: a release that a full disk refuses is
// tried again, and until it is answered the lease is renewed; else another begins
// the loop that has ended here.
func TestADriveThatCannotLeaveKeepsItsLease(t *testing.T) {
	inBubble(t, func(r *rig) {
		full := time.Now().Add(45 * time.Second)
		d := &refuses{Store: r.store.Store, when: func(b stint.Batch) bool { return b.Release && time.Now().Before(full) }}
		loops := 0
		a := agent("a", func(context.Context, stint.Loop) (stint.Next, error) {
			loops++
			return stint.Next{End: &stint.End{}}, nil
		})
		e, err := engine.New(r.t.Context(), d, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		if err != nil {
			r.t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(r.t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Serve(ctx) }()
		id := r.start(e, a, "")
		r.settles(id, stint.Completed)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if loops != 1 {
			t.Errorf("the loop ran %d times\n%s", loops, r.journal(id))
		}
	})
}

// refuses is a store that is full for some batches.
type refuses struct {
	*mem.Store
	when func(b stint.Batch) bool
}

func (s *refuses) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	if s.when(b) {
		done(stint.Unavailable.Errorf("append", "the disk is full"))
		return
	}
	s.Store.Append(ctx, l, b, done)
}

// dim is a store whose reads of sessions fail until a time.
type dim struct {
	*mem.Store
	until time.Time
}

func (d *dim) Session(ctx context.Context, id stint.ID) (stint.Row, error) {
	if time.Now().Before(d.until) {
		return stint.Row{}, stint.Unavailable.Errorf("session", "the disk does not answer")
	}
	return d.Store.Session(ctx, id)
}

// TestAReadThatFailsForAMomentCostsNoLease: a drive that cannot read its session
// asks again under the lease that it has, instead of leaving it to run out.
func TestAReadThatFailsForAMomentCostsNoLease(t *testing.T) {
	inBubble(t, func(r *rig) {
		d := &dim{Store: r.store.Store, until: time.Now().Add(time.Second)}
		a := agent("a", func(context.Context, stint.Loop) (stint.Next, error) { return stint.Next{End: &stint.End{}}, nil })
		e, err := engine.New(r.t.Context(), d, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		if err != nil {
			r.t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(r.t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Serve(ctx) }()
		id := r.start(e, a, "")
		<-time.After(10 * time.Second)
		if s := r.row(id).Session; s.Status != stint.Completed {
			t.Errorf("%s nine seconds after the store can be read again\n%s", s.Status, r.journal(id))
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

// TestAnObserverIsToldOfARollback: what a control message made durable is told too.
func TestAnObserverIsToldOfARollback(t *testing.T) {
	inBubble(t, func(r *rig) {
		var ran []string
		var seen stint.Session
		a := agent("a", counter(3, &ran))
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1", Observe: func(s stint.Session) { seen = s }})
		id := r.start(n.Engine, a, "")
		r.settles(id, stint.Completed)
		one := 1
		r.send(id, stint.Rollback, journal.Command{From: &one})
		<-time.After(10 * time.Second)
		n.stop()
		if s := r.row(id).Session; seen.Head != s.Head {
			t.Errorf("the observer was told of entry %d, the journal is at %d (%s)", seen.Head, s.Head, s.Status)
		}
	})
}

// TestAStepWaitsForItsInbox: the inbox that a loop took, and an error of a model that
// a tool makes up for, are durable before what follows from them acts.
func TestAStepWaitsForItsInbox(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  *stint.Step
		second stint.Step
	}{
		{"an idempotent step that comes first", nil, stint.Step{Name: "act", Effect: stint.Idempotent}},
		{"a tool after a model that failed", &stint.Step{Name: "think", Kind: stint.Model, Effect: stint.Read}, stint.Step{Name: "fall back", Kind: stint.Tool, Effect: stint.Read}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				missing := 0
				a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
					want := 2 // session.created and loop.started
					if c.first != nil {
						want = 3
						if _, err := l.Do(ctx, *c.first, func(context.Context, string) (stint.Result, error) {
							return stint.Result{}, stint.Definite(errors.New("overloaded"))
						}); errors.Is(err, stint.ErrParked) {
							return stint.Next{}, err
						}
					}
					_, err := l.Do(ctx, c.second, func(context.Context, string) (stint.Result, error) {
						missing = want - len(r.entries(l.Session().ID))
						return stint.Result{Data: json.RawMessage(`1`)}, nil
					})
					return stint.Next{End: &stint.End{}}, err
				})
				e, err := engine.New(r.t.Context(), &late{Store: r.store.Store}, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				if err != nil {
					r.t.Fatal(err)
				}
				id := r.start(e, a, "")
				if _, err := e.Run(r.t.Context(), id); err != nil {
					t.Error(err)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if missing > 0 {
					t.Errorf("%q acted while %d entries that it follows from were not durable", c.second.Name, missing)
				}
			})
		})
	}
}
