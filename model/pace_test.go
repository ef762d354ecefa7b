package model_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint/model"
)

// service is a provider in fake time that counts what it is asked.
type service struct {
	mu     sync.Mutex
	asked  []time.Time
	now    int // calls at once
	most   int
	takes  time.Duration
	answer func(n int, at time.Time) error // n counts from 1
	speaks bool
}

func (s *service) Name() string { return "mock" }

func (s *service) Call(ctx context.Context, _ *model.Request, hear func(model.Delta)) (*model.Answer, error) {
	s.mu.Lock()
	s.asked = append(s.asked, time.Now())
	n := len(s.asked)
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
	}()
	err := s.answer(n, time.Now())
	if s.speaks {
		hear(model.Delta{Text: "half"})
	}
	d := s.takes
	if err != nil {
		d = 10 * time.Millisecond
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &model.Answer{ID: "a"}, nil
}

func rate(after time.Duration) error {
	return &model.Error{Kind: model.Rate, Status: 429, After: after}
}

// 200 sessions, and a provider that takes nobody for half a minute: those that were on
// their way are refused, then one asks at a time, and nobody before its time.
func TestNoStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &service{takes: 200 * time.Millisecond, answer: func(_ int, at time.Time) error {
			if at.Before(start.Add(30 * time.Second)) {
				return rate(10 * time.Second)
			}
			return nil
		}}
		pace := model.NewPace(model.PaceConfig{Parallel: 32, Tries: 10})
		var wg sync.WaitGroup
		var waited atomic.Int64
		for range 200 {
			wg.Go(func() {
				m := &model.Paced{Model: s, Pace: pace, Waits: func(w model.Wait) {
					if !w.Until.IsZero() {
						waited.Add(1)
					}
				}}
				if _, err := m.Call(t.Context(), nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		// 32 at first, 3 that ask alone after each 10 seconds, 200 that are answered.
		if n := len(s.asked); n > 32+4+200 {
			t.Errorf("%d requests for 200 answers", n)
		}
		for _, at := range s.asked[32:] {
			if d := at.Sub(start); d < 10*time.Second {
				t.Errorf("a request came after %s", d)
			}
		}
		early := 0
		for _, at := range s.asked {
			if d := at.Sub(start); d > time.Second && d < 30*time.Second {
				early++
			}
		}
		if early > 3 {
			t.Errorf("%d requests came while the provider took nobody", early)
		}
		if s.most > 32 || waited.Load() == 0 {
			t.Errorf("%d calls at once, %d told to wait", s.most, waited.Load())
		}
		if d := time.Since(start); d > 40*time.Second {
			t.Errorf("it took %s", d)
		}
	})
}

// Retry-After as in a provider that says 3, then 2 seconds.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{answer: func(n int, _ time.Time) error {
			switch n {
			case 1:
				return rate(3 * time.Second)
			case 2:
				return &model.Error{Kind: model.Overloaded, Status: 529, After: 2 * time.Second}
			}
			return nil
		}}
		var waits []model.Wait
		m := &model.Paced{Model: s, Pace: model.NewPace(model.PaceConfig{}), Waits: func(w model.Wait) { waits = append(waits, w) }}
		var own []model.Wait
		if _, err := m.Call(model.OnWait(t.Context(), func(w model.Wait) { own = append(own, w) }), nil, nil); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(own, waits) {
			t.Errorf("the call was told %v, the model %v", own, waits)
		}
		if len(s.asked) != 3 || s.asked[1].Sub(s.asked[0]) < 3*time.Second || s.asked[2].Sub(s.asked[1]) < 2*time.Second {
			t.Errorf("asked at %v", s.asked)
		}
		if len(waits) != 4 || waits[0].Until.IsZero() || waits[0].Err == nil || waits[1] != (model.Wait{}) || waits[0].String() == waits[1].String() {
			t.Errorf("told %v", waits)
		}
	})
}

func TestOwnErrors(t *testing.T) {
	for _, c := range []struct {
		err   error
		asked int
	}{
		{&model.Error{Kind: model.Transient}, 6},
		{&model.Error{Kind: model.Cut}, 6},
		{&model.Error{Kind: model.Overloaded}, 6},
		{&model.Error{Kind: model.Invalid}, 1},
		{&model.Error{Kind: model.Auth}, 1},
		{&model.Error{Kind: model.Quota}, 1},
		{errors.New("something else"), 1},
		{&model.Error{Kind: model.Cut, Usage: model.Usage{Input: 7}}, 6},
		{rate(time.Hour), 1}, // beyond the patience: the session is parked instead
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{speaks: true, answer: func(int, time.Time) error { return c.err }}
			voids := 0
			m := &model.Paced{Model: s, Pace: model.NewPace(model.PaceConfig{})}
			start := time.Now()
			_, err := m.Call(t.Context(), nil, func(d model.Delta) {
				if d.Void {
					voids++
				}
			})
			if !errors.Is(err, c.err) || len(s.asked) != c.asked || voids != c.asked-1 {
				t.Errorf("%v: asked %d times, void %d times: %v", c.err, len(s.asked), voids, err)
			}
			if d := time.Since(start); c.asked > 1 && d < 10*time.Second {
				t.Errorf("%v: %d attempts in %s", c.err, c.asked, d)
			}
		})
	}
}

