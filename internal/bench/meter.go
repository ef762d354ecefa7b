package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-dev/stint"
)

// meter is a store that notes how long it took from a step's beginning until it
// was durable.
type meter struct {
	stint.Store
	mu    sync.Mutex
	began map[stint.ID]*marks
	took  []time.Duration
}

// marks are the times at which the steps of a session's loop began.
type marks struct {
	at [StepsPerLoop + 1]atomic.Int64
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
	defer m.mu.Unlock()
	marks := m.began[id]
	if marks == nil {
		return
	}
	for i := range es {
		if es[i].Kind == stint.StepCompleted && es[i].Pos.Step <= StepsPerLoop {
			m.took = append(m.took, time.Duration(now-marks.at[es[i].Pos.Step].Load()))
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

func (m *meter) quantiles() (p50, p99 float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.took) == 0 {
		return 0, 0
	}
	slices.Sort(m.took)
	at := func(q float64) float64 { return float64(m.took[int(q*float64(len(m.took)-1))].Nanoseconds()) / 1e3 }
	return at(.5), at(.99)
}

func modelResult(loop int, unique bool) json.RawMessage {
	return fmt.Appendf(nil, `{"role":"assistant","loop":%d,"content":"%s","tool":"search"}`, loop, text(960, unique))
}

func toolResult(unique bool) json.RawMessage { return fmt.Appendf(nil, `"%s"`, text(254, unique)) }

// text is n bytes of JSON-safe text that does not compress to nothing: always the
// same, or never.
func text(n int, unique bool) []byte {
	const abc = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ."
	src := rand.NewPCG(1, uint64(n))
	if unique {
		src = rand.NewPCG(rand.Uint64(), rand.Uint64())
	}
	b := make([]byte, n)
	for i := 0; i < n; {
		for v, k := src.Uint64(), 0; k < 10 && i < n; k, i = k+1, i+1 {
			b[i] = abc[v&63]
			v >>= 6
		}
	}
	return b
}
