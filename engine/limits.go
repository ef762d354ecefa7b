package engine

import (
	"fmt"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
)

// errDrain cancels an agent that a drain has waited for long enough.
var errDrain = fmt.Errorf("the runner drains")

// readDrain is how long a drain waits for steps that may be done again.
const readDrain = 2 * time.Second

// drain asks the driver to stop at the next step boundary, and cancels what takes
// longer than it may.
func (d *driver) drain() {
	d.mu.Lock()
	if !d.draining {
		d.draining = true
		close(d.drained)
	}
	d.mu.Unlock()
	time.AfterFunc(readDrain, func() {
		if d.once.Load() == 0 {
			d.stopAgent(errDrain)
		}
	})
	time.AfterFunc(d.e.opt.Drain, func() { d.stopAgent(errDrain) })
}

// stopAgent ends the agent's context.
func (d *driver) stopAgent(cause error) {
	d.mu.Lock()
	cancel := d.cancel
	d.mu.Unlock()
	cancel(cause)
}

// overLimit says whether a limit forbids the step, or the next loop if s is zero.
// beside is how many steps of the same group will run before it.
func (d *driver) overLimit(s stint.Step, beside int) *parking {
	ses := d.w.session()
	lim, ran := ses.Limits, d.w.running()
	switch {
	case pastDeadline(&ses):
		return deadline(lim)
	case lim.Wall > 0 && ran >= lim.Wall:
		return used(lim, "wall", fmt.Sprintf("%v of %v running time", ran.Round(time.Millisecond), lim.Wall))
	case s.Name == "" && lim.Loops > 0 && ses.Totals.Loops >= lim.Loops && !ses.At.Open:
		return used(lim, "loops", fmt.Sprintf("%d of %s", ses.Totals.Loops, counted(lim.Loops, "loop")))
	case lim.Steps > 0 && ses.Totals.Steps+beside >= lim.Steps:
		return used(lim, "steps", fmt.Sprintf("%d of %s", ses.Totals.Steps, counted(lim.Steps, "step")))
	}
	if n := ses.Totals.Tools + beside; s.Kind == stint.Tool && lim.ToolCalls > 0 && n >= lim.ToolCalls {
		return used(lim, "tool_calls", fmt.Sprintf("%d of %s", n, counted(lim.ToolCalls, "call")))
	}
	return overBudget(&ses, s)
}

// overBudget says whether a limit of tokens or money forbids the step: what is used and
// reserved, with what it reserves itself, would pass it, or nothing of it is left.
func overBudget(ses *stint.Session, s stint.Step) *parking {
	if s.Kind != stint.Model && s.Reserve == (stint.Usage{}) {
		return nil
	}
	lim := ses.Limits
	gone := ses.Totals.Usage.Add(ses.Totals.Reserved)
	if left := lim.Tokens - gone.Tokens(); lim.Tokens > 0 && (left <= 0 || s.Reserve.Tokens() > left) {
		return used(lim, "tokens", fmt.Sprintf("%d of %d tokens%s", gone.Tokens(), lim.Tokens, may(s.Reserve.Tokens() > 0, "%d", s.Reserve.Tokens())))
	}
	if left := lim.Cost - gone.Cost; lim.Cost > 0 && (left <= 0 || s.Reserve.Cost > left) {
		return used(lim, "cost", fmt.Sprintf("$%v of $%v%s", gone.Cost, lim.Cost, may(s.Reserve.Cost > 0, "$%v", s.Reserve.Cost)))
	}
	return nil
}

// may says what a step would have used at most.
func may(told bool, format string, most any) string {
	if !told {
		return ""
	}
	return fmt.Sprintf(", and the next call may use "+format, most)
}

// pastDeadline reports whether the session's deadline stops it, whatever it does or
// waits for.
func pastDeadline(s *stint.Session) bool {
	return !s.Limits.Deadline.IsZero() && !s.Status.Ended() && !faultpoint.Now().Before(s.Limits.Deadline)
}

func deadline(lim stint.Limits) *parking {
	return &parking{end: &stint.End{Outcome: stint.Stopped, Reason: "deadline: " + lim.Deadline.Format(time.RFC3339)}}
}

// used parks for a person to raise the limit, or stops where the limits say so.
func used(lim stint.Limits, name, figure string) *parking {
	if lim.Stop {
		return &parking{end: &stint.End{Outcome: stint.Stopped, Reason: name + ": " + figure}}
	}
	return &parking{wait: &stint.Wait{For: stint.ForBudget, What: name + ": " + figure}}
}

// watch sets the timer for what may run out while a step takes long. It is called
// again when the limits change.
func (d *driver) watch() {
	d.stopTimer()
	s := d.w.session()
	lim := s.Limits
	if lim.Deadline.IsZero() && lim.Wall == 0 && lim.Idle == 0 {
		return
	}
	d.pulse.touch()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = time.AfterFunc(d.nextCheck(&s), d.check)
}

// nextCheck is how long until the first of the limits may be used up.
func (d *driver) nextCheck(s *stint.Session) time.Duration {
	lim, now := s.Limits, faultpoint.Now()
	next := time.Hour
	if !lim.Deadline.IsZero() {
		next = min(next, lim.Deadline.Sub(now), time.Minute) // the clock that it is on may be set
	}
	if lim.Wall > 0 {
		next = min(next, lim.Wall+d.agent.grace()-d.w.running())
	}
	if lim.Idle > 0 && s.Status != stint.Waiting { // a question that is held is no silence
		next = min(next, lim.Idle-d.pulse.silent())
	}
	return max(next, 10*time.Millisecond)
}

// check cancels the step under way when a limit is used up and, for the wall
// limit, the grace has passed too.
func (d *driver) check() {
	s := d.w.session()
	lim, ran := s.Limits, d.w.running()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer == nil {
		return
	}
	switch {
	case pastDeadline(&s):
		d.over = deadline(lim)
	case lim.Wall > 0 && ran >= lim.Wall+d.agent.grace():
		d.over = used(lim, "wall", fmt.Sprintf("%v and %v of grace", lim.Wall, d.agent.grace()))
	case lim.Idle > 0 && s.Status != stint.Waiting && d.pulse.silent() >= lim.Idle:
		d.over = used(lim, "idle", fmt.Sprintf("no sign of life for %v", lim.Idle))
	default:
		d.timer.Reset(d.nextCheck(&s))
		return
	}
	d.cancel(errStop)
}

func (d *driver) stopTimer() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
