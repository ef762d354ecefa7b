package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
)

// has reports whether the journal has an entry of a kind about a step.
func (r *rig) has(id stint.ID, kind stint.Kind, at int) bool {
	r.t.Helper()
	return slices.ContainsFunc(r.entries(id), func(e stint.Entry) bool { return e.Kind == kind && e.Pos.Step == at })
}

// runs drives one session of a to where it stops.
func (r *rig) runs(store stint.Store, a engine.Agent, req engine.Request) stint.Session {
	r.t.Helper()
	req.Agent = a
	e := r.engineOn(store, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
	defer r.closes(e)
	s, err := e.RunNew(r.t.Context(), req, func(engine.Created) {})
	if err != nil {
		r.t.Error(err)
	}
	return s
}

// TestAnIntentIsDurableBeforeItsEffect: whoever begins the loop again after a crash
// in the middle of a once step has to find that it was begun.
func TestAnIntentIsDurableBeforeItsEffect(t *testing.T) {
	inBubble(t, func(r *rig) {
		recorded := map[string]bool{}
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			id := l.Session().ID
			if _, err := step(ctx, l, "alone", stint.Once, func() (string, error) {
				recorded["alone"] = r.has(id, stint.StepRequested, 1)
				return "x", nil
			}); err != nil {
				return stint.Next{}, err
			}
			var mu sync.Mutex
			_, err := l.DoAll(ctx, []stint.Step{{Name: "first"}, {Name: "second"}}, func(_ context.Context, i int, _ string) (stint.Result, error) {
				mu.Lock()
				defer mu.Unlock()
				for _, e := range r.entries(id) {
					if e.Kind == stint.StepRequested && e.Pos.Step == 2 && e.Pos.Sub == i+1 {
						recorded[[]string{"first", "second"}[i]] = true
					}
				}
				return stint.Result{}, nil
			})
			return stint.Next{End: &stint.End{}}, err
		})
		r.runs(&late{Store: r.store.Store}, a, engine.Request{})
		for _, name := range []string{"alone", "first", "second"} {
			if !recorded[name] {
				t.Errorf("the step %q acted before its intent was durable", name)
			}
		}
	})
}

// TestAToolWaitsForTheAnswerThatAskedForIt: a model that is asked again answers
// otherwise. So no tool, and be it one that only reads, is called for an answer that
// a crash can take back.
func TestAToolWaitsForTheAnswerThatAskedForIt(t *testing.T) {
	inBubble(t, func(r *rig) {
		recorded := false
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			answers := func(context.Context, string) (stint.Result, error) {
				return stint.Result{Data: json.RawMessage(`"look it up"`)}, nil
			}
			if _, err := l.Do(ctx, stint.Step{Name: "ask", Kind: stint.Model, Effect: stint.Read}, answers); err != nil {
				return stint.Next{}, err
			}
			_, err := l.Do(ctx, stint.Step{Name: "look up", Kind: stint.Tool, Effect: stint.Read}, func(context.Context, string) (stint.Result, error) {
				recorded = r.has(l.Session().ID, stint.StepCompleted, 1)
				return stint.Result{}, nil
			})
			return stint.Next{End: &stint.End{}}, err
		})
		r.runs(&late{Store: r.store.Store}, a, engine.Request{})
		if !recorded {
			t.Error("the tool was called before the answer was durable")
		}
	})
}

// batches is a store that keeps what it was given.
type batches struct {
	*mem.Store
	mu  sync.Mutex
	all []stint.Batch
}

func (s *batches) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	s.mu.Lock()
	s.all = append(s.all, b)
	s.mu.Unlock()
	s.Store.Append(ctx, l, b, done)
}

// TestTheEndIsOneCommit: the last state, the result, the closing entry and the lease
// that is given back become durable together. A crash leaves all of them or none.
func TestTheEndIsOneCommit(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("a", func(context.Context, stint.Loop) (stint.Next, error) {
			return stint.Next{State: json.RawMessage(`{"n":1}`), End: &stint.End{Result: json.RawMessage(`1`)}}, nil
		})
		store := &batches{Store: r.store.Store}
		s := r.runs(store, a, engine.Request{})
		if row := r.row(s.ID); row.Session.Status != stint.Completed || row.Live {
			t.Errorf("the session is %s, live: %v", row.Session.Status, row.Live)
		}
		last := store.all[len(store.all)-1]
		var kinds []stint.Kind
		for _, e := range last.Entries {
			kinds = append(kinds, e.Kind)
		}
		if !last.Release || !slices.Contains(kinds, stint.LoopCompleted) || !slices.Contains(kinds, stint.SessionEnded) {
			t.Errorf("the last commit holds %v and gives the lease back: %v", kinds, last.Release)
		}
	})
}

