package engine_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/store/mem"
)

// TestAgentsOfEqualConfigAreNotMixedUp: agents that are not in Options are told
// apart by name and runtime too, not by the hash of their config alone: code in Go
// has none, so all of it shares one.
func TestAgentsOfEqualConfigAreNotMixedUp(t *testing.T) {
	inBubble(t, func(r *rig) {
		var ran []string
		talk := func(name string) engine.Agent {
			return agent(name, func(context.Context, stint.Loop) (stint.Next, error) {
				ran = append(ran, name)
				return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, nil
			})
		}
		e := r.engine(engine.Options{Holder: "r1"})
		var first stint.ID
		if _, err := e.RunNew(r.t.Context(), engine.Request{Agent: talk("a")}, func(c engine.Created) { first = c.ID }); err != nil {
			r.t.Fatal(err)
		}
		if _, err := e.RunNew(r.t.Context(), engine.Request{Agent: talk("b")}, func(engine.Created) {}); err != nil {
			r.t.Fatal(err)
		}
		r.message(first, stint.Message{Kind: stint.Prompt, Body: []byte("more")})
		if _, err := e.Run(r.t.Context(), first); err != nil {
			r.t.Fatal(err)
		}
		r.closes(e)
		if len(ran) != 3 || ran[2] != "a" {
			t.Errorf("ran %q; the third was a session of a", ran)
		}
	})
}

// TestRunOutwaitsAMessageThatDoesNotWakeIt: Run waits out a retry by itself. A
// prompt that comes meanwhile is for the next loop and does not end that wait, so
// it must not make Run claim a session that cannot be claimed yet, and give up.
func TestRunOutwaitsAMessageThatDoesNotWakeIt(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("a", func(_ context.Context, l stint.Loop) (stint.Next, error) {
			if l.Session().At.Attempt == 1 {
				return stint.Next{}, stint.Retry(time.Minute, errBoom)
			}
			return stint.Next{End: &stint.End{}}, nil
		})
		e := r.engine(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(e, a, "")
		go func() {
			<-time.After(10 * time.Second)
			r.message(id, stint.Message{Kind: stint.Prompt, Body: []byte("for the next loop")})
		}()
		s, err := e.Run(r.t.Context(), id)
		if err != nil || s.Status != stint.Completed {
			t.Errorf("Run returned %s and %v", s.Status, err)
		}
		r.closes(e)
	})
}

// TestRunDoesNotOutwaitADeadline: a wait that an answer ends gives the caller back
// what it asked for at once, also when the session has a deadline.
func TestRunDoesNotOutwaitADeadline(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("a", func(context.Context, stint.Loop) (stint.Next, error) {
			return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, nil
		})
		e, begun := r.engine(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"}), time.Now()
		s, err := e.RunNew(r.t.Context(), engine.Request{Agent: a, Limits: &stint.Limits{Deadline: begun.Add(time.Hour)}}, func(engine.Created) {})
		if took := time.Since(begun); err != nil || s.Status != stint.Waiting || took > time.Minute {
			t.Errorf("Run returned %s and %v after %v", s.Status, err, took)
		}
		r.closes(e)
	})
}

// TestAnAgentThatCannotBeMadeIsNotTriedInAHotLoop: a session that cannot be begun
// (its agent's file is gone, its definition is broken) is left alone for a while
// that grows. Given back as it was, it would be claimed at once, as fast as the
// store answers, writing each time.
func TestAnAgentThatCannotBeMadeIsNotTriedInAHotLoop(t *testing.T) {
	inBubble(t, func(r *rig) {
		var tries atomic.Int64
		enough := make(chan struct{})
		n := r.serve(engine.Options{Runtimes: []string{"exec"}, Holder: "r1",
			Resolve: func(stint.AgentRef, json.RawMessage) (engine.Agent, error) {
				if tries.Add(1) == 1000 {
					close(enough)
					<-time.After(time.Hour) // or virtual time would never go on
				}
				return engine.Agent{}, stint.NotFound.Errorf("agent", "its file is gone")
			}})
		a := agent("a", func(context.Context, stint.Loop) (stint.Next, error) { return stint.Next{}, nil })
		a.Runtime = "exec"
		other := r.engine(engine.Options{Holder: "r2"}) // the command line that starts it
		r.start(other, a, "")
		select {
		case <-enough:
			t.Errorf("a thousand claims within a second")
		case <-time.After(time.Second):
		}
		n.stop()
		r.closes(other)
	})
}

// lateAnswer is a store that answers a release a second after it is durable.
type lateAnswer struct{ *mem.Store }

func (s *lateAnswer) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	if !b.Release {
		s.Store.Append(ctx, l, b, done)
		return
	}
	s.Store.Append(ctx, l, b, func(err error) { time.AfterFunc(time.Second, func() { done(err) }) })
}

