package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// halfBlind is a store that cannot do one kind of read until a time.
type halfBlind struct {
	*mortal
	what   string
	until  time.Time
	claims atomic.Int64
	reads  atomic.Int64
}

func (s *halfBlind) blind(what string) error {
	if what == s.what && time.Now().Before(s.until) {
		s.reads.Add(1)
		return stint.Internal.Errorf("read", "the disk does not answer")
	}
	return nil
}

func (s *halfBlind) Entries(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
	if err := s.blind("entries"); err != nil {
		return nil, err
	}
	return s.mortal.Entries(ctx, r)
}

func (s *halfBlind) Inbox(ctx context.Context, id stint.ID) ([]stint.Message, error) {
	if err := s.blind("inbox"); err != nil {
		return nil, err
	}
	return s.mortal.Inbox(ctx, id)
}

func (s *halfBlind) Session(ctx context.Context, id stint.ID) (stint.Row, error) {
	if err := s.blind("session"); err != nil {
		return stint.Row{}, err
	}
	return s.mortal.Session(ctx, id)
}

func (s *halfBlind) Claim(ctx context.Context, c stint.Claim) ([]stint.Lease, error) {
	if s.claims.Add(1)%1000 == 0 { // or virtual time would never go on
		<-time.After(time.Second)
	}
	return s.mortal.Claim(ctx, c)
}

// TestReadsThatFailAreNoHotLoop has a session that waits, or that has ended, a message
// for it, and a store that cannot be read for five minutes.
func TestReadsThatFailAreNoHotLoop(t *testing.T) {
	one := 1
	for name, c := range map[string]struct {
		what string
		ends bool
		kind stint.MessageKind
		c    journal.Command
		done func(s *stint.Session) bool
	}{
		"a restart of an ended one, without entries":  {"entries", true, stint.Restart, journal.Command{From: &one}, func(s *stint.Session) bool { return s.At.Line == 1 }},
		"a restart of an ended one, without an inbox": {"inbox", true, stint.Restart, journal.Command{From: &one}, func(s *stint.Session) bool { return s.At.Line == 1 }},
		"a restart of a waiting one":                  {"entries", false, stint.Restart, journal.Command{From: &one}, func(s *stint.Session) bool { return s.At.Line == 1 }},
		"a prompt without an inbox":                   {"inbox", false, stint.Prompt, journal.Command{}, func(s *stint.Session) bool { return s.Checkpoint.Loop > 2 }},
		"a pause of a waiting one":                    {"inbox", false, stint.Pause, journal.Command{}, func(s *stint.Session) bool { return s.Wait.For == stint.ForOperator }},
		"a prompt without the session":                {"session", false, stint.Prompt, journal.Command{}, func(s *stint.Session) bool { return s.Checkpoint.Loop > 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				a := agent("a", func(_ context.Context, l stint.Loop) (stint.Next, error) {
					switch {
					case l.Session().At.Loop < 2:
						return stint.Next{}, nil
					case c.ends:
						return stint.Next{End: &stint.End{}}, nil
					}
					return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, nil
				})
				n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(n.Engine, a, "")
				<-time.After(time.Minute)
				n.stop()
				r.send(id, c.kind, c.c)
				s := &halfBlind{mortal: r.store, what: c.what, until: time.Now().Add(5 * time.Minute)}
				e := r.engineOn(s, engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
				ctx, cancel := context.WithCancel(r.t.Context())
				served := make(chan error, 1)
				go func() { served <- e.Serve(ctx) }()
				<-time.After(6 * time.Minute)
				// Serve itself asks once a second. What a claim that fails adds is at most
				// some more of those, and it is over soon after the store answers again.
				if claims, reads := s.claims.Load(), s.reads.Load(); claims > 500 || reads > 400 || reads == 0 {
					t.Errorf("%d claims and %d reads that failed in six minutes", claims, reads)
				}
				if ses := r.row(id).Session; !c.done(&ses) {
					t.Errorf("a minute after the store answers again it is %s on line %d\n%s", ses.Status, ses.At.Line, r.journal(id))
				}
				cancel()
				if err := <-served; err != nil {
					t.Error(err)
				}
				r.closes(e)
			})
		})
	}
}

// TestADrainDoesNotWaitForTheRest is a runner that is told to end while it holds on to
// a session that it cannot read.
func TestADrainDoesNotWaitForTheRest(t *testing.T) {
	inBubble(t, func(r *rig) {
		var ran []string
		a := agent("a", counter(2, &ran))
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		r.settles(id, stint.Completed)
		n.stop()
		one := 1
		r.send(id, stint.Restart, journal.Command{From: &one})
		s := &halfBlind{mortal: r.store, what: "entries", until: time.Now().Add(time.Hour)}
		e := r.engineOn(s, engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
		ctx, cancel := context.WithCancel(r.t.Context())
		served := make(chan error, 1)
		go func() { served <- e.Serve(ctx) }()
		for !r.row(id).Live {
			<-time.After(time.Millisecond)
		}
		<-time.After(30 * time.Second) // the rests have grown
		for !r.row(id).Live {
			<-time.After(time.Millisecond)
		}
		begun := time.Now()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 100*time.Millisecond || r.row(id).Live {
			t.Errorf("the drain took %v; held: %v", took, r.row(id).Live)
		}
		// Whoever settles it is told at once.
		begun = time.Now()
		if err := e.Settle(r.t.Context(), id); err == nil || time.Since(begun) > 100*time.Millisecond {
			t.Errorf("settle gave %v after %v", err, time.Since(begun))
		}
		r.closes(e)
	})
}
