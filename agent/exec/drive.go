package exec

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/stint-dev/stint"
)

// Recorded is implemented by a loop that can tell which of its steps have finished
// in an earlier attempt. The agent is shown them; it makes no other difference.
type Recorded interface {
	// Recorded returns a JSON object for each, in order: step, sub, name, kind,
	// effect, and result or error.
	Recorded() []json.RawMessage
}

// Fenced is implemented by a loop that knows the epoch of its lease. It becomes
// STINT_EPOCH, so that what the program talks to can refuse one that was fenced,
// and a kept process is not used under another.
type Fenced interface {
	// Epoch returns the epoch; it is above 0.
	Epoch() int64
}

// Members is implemented by an error of [stint.Loop.DoAll] that knows the errors
// of all members, and not only the first.
type Members interface {
	// Members returns one error for each step of the group, nil for those without.
	Members() []error
}

// driver takes the requests of one talk to the loop. It lives on the goroutine
// that Loop was called in.
type driver struct {
	*talk

	loop  stint.Loop
	steps int // that were begun
	left  bool
	hello *outgoing // the line that begins the loop
}

func epochOf(l stint.Loop) int64 {
	if f, ok := l.(Fenced); ok {
		return f.Epoch()
	}
	return 0
}

// greeting is the line that begins a loop.
func greeting(l stint.Loop) ([]byte, error) {
	ses := l.Session()
	g := loopLine{
		Type: "loop", V: 1, Line: ses.At.Line, Loop: ses.At.Loop, Attempt: ses.At.Attempt, Epoch: epochOf(l),
		Session: sessionPart{ID: ses.ID.String(), Name: ses.Name, Agent: ses.Agent.Name, Labels: ses.Labels},
		State:   l.State(), Inbox: inboxParts(l.Inbox()), Steps: []json.RawMessage{},
	}
	if g.Session.Labels == nil {
		g.Session.Labels = map[string]string{}
	}
	if r, ok := l.(Recorded); ok {
		if steps := r.Recorded(); steps != nil {
			g.Steps = steps
		}
	}
	return encode(g)
}

// run does the loop. alive tells that the process ended it well and still runs.
func (d *driver) run(ctx context.Context, hello []byte) (next stint.Next, alive bool, err error) {
	d.hello = newOutgoing(hello)
	d.send(ctx, d.hello)
	for {
		var m *message
		select {
		case m = <-d.requests:
		case <-d.failed:
		case <-ctx.Done():
		case <-d.peer.silent:
			select { // what it said before counts
			case m = <-d.requests:
			default:
			}
		}
		if m == nil || m.end == nil && d.isSilent() { // nobody is there to do the step
			return stint.Next{}, false, d.leave(ctx)
		}
		switch m.kind {
		case "end":
			return d.finish(m.end)
		case "steps":
			err = d.group(ctx, m.calls)
		default:
			err = d.one(ctx, m.calls[0])
		}
		if err != nil {
			d.stopNow()
			return stint.Next{}, false, err
		}
	}
}

// stopNow ends the process and waits for it.
func (d *driver) stopNow() {
	if d.left {
		return
	}
	d.left = true
	close(d.over)
	d.peer.stop()
	<-d.peer.gone
}

// leave ends a loop that the agent cannot end any more, and says why.
func (d *driver) leave(ctx context.Context) error {
	if ctx.Err() == nil && !d.hasFailed() {
		d.left = true
		close(d.over)
		d.peer.settle()
	}
	d.stopNow()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return d.verdict()
}

// send queues a line. Where it cannot, the driver's next look shows why.
func (d *driver) send(ctx context.Context, o *outgoing) {
	select {
	case d.peer.queue <- o:
	case <-ctx.Done():
	case <-d.failed:
	case <-d.peer.silent:
	}
}

func (d *driver) isSilent() bool {
	select {
	case <-d.peer.silent:
		return true
	default:
		return false
	}
}

func (d *driver) hasFailed() bool {
	select {
	case <-d.failed:
		return true
	default:
		return false
	}
}

// finish ends a loop as the agent said.
func (d *driver) finish(e *ending) (stint.Next, bool, error) {
	next := e.next
	next.State = d.state()
	goesOn := e.err == nil && next.End == nil && next.Wait == nil
	if goesOn && d.peer.spec.Keep == KeepSession && !d.hasFailed() {
		d.peer.release()
		return next, true, nil
	}
	d.left = true
	close(d.over)
	if d.peer.retire(exitTime) {
		d.peer.sink.notef("the agent did not exit within %v of the end of its loop and was killed", exitTime)
	} else if x := d.peer.proc.Wait(); x.Code != 0 && !x.Killed {
		d.peer.sink.notef("the agent %s after the end of its loop", (&ExitError{Code: x.Code, Signal: signalName(x)}).how())
	}
	if d.hasFailed() {
		return stint.Next{}, false, d.verdict()
	}
	if e.err != nil {
		return stint.Next{}, false, e.err
	}
	return next, false, nil
}

