package llm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/internal/jsonx"
)

// world is a session outside an engine: a journal with the rules that an agent meets,
// persons who answer, and a process that can die at any record.
type world struct {
	mortal

	t     testing.TB
	spec  llm.Spec
	agent *llm.Agent

	ses     stint.Session
	state   json.RawMessage
	inbox   []stint.Message
	prompts []string // what a person says when the session waits for a message
	rec     map[[2]int]*record
	past    map[stint.Position]json.RawMessage
	person  func(s stint.Step) (json.RawMessage, error)    // answers a question; nil, nil is a yes
	doubt   func(key string, s stint.Step) json.RawMessage // what a person says of a step in doubt; nil: it did not happen

	asked []stint.Step
	steps []stint.Step
	runs  map[string]int // by key, how often a function ran
	logs  []string
	end   *stint.End
	wait  *stint.Wait
}

// mortal is when the process of a world dies.
type mortal struct {
	records int  // made so far
	dieAt   int  // it dies at this one; 0: never
	durable bool // after it was made
	keep    bool // the next process has what this agent kept, as if only the session was lost
	dead    bool
	deaths  int
}

// record is one step's entries.
type record struct {
	intent    string
	requested bool
	done      bool
	res       stint.Result
	err       error
}

func newWorld(t testing.TB, s llm.Spec, input string) *world {
	t.Helper()
	id, err := stint.ParseID("01jd0f3kx6ewx8ts2gt4hg1m5r")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, spec: s, agent: agentOf(t, s), rec: map[[2]int]*record{}, past: map[stint.Position]json.RawMessage{}, runs: map[string]int{}}
	w.ses = stint.Session{ID: id, Name: "helper-1130", At: stint.Place{Loop: 1, Attempt: 1}, Epoch: 1}
	if input != "" {
		w.inbox = []stint.Message{{ID: "input", Kind: stint.Prompt, From: "human:ana", Body: []byte(input)}}
	}
	return w
}

// runs to the end of the session, or until nobody says anything any more.
func (w *world) run(loops int) {
	w.t.Helper()
	for entries := 0; ; entries++ {
		if entries > 20*loops {
			w.t.Fatalf("no end after %d entries of a loop", entries)
		}
		l := &fakeLoop{w: w}
		next, err := w.agent.Loop(w.t.Context(), l)
		switch {
		case w.dead, err == nil && w.dies():
			w.reborn()
			continue
		case err != nil:
			if w.failed(l, err) {
				return
			}
			continue
		}
		for at, r := range w.rec {
			if at[0] > l.step {
				w.t.Fatalf("step %v (%s) is recorded, and the loop ended without it", at, r.intent)
			}
			if r.done && r.err == nil {
				w.past[stint.Position{Loop: w.ses.At.Loop, Step: at[0], Sub: at[1]}] = r.res.Data
			}
		}
		if next.State != nil {
			w.state = bytes.Clone(next.State)
			messages(w.t, w.state)
		}
		clear(w.rec)
		w.inbox = nil
		if w.dead {
			w.reborn()
		}
		w.ses.At.Loop, w.ses.At.Attempt = w.ses.At.Loop+1, 1
		if w.goesOn(next); w.end != nil || w.wait != nil || w.ses.At.Loop > loops {
			return
		}
	}
}

// failed takes an error of a loop, and reports whether the session ends with it.
func (w *world) failed(l *fakeLoop, err error) bool {
	if errors.Is(err, stint.ErrParked) {
		if !l.parked {
			w.t.Fatal("the agent says that it was parked, and it was not")
		}
		return false // what it waits for was settled
	}
	if _, final, _ := steering(err); final || w.ses.At.Attempt > 8 {
		w.end = &stint.End{Outcome: stint.Failed, Reason: err.Error()}
		return true
	}
	w.ses.At.Attempt++
	return false
}

// goesOn is what a session does after a loop.
func (w *world) goesOn(next stint.Next) {
	switch {
	case next.End != nil:
		w.end = next.End
	case next.Wait == nil || next.Wait.For == stint.ForTime:
	case len(w.prompts) == 0:
		w.wait = next.Wait
	default:
		w.inbox = []stint.Message{{ID: w.prompts[0], Kind: stint.Prompt, From: "human:ana", Body: []byte(w.prompts[0])}}
		w.prompts = w.prompts[1:]
	}
}

// dies counts a record and reports whether the process is dead before it is made.
func (w *world) dies() bool {
	if w.dead {
		return true
	}
	if w.records++; w.records == w.dieAt {
		w.dead = true
		return !w.durable
	}
	return false
}

// reborn is the next process: with what the agent kept, or without.
func (w *world) reborn() {
	w.dead = false
	if w.deaths++; !w.keep {
		w.agent = agentOf(w.t, w.spec)
	}
	w.ses.At.Attempt++
	w.ses.Epoch++
}

// fakeLoop is one entry of a loop.
type fakeLoop struct {
	w      *world
	step   int
	parked bool
}

var (
	_ stint.Loop     = (*fakeLoop)(nil)
	_ stint.Reporter = (*fakeLoop)(nil)
)

