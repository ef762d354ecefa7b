package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/policy"
)

// loop is one attempt at a loop, as its agent sees it.
type loop struct {
	d     *driver
	start stint.Session
	state json.RawMessage
	inbox []stint.Message
	past  past.Steps  // what earlier attempts recorded
	cut   stint.Actor // who interrupted it after that; empty: nobody did
	begun time.Time   // on a clock that nobody sets

	busy  atomic.Bool
	step  int       // newest step number handed out
	park  *parking  // why the loop must stop; set once
	loose stint.Seq // newest outcome, maybe not durable yet, that may come out otherwise when it is lost
	model stint.Seq // newest answer of a model that may not be durable yet
	roll  journal.Rollup
}

var (
	_ stint.Loop     = (*loop)(nil)
	_ stint.Reporter = (*loop)(nil)
)

func (l *loop) Session() stint.Session { return l.start }
func (l *loop) State() json.RawMessage { return l.state }
func (l *loop) Inbox() []stint.Message { return l.inbox }

// Recorded returns the results that earlier attempts at this loop left, as JSON
// objects in order of position: for agents that tell their program about them.
func (l *loop) Recorded() []json.RawMessage { return l.past.Describe() }

// Begun tells of a step of this loop, and of the member sub of a group or 0, whether earlier
// attempts left its intent or its outcome in the journal, and what was said of it since it
// was last begun: "happened", "not" or "unknown", empty for nothing. It is for agents whose
// effects begin outside a step's function: what they know to have begun and the journal
// does not is in doubt. What this attempt records does not count.
func (l *loop) Begun(step, sub int) (begun bool, verdict string) {
	return l.past.Begun(step, sub)
}

// LastAttempt reports whether an error of this attempt would end the session: there is no
// other attempt, by the agent's policy or by the brake on restarts. It is for agents that
// can go on without what fails and would rather have it tried again first.
func (l *loop) LastAttempt() bool {
	if l.d.agent.Retry.withDefaults().spent(l.start.At.Attempt) {
		return true
	}
	s, now := l.start, faultpoint.Now()
	s.At.Failures = append(slices.Clone(s.At.Failures), now)
	_, on := journal.Brake(&s, now)
	return on
}

// Epoch returns the epoch of the lease, for agents whose effects can be fenced.
func (l *loop) Epoch() int64 { return l.d.lease.Epoch }

func (l *loop) Progress(headline string) { l.d.pulse.set(headline) }

func (l *loop) Log(stream string, p []byte) {
	l.d.pulse.touch()
	for len(p) > 0 {
		n := min(len(p), maxOutputEntry)
		_, err := l.d.w.add(journal.Draft{Kind: stint.OutputWritten, Pos: l.at(0, 0), Actor: stint.ByAgent,
			Data: journal.Output{Stream: stream}, Body: bytes.Clone(p[:n])})
		if err != nil {
			return // the session is lost; what the agent says no longer belongs to it
		}
		p = p[n:]
	}
	l.d.w.flush(false)
}

// maxOutputEntry is the most output that one entry carries.
const maxOutputEntry = 64 << 10

// at is a position in the loop. What is still said when the loop is over, from a goroutine
// that it left behind, is of that loop too, and then refused.
func (l *loop) at(step, sub int) stint.Position {
	p := l.start.At
	return stint.Position{Line: p.Line, Loop: p.Loop, Attempt: p.Attempt, Step: step, Sub: sub}
}

// Do implements [stint.Loop].
func (l *loop) Do(ctx context.Context, s stint.Step, fn func(context.Context, string) (stint.Result, error)) (stint.Result, error) {
	return l.do(ctx, s, false, fn)
}

