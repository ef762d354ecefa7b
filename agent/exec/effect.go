package exec

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/protocol"
)

// effect has the agent do a step, within the loop's context and the step's. It may
// run on any goroutine. When it returns an error that is not the agent's own after
// the agent was told to proceed, the process is gone, so that nothing goes on
// behind the back of whoever tries again.
func (d *driver) effect(ctx, step context.Context, c *protocol.Call, key, at string) (stint.Result, error) {
	line, err := protocol.Proceed(c.ID, key, at)
	if err != nil {
		return stint.Result{}, protocol.NotBegun{Err: err}
	}
	o := newOutgoing(line)
	o.proceed = true
	d.start(c)
	if d.isSilent() || d.hasFailed() {
		return stint.Result{}, protocol.NotBegun{Err: d.unreachable(step)}
	}
	select {
	case d.peer.queue <- o:
	case <-step.Done():
		return stint.Result{}, protocol.NotBegun{Err: d.unreachable(step)}
	case <-d.failed:
		return stint.Result{}, protocol.NotBegun{Err: d.unreachable(step)}
	case <-d.peer.silent:
		return stint.Result{}, protocol.NotBegun{Err: d.unreachable(step)}
	}
	for written := o.written; ; {
		select {
		case a := <-c.Answers:
			return a.Result, a.Err
		case err := <-written:
			if written = nil; err != nil {
				return stint.Result{}, protocol.NotBegun{Err: d.deaf(ctx, c, err)}
			}
		case <-d.failed:
			return d.interrupted(ctx, step, c)
		case <-d.peer.silent:
			return d.interrupted(ctx, step, c)
		case <-step.Done():
			return d.interrupted(ctx, step, c)
		}
	}
}

// unreachable says why the agent was not told to proceed.
func (d *driver) unreachable(step context.Context) error {
	switch {
	case d.hasFailed():
		return errors.New("the agent broke the protocol before it was told to proceed")
	case d.isSilent():
		return errors.New("the agent ended before it was told to proceed")
	}
	err := fmt.Errorf("the agent does not read its standard input: %w", context.Cause(step))
	d.fail(err)
	return err
}

// deaf says why an agent did not take the line that tells it to proceed: it has
// ended, as is about to show, or it closed its input.
func (d *driver) deaf(ctx context.Context, c *protocol.Call, err error) error {
	timer := time.NewTimer(silentTime)
	defer timer.Stop()
	select {
	case <-d.peer.silent:
		return errors.New("the agent ended before it was told to proceed")
	case <-ctx.Done():
	case <-timer.C:
	}
	err = fmt.Errorf("the agent closed its standard input and cannot be told to proceed with %s: %w", c.Step.Name, err)
	d.fail(protocol.Breach(nil, err, "keep standard input open while steps are to come"))
	return err
}

// interrupted ends a process that was told to proceed and will not be waited for.
// If it still gave its result, that is the result.
func (d *driver) interrupted(ctx, step context.Context, c *protocol.Call) (stint.Result, error) {
	var cause error
	switch {
	case ctx.Err() != nil:
		cause = context.Cause(ctx)
		d.peer.stop()
		<-d.peer.gone
	case step.Err() != nil:
		cause = context.Cause(step)
		d.peer.stop()
		<-d.peer.gone
	case d.hasFailed():
		<-d.peer.gone
	default:
		d.peer.settle()
	}
	select {
	case a := <-c.Answers:
		return a.Result, a.Err
	default:
	}
	if cause == nil {
		return stint.Result{}, fmt.Errorf("while %s was under way: %w", c.Step.Name, d.breakdown())
	}
	cause = fmt.Errorf("while %s was under way: %w; the agent %s", c.Step.Name, cause, d.peer.exitError().how())
	d.fail(cause)
	return stint.Result{}, cause
}
