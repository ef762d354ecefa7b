package bench

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-dev/stint"
)

// meter is a store that counts the steps that became durable, and how long each
// took from its beginning until then.
type meter struct {
	stint.Store
	steps atomic.Int64
	loops atomic.Int64
	took  histogram
	mu    sync.Mutex
	began map[stint.ID]*marks
}

func newMeter(st stint.Store) *meter { return &meter{Store: st, began: map[stint.ID]*marks{}} }

// watched is a meter on a store that tells of changes.
type watched struct {
	*meter
	stint.Watcher
}

// store is the meter as the engine shall see it: with the abilities of the store
// that is measured, as an engine that has to poll costs something else.
func (m *meter) store() stint.Store {
	if w, ok := m.Store.(stint.Watcher); ok {
		return watched{m, w}
	}
	return m
}

// marks are the times at which the steps of a session's loop began.
type marks struct {
	at      [StepsPerLoop + 1]atomic.Int64
	durable chan struct{} // gets a value for each step that is; nil: nobody waits for it
}

func (m *marks) begin(step int) { m.at[step].Store(time.Now().UnixNano()) }

func (m *meter) marks(id stint.ID) *marks {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.began[id] == nil {
		m.began[id] = &marks{}
	}
	return m.began[id]
}

func (m *meter) forget(id stint.ID) {
	m.mu.Lock()
	delete(m.began, id)
	m.mu.Unlock()
}

// Append implements [stint.Writer].
func (m *meter) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	m.Store.Append(ctx, l, b, func(err error) {
		if err == nil {
			m.note(l.Session, b.Entries)
		}
		done(err)
	})
}

func (m *meter) note(id stint.ID, es []stint.Entry) {
	now := time.Now().UnixNano()
	m.mu.Lock()
	marks := m.began[id]
	m.mu.Unlock()
	if marks == nil {
		return
	}
	for i := range es {
		if es[i].Kind == stint.LoopCompleted {
			m.loops.Add(1)
		}
		if es[i].Kind != stint.StepCompleted {
			continue
		}
		m.steps.Add(1)
		// The numbers of steps begin anew with each loop, and no loop begins before
		// the one before it is durable: a mark belongs to one step alone.
		if step := es[i].Pos.Step; step <= StepsPerLoop && marks.at[step].Load() > 0 {
			m.took.add(time.Duration(now - marks.at[step].Load()))
		}
		if marks.durable != nil {
			marks.durable <- struct{}{}
		}
	}
}

// Hold lets the engine take the store's runner lock through the meter.
func (m *meter) Hold(ctx context.Context, holder string) (func() error, error) {
	h, ok := m.Store.(interface {
		Hold(ctx context.Context, holder string) (func() error, error)
	})
	if !ok {
		return func() error { return nil }, nil
	}
	return h.Hold(ctx, holder)
}

// histogram counts lengths of time in classes that are 1.6 % wide at most, so that
// it takes the same memory however long a run is. Its methods may be called from
// any goroutine.
type histogram struct{ n [64 * classes]atomic.Int64 }

// classes is how many there are for each power of two.
const classes = 64

func (h *histogram) add(d time.Duration) { h.n[class(max(0, d))].Add(1) }

// class returns the class of d: the places of its six bits after the first one.
func class(d time.Duration) int {
	v := uint64(d)
	if v < classes {
		return int(v)
	}
	shift := bits.Len64(v) - 7
	return (shift+1)*classes + int(v>>shift)&(classes-1)
}

// middle is the length in the middle of a class, in nanoseconds.
func middle(i int) float64 {
	if i < classes {
		return float64(i)
	}
	shift := i/classes - 1
	return (float64(classes+i%classes) + .5) * float64(uint64(1)<<shift)
}

func (h *histogram) reset() {
	for i := range h.n {
		h.n[i].Store(0)
	}
}

// us is the q-quantile in microseconds; 0 if there is nothing.
func (h *histogram) us(q float64) float64 {
	var all, seen int64
	for i := range h.n {
		all += h.n[i].Load()
	}
	at := int64(q * float64(all-1))
	for i := range h.n {
		if seen += h.n[i].Load(); seen > at {
			return middle(i) / 1e3
		}
	}
	return 0
}
