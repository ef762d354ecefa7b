package engine_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/store/sqlite"
)

// TestABigResultBehindASmallOneOnSQLite: making an entry waits for nothing that
// the store's answer to an earlier append waits for. The first body of a session
// that lies outside the journal asks the store for the family's key, which SQLite
// makes in the same goroutine that answers appends; a writer that asked under the
// lock which the answer needs would stop the whole store for all sessions.
func TestABigResultBehindASmallOneOnSQLite(t *testing.T) {
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "stint.db")})
	if err != nil {
		t.Fatal(err)
	}
	big := json.RawMessage(`"` + strings.Repeat("x", 3<<10) + `"`)
	a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		for _, data := range []json.RawMessage{json.RawMessage(`1`), big} {
			if _, err := l.Do(ctx, stint.Step{Name: "r", Effect: stint.Read}, func(context.Context, string) (stint.Result, error) {
				return stint.Result{Data: data}, nil
			}); err != nil {
				return stint.Next{}, err
			}
		}
		return stint.Next{End: &stint.End{}}, nil
	})
	e, err := engine.New(t.Context(), s, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		done := make(chan error, 1)
		go func() {
			_, err := e.RunNew(t.Context(), engine.Request{Agent: a}, func(engine.Created) {})
			done <- err
		}()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("session %d does not end: the store is deadlocked", i)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// keyless is a store that cannot give a key for a while.
type keyless struct {
	*mem.Store
	until time.Time
}

func (k *keyless) FamilyKey(ctx context.Context, family stint.ID) ([]byte, error) {
	if time.Now().Before(k.until) {
		return nil, stint.Unavailable.Errorf("family key", "the disk is full")
	}
	return k.Store.FamilyKey(ctx, family)
}

// TestAnUnavailableKeyDoesNotLoseTheSession: an entry that cannot be made because
// the store is unavailable for a moment is made later, as an append that is refused
// for that reason is tried again. The lease is not lost by it: the session goes on
// in the same attempt, in the same drive.
func TestAnUnavailableKeyDoesNotLoseTheSession(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			_, err := step(ctx, l, "big", stint.Read, text(strings.Repeat("x", 3<<10)))
			return stint.Next{End: &stint.End{}}, err
		})
		k := &keyless{Store: r.store.Store, until: time.Now().Add(2 * time.Second)}
		e := r.engineOn(k, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(e, a, "")
		begun := time.Now()
		s, err := e.Run(r.t.Context(), id)
		if err != nil || s.Status != stint.Completed || s.At.Attempt != 1 || time.Since(begun) > 10*time.Second {
			t.Errorf("%s at attempt %d after %v: %v\n%s", s.Status, s.At.Attempt, time.Since(begun), err, r.journal(id))
		}
		r.closes(e)
	})
}

// door is a store whose Append may be held up, or refused for a passing reason.
type door struct {
	*mem.Store
	mu    sync.Mutex
	n     int
	hold  func(n int) time.Duration // how long the n-th append is kept at the door, as a full queue does
	avail func(n int) bool
}

func (d *door) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	d.mu.Lock()
	d.n++
	n := d.n
	d.mu.Unlock()
	if d.avail != nil && !d.avail(n) {
		done(stint.Unavailable.Errorf("append", "the disk is full"))
		return
	}
	if d.hold != nil {
		if w := d.hold(n); w > 0 {
			<-time.After(w)
		}
	}
	d.Store.Append(ctx, l, b, done)
}

// through runs one session of a to its end on d. It must take one attempt: a second
// means that the runner lost a session that nobody took from it.
func through(t *testing.T, r *rig, d *door, a engine.Agent) {
	t.Helper()
	d.Store = r.store.Store
	n := r.serveOn(d, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
	id := r.start(n.Engine, a, "")
	r.settles(id, stint.Completed)
	n.stop()
	if s := r.row(id).Session; s.At.Attempt != 1 {
		t.Errorf("attempt %d: the runner lost a session that nobody took from it\n%s", s.At.Attempt, r.journal(id))
	}
}

// reads is an agent of n small reads; between is called after each.
func reads(n int, between func(l stint.Loop, i int)) stint.AgentFunc {
	return func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		for i := range n {
			if _, err := l.Do(ctx, stint.Step{Name: "r", Effect: stint.Read}, func(context.Context, string) (stint.Result, error) {
				return stint.Result{Data: json.RawMessage(`1`)}, nil
			}); err != nil {
				return stint.Next{}, err
			}
			between(l, i)
		}
		return stint.Next{End: &stint.End{}}, nil
	}
}

func nothing(stint.Loop, int) {}

