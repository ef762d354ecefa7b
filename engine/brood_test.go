package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// crowd counts who runs at the same time.
type crowd struct {
	mu             sync.Mutex
	now, most, ran int
}

func (c *crowd) enter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now++
	c.most = max(c.most, c.now)
}

func (c *crowd) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now--
	c.ran++
}

// worker takes a minute, and is seen by a crowd meanwhile.
func (c *crowd) worker(name string, bound int) engine.Agent {
	a := agent(name, func(context.Context, stint.Loop) (stint.Next, error) {
		c.enter()
		defer c.leave()
		<-time.After(time.Minute)
		return ends(`1`), nil
	})
	a.Concurrency = bound
	return a
}

// bossOf spawns so many children of each agent in turn, and waits until all have ended.
func bossOf(n int, agents ...string) engine.Agent {
	heard := 0
	return agent("boss", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		if heard += len(l.Inbox()); heard == n*len(agents) {
			return ends(`1`), nil
		}
		if l.Session().At.Loop > 1 {
			return waitsForChild(), nil
		}
		for i := range n {
			for _, a := range agents {
				if _, err := spawn(ctx, l, stint.Child{Agent: a, Name: fmt.Sprint(a, i)}); err != nil {
					return stint.Next{}, err
				}
			}
		}
		return waitsForChild(), nil
	})
}

// TestRunBoundsItsChildren: as many children of an agent run at once as of any of its
// sessions, and as many in all as the engine drives.
func TestRunBoundsItsChildren(t *testing.T) {
	for name, c := range map[string]struct {
		bound, all, want int
		minutes          int // until the last of eight has ended
	}{
		"of an agent":   {bound: 3, want: 3, minutes: 3},
		"of all":        {all: 2, want: 2, minutes: 4},
		"of both":       {bound: 4, all: 3, want: 3, minutes: 3},
		"none is given": {want: 8, minutes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				var seen crowd
				boss := bossOf(8, "worker")
				e := r.engine(engine.Options{Agents: []engine.Agent{boss, seen.worker("worker", c.bound)}, Holder: "r1", Concurrency: c.all})
				begun := time.Now()
				ctx, cancel := context.WithTimeout(r.t.Context(), time.Hour)
				defer cancel()
				if _, err := e.RunNew(ctx, engine.Request{Agent: boss, Name: "boss"}, func(engine.Created) {}); err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); seen.most != c.want || seen.ran != 8 || int(took.Minutes()) != c.minutes {
					t.Errorf("%d ran, %d at once, in %v", seen.ran, seen.most, took)
				}
				r.closes(e)
			})
		})
	}
}

// TestRunCountsOthers: what another process drives of the agent counts too. A child that
// waits for room holds none of another agent up, nor an order to end the tree.
func TestRunCountsOthers(t *testing.T) {
	inBubble(t, func(r *rig) {
		var seen, free crowd
		worker, other := seen.worker("worker", 2), free.worker("other", 0)
		n := r.serve(engine.Options{Agents: []engine.Agent{worker}, Holder: "server", Poll: 24 * time.Hour})
		for range 2 {
			r.start(n.Engine, worker, "")
		}
		<-time.After(time.Second)
		boss := bossOf(2, "worker", "other")
		e := r.engine(engine.Options{Agents: []engine.Agent{boss, other}, Holder: "r1", Runtimes: []string{"go/worker"}, Find: func(string) (engine.Agent, error) { return worker, nil }})
		begun := time.Now()
		s, err := e.RunNew(r.t.Context(), engine.Request{Agent: boss, Name: "boss"}, func(engine.Created) {})
		if err != nil || s.Status != stint.Completed {
			t.Errorf("%s (%s), %v", s.Status, s.Reason, err)
		}
		if seen.most != 2 || seen.ran != 4 || free.most != 2 || time.Since(begun) > 3*time.Minute {
			t.Errorf("%d ran, %d at once, and %d of another agent, in %v", seen.ran, seen.most, free.most, time.Since(begun))
		}
		r.closes(e)
		n.stop()
	})
}

// TestRunOfAChain: sessions of one agent that spawn each other need no more room than one,
// since who waits leaves its own.
func TestRunOfAChain(t *testing.T) {
	inBubble(t, func(r *rig) {
		link := agent("link", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if depth := len(l.Session().Name); l.Session().At.Loop == 1 && depth < 6 {
				_, err := spawn(ctx, l, stint.Child{Agent: "link", Name: l.Session().Name + "x"})
				return waitsForChild(), err
			}
			return ends(`1`), nil
		})
		link.Concurrency = 1
		e := r.engine(engine.Options{Agents: []engine.Agent{link}, Holder: "r1", Concurrency: 1})
		s, err := e.RunNew(r.t.Context(), engine.Request{Agent: link, Name: "x"}, func(engine.Created) {})
		if err != nil || s.Status != stint.Completed || len(r.family(s.ID)) != 6 {
			t.Errorf("%s (%s), %v, %d sessions", s.Status, s.Reason, err, len(r.family(s.ID)))
		}
		r.closes(e)
	})
}
