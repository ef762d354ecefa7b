package exec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stint-dev/stint"
)

// fakeLoop is a loop with a journal of one loop, which a later attempt shares. It
// holds the rules of the engine that agents meet: recorded answers, the doubt of a
// once step, parks, time-outs.
type fakeLoop struct {
	hooks

	ses     stint.Session
	state   json.RawMessage
	inbox   []stint.Message
	epoch   int64
	journal map[string]recorded // by "step.sub"
	parkAt  string              // position at which the session must stop
	parkBy  error               // how that is said; nil: ErrParked
	earlier []json.RawMessage   // what Recorded returns
	unknown bool                // steps in doubt are settled as unknown

	step  int
	park  bool
	order []string // positions whose fn ran, as they began

	mu       sync.Mutex
	steps    []stint.Step
	logs     map[string]*bytes.Buffer
	calls    int
	progress []string
	over     bool
	late     bool // a Reporter method was called after the loop
}

// hooks are called around a step's fn.
type hooks struct {
	before, after func(at string)
	children      []stint.Child // that were spawned
}

type recorded struct {
	result stint.Result
	err    error
}

func newLoop(number int) *fakeLoop {
	id, err := stint.ParseID("01jd0f3kx6ewx8ts2gt4hg1m5r")
	if err != nil {
		panic(err)
	}
	ses := stint.Session{ID: id, Name: "billing", Agent: stint.AgentRef{Name: "clerk", Runtime: "exec"}}
	ses.At = stint.Place{Line: 0, Loop: number, Attempt: 1}
	return &fakeLoop{ses: ses, epoch: 4, journal: map[string]recorded{}, logs: map[string]*bytes.Buffer{}}
}

// again is the next attempt at the same loop.
func (l *fakeLoop) again() *fakeLoop {
	next := newLoop(l.ses.At.Loop)
	next.ses.At.Attempt = l.ses.At.Attempt + 1
	next.state, next.inbox, next.journal = l.state, l.inbox, l.journal
	return next
}

func (l *fakeLoop) Session() stint.Session { return l.ses }
func (l *fakeLoop) State() json.RawMessage { return l.state }
func (l *fakeLoop) Inbox() []stint.Message { return l.inbox }
func (l *fakeLoop) Epoch() int64           { return l.epoch }

func (l *fakeLoop) Recorded() []json.RawMessage { return l.earlier }

func (l *fakeLoop) Do(ctx context.Context, s stint.Step, fn func(context.Context, string) (stint.Result, error)) (stint.Result, error) {
	l.step++
	return l.do(ctx, s, strconv.Itoa(l.step), fn)
}

func (l *fakeLoop) do(ctx context.Context, s stint.Step, at string, fn func(context.Context, string) (stint.Result, error)) (stint.Result, error) {
	l.mu.Lock()
	l.steps = append(l.steps, s)
	if at == l.parkAt {
		l.park = true
	}
	parked, known := l.park, l.journal[at]
	_, has := l.journal[at]
	if !parked && !has {
		l.order = append(l.order, at)
	}
	l.mu.Unlock()
	if parked {
		return stint.Result{}, l.parking()
	}
	if has {
		return known.result, known.err
	}
	if s.Timeout == 0 {
		s.Timeout = 10 * time.Minute
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, stint.Unavailable.Errorf("step "+s.Name, "no result within %v", s.Timeout))
	defer cancel()
	if l.before != nil {
		l.before(at)
	}
	res, err := fn(ctx, "key-"+at)
	if l.after != nil {
		l.after(at)
	}
	_, _, definite := steering(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil || definite:
		l.journal[at] = recorded{res, err}
	case s.Effect == stint.Once && l.unknown:
		l.journal[at] = recorded{result: stint.Result{Data: json.RawMessage(`{"stint":"unknown"}`)}}
		return l.journal[at].result, nil
	case s.Effect == stint.Once:
		l.park = true
		return stint.Result{}, fmt.Errorf("step %s is in doubt (%w): %w", at, err, l.parking())
	}
	if at+"!" == l.parkAt { // paused while the step ran
		l.park = true
		return stint.Result{}, l.parking()
	}
	return res, err
}

func (l *fakeLoop) parking() error {
	if l.parkBy != nil {
		return l.parkBy
	}
	return stint.ErrParked
}

// groupErr is the error of a group that knows all its members'.
type groupErr struct {
	error

	all []error
}

func (g groupErr) Members() []error { return g.all }
func (g groupErr) Unwrap() error    { return g.error }

func (l *fakeLoop) DoAll(ctx context.Context, steps []stint.Step, fn func(context.Context, int, string) (stint.Result, error)) ([]stint.Result, error) {
	l.step++
	step := l.step
	results, errs := make([]stint.Result, len(steps)), make([]error, len(steps))
	var wait sync.WaitGroup
	for i, s := range steps {
		wait.Go(func() {
			results[i], errs[i] = l.do(ctx, s, fmt.Sprintf("%d.%d", step, i+1), func(ctx context.Context, key string) (stint.Result, error) {
				return fn(ctx, i, key)
			})
		})
	}
	wait.Wait()
	if l.park {
		return nil, l.parking()
	}
	for _, err := range errs {
		if err != nil {
			return results, groupErr{err, errs}
		}
	}
	return results, nil
}

func (l *fakeLoop) Progress(headline string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = l.late || l.over
	l.progress = append(l.progress, headline)
}

func (l *fakeLoop) Log(stream string, p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = l.late || l.over
	if l.logs[stream] == nil {
		l.logs[stream] = &bytes.Buffer{}
	}
	l.calls++
	l.logs[stream].Write(p)
}

func (l *fakeLoop) log(stream string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.logs[stream]; b != nil {
		return b.String()
	}
	return ""
}

// finish notes that the loop is over.
func (l *fakeLoop) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

// steering reads errors as the engine does.
func steering(err error) (after time.Duration, final, definite bool) {
	for err != nil {
		var s interface {
			error
			Steer() (time.Duration, bool, bool)
		}
		if !errors.As(err, &s) {
			break
		}
		a, f, d := s.Steer()
		after, final, definite = max(after, a), final || f, definite || d
		err = errors.Unwrap(s)
	}
	return after, final, definite
}

func prompt(id, body string) stint.Message {
	return stint.Message{ID: id, Kind: stint.Prompt, From: "human:ana", At: time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC), Body: []byte(body)}
}

func contains(t interface {
	Helper()
	Errorf(string, ...any)
}, what, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s is\n%s\nwant in it\n%s", what, text, w)
		}
	}
}