// do is Do, and for the step that begins a child.
func (l *loop) do(ctx context.Context, s stint.Step, child bool, fn func(context.Context, string) (stint.Result, error)) (stint.Result, error) {
	if !l.busy.CompareAndSwap(false, true) {
		return stint.Result{}, past.Overlapping(s.Name)
	}
	defer l.busy.Store(false)
	c, err := l.prepare(s, place{step: l.step + 1, child: child})
	if err != nil {
		return stint.Result{}, err
	}
	l.step++
	if c.answered {
		return c.result, c.err
	}
	if c.asks {
		if err := l.hold(ctx, c); err != nil {
			return stint.Result{}, err
		}
	}
	if !c.decided {
		if err := l.before([]*call{c}); err != nil {
			return stint.Result{}, err
		}
		l.perform(ctx, c, fn)
	}
	if l.park = cmp.Or(l.park, l.d.spent(c.err)); l.park != nil {
		return stint.Result{}, stint.ErrParked // its intent stands, and nothing was done
	}
	l.settle(c)
	if l.park != nil {
		return stint.Result{}, stint.ErrParked
	}
	return c.result, c.err
}

// call is one step on its way through Do.
type call struct {
	step     stint.Step
	pos      stint.Position
	intent   journal.StepRequested
	answered bool            // result and err came from the journal
	intended bool            // the journal has the intent already
	verdict  *policy.Verdict // of the policy that asks; nil: none does
	asks     bool            // a person has been asked and has not decided
	decided  bool            // result and err are a person's: a no, or an answer
	held     *drawn          // what it reserved of the limits of its tree
	result   stint.Result
	err      error
	took     time.Duration
}

// place is where a step stands in its loop.
type place struct {
	step, sub int
	beside    int  // how many of its group will run before it
	child     bool // it begins a child
}