func (l *fakeLoop) Session() stint.Session { return l.w.ses }
func (l *fakeLoop) State() json.RawMessage { return l.w.state }
func (l *fakeLoop) Inbox() []stint.Message { return l.w.inbox }
func (l *fakeLoop) Progress(string)        {}
func (l *fakeLoop) Log(_ string, p []byte) { l.w.logs = append(l.w.logs, string(p)) }

func (l *fakeLoop) Outcome(_ context.Context, at stint.Position) (json.RawMessage, error) {
	if data, ok := l.w.past[at]; ok {
		return data, nil
	}
	return nil, stint.NotFound.Errorf("outcome", "nothing at %s", at)
}

func (l *fakeLoop) Do(ctx context.Context, s stint.Step, fn func(context.Context, string) (stint.Result, error)) (stint.Result, error) {
	l.step++
	r := l.do(ctx, s, 0, fn)
	if l.stopped() {
		return stint.Result{}, stint.ErrParked
	}
	return r.res, r.err
}

func (l *fakeLoop) stopped() bool { return l.parked || l.w.dead }

// fakeGroup is the error of a group.
type fakeGroup struct {
	error

	all []error
}

func (g fakeGroup) Members() []error { return g.all }
func (g fakeGroup) Unwrap() error    { return g.error }

func (l *fakeLoop) DoAll(ctx context.Context, steps []stint.Step, fn func(context.Context, int, string) (stint.Result, error)) ([]stint.Result, error) {
	l.step++
	out, errs := make([]stint.Result, len(steps)), make([]error, len(steps))
	var first error
	for i, s := range steps {
		r := l.do(ctx, s, i+1, func(ctx context.Context, key string) (stint.Result, error) { return fn(ctx, i, key) })
		if out[i], errs[i] = r.res, r.err; r.err != nil && first == nil {
			first = r.err
		}
	}
	switch {
	case l.stopped():
		return nil, stint.ErrParked
	case first != nil:
		return out, fakeGroup{first, errs}
	}
	return out, nil
}

// do is one step: answered from the journal, asked of a person, or done.
func (l *fakeLoop) do(ctx context.Context, s stint.Step, sub int, fn func(context.Context, string) (stint.Result, error)) record {
	w := l.w
	at := [2]int{l.step, sub}
	key := fmt.Sprintf("%d.%d.%d", w.ses.At.Loop, l.step, sub)
	w.steps = append(w.steps, s)
	if err := jsonx.Check(s.Input, jsonx.Limits{}); err != nil || len(s.Input) > 32<<20 {
		w.t.Fatalf("step %s has an input that no journal takes: %d bytes, %v", key, len(s.Input), err)
	}
	intent := fmt.Sprintf("%s %s %s %s", s.Name, s.Kind, s.Effect, s.Input)
	r := w.rec[at]
	if r == nil {
		r = &record{intent: intent}
	}
	if r.intent != intent {
		w.t.Fatalf("step %s diverges:\n  recorded %s\n  asked    %s", key, r.intent, intent)
	}
	if r.done || w.dead {
		return *r
	}
	if r.requested {
		l.doubt(r, key, s)
		w.rec[at] = r
		return *r
	}
	if s.Ask != "" && !l.answered(r, s) {
		w.rec[at] = r
		return *r
	}
	if s.Effect == stint.Once {
		if w.dies() {
			return *r
		}
		r.requested, w.rec[at] = true, r
		if w.dead {
			return *r
		}
	}
	w.runs[key]++
	res, err := fn(ctx, key)
	_, final, definite := steering(err)
	switch {
	case w.dies():
		return *r
	case err == nil:
		r.done, r.res, w.rec[at] = true, stint.Result{Data: bytes.Clone(res.Data), Usage: res.Usage}, r
	case definite:
		r.done, r.err, w.rec[at] = true, asRecorded(err, final), r
	case s.Effect == stint.Once:
		l.doubt(r, key, s)
		w.rec[at] = r
	default:
		return record{err: err}
	}
	return *r
}

// answered asks a person; false says that the step has its result.
func (l *fakeLoop) answered(r *record, s stint.Step) bool {
	l.w.asked = append(l.w.asked, s)
	if l.w.person == nil {
		l.w.t.Fatalf("nobody is there to be asked: %+v", s)
	}
	data, err := l.w.person(s)
	switch {
	case err != nil:
		r.done, r.err = true, stint.Definite(&stint.Error{Code: stint.Denied, Err: err})
	case s.Answer != nil:
		r.done, r.res.Data = true, data
	default:
		return true // as if the loop had been begun again here
	}
	l.parked = true // the loop is begun again with the answer
	return false
}

// doubt lets a person say what became of a step.
func (l *fakeLoop) doubt(r *record, key string, s stint.Step) {
	l.parked, r.requested = true, false
	if l.w.doubt == nil {
		l.w.t.Fatalf("step %s is in doubt", key)
	}
	if data := l.w.doubt(key, s); data != nil {
		r.done, r.res.Data = true, data
	}
}

func asRecorded(err error, final bool) error {
	out := &stint.Error{Code: stint.CodeOf(err), Err: errors.New(strings.ToValidUTF8(err.Error(), "\uFFFD"))}
	var e *stint.Error
	if errors.As(err, &e) {
		out.Hint = e.Hint
	}
	if final {
		return stint.Definite(stint.Fail(out))
	}
	return stint.Definite(out)
}

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

// whole is a limit that no test reaches.
const whole = math.MaxInt32
