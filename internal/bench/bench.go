// Package bench runs the session workload on a store and measures it: sessions of
// some loops, each one model step of about 1 KiB and two tool steps of 256 bytes,
// with the state persisted between loops. What needs a process of its own, to be
// killed or to be looked at from outside, runs in a copy of this program: see
// [Child].
package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// Row is what one run measured.
type Row struct {
	Concurrency     int     `json:"concurrency"`
	Effect          string  `json:"effect"` // of the tool steps
	Loops           int     `json:"loops"`  // a session
	Sessions        int     `json:"sessions"`
	Steps           int64   `json:"steps"`   // durable ones in the measured time
	Seconds         float64 `json:"seconds"` // that were measured
	StepsPerS       float64 `json:"steps_per_s"`
	LoopsPerS       float64 `json:"loops_per_s"` // durable ones
	StepP50us       float64 `json:"step_p50_us"` // from Do to durable
	StepP99us       float64 `json:"step_p99_us"`
	CPUusPerStep    float64 `json:"cpu_us_per_step"`
	BytesPerSession float64 `json:"bytes_per_session"` // by which the file grew; 0: the store cannot tell
	RSSMB           float64 `json:"rss_mb"`            // 0: the system cannot tell
}

// Sizer is implemented by stores that can say how many bytes they take, after
// whatever checkpoint they offer.
type Sizer interface {
	Bytes(ctx context.Context) (int64, error)
}

// Run runs w on the store and leaves the sessions in it. All of them have ended
// when it returns without an error; one that did not end well is an error.
func Run(ctx context.Context, st stint.Store, w Workload) (Row, error) {
	before, err := size(ctx, st)
	if err != nil {
		return Row{}, err
	}
	m := newMeter(st)
	r := &runner{w: newPlay(w), m: m}
	loop, err := r.agent()
	if err != nil {
		return Row{}, err
	}
	agent := engine.Agent{Name: "bench", Loop: loop}
	e, err := engine.New(ctx, m.store(), engine.Options{Agents: []engine.Agent{agent}, Concurrency: w.Concurrency})
	if err != nil {
		return Row{}, err
	}
	row, err := r.measure(ctx, e, agent)
	// A store cannot be measured while an engine reads it.
	if err = errors.Join(err, e.Close()); err != nil {
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
	w        *play
	m        *meter
	begun    atomic.Int64
	finished atomic.Int64
}

// reading is what the instruments show at one moment.
type reading struct {
	at    time.Time
	cpu   time.Duration
	steps int64
	loops int64
}

func (r *runner) read() reading {
	return reading{time.Now(), cpuTime(), r.m.steps.Load(), r.m.loops.Load()}
}

// measure drives sessions, as many at once as asked for, and reads the instruments
// around the measured time. While that lasts, all of them run.
func (r *runner) measure(ctx context.Context, e *engine.Engine, a engine.Agent) (row Row, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	begin := r.read()
	var wg sync.WaitGroup
	for range r.w.Concurrency {
		wg.Go(func() {
			for ctx.Err() == nil && r.more(stop) {
				if err := r.session(ctx, e, a); err != nil {
					cancel(err)
				}
			}
		})
	}
	var end reading
	if r.w.For > 0 {
		wait(ctx, r.w.Warm)
		r.m.took.reset()
		begin = r.read()
		wait(ctx, r.w.For)
		end = r.read()
		row.RSSMB = rss()
		row.StepP50us, row.StepP99us = r.m.took.us(.5), r.m.took.us(.99)
		close(stop)
	}
	wg.Wait()
	if r.w.For == 0 {
		end = r.read()
		row.RSSMB = rss()
		row.StepP50us, row.StepP99us = r.m.took.us(.5), r.m.took.us(.99)
	}
	if err := context.Cause(ctx); err != nil {
		return Row{}, err
	}
	row.Concurrency, row.Effect, row.Loops = r.w.Concurrency, string(r.w.Effect), r.w.Loops
	row.Sessions, row.Steps, row.Seconds = int(r.finished.Load()), end.steps-begin.steps, end.at.Sub(begin.at).Seconds()
	row.StepsPerS = float64(row.Steps) / row.Seconds
	row.LoopsPerS = float64(end.loops-begin.loops) / row.Seconds
	row.CPUusPerStep = (end.cpu - begin.cpu).Seconds() * 1e6 / float64(max(1, row.Steps))
	return row, nil
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (r *runner) more(stop chan struct{}) bool {
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
	id, err := runToEnd(ctx, e, a)
	r.m.forget(id)
	if err == nil {
		r.finished.Add(1)
	}
	return err
}

// runToEnd runs one new session, which must end well.
func runToEnd(ctx context.Context, e *engine.Engine, a engine.Agent) (id stint.ID, err error) {
	s, err := e.RunNew(ctx, request(a), func(c engine.Created) { id = c.ID })
	switch {
	case err != nil:
		return id, err
	case s.Status == stint.Completed:
		return id, nil
	case ctx.Err() != nil:
		return id, context.Cause(ctx)
	}
	return id, stint.Internal.Errorf("bench", "session %s ended %s: %s", id, s.Status, s.Reason)
}

// request asks for a session of a workload, without limits.
func request(a engine.Agent) engine.Request {
	return engine.Request{Agent: a, Name: a.Name, Trigger: stint.Trigger{Kind: "bench"}, Limits: &stint.Limits{}}
}

// loop is the agent of the workload.
func (r *runner) loop(ctx context.Context, l stint.Loop) (stint.Next, error) {
	s := l.Session()
	marks := r.m.marks(s.ID)
	n := s.Checkpoint.Loop + 1
	if err := r.w.steps(ctx, l, n, marks.begin); err != nil {
		return stint.Next{}, err
	}
	return r.w.next(l.State(), n), nil
}