// prepare checks a step before it runs, and answers it from the journal if it can.
func (l *loop) prepare(s stint.Step, at place) (*call, error) {
	if l.park == nil {
		l.park = l.d.boundary()
	}
	if l.park != nil {
		return nil, stint.ErrParked
	}
	if err := l.d.heedOrders(); err != nil {
		return nil, l.refused(err)
	}
	if err := past.Check(&s); err != nil {
		return nil, err
	}
	c := &call{step: s, pos: l.at(at.step, at.sub), intent: past.Intent(&s)}
	c.intent.Child = at.child
	if p := l.past.At(at.step, at.sub); p != nil {
		l.replay(c, p)
		if l.park != nil {
			return nil, stint.ErrParked
		}
	} else if l.skip(c); l.park != nil {
		return nil, stint.ErrParked
	}
	if !c.answered && !c.intended && l.cut != "" && s.Yields {
		c.decided, c.err = true, passedOver(&s, l.cut)
		return c, nil
	}
	if !c.answered {
		if l.park = l.d.overLimit(s, at.beside); l.park != nil {
			return nil, stint.ErrParked
		}
		if l.judge(c); !c.decided {
			if err := l.ask(c); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// passedOver is the outcome of a step that is not begun, because by interrupted its loop.
func passedOver(s *stint.Step, by stint.Actor) error {
	why := "it was not begun"
	if s.Effect != stint.Once { // those leave no trace before they have an outcome
		why = "it may have been begun, and has no result"
	}
	return stint.Definite(&stint.Error{Code: stint.Denied, Err: fmt.Errorf("%s: the turn was interrupted by %s", why, by)})
}

// replay answers c from what an earlier attempt recorded, or parks.
func (l *loop) replay(c *call, p *past.Step) {
	if !p.Intent.Same(c.intent) {
		l.parkFor(l.diverged(c, p.Intent))
		return
	}
	if p.Intent.Asked != "" {
		if err := l.edited(c, p.Input, p.InputBlob); err != nil {
			c.answered, c.err = true, err
			return
		}
	}
	c.intended = p.Requested && (c.step.Effect == stint.Once || c.intent.Child) // what a step reserved that is done again stays reserved
	switch {
	case p.Answered():
		c.answered = true
		l.count(c.step, p.Usage())
		c.result, c.err = p.Answer(func() (json.RawMessage, error) { return l.body(p) })
	case p.Verdict == journal.NotHappened:
		c.intended = false // ask again, under the same key
	case p.Requested && c.step.Effect == stint.Once:
		l.doubt(c, errors.New("the attempt ended between its intent and its result"))
	}
}

// body returns the body of a recorded outcome. A store that cannot be read for a
// moment is asked again: what a step gave must not depend on that.
func (l *loop) body(p *past.Step) (json.RawMessage, error) {
	if p.Blob.IsZero() {
		return p.Body, nil
	}
	for {
		b, err := l.d.e.store.Blob(l.d.w.ctx, l.start.Family, p.Blob)
		if err == nil || !errors.Is(err, stint.Unavailable) || l.d.isDraining() || l.d.isLost() {
			return b, err
		}
		<-time.After(retryCommit)
	}
}

// before makes durable what must be durable before the calls may act.
func (l *loop) before(calls []*call) error {
	need := false
	for _, c := range calls {
		switch {
		case l.metered(c):
			if err := l.drawOn(c); err != nil {
				return err
			}
		case c.step.Effect == stint.Once || l.reserves(c) || c.intent.Child || c.intent.Asked != "":
			need = true
			if err := l.intend(c); err != nil {
				return err
			}
		case c.step.Effect == stint.Idempotent && l.loose > 0:
			need = true
		case c.step.Kind == stint.Tool && l.model > 0:
			need = true
		}
	}
	if !need {
		l.d.w.flush(false)
		return nil
	}
	if err := l.d.w.sync(); err != nil {
		return l.lost()
	}
	if l.model > 0 {
		faultpoint.Hit(faultpoint.AnswerRecorded)
	}
	l.loose, l.model = 0, 0
	for _, c := range calls {
		if c.step.Effect == stint.Once {
			faultpoint.Hit(faultpoint.IntentRecorded)
			break
		}
	}
	return nil
}

// reserves reports whether the call's reservation has to stand before it runs: where a
// limit of the session counts it.
func (l *loop) reserves(c *call) bool {
	lim := l.d.w.session().Limits
	return c.step.Reserve != (stint.Usage{}) && (lim.Tokens > 0 || lim.Cost > 0)
}

// intend records the intent of a step, unless the journal has it.
func (l *loop) intend(c *call) error {
	if c.intended {
		return nil
	}
	if l.reserves(c) {
		c.intent.Reserve = c.step.Reserve
	}
	if _, err := l.d.w.addWith(c.request(), extras{meters: l.d.opens(c)}); err != nil {
		return l.refused(err)
	}
	c.intended = true
	return nil
}

// request is the intent of the call as an entry.
func (c *call) request() journal.Draft {
	return journal.Draft{Kind: stint.StepRequested, Pos: c.pos, Actor: stint.ByAgent, Data: c.intent, Body: c.step.Input}
}

// lost parks a loop whose session cannot be written any more.
func (l *loop) lost() error {
	if l.park == nil {
		l.park = &parking{lost: true}
	}
	return stint.ErrParked
}

// refused is the answer to a step that the journal does not take: the agent's
// fault is told to the agent, anything else loses the session.
func (l *loop) refused(err error) error {
	if c := stint.CodeOf(err); c == stint.Invalid || c == stint.Limit {
		return err
	}
	return l.lost()
}

// perform runs fn. It may run beside other calls of its group.
func (l *loop) perform(ctx context.Context, c *call, fn func(context.Context, string) (stint.Result, error)) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.step.Timeout, stint.Unavailable.Errorf("step "+c.step.Name, "no result within %v", c.step.Timeout))
	defer cancel()
	begun := time.Now()
	l.d.pulse.set(c.step.Name)
	if c.step.Effect == stint.Once {
		l.d.once.Add(1)
	}
	c.err = shielded(func() (err error) {
		c.result, err = fn(ctx, journal.Key(l.start.ID, c.pos))
		return err
	})
	if c.step.Effect == stint.Once {
		l.d.once.Add(-1)
	}
	c.took = time.Since(begun)
	l.d.pulse.touch()
	if c.err == nil && c.result.Data != nil {
		if err := jsonx.Check(c.result.Data, jsonx.Limits{}); err != nil {
			c.err = stint.Definite(stint.Invalid.Errorf("step "+c.step.Name, "the result is not JSON: %v", err))
		}
	}
	if c.step.Effect == stint.Once {
		faultpoint.Hit(faultpoint.EffectDone)
	} else {
		faultpoint.Hit(faultpoint.AnswerReceived)
	}
}

// settle records how a call ended. It runs on the loop's goroutine.
func (l *loop) settle(c *call) {
	if c.err == nil {
		l.succeed(c)
		return
	}
	if errors.Is(c.err, stint.ErrParked) { // a step inside a step
		c.err = past.Overlapping(c.step.Name)
	}
	_, final, definite := steering(c.err)
	if c.step.Effect == stint.Once && !definite {
		// A stop, a pause or a drain that canceled it comes first; the intent stays
		// recorded, and whoever begins the loop again finds the step in doubt.
		switch p := l.d.boundary(); {
		case notBegun(c.err):
			l.again(c, c.err) // nothing was done, so nothing is in doubt
			l.parkFor(p)
		case p == nil:
			l.doubt(c, c.err)
		default:
			l.parkFor(p)
		}
		return
	}
	l.fail(c, definite, final)
	if l.park == nil && !definite {
		l.park = l.d.boundary()
	}
}

func (l *loop) succeed(c *call) {
	if c.result.Data == nil {
		c.result.Data = json.RawMessage("null")
	}
	d := journal.StepDone{StepRequested: c.intent, MS: c.took.Milliseconds(), Usage: c.result.Usage}
	if !c.intended && len(c.step.Input) <= journal.InlineBytes {
		d.Args = c.step.Input
	}
	seq, err := l.d.w.addWith(journal.Draft{Kind: stint.StepCompleted, Pos: c.pos, Actor: stint.ByAgent, Data: d, Body: bytes.Clone(c.result.Data)}, extras{meters: l.d.used(c)})
	if err != nil {
		c.result, c.err = stint.Result{}, l.refused(err)
		if l.park == nil { // too large: the outcome is known, and it is this error
			c.err = stint.Definite(c.err)
			l.fail(c, true, false)
		}
		return
	}
	l.count(c.step, c.result.Usage)
	if c.step.Effect != stint.Idempotent {
		l.loose = seq // a lost result of a once step may become a person's word
	}
	if c.step.Kind == stint.Model {
		l.model = seq
	}
	l.d.w.flush(false)
}

func (l *loop) fail(c *call, definite, final bool) {
	l.roll.Errors++
	d := journal.StepDone{StepRequested: c.intent, MS: c.took.Milliseconds(), Usage: c.result.Usage,
		Error: oneLine(c.err), Definite: definite, Final: final}
	usage, meters := c.result.Usage, l.d.used(c)
	c.result = stint.Result{} // a replay has none
	var body []byte
	if definite { // recorded first, then used: a replay gets the same
		f := failureOf(c.err)
		c.err = past.Error(f, final)
		body = failureBody(f, d.Error)
	}
	seq, err := l.d.w.addWith(journal.Draft{Kind: stint.StepFailed, Pos: c.pos, Actor: stint.ByAgent, Data: d, Body: body}, extras{meters: meters})
	if err != nil {
		_ = l.lost()
		return
	}
	if definite {
		l.loose = seq // the next try may succeed
		if c.step.Kind == stint.Model {
			l.model = seq
		}
		l.count(c.step, usage)
	}
	l.d.w.flush(false)
}

// notBegun reports whether an agent knows that a step's work did not begin.
func notBegun(err error) bool {
	var n interface{ NotBegun() bool }
	return errors.As(err, &n) && n.NotBegun()
}

// parkFor parks the loop, unless it is parked already or p is nil.
func (l *loop) parkFor(p *parking) {
	if l.park == nil {
		l.park = p
	}
}

func (l *loop) count(s stint.Step, u stint.Usage) {
	l.roll.Steps++
	switch s.Kind {
	case stint.Model:
		l.roll.Models++
	case stint.Tool:
		l.roll.Tools++
	}
	if s.Effect != stint.Read {
		l.roll.Effects++
	}
	l.roll.Usage = l.roll.Usage.Add(u)
}