// TestNobodyIsToldBeforeItIsDurable: what an observer is told of, and what a caller gets
// back, no crash takes back.
func TestNobodyIsToldBeforeItIsDurable(t *testing.T) {
	inBubble(t, func(r *rig) {
		var ran []string
		a, told := agent("counter", counter(3, &ran)), 0
		durable := func(what string, s stint.Session) {
			if row, err := r.store.Session(r.t.Context(), s.ID); err != nil || row.Session.Head < s.Head {
				t.Errorf("%s tells of entry %d, the store has %d: %v", what, s.Head, row.Session.Head, err)
			}
		}
		e := r.engineOn(&late{Store: r.store.Store}, engine.Options{Agents: []engine.Agent{a}, Holder: "r1", Observe: func(s stint.Session) {
			told++
			durable("the observer", s)
		}})
		s, err := e.RunNew(r.t.Context(), engine.Request{Agent: a}, func(engine.Created) {})
		if err != nil || s.Status != stint.Completed || told < 3 {
			t.Errorf("%s after %d observations: %v", s.Status, told, err)
		}
		durable("the caller", s)
		<-time.After(time.Minute)
		r.closes(e)
	})
}

// TestKeys: an agent sends the world the keys that a reader of the journal works
// out, one for each member of a group, and others on a new line.
func TestKeys(t *testing.T) {
	inBubble(t, func(r *rig) {
		keys := map[stint.Position]string{}
		var mu sync.Mutex
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			at := stint.Position{Line: l.Session().At.Line, Loop: l.Session().At.Loop}
			note := func(step, sub int, key string) {
				mu.Lock()
				defer mu.Unlock()
				at.Step, at.Sub = step, sub
				keys[at] = key
			}
			if _, err := l.Do(ctx, stint.Step{Name: "alone", Effect: stint.Idempotent}, func(_ context.Context, key string) (stint.Result, error) {
				note(1, 0, key)
				return stint.Result{}, nil
			}); err != nil {
				return stint.Next{}, err
			}
			_, err := l.DoAll(ctx, []stint.Step{{Name: "x", Effect: stint.Idempotent}, {Name: "y"}}, func(_ context.Context, i int, key string) (stint.Result, error) {
				note(2, i+1, key)
				return stint.Result{}, nil
			})
			if l.Session().At.Loop == 2 {
				return stint.Next{End: &stint.End{}}, err
			}
			return stint.Next{}, err
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		r.settles(id, stint.Completed)
		from := 1
		r.send(id, stint.Restart, journal.Command{From: &from})
		<-time.After(time.Second)
		r.settles(id, stint.Completed)
		n.stop()
		if len(keys) != 9 {
			t.Errorf("%d steps, want 3 in each of loop 1, loop 2 and loop 2 of the new line", len(keys))
		}
		seen := map[string]stint.Position{}
		for at, key := range keys {
			if want := journal.Key(id, at); key != want {
				t.Errorf("step %v of line %d had the key %s, not %s", at, at.Line, key, want)
			}
			if other, twice := seen[key]; twice {
				t.Errorf("steps %+v and %+v had one key", other, at)
			}
			seen[key] = at
		}
	})
}

// TestAStepThatIsLeftOutIsSeen: an agent whose code changed between two attempts and
// that ends the loop without a step which the journal has does not get away with it:
// what that step did would be in no state.
func TestAStepThatIsLeftOutIsSeen(t *testing.T) {
	inBubble(t, func(r *rig) {
		tries := 0
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			tries++
			if tries == 1 {
				if _, err := step(ctx, l, "pay", stint.Once, text("paid")); err != nil {
					return stint.Next{}, err
				}
				return stint.Next{}, stint.Unavailable.Errorf("loop", "something else")
			}
			return stint.Next{End: &stint.End{}}, nil
		})
		s := r.runs(r.store, a, engine.Request{})
		if s.Status != stint.Waiting || s.Wait.For != stint.ForDoubt || s.Wait.Step.Step != 1 {
			t.Errorf("%s after %d tries; the journal has a step that the agent left out\n%s", s.Status, tries, r.journal(s.ID))
		}
	})
}

