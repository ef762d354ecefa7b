package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/model"
)

// Active is what sessions cost a process that runs them, while each waits for an answer
// of its model.
type Active struct {
	Sessions   int     `json:"sessions"`
	KiBEach    float64 `json:"kib_each"`   // of the heap that lives, and of stacks
	Transcript float64 `json:"kib_prompt"` // of it, what the session was told
	Goroutines float64 `json:"goroutines"` // for each session
	HeapMB     float64 `json:"heap_mb"`    // in all
}

// MeasureActive runs n sessions of a language model agent, each told of about 1 KiB, until
// all of them wait for their model, and looks at the memory that they keep alive.
func MeasureActive(ctx context.Context, st stint.Store, n int) (Active, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &hanging{all: make(chan struct{}), n: int64(n)}
	loop, err := llm.New(llm.Spec{Model: m, System: "You are measured."})
	if err != nil {
		return Active{}, err
	}
	agent := engine.Agent{Name: "bench", Loop: loop}
	e, err := engine.New(ctx, st, engine.Options{Agents: []engine.Agent{agent}, Concurrency: n})
	if err != nil {
		return Active{}, err
	}
	defer e.Close()
	before, routines := alive(), runtime.NumGoroutine()
	failed := make(chan error, n)
	var wg sync.WaitGroup
	const told = 1024
	for range n {
		wg.Go(func() {
			req := request(agent)
			req.Input = text(told)
			if _, err := e.RunNew(ctx, req, func(engine.Created) {}); err != nil && ctx.Err() == nil {
				failed <- err
			}
		})
	}
	select {
	case <-m.all:
	case err = <-failed:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	out := Active{Sessions: n, Transcript: told / 1024.0}
	if err == nil {
		now := alive()
		out.HeapMB = float64(now) / (1 << 20)
		out.KiBEach = float64(now-before) / 1024 / float64(n)
		out.Goroutines = float64(runtime.NumGoroutine()-routines) / float64(n)
	}
	cancel()
	wg.Wait()
	return out, err
}

// alive is the bytes of what the heap keeps alive, and of stacks.
func alive() int64 {
	runtime.GC()
	runtime.GC() // what finalizers let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// hanging is a model that answers when its caller gives up.
type hanging struct {
	asked atomic.Int64
	n     int64
	all   chan struct{} // closed when n have asked
}

// Name is the model's.
func (h *hanging) Name() string { return "hanging" }

// Call waits for the end of ctx.
func (h *hanging) Call(ctx context.Context, r *model.Request, _ func(model.Delta)) (*model.Answer, error) {
	if b, err := json.Marshal(r); err != nil || len(b) == 0 {
		return nil, fmt.Errorf("the request cannot be sent: %w", err)
	}
	if h.asked.Add(1) == h.n {
		close(h.all)
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}
