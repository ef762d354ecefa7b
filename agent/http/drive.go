package http

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
	"github.com/stint-dev/stint/internal/protocol"
)

// driver does one loop. It lives on the goroutine that Loop was called in; only effect
// runs beside it, for the members of a group.
type driver struct {
	agent *Agent
	loop  stint.Loop
	ses   stint.Session
	epoch int64
	hello []byte // the line that begins the loop, the same in each request
	sink  *child.Log
	slots chan struct{} // one for each request of a group that is under way
	sent  atomic.Int64  // requests

	past     []*declared // what the agent declared, in order
	size     int64       // bytes of hello and of all answers
	reported error       // the error that the agent gave as a step's result, until it begins another
}

// declared is a step, or a group, that the agent named in this loop. It names it again
// in each request that follows.
type declared struct {
	group bool
	steps []*told
}

// told is one step and its answer.
type told struct {
	id     int64
	name   string
	sum    [sha256.Size]byte // of all that the agent said of it
	answer []byte            // the line that has its outcome; nil: it has none yet
}

func newDeclared(m *protocol.Message) *declared {
	e := &declared{group: m.Group}
	for _, c := range m.Calls {
		e.steps = append(e.steps, &told{id: c.ID, name: c.Step.Name, sum: sumOf(c)})
	}
	return e
}

func sumOf(c *protocol.Call) [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %d ", c.Step.Name, c.Step.Kind, c.Step.Effect, len(c.Step.Input))
	h.Write(c.Step.Input)
	return [sha256.Size]byte(h.Sum(nil))
}

// run does the loop: it reads one response after the other, until one of them ends it.
func (d *driver) run(ctx context.Context) (stint.Next, error) {
	var x *exchange
	d.size = int64(len(d.hello))
	for {
		var err error
		if x == nil {
			if x, _, err = d.open(ctx, nil); err != nil {
				return stint.Next{}, err
			}
		}
		m, err := x.next()
		switch {
		case err != nil:
		case m == nil:
			err = d.left()
		case m.End != nil:
			return d.finish(x, m.End)
		default:
			d.reported = nil // it went on after an error
			if err = x.rest(); err != nil {
				break
			}
			x.close()
			e := newDeclared(m)
			d.past = append(d.past, e)
			if m.Group {
				x, err = d.group(ctx, m.Calls, e)
			} else {
				x, err = d.one(ctx, m.Calls[0], e.steps[0])
			}
		}
		if err != nil {
			x.close()
			return stint.Next{}, err
		}
	}
}

// left is the error of a loop whose agent did not end it.
func (d *driver) left() error {
	err := protocol.Breach(nil, errors.New("the agent ended its response without an end message"), "")
	if d.reported != nil { // most likely why, and it may say when to try again
		return fmt.Errorf("%w; then %w", d.reported, err)
	}
	return err
}

// finish ends a loop as the agent said. Only a breach that follows changes that.
func (d *driver) finish(x *exchange, e *protocol.Ending) (stint.Next, error) {
	defer x.close()
	x.whole.Reset(endTime)
	if err := x.rest(); err != nil {
		if x.breach {
			return stint.Next{}, err
		}
		d.sink.Notef("after the end of the loop the response did not end well: %v", err)
	}
	if e.Err != nil {
		return stint.Next{}, e.Err
	}
	next := e.Next
	next.State = x.book.Memory.Changed()
	return next, nil
}

// proceeding is a step that the agent may do in a request.
type proceeding struct {
	call *protocol.Call
	step *told
	line []byte
	key  string
	ctx  context.Context //nolint:containedctx // the step's, which ends before the request does
}

// one does a step by itself and returns the exchange to go on with; nil: a new one.
func (d *driver) one(ctx context.Context, c *protocol.Call, s *told) (*exchange, error) {
	if c.Child != nil {
		res, err := protocol.Spawn(ctx, d.loop, c)
		if errors.Is(err, stint.ErrParked) || protocol.Refused(err) {
			return nil, err
		}
		return nil, d.settle(c, s, res, err)
	}
	d.describe(c)
	at := d.position(0)
	var x *exchange
	var called bool
	var own error
	res, err := d.loop.Do(ctx, c.Step, func(step context.Context, key string) (stint.Result, error) {
		called = true
		var r stint.Result
		x, r, own = d.effect(ctx, step, c, s, key, at)
		return r, own
	})
	switch {
	case errors.Is(err, stint.ErrParked), err != nil && !d.isOutcome(called, x, own, err):
		x.close()
		return nil, err
	case called && own != nil && err == nil: // a rule for steps in doubt has settled it: the agent gets that
		x.close()
		x = nil
	case called && own != nil:
		d.reported = own
	}
	return x, d.settle(c, s, res.Data, err)
}