// slowDisk is a store that takes the bytes of an entry a while after it was handed over,
// and then keeps its own copy, as one that writes files does.
type slowDisk struct {
	*mem.Store
	mu   sync.Mutex
	last chan struct{}
}

func (s *slowDisk) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	s.mu.Lock()
	before, mine := s.last, make(chan struct{})
	s.last = mine
	s.mu.Unlock()
	go func() {
		defer close(mine)
		<-time.After(time.Second)
		if before != nil {
			<-before
		}
		b.Entries = slices.Clone(b.Entries)
		for i := range b.Entries {
			b.Entries[i].Body = bytes.Clone(b.Entries[i].Body)
		}
		s.Store.Append(ctx, l, b, done)
	}()
}

// TestAnAgentMayUseItsBuffersAgain: what an agent returned is the session's. It may
// write over its buffers at once, and neither the journal nor the next state's delta
// is harmed; that the journal is sound is checked at the end of every bubble.
func TestAnAgentMayUseItsBuffersAgain(t *testing.T) {
	inBubble(t, func(r *rig) {
		state, result := make([]byte, 400), make([]byte, 20)
		fill := func(b []byte, c byte) []byte {
			copy(b, `"`+string(bytes.Repeat([]byte{c}, len(b)-2))+`"`)
			return b
		}
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			for i := range byte(3) {
				if _, err := l.Do(ctx, stint.Step{Name: "s", Effect: stint.Read}, func(context.Context, string) (stint.Result, error) {
					return stint.Result{Data: fill(result, 'p'+i)}, nil
				}); err != nil {
					return stint.Next{}, err
				}
				fill(result, 'z')
			}
			loop := l.Session().At.Loop
			if copy(fill(state, 'a')[1:], bytes.Repeat([]byte{'b'}, 10*loop)); loop == 3 {
				return stint.Next{State: state, End: &stint.End{}}, nil
			}
			return stint.Next{State: state}, nil
		})
		for _, store := range []stint.Store{&slowDisk{Store: r.store.Store}, r.store.Store} {
			s := r.runs(store, a, engine.Request{})
			got, err := journal.ReadState(s.Checkpoint, engine.Source(t.Context(), r.store, s.ID, s.Family))
			if err != nil || !bytes.Equal(got, state) {
				t.Errorf("the last state reads back as %.50s: %v", got, err)
			}
			if s.Checkpoint.Rank != 2 {
				t.Errorf("the last state is of rank %d: this test is about deltas", s.Checkpoint.Rank)
			}
			r.verifies(s.ID)
		}
	})
}

// TestDedupe: the same request again leads to the session that the first one made;
// another request under its key is refused.
func TestDedupe(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("a", func(context.Context, stint.Loop) (stint.Next, error) { return stint.Next{End: &stint.End{}}, nil })
		e := r.engine(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		defer r.closes(e)
		req := engine.Request{Agent: a, Input: []byte("order 7"), Dedupe: "order-7"}
		first, err := e.Start(t.Context(), req)
		if err != nil || first.Found {
			t.Fatalf("%+v, %v", first, err)
		}
		again, err := e.Start(t.Context(), req)
		if err != nil || !again.Found || again.ID != first.ID {
			t.Errorf("the same request again leads to %+v, %v", again, err)
		}
		begun := false
		if s, err := e.RunNew(t.Context(), req, func(c engine.Created) { begun = c.Found }); err != nil || !begun || s.ID != first.ID || s.Status != stint.Pending {
			t.Errorf("to run it again leads to %s, %s, %v", s.ID, s.Status, err)
		}
		req.Input = []byte("order 8")
		if other, err := e.Start(t.Context(), req); stint.CodeOf(err) != stint.Conflict {
			t.Errorf("another request under its key leads to %+v, %v", other, err)
		}
	})
}