// TestSuccessorInTheSameEngineKeepsItsLease: a session that was given back may be
// claimed again by the same engine before the driver that gave it back has left.
// That one takes only itself off the books: its successor's lease is renewed and
// its messages are delivered, or the engine would in the end claim its own session
// once more and drive it twice at once.
func TestSuccessorInTheSameEngineKeepsItsLease(t *testing.T) {
	inBubble(t, func(r *rig) {
		acts := 0
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if l.Session().At.Loop == 1 {
				return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, nil
			}
			_, err := step(ctx, l, "act", stint.Idempotent, func() (string, error) {
				acts++
				<-time.After(2 * time.Minute)
				return "x", nil
			})
			return stint.Next{End: &stint.End{}}, err
		})
		n := r.serveOn(&lateAnswer{r.store.Store}, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		for r.row(id).Session.Status != stint.Waiting {
			<-time.After(time.Millisecond)
		}
		r.message(id, stint.Message{Kind: stint.Prompt, Body: []byte("go")}) // the first driver still waits for its answer
		<-time.After(4 * time.Minute)
		s := r.row(id).Session
		n.stop()
		if acts != 1 || s.At.Attempt != 1 || s.Status != stint.Completed {
			t.Errorf("%s; the step ran %d times, attempt %d; nobody died\n%s", s.Status, acts, s.At.Attempt, r.journal(id))
		}
	})
}

// TestTotalCountsLiveLeases: what bounds the sessions of a store is counted from its
// leases, so it holds over runners, and a runner that dies leaves no count behind.
func TestTotalCountsLiveLeases(t *testing.T) {
	inBubble(t, func(r *rig) {
		canceled := 0
		a := agent("slow", slow(stint.Read, &canceled))
		opt := engine.Options{Agents: []engine.Agent{a}, Total: 3, Concurrency: 2}
		opt.Holder = "r1"
		one := r.serve(opt)
		opt.Holder = "r2"
		two := r.serve(opt)
		var ids []stint.ID
		for range 8 {
			ids = append(ids, r.start(one.Engine, a, ""))
		}
		live := func() (n int) {
			for _, id := range ids {
				row := r.row(id)
				if s, _ := row.Status(); s == stint.Running {
					n++
				}
			}
			return n
		}
		<-time.After(5 * time.Second)
		if n := live(); n != 3 {
			t.Errorf("%d sessions run, want 3", n)
		}
		r.store.Kill("r1")
		<-time.After(5 * time.Second)
		if n := live(); n != 2 {
			t.Errorf("%d sessions run after a runner died, want the 2 that the other can drive", n)
		}
		for _, id := range ids {
			r.settles(id, stint.Completed)
		}
		one.stop()
		two.stop()
	})
}

// slowRenew is a store whose renewals arrive five seconds late.
type slowRenew struct{ *mem.Store }

func (s *slowRenew) Renew(ctx context.Context, ttl time.Duration, held []stint.Lease) ([]stint.ID, error) {
	<-time.After(5 * time.Second)
	return s.Store.Renew(ctx, ttl, held)
}

// TestALostLeaseIsNotThatOfTheSuccessor: what is lost is the lease that was to be
// renewed; a session that this engine has claimed anew meanwhile goes on.
func TestALostLeaseIsNotThatOfTheSuccessor(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			l.(stint.Reporter).Progress("busy") // a line to be shown: it is renewed within a second
			_, err := step(ctx, l, "slow", stint.Read, func() (string, error) {
				<-time.After(4 * time.Second)
				return "x", nil
			})
			return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, err
		})
		e, err := engine.New(r.t.Context(), &slowRenew{r.store.Store}, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		if err != nil {
			r.t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(r.t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Serve(ctx) }()
		id := r.start(e, a, "")
		r.settles(id, stint.Waiting)
		r.message(id, stint.Message{Kind: stint.Prompt, Body: []byte("go on")})
		<-time.After(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if s := r.row(id).Session; s.Epoch != 2 {
			t.Errorf("the session came to epoch %d, and nobody took it from its runner\n%s", s.Epoch, r.journal(id))
		}
	})
}

// unrenewed is a store that no renewal reaches, and whose runner does not know.
type unrenewed struct{ *mem.Store }

func (*unrenewed) Renew(context.Context, time.Duration, []stint.Lease) ([]stint.ID, error) {
	return nil, nil
}

// TestASuccessorEndsItsPredecessor: an engine that claims a session whose lease ran
// out under it stops the agent that it still has for it.
func TestASuccessorEndsItsPredecessor(t *testing.T) {
	inBubble(t, func(r *rig) {
		var at atomic.Int32
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			at.Add(1)
			defer at.Add(-1)
			_, err := stint.Do(ctx, l, stint.Step{Name: "slow", Effect: stint.Read}, func(ctx context.Context, _ string) (string, error) {
				select {
				case <-ctx.Done():
					return "", context.Cause(ctx)
				case <-time.After(50 * time.Second):
					return "", nil
				}
			})
			return stint.Next{End: &stint.End{}}, err
		})
		e, err := engine.New(r.t.Context(), &unrenewed{r.store.Store}, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		if err != nil {
			r.t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(r.t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Serve(ctx) }()
		r.start(e, a, "")
		<-time.After(40 * time.Second)
		if n := at.Load(); n > 1 {
			t.Errorf("%d agents drive one session in one process", n)
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