// isOutcome reports that err is how the step came out, so that the agent can go on with
// it: as the agent itself said, or as the journal has it.
func (d *driver) isOutcome(called bool, x *exchange, own, err error) bool {
	if called && own != nil {
		return x != nil
	}
	return !called && !protocol.Refused(err)
}

// group does steps at once, each in a request of its own, and returns as one does.
func (d *driver) group(ctx context.Context, calls []*protocol.Call, e *declared) (*exchange, error) {
	steps := make([]stint.Step, len(calls))
	at := make([]string, len(calls))
	for i, c := range calls {
		d.describe(c)
		steps[i], at[i] = c.Step, d.position(i+1)
	}
	called, own, xs := make([]bool, len(calls)), make([]error, len(calls)), make([]*exchange, len(calls))
	results, err := d.loop.DoAll(ctx, steps, func(step context.Context, i int, key string) (r stint.Result, _ error) {
		called[i] = true
		xs[i], r, own[i] = d.effect(ctx, step, calls[i], e.steps[i], key, at[i])
		return r, own[i]
	})
	if len(calls) == 1 && own[0] == nil && err == nil && xs[0] != nil { // nothing is left to wait for: the agent goes on
		return xs[0], d.settle(calls[0], e.steps[0], results[0].Data, nil)
	}
	defer func() {
		for _, x := range xs {
			x.close()
		}
	}()
	if errors.Is(err, stint.ErrParked) {
		return nil, err
	}
	for i, c := range calls {
		var res stint.Result
		if i < len(results) {
			res = results[i]
		}
		failed := protocol.MemberError(err, i, res)
		switch {
		case failed != nil && !d.isOutcome(called[i], xs[i], own[i], failed):
			return nil, failed
		case failed != nil && own[i] != nil:
			d.reported = own[i]
		}
		if err := d.settle(c, e.steps[i], res.Data, failed); err != nil {
			return nil, err
		}
	}
	if len(calls) > 1 {
		d.leave(xs)
	}
	return nil, nil
}

// leave reads the responses of a group to their ends. The agent was told to leave, so
// only its logs count; what else it says, right or wrong, changes nothing.
func (d *driver) leave(xs []*exchange) {
	for _, x := range xs {
		if x != nil {
			x.whole.Reset(endTime)
			_ = x.rest()
		}
	}
}

// settle notes a step's outcome for the requests that follow.
func (d *driver) settle(c *protocol.Call, s *told, data json.RawMessage, err error) error {
	line, err := protocol.Recall(c.ID, data, err)
	if err != nil {
		return err
	}
	s.answer = line
	c.Step.Input = nil
	d.size += int64(len(line))
	return nil
}

// effect has the agent do a step. It may run on any goroutine. An error with an exchange
// is the agent's own; one without is what became of the request.
func (d *driver) effect(ctx, step context.Context, c *protocol.Call, s *told, key, at string) (*exchange, stint.Result, error) {
	line, err := protocol.Proceed(c.ID, key, at)
	if err != nil {
		return nil, stint.Result{}, protocol.NotBegun{Err: err}
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-step.Done():
		return nil, stint.Result{}, protocol.NotBegun{Err: context.Cause(step)}
	}
	x, begun, err := d.open(ctx, &proceeding{c, s, line, key, step})
	if err != nil {
		if !begun {
			return nil, stint.Result{}, protocol.NotBegun{Err: err}
		}
		return nil, stint.Result{}, fmt.Errorf("while %s was under way: %w", c.Step.Name, err)
	}
	m, err := x.next()
	switch {
	case err == nil && m == nil:
		err = protocol.Breach(nil, errors.New("the agent ended its response without the result"), "")
	case err == nil && m.Kind != "result": // not reached: the step is open
		err = protocol.Breach(nil, fmt.Errorf("the agent sent %s where the result belongs", m.Kind), "")
	}
	if err != nil {
		x.close()
		return nil, stint.Result{}, fmt.Errorf("while %s was under way: %w", c.Step.Name, err)
	}
	x.release()
	return x, m.Answer.Result, m.Answer.Err
}

// describe completes a step by the configuration.
func (d *driver) describe(c *protocol.Call) {
	s := &d.agent.spec
	c.Step.Effect = protocol.Effect(s.Effects, c.Step.Name, c.Step.Effect, s.Effect)
	c.Step.Timeout = s.Timeout
}

// position is the place of the newest step.
func (d *driver) position(sub int) string {
	return stint.Position{Loop: d.ses.At.Loop, Step: len(d.past), Sub: sub}.String()
}