// one does a step by itself. An error ends the loop.
func (d *driver) one(ctx context.Context, c *call) error {
	d.steps++
	d.describe(c)
	var called bool
	var own error
	at := d.position(d.steps, 0)
	res, err := d.loop.Do(ctx, c.step, func(step context.Context, key string) (stint.Result, error) {
		called = true
		r, err := d.effect(ctx, step, c, key, at)
		own = err
		return r, err
	})
	switch {
	case errors.Is(err, stint.ErrParked):
		if called {
			return d.partly(ctx, nil, err)
		}
		return d.partly(ctx, []*call{c}, err)
	case called && own != nil && err == nil:
		return d.overruled(ctx, c)
	case called && (err == nil || own != nil):
		c.step.Input = nil
		return nil //nolint:nilerr // the agent has it; if it is gone, the next look shows it
	case called || refused(err):
		return err
	}
	return d.cached(ctx, c, res, err)
}

// overruled ends a loop in which a step failed for the agent and not for the
// journal, where a rule for steps in doubt has settled it. The agent was told
// otherwise; it is asked again and gets the journal's answer.
func (d *driver) overruled(ctx context.Context, c *call) error {
	if d.hasFailed() || d.isSilent() || ctx.Err() != nil {
		return nil //nolint:nilerr // it does not go on anyway
	}
	return stint.Retry(0, stint.Conflict.Errorf("", "step %d, %s, failed and was settled by rule; the loop begins again with that answer", c.id, c.step.Name))
}

// group does steps at once. An error ends the loop.
func (d *driver) group(ctx context.Context, calls []*call) error {
	d.steps++
	steps := make([]stint.Step, len(calls))
	at := make([]string, len(calls))
	for i, c := range calls {
		d.describe(c)
		steps[i], at[i] = c.step, d.position(d.steps, i+1)
	}
	called, own := make([]bool, len(calls)), make([]error, len(calls))
	results, err := d.loop.DoAll(ctx, steps, func(step context.Context, i int, key string) (stint.Result, error) {
		called[i] = true
		r, err := d.effect(ctx, step, calls[i], key, at[i])
		own[i] = err
		return r, err
	})
	var rest []*call
	var mine bool
	for i, c := range calls {
		if !called[i] {
			rest = append(rest, c)
		}
		mine = mine || own[i] != nil
	}
	for i, c := range calls {
		if own[i] != nil && !errors.Is(err, stint.ErrParked) && memberError(err, i, stint.Result{}) == nil {
			return d.overruled(ctx, c)
		}
	}
	switch {
	case errors.Is(err, stint.ErrParked):
		return d.partly(ctx, rest, err)
	case err != nil && (refused(err) && !isOne(err, own) || len(rest) == 0 && !mine):
		return err
	}
	for i, c := range calls {
		if called[i] {
			c.step.Input = nil
			continue
		}
		var res stint.Result
		if i < len(results) {
			res = results[i]
		}
		if failed := d.cached(ctx, c, res, memberError(err, i, res)); failed != nil {
			return failed
		}
	}
	return nil
}

// memberError is the error of a member that did not run, as far as it is known.
func memberError(err error, i int, res stint.Result) error {
	var members Members
	switch {
	case err == nil || res.Data != nil:
		return nil
	case errors.As(err, &members):
		if all := members.Members(); i < len(all) {
			return all[i]
		}
	}
	return err
}

func isOne(err error, of []error) bool {
	for _, e := range of {
		if e != nil && errors.Is(err, e) {
			return true
		}
	}
	return false
}

// refused reports that err is the engine's and not a step's: there is no answer
// that the agent could go on with. Errors from the journal are definite, and a
// denied step is one that failed.
func refused(err error) bool {
	return err != nil && !definite(err) && !errors.Is(err, stint.Denied)
}

func definite(err error) bool {
	var s interface {
		Steer() (after time.Duration, final, definite bool)
	}
	for errors.As(err, &s) {
		if _, _, yes := s.Steer(); yes {
			return true
		}
		u, ok := s.(interface{ Unwrap() error })
		if !ok {
			return false
		}
		err = u.Unwrap()
	}
	return false
}

// describe completes a step by the configuration.
func (d *driver) describe(c *call) {
	c.step.Effect = d.peer.spec.effect(c.step.Name, c.step.Effect)
	c.step.Timeout = d.peer.spec.StepTimeout
}

func (d *driver) position(step, sub int) string {
	return stint.Position{Loop: d.ses.At.Loop, Step: step, Sub: sub}.String()
}

// cached answers a step from the journal.
func (d *driver) cached(ctx context.Context, c *call, res stint.Result, err error) error {
	var line any = resultLine{Type: "result", ID: c.id, Result: res.Data, Cached: true}
	if err != nil {
		line = errorLine{Type: "result", ID: c.id, Error: err.Error(), Definite: definite(err), Cached: true}
	}
	b, err := encode(line)
	if err != nil {
		return err
	}
	c.step.Input = nil // the id is remembered, the rest need not be
	d.settled(c)
	d.send(ctx, newOutgoing(b))
	return nil
}