// TestLogDoesNotOvertakeAStep: batches reach the store in the order they were made
// in, also where two goroutines flush at once: the loop's, and one that calls Log,
// which may come from any. The store refuses a batch that comes too early as a
// conflict, which costs the lease and leaves once steps in doubt.
func TestLogDoesNotOvertakeAStep(t *testing.T) {
	inBubble(t, func(r *rig) {
		d := &door{hold: func(n int) time.Duration {
			if n == 2 { // the first step's result
				return time.Millisecond
			}
			return 0
		}}
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			logged := make(chan bool)
			go func() {
				<-time.After(500 * time.Microsecond)
				l.(stint.Reporter).Log("stdout", []byte("line\n"))
				close(logged)
			}()
			next, err := reads(2, nothing)(ctx, l)
			<-logged
			return next, err
		})
		through(t, r, d, a)
	})
}

// TestAFullDiskThatHealsLosesNoSession: commits that were refused because the disk
// was full are handed over again one by one, in their order, and whatever is made
// meanwhile waits behind them.
func TestAFullDiskThatHealsLosesNoSession(t *testing.T) {
	t.Run("the first stuck commit is refused once more", func(t *testing.T) {
		inBubble(t, func(r *rig) {
			d := &door{avail: func(n int) bool { return n != 2 && n != 3 }}
			through(t, r, d, agent("a", reads(3, nothing)))
		})
	})
	t.Run("a new commit comes while the stuck ones are on their way", func(t *testing.T) {
		inBubble(t, func(r *rig) {
			d := &door{avail: func(n int) bool { return n != 2 }, hold: func(n int) time.Duration {
				if n == 3 {
					return 10 * time.Millisecond
				}
				return 0
			}}
			through(t, r, d, agent("a", reads(4, func(_ stint.Loop, i int) {
				if i == 1 {
					<-time.After(505 * time.Millisecond) // until the stuck ones are on their way
				}
			})))
		})
	})
}

// tardy is a store whose answers to some appends come later.
type tardy struct {
	*mem.Store
	n      int
	answer func(n int) (after time.Duration, err error)
}

func (s *tardy) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	s.n++
	after, err := s.answer(s.n)
	if after == 0 && err == nil {
		s.Store.Append(ctx, l, b, done)
		return
	}
	time.AfterFunc(after, func() { done(err) })
}

// TestStuckCommitsKeepTheirOrder: what is made while a full disk has not yet answered
// all that it was handed stays behind all of it.
func TestStuckCommitsKeepTheirOrder(t *testing.T) {
	inBubble(t, func(r *rig) {
		full := stint.Unavailable.Errorf("append", "the disk is full")
		d := &tardy{Store: r.store.Store, answer: func(n int) (time.Duration, error) {
			switch n {
			case 2:
				return 100 * time.Millisecond, full
			case 3: // queued behind it, and refused with it, a little later
				return 300 * time.Millisecond, full
			}
			return 0, nil
		}}
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			for i := range 3 {
				if i == 2 { // the third comes between the two answers
					<-time.After(200 * time.Millisecond)
				}
				if _, err := step(ctx, l, "r", stint.Read, text("1")); err != nil {
					return stint.Next{}, err
				}
			}
			return stint.Next{End: &stint.End{}}, nil
		})
		e, err := engine.New(r.t.Context(), d, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		if err != nil {
			r.t.Fatal(err)
		}
		id := r.start(e, a, "")
		if _, err := e.Run(r.t.Context(), id); err != nil {
			t.Error(err)
		}
		if s := r.row(id).Session; s.Epoch != 1 {
			t.Errorf("the runner lost a session that nobody took from it\n%s", r.journal(id))
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// crossing is a store whose refusal of the second append crosses the third on its way.
type crossing struct {
	*mem.Store
	n      int
	refuse func(error)
}

func (s *crossing) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	switch s.n++; s.n {
	case 2:
		s.refuse = done
		return
	case 3:
		s.refuse(stint.Unavailable.Errorf("append", "the disk is full"))
	}
	s.Store.Append(ctx, l, b, done)
}

// TestARefusalThatCrossesTheNextCommit: a commit that was on its way when the one
// before it was refused stays behind it, also where the store finds that it does not
// follow.
func TestARefusalThatCrossesTheNextCommit(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			for range 3 {
				if _, err := step(ctx, l, "r", stint.Read, text("1")); err != nil {
					return stint.Next{}, err
				}
			}
			return stint.Next{End: &stint.End{}}, nil
		})
		e, err := engine.New(r.t.Context(), &crossing{Store: r.store.Store}, engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		if err != nil {
			r.t.Fatal(err)
		}
		id := r.start(e, a, "")
		if _, err := e.Run(r.t.Context(), id); err != nil {
			t.Error(err)
		}
		if s := r.row(id).Session; s.Epoch != 1 {
			t.Errorf("the runner lost a session that nobody took from it\n%s", r.journal(id))
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
