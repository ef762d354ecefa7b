package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// Verifier finds out whether the effect of a once step took place.
type Verifier func(ctx context.Context, step stint.Step, key string) (journal.Verdict, json.RawMessage, error)

// doubt decides what becomes of a once step whose outcome is not known: as the
// agent's rule says, else a person is asked.
func (l *loop) doubt(c *call, cause error) {
	rule := Doubt{}
	if l.d.agent.Doubt != nil {
		// One that panics is one that does not know: a person is asked.
		_ = shielded(func() error { rule = l.d.agent.Doubt(c.step.Name); return nil })
	}
	verdict, result := journal.Verdict(""), json.RawMessage(nil)
	switch {
	case rule.Unknown:
		verdict = journal.Unknown
	case rule.Verify != nil && !l.d.stopping():
		var v journal.Verdict
		var r json.RawMessage
		err := shielded(func() (err error) {
			v, r, err = rule.Verify(l.d.ctx, c.step, journal.Key(l.start.ID, c.pos))
			return err
		})
		if err == nil {
			err = checkValue("the result", r) // from outside: a person looks at what cannot be recorded
		}
		if err == nil {
			verdict, result = v, r
		}
	}
	switch verdict {
	case journal.Happened, journal.Unknown:
		l.resolved(c, verdict, result, cause)
	case journal.NotHappened:
		l.again(c, cause)
	default:
		l.parkFor(&parking{wait: &stint.Wait{For: stint.ForDoubt, Step: c.pos,
			What: fmt.Sprintf("step %s %s: did it happen? (%s)", c.pos, c.step.Name, oneLine(cause))}})
	}
}

// resolved answers c by the rule's verdict.
func (l *loop) resolved(c *call, v journal.Verdict, result json.RawMessage, cause error) {
	if v == journal.Unknown {
		result = json.RawMessage(past.Unknown)
	} else if result == nil {
		result = json.RawMessage("null")
	}
	d := journal.StepResolved{Verdict: v, Reason: "rule of the agent: " + oneLine(cause)}
	body := result
	if v == journal.Unknown {
		body = nil
	}
	if _, err := l.d.w.add(journal.Draft{Kind: stint.StepResolved, Pos: c.pos, Actor: stint.ByPolicy, Data: d, Body: body}); err != nil {
		_ = l.refused(err)
		return
	}
	l.count(c.step, stint.Usage{})
	c.answered, c.result, c.err = true, stint.Result{Data: result}, nil
	l.d.w.flush(false)
}

// again records that the effect did not take place. On replay the step is done
// again; after an error it is the agent's retry policy that does so.
func (l *loop) again(c *call, cause error) {
	d := journal.StepResolved{Verdict: journal.NotHappened, Reason: "rule of the agent: " + oneLine(cause)}
	if _, err := l.d.w.add(journal.Draft{Kind: stint.StepResolved, Pos: c.pos, Actor: stint.ByPolicy, Data: d}); err != nil {
		_ = l.refused(err)
		return
	}
	c.intended = false
	l.d.w.flush(false)
}

// diverged parks a loop whose step is not the one that the journal has.
func (l *loop) diverged(c *call, was journal.StepRequested) *parking {
	what := fmt.Sprintf("step %s was %s, the agent now asks for %s", c.pos, past.Describe(was), past.Describe(c.intent))
	return &parking{hint: l.changed(), wait: &stint.Wait{For: stint.ForDoubt, Step: c.pos, What: what}}
}

// changed is what to do where a loop does not go on as it began: no verdict on a step
// settles that.
func (l *loop) changed() string {
	return fmt.Sprintf("the agent is no longer what it was when the loop began (its code, instructions or tools): "+
		"stint restart %[1]s --from %[2]d --run does the loop anew, as the agent is now; or put it back, and stint resume %[1]s --run", l.start.ID, l.start.At.Loop-1)
}

// skipped parks a loop that ended without a step that the journal has.
func (l *loop) skipped(p *past.Step) *parking {
	pos := l.at(p.Step, p.Sub)
	what := fmt.Sprintf("step %s was %s, the agent now ends the loop without it", pos, past.Describe(p.Intent))
	return &parking{hint: l.changed(), wait: &stint.Wait{For: stint.ForDoubt, Step: pos, What: what}}
}
