package sqlite_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/store/sqlite"
)

// loops is how long the sessions of a benchmark are.
const loops = 20

// load is one session that a benchmark writes: no journal rules, only bytes of
// the usual sizes.
type load struct {
	s     stint.Session
	lease stint.Lease
	bytes []byte
	i     int
}

func newLoad(b *testing.B, s *sqlite.Store) *load {
	b.Helper()
	l := &load{bytes: make([]byte, 1024)}
	_, _ = rand.Read(l.bytes)
	_, _ = rand.Read(l.s.ID[:])
	now := time.Now().UTC().Truncate(time.Microsecond)
	l.s.Family, l.s.Name, l.s.Status, l.s.Created = l.s.ID, "bench", stint.Pending, now
	l.s.Agent = stint.AgentRef{Name: "bench", Runtime: "go/bench"}
	l.s.Trigger.Kind = "prompt"
	batch := l.batch(entry{stint.SessionCreated, 200, 0})
	lease, err := s.Create(b.Context(), batch, stint.Claim{Holder: "bench", TTL: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	l.lease = lease
	return l
}

type entry struct {
	kind       stint.Kind
	data, body int
}

// batch makes the batch that follows.
func (l *load) batch(es ...entry) stint.Batch {
	b := stint.Batch{Entries: make([]stint.Entry, 0, len(es))}
	now := time.Now().UTC().Truncate(time.Microsecond)
	for _, e := range es {
		l.s.Head++
		switch e.kind {
		case stint.StepCompleted:
			l.s.At.Step++
		case stint.LoopCompleted:
			l.s.At.Open = false
			l.s.Totals.Loops++
			l.s.Totals.Steps += 3
			l.s.Totals.Usage.Input += 1000
			l.s.Checkpoint = stint.Checkpoint{Seq: l.s.Head, Loop: l.s.At.Loop, At: now, Rank: 3, Weight: 4000, Size: 9000, Sum: stint.Hash(l.bytes[:32])}
		case stint.LoopStarted:
			l.s.At.Loop, l.s.At.Attempt, l.s.At.Step, l.s.At.Open, l.s.At.Since = l.s.At.Loop+1, 1, 0, true, now
		}
		l.s.HeadHash = stint.Hash(l.bytes[32+l.s.Head%64:])
		b.Entries = append(b.Entries, stint.Entry{
			Version: 1, Session: l.s.ID, Seq: l.s.Head, Epoch: 1, Pos: stint.Position{Loop: l.s.At.Loop, Attempt: 1, Step: l.s.At.Step},
			Kind: e.kind, At: now, Actor: stint.ByEngine, Cause: l.s.Head - 1, Hash: l.s.HeadHash, Data: l.bytes[:e.data], Body: l.bytes[:e.body],
		})
	}
	l.s.Updated = now
	b.Session = l.s
	return b
}

// next is what a loop of three steps hands to the store, in two appends. It
// returns the steps in it.
func (l *load) next() (stint.Batch, int) {
	l.i++
	if l.i%2 == 1 {
		return l.batch(entry{stint.StepCompleted, 100, 1024}), 1
	}
	return l.batch(entry{stint.StepCompleted, 100, 256}, entry{stint.StepCompleted, 100, 256},
		entry{stint.LoopCompleted, 200, 500}, entry{stint.LoopStarted, 60, 0}), 2
}

func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("sessions=%d", n), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "stint.db"))
			if _, err := s.Hold(b.Context(), "bench"); err != nil {
				b.Fatal(err)
			}
			benchmark(b, s, n)
		})
	}
}

func benchmark(b *testing.B, s *sqlite.Store, n int) {
	loads := make([]*load, n)
	for i := range loads {
		loads[i] = newLoad(b, s)
	}
	steps := make(chan struct{}, b.N)
	for range b.N {
		steps <- struct{}{}
	}
	close(steps)
	b.ResetTimer()
	before := cpuTime()
	var wg sync.WaitGroup
	for _, l := range loads {
		wg.Go(func() { l.run(b.Context(), b, s, steps) })
	}
	wg.Wait()
	b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(b.N), "cpu-ns/step")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
}

func (l *load) run(ctx context.Context, b *testing.B, s *sqlite.Store, steps <-chan struct{}) {
	done := make(chan error, 1)
	told := func(err error) { done <- err }
	for range steps {
		batch, n := l.next()
		if n == 2 {
			<-steps
		}
		if l.i == 2*loops {
			batch.Release = true
		}
		s.Append(ctx, l.lease, batch, told)
		if err := <-done; err != nil {
			b.Error(err)
			return
		}
		if l.i == 2*loops {
			*l = *newLoad(b, s)
		}
	}
}