// What broken attempts had used is not lost.
func TestWasted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{answer: func(n int, _ time.Time) error {
			if n < 3 {
				return &model.Error{Kind: model.Cut, Usage: model.Usage{Input: 7, Output: int64(n), CacheRead: 1, CacheWrite: 2}}
			}
			return nil
		}}
		a, err := (&model.Paced{Model: s, Pace: model.NewPace(model.PaceConfig{})}).Call(t.Context(), nil, nil)
		if err != nil || a.Wasted != (model.Usage{Input: 14, Output: 3, CacheRead: 2, CacheWrite: 4}) {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

// One call's own trouble is nobody else's.
func TestOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace := model.NewPace(model.PaceConfig{Parallel: 1})
		bad := &service{answer: func(int, time.Time) error { return &model.Error{Kind: model.Transient} }}
		good := &service{takes: time.Second, answer: func(int, time.Time) error { return nil }}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = (&model.Paced{Model: bad, Pace: pace}).Call(t.Context(), nil, nil) })
		for range 3 {
			wg.Go(func() { _, _ = (&model.Paced{Model: good, Pace: pace}).Call(t.Context(), nil, nil) })
		}
		start := time.Now()
		wg.Wait()
		if d := good.asked[2].Sub(start); d > 3*time.Second {
			t.Errorf("the last good call began after %s", d)
		}
	})
}

// A provider that asks for an hour: who comes later is told at once, and not asked for.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{answer: func(int, time.Time) error { return rate(time.Hour) }}
		m := &model.Paced{Model: s, Pace: model.NewPace(model.PaceConfig{})}
		for range 5 {
			_, err := m.Call(t.Context(), nil, nil)
			e := model.AsError(err)
			if e == nil || e.Kind != model.Rate || e.After < 59*time.Minute {
				t.Fatalf("got %v", err)
			}
		}
		if len(s.asked) != 1 {
			t.Errorf("asked %d times", len(s.asked))
		}
	})
}

// Who waits can be stopped, and leaves no place taken: by the shared wait, behind other
// calls, and in a wait of its own.
func TestCancelWhileWaiting(t *testing.T) {
	stop := errors.New("stopped")
	for name, first := range map[string]error{"rate": rate(time.Minute), "transient": &model.Error{Kind: model.Transient, After: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{answer: func(n int, _ time.Time) error {
					if n == 1 {
						return first
					}
					return nil
				}}
				pace := model.NewPace(model.PaceConfig{Parallel: 1})
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(5*time.Second, func() { cancel(stop) })
				start := time.Now()
				if _, err := (&model.Paced{Model: s, Pace: pace}).Call(ctx, nil, nil); !errors.Is(err, stop) || time.Since(start) != 5*time.Second {
					t.Fatalf("after %s: %v", time.Since(start), err)
				}
				if _, err := (&model.Paced{Model: s, Pace: pace}).Call(t.Context(), nil, nil); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := &service{takes: time.Minute, answer: func(int, time.Time) error { return nil }}
		pace := model.NewPace(model.PaceConfig{Parallel: 1})
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = (&model.Paced{Model: s, Pace: pace}).Call(t.Context(), nil, nil) })
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		ahead := 0
		wg.Go(func() {
			m := &model.Paced{Model: s, Pace: pace, Waits: func(w model.Wait) { ahead = w.Ahead }}
			if _, err := m.Call(ctx, nil, nil); !errors.Is(err, stop) {
				t.Error(err)
			}
		})
		synctest.Wait()
		cancel(stop)
		wg.Wait()
		if ahead != 1 {
			t.Errorf("%d calls were ahead", ahead)
		}
		if _, err := (&model.Paced{Model: s, Pace: pace}).Call(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// A model that panics leaves its place.
func TestPanicLeaves(t *testing.T) {
	s := &service{answer: func(n int, _ time.Time) error {
		if n == 1 {
			panic("broken")
		}
		return nil
	}}
	m := &model.Paced{Model: s, Pace: model.NewPace(model.PaceConfig{Parallel: 1})}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		_, _ = m.Call(t.Context(), nil, nil)
	}()
	if _, err := m.Call(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
}
