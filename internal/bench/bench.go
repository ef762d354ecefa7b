// Package bench runs the session workload on a store and measures it: sessions of
// some loops, each one model step of about 1 KiB and two tool steps of 256 bytes,
// with the state persisted between loops.
package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// StepsPerLoop is one model step and two tool steps.
const StepsPerLoop = 3

// Workload says what to run.
type Workload struct {
	Concurrency int
	Sessions    int           // in all, or
	For         time.Duration // as many as fit; the ones under way at its end are finished, not counted
	Loops       int
	Effect      stint.Effect // of the tool steps
	Grow        int          // bytes by which the state grows each loop; 0: a counter
	Unique      bool         // bodies that no other step has, so that no compression folds them
}

// Row is what one run measured.
type Row struct {
	Concurrency     int     `json:"concurrency"`
	Sessions        int     `json:"sessions"`
	Steps           int64   `json:"steps"`
	Seconds         float64 `json:"seconds"`
	StepsPerS       float64 `json:"steps_per_s"`
	StepP50us       float64 `json:"step_p50_us"` // from Do to durable
	StepP99us       float64 `json:"step_p99_us"`
	CPUusPerStep    float64 `json:"cpu_us_per_step"`
	BytesPerSession float64 `json:"bytes_per_session"`
	RSSMB           float64 `json:"rss_mb"`
}

// Sizer is implemented by stores that can say how many bytes they take, after
// whatever checkpoint they offer.
type Sizer interface {
	Bytes(ctx context.Context) (int64, error)
}

// Run runs w on the store and leaves the sessions in it.
func Run(ctx context.Context, st stint.Store, w Workload) (Row, error) {
	m := &meter{Store: st, began: map[stint.ID]*marks{}}
	r := &runner{w: w, m: m}
	agent := engine.Agent{Name: "bench", Loop: stint.AgentFunc(r.loop)}
	e, err := engine.New(ctx, m, engine.Options{Agents: []engine.Agent{agent}, Concurrency: w.Concurrency})
	if err != nil {
		return Row{}, err
	}
	defer e.Close()
	before, err := size(ctx, st)
	if err != nil {
		return Row{}, err
	}
	row, err := r.measure(ctx, e, agent)
	if err != nil {
		return row, err
	}
	after, err := size(ctx, st)
	if err != nil {
		return row, err
	}
	if all := r.finished.Load(); all > 0 {
		row.BytesPerSession = float64(after-before) / float64(all)
	}
	return row, nil
}

func size(ctx context.Context, st stint.Store) (int64, error) {
	if s, ok := st.(Sizer); ok {
		return s.Bytes(ctx)
	}
	return 0, nil
}

// runner is one run.
type runner struct {
	w        Workload
	m        *meter
	begun    atomic.Int64
	finished atomic.Int64
	steps    atomic.Int64
	failed   atomic.Pointer[error]
}

func (r *runner) measure(ctx context.Context, e *engine.Engine, a engine.Agent) (Row, error) {
	stop := make(chan struct{})
	if r.w.For > 0 {
		t := time.AfterFunc(r.w.For, func() { close(stop) })
		defer t.Stop()
	}
	cpu, t0 := cpuTime(), time.Now()
	var counted atomic.Int64
	var took atomic.Int64
	var wg sync.WaitGroup
	for range r.w.Concurrency {
		wg.Go(func() {
			for r.more(stop) {
				if err := r.session(ctx, e, a); err != nil {
					r.failed.CompareAndSwap(nil, &err)
					return
				}
			}
			counted.CompareAndSwap(0, r.steps.Load()) // from here on fewer than asked for run
			took.CompareAndSwap(0, int64(time.Since(t0)))
		})
	}
	wg.Wait()
	if err := r.failed.Load(); err != nil {
		return Row{}, *err
	}
	steps, el := counted.Load(), time.Duration(took.Load()).Seconds()
	if r.w.For == 0 {
		steps, el = r.steps.Load(), time.Since(t0).Seconds()
	}
	row := Row{Concurrency: r.w.Concurrency, Sessions: int(r.finished.Load()), Steps: r.steps.Load(), Seconds: el,
		StepsPerS: float64(steps) / el, CPUusPerStep: (cpuTime() - cpu).Seconds() * 1e6 / float64(max(1, r.steps.Load())), RSSMB: rss()}
	row.StepP50us, row.StepP99us = r.m.quantiles()
	return row, nil
}

func (r *runner) more(stop chan struct{}) bool {
	if r.failed.Load() != nil {
		return false
	}
	if r.w.For > 0 {
		select {
		case <-stop:
			return false
		default:
			return true
		}
	}
	return r.begun.Add(1) <= int64(r.w.Sessions)
}

func (r *runner) session(ctx context.Context, e *engine.Engine, a engine.Agent) error {
	var id stint.ID
	s, err := e.RunNew(ctx, engine.Request{Agent: a, Name: "bench", Trigger: stint.Trigger{Kind: "bench"}, Limits: &stint.Limits{}}, func(c engine.Created) {
		id = c.ID
	})
	r.m.forget(id)
	if err != nil {
		return err
	}
	if s.Status != stint.Completed {
		return stint.Internal.Errorf("bench", "session %s ended %s: %s", id, s.Status, s.Reason)
	}
	r.finished.Add(1)
	return nil
}

// loop is the agent of the workload.
func (r *runner) loop(ctx context.Context, l stint.Loop) (stint.Next, error) {
	s := l.Session()
	n := s.Checkpoint.Loop + 1
	marks := r.m.marks(s.ID)
	if err := r.step(ctx, l, marks, 1, stint.Step{Name: "model", Kind: stint.Model, Effect: stint.Read}, modelResult(n, r.w.Unique)); err != nil {
		return stint.Next{}, err
	}
	for i := range 2 {
		if err := r.step(ctx, l, marks, 2+i, stint.Step{Name: "tool", Kind: stint.Tool, Effect: r.w.Effect}, toolResult(r.w.Unique)); err != nil {
			return stint.Next{}, err
		}
	}
	next := stint.Next{State: r.state(l.State(), n)}
	if n >= r.w.Loops {
		next.End = &stint.End{}
	}
	return next, nil
}

func (r *runner) step(ctx context.Context, l stint.Loop, m *marks, n int, s stint.Step, result json.RawMessage) error {
	m.begin(n)
	_, err := l.Do(ctx, s, func(context.Context, string) (stint.Result, error) { return stint.Result{Data: result}, nil })
	if err == nil {
		r.steps.Add(1)
	}
	return err
}

// state is a counter, or a transcript that grows at its end.
func (r *runner) state(old json.RawMessage, n int) json.RawMessage {
	if r.w.Grow == 0 {
		return fmt.Appendf(nil, `{"loop":%d}`, n)
	}
	if len(old) == 0 {
		old = json.RawMessage(`{"log":[]}`)
	}
	out := slices.Clone(old[:len(old)-2])
	if n > 1 {
		out = append(out, ',')
	}
	out = append(out, '"')
	out = append(out, text(max(0, r.w.Grow-3), true)...)
	return append(out, `"]}`...)
}
