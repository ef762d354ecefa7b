package exec

import (
	"context"
	"errors"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/protocol"
)

// Recorded is implemented by a loop that can tell which of its steps have finished
// in an earlier attempt. The agent is shown them; it makes no other difference.
type Recorded = protocol.Recorded

// Fenced is implemented by a loop that knows the epoch of its lease. It becomes
// STINT_EPOCH, so that what the program talks to can refuse one that was fenced,
// and a kept process is not used under another.
type Fenced = protocol.Fenced

// Members is implemented by an error of [stint.Loop.DoAll] that knows the errors
// of all members, and not only the first.
type Members = protocol.Members

// driver takes the requests of one talk to the loop. It lives on the goroutine
// that Loop was called in.
type driver struct {
	*talk

	loop  stint.Loop
	steps int // that were begun
	left  bool
	hello *outgoing // the line that begins the loop
}

// run does the loop. alive tells that the process ended it well and still runs.
func (d *driver) run(ctx context.Context, hello []byte) (next stint.Next, alive bool, err error) {
	d.hello = newOutgoing(hello)
	d.send(ctx, d.hello)
	for {
		var m *protocol.Message
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
		if m == nil || m.End == nil && d.isSilent() { // nobody is there to do the step
			return stint.Next{}, false, d.leave(ctx)
		}
		switch m.Kind {
		case "end":
			return d.finish(m.End)
		case "steps":
			err = d.group(ctx, m.Calls)
		case "spawn":
			err = d.spawn(ctx, m.Calls[0])
		default:
			err = d.one(ctx, m.Calls[0])
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
func (d *driver) finish(e *protocol.Ending) (stint.Next, bool, error) {
	next := e.Next
	next.State = d.state()
	goesOn := e.Err == nil && next.End == nil && next.Wait == nil
	if goesOn && d.peer.spec.Keep == KeepSession && !d.hasFailed() {
		d.peer.release()
		return next, true, nil
	}
	d.left = true
	close(d.over)
	if d.peer.retire(exitTime) {
		d.peer.sink.Notef("the agent did not exit within %v of the end of its loop and was killed", exitTime)
	} else if x := d.peer.proc.Wait(); x.Code != 0 && !x.Killed {
		d.peer.sink.Notef("the agent %s after the end of its loop", (&ExitError{Code: x.Code, Signal: signalName(x)}).how())
	}
	if d.hasFailed() {
		return stint.Next{}, false, d.verdict()
	}
	if e.Err != nil {
		return stint.Next{}, false, e.Err
	}
	return next, false, nil
}

// one does a step by itself. An error ends the loop.
func (d *driver) one(ctx context.Context, c *protocol.Call) error {
	d.steps++
	d.describe(c)
	var called bool
	var own error
	at := d.position(d.steps, 0)
	res, err := d.loop.Do(ctx, c.Step, func(step context.Context, key string) (stint.Result, error) {
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
		return d.partly(ctx, []*protocol.Call{c}, err)
	case called && own != nil && err == nil:
		return d.overruled(ctx, c)
	case called && (err == nil || own != nil):
		c.Step.Input = nil
		return nil //nolint:nilerr // the agent has it; if it is gone, the next look shows it
	case called || protocol.Refused(err):
		return err
	}
	return d.cached(ctx, c, res, err)
}

// spawn begins a child session and answers with it. An error ends the loop.
func (d *driver) spawn(ctx context.Context, c *protocol.Call) error {
	d.steps++
	res, err := protocol.Spawn(ctx, d.loop, c)
	switch {
	case errors.Is(err, stint.ErrParked):
		return d.partly(ctx, []*protocol.Call{c}, err)
	case protocol.Refused(err):
		return err
	}
	return d.cached(ctx, c, stint.Result{Data: res}, err)
}

// overruled ends a loop in which a step failed for the agent and not for the
// journal, where a rule for steps in doubt has settled it. The agent was told
// otherwise; it is asked again and gets the journal's answer.
func (d *driver) overruled(ctx context.Context, c *protocol.Call) error {
	if d.hasFailed() || d.isSilent() || ctx.Err() != nil {
		return nil //nolint:nilerr // it does not go on anyway
	}
	return stint.Retry(0, stint.Conflict.Errorf("", "step %d, %s, failed and was settled by rule; the loop begins again with that answer", c.ID, c.Step.Name))
}

// group does steps at once. An error ends the loop.
func (d *driver) group(ctx context.Context, calls []*protocol.Call) error {
	d.steps++
	steps := make([]stint.Step, len(calls))
	at := make([]string, len(calls))
	for i, c := range calls {
		d.describe(c)
		steps[i], at[i] = c.Step, d.position(d.steps, i+1)
	}
	called, own := make([]bool, len(calls)), make([]error, len(calls))
	results, err := d.loop.DoAll(ctx, steps, func(step context.Context, i int, key string) (stint.Result, error) {
		called[i] = true
		r, err := d.effect(ctx, step, calls[i], key, at[i])
		own[i] = err
		return r, err
	})
	var rest []*protocol.Call
	var mine bool
	for i, c := range calls {
		if !called[i] {
			rest = append(rest, c)
		}
		mine = mine || own[i] != nil
	}
	for i, c := range calls {
		if own[i] != nil && !errors.Is(err, stint.ErrParked) && protocol.MemberError(err, i, stint.Result{}) == nil {
			return d.overruled(ctx, c)
		}
	}
	switch {
	case errors.Is(err, stint.ErrParked):
		return d.partly(ctx, rest, err)
	case err != nil && (protocol.Refused(err) && !isOne(err, own) || len(rest) == 0 && !mine):
		return err
	}
	for i, c := range calls {
		if called[i] {
			c.Step.Input = nil
			continue
		}
		var res stint.Result
		if i < len(results) {
			res = results[i]
		}
		if failed := d.cached(ctx, c, res, protocol.MemberError(err, i, res)); failed != nil {
			return failed
		}
	}
	return nil
}

func isOne(err error, of []error) bool {
	for _, e := range of {
		if e != nil && errors.Is(err, e) {
			return true
		}
	}
	return false
}

// describe completes a step by the configuration.
func (d *driver) describe(c *protocol.Call) {
	c.Step.Effect = d.peer.spec.effect(c.Step.Name, c.Step.Effect)
	c.Step.Timeout = d.peer.spec.StepTimeout
}

func (d *driver) position(step, sub int) string {
	return stint.Position{Loop: d.ses.At.Loop, Step: step, Sub: sub}.String()
}

// cached answers a step from the journal.
func (d *driver) cached(ctx context.Context, c *protocol.Call, res stint.Result, err error) error {
	line, err := protocol.Recall(c.ID, res.Data, err)
	if err != nil {
		return err
	}
	c.Step.Input = nil // the id is remembered, the rest need not be
	d.settled(c)
	d.send(ctx, newOutgoing(line))
	return nil
}
