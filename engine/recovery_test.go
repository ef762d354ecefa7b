package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
)

// TestSettleDoesNotForgetADeath: whoever claims a session after its runner died
// records the death, also one that only settles a message and begins no loop.
// Otherwise an agent that kills its runner would be begun for ever, as long as
// somebody settles something in between.
func TestSettleDoesNotForgetADeath(t *testing.T) {
	inBubble(t, func(r *rig) {
		hang := make(chan struct{})
		a := agent("a", func(context.Context, stint.Loop) (stint.Next, error) {
			<-hang
			return stint.Next{End: &stint.End{}}, nil
		})
		one := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(one.Engine, a, "")
		r.settles(id, stint.Running)
		r.store.Kill("r1")
		cli := r.engine(engine.Options{Agents: []engine.Agent{a}, Holder: "cli"})
		r.send(id, stint.SetLimit, journal.Command{Limits: &stint.Limits{Loops: 9}})
		if err := cli.Settle(r.t.Context(), id); err != nil {
			r.t.Fatal(err)
		}
		two := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
		r.settles(id, stint.Running)
		<-time.After(time.Second)
		s := r.row(id).Session
		close(hang)
		r.settles(id, stint.Completed)
		if s.At.Deaths != 1 {
			t.Errorf("%d deaths are recorded at attempt %d, want 1\n%s", s.At.Deaths, s.At.Attempt, r.journal(id))
		}
		one.stop()
		two.stop()
		r.closes(cli)
	})
}

// blind is a store whose reads of entries fail until a time.
type blind struct {
	*mem.Store
	until time.Time
	reads atomic.Int64
}

func (b *blind) Entries(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
	if time.Now().Before(b.until) {
		if b.reads.Add(1)%100 == 0 {
			<-time.After(time.Second) // or virtual time would never go on
		}
		return nil, stint.Unavailable.Errorf("entries", "the disk does not answer")
	}
	return b.Store.Entries(ctx, r)
}

// TestFailingReadsRaiseNoAttempt: a loop begins only once everything it needs has
// been read. An attempt counts a process that died or a loop that failed; a disk
// that does not answer for ten seconds must not use up the attempts of a sound
// agent.
func TestFailingReadsRaiseNoAttempt(t *testing.T) {
	inBubble(t, func(r *rig) {
		b := &blind{Store: r.store.Store}
		a := agent("a", func(_ context.Context, l stint.Loop) (stint.Next, error) {
			if l.Session().At.Attempt == 1 {
				b.until = time.Now().Add(10 * time.Second)
				return stint.Next{}, errBoom
			}
			return stint.Next{End: &stint.End{}}, nil
		})
		n := r.serveOn(b, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		s := r.settles(id, stint.Completed)
		n.stop()
		if b.reads.Load() == 0 {
			t.Error("no read failed: the test says nothing")
		}
		if s.At.Attempt != 2 {
			t.Errorf("attempt %d after one failure and %d failing reads", s.At.Attempt, b.reads.Load())
		}
	})
}
