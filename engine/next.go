package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// maxWakes bounds the kinds of messages that a wait names; there are fewer.
const maxWakes = 16

// checkNext says what is wrong with what a loop returned: the whole of it, before
// anything of the loop's end is recorded. What it lets through can be recorded.
func checkNext(n *stint.Next) error {
	if err := checkValue("Next.State", n.State); err != nil {
		return err
	}
	switch {
	case n.End != nil:
		return checkEnd(n.End)
	case n.Wait != nil:
		return checkWait(n.Wait)
	}
	return nil
}

func badNext(code stint.Code, hint, format string, args ...any) error {
	return &stint.Error{Code: code, Op: "loop", Err: fmt.Errorf(format, args...), Hint: hint}
}

// checkValue checks a JSON value that an agent gives; nil is none.
func checkValue(field string, v json.RawMessage) error {
	if v == nil {
		return nil
	}
	if len(v) > journal.MaxBody {
		return badNext(stint.Limit, "keep large content in a file or a database and store where it lies",
			"%s would be %d bytes; at most %d fit", field, len(v), journal.MaxBody)
	}
	if err := jsonx.Check(v, jsonx.Limits{}); err != nil {
		return badNext(stint.Invalid, "make it with stint.Marshal or json.Marshal", "%s is not one JSON value: %w", field, err)
	}
	return nil
}

func checkEnd(e *stint.End) error {
	switch e.Outcome {
	case "", stint.Completed, stint.Failed, stint.Stopped:
	default:
		return badNext(stint.Invalid, "an agent ends its session as completed, failed or stopped",
			"Next.End.Outcome is %q; it is one of %q, %q, %q, or empty for %[2]q", clip(string(e.Outcome), 60), stint.Completed, stint.Failed, stint.Stopped)
	}
	return checkValue("Next.End.Result", e.Result)
}

// checkWait lets an agent wait for what something can end.
func checkWait(w *stint.Wait) error {
	timed := !w.Until.IsZero()
	switch w.For {
	case "", stint.ForMessage, stint.ForOperator, stint.ForHealth, stint.ForBudget, stint.ForChild:
	case stint.ForTime, stint.ForRetry:
		if !timed {
			return badNext(stint.Invalid, "set Until, or wait for a message", "Next.Wait.For is %q and Next.Wait.Until is not set: nothing would end the wait", w.For)
		}
	case stint.ForApproval:
		if w.Approval == "" {
			return badNext(stint.Invalid, "name the approval, or wait for a message", "Next.Wait.For is %q and Next.Wait.Approval is empty", w.For)
		}
	case stint.ForDoubt:
		return badNext(stint.Invalid, "wait for a message or for the operator", "Next.Wait.For is %q, which only the engine waits for: a once step without an outcome", w.For)
	default:
		return badNext(stint.Invalid, "wait for a message, a time or the operator", "Next.Wait.For is %q; it is one of %q, %q, %q, %q, %q, %q, %q, %q, or empty", clip(string(w.For), 60),
			stint.ForMessage, stint.ForTime, stint.ForRetry, stint.ForOperator, stint.ForApproval, stint.ForChild, stint.ForBudget, stint.ForHealth)
	}
	if y := w.Until.UTC().Year(); timed && (y < 1 || y > 9999) {
		return badNext(stint.Invalid, "leave Until unset to wait without an end", "Next.Wait.Until is in the year %d; it is in the years 1 to 9999", y)
	}
	if n := len(w.Approval); n > maxName {
		return badNext(stint.Invalid, "", "Next.Wait.Approval has %d bytes; it has at most %d", n, maxName)
	}
	if n := len(w.Wakes); n > maxWakes {
		return badNext(stint.Invalid, "name each kind once", "Next.Wait.Wakes names %d kinds of messages; at most %d", n, maxWakes)
	}
	for _, k := range w.Wakes {
		if k != stint.Prompt && k != stint.Decision && k != stint.ChildEnd {
			return badNext(stint.Invalid, "leave Wakes empty, and a wait for a message ends with a prompt",
				"Next.Wait.Wakes names %q; it names %q, %q and %q, for all other kinds act anyway", clip(string(k), 60), stint.Prompt, stint.Decision, stint.ChildEnd)
		}
	}
	return nil
}

// maxName bounds short names that come from outside, in bytes.
const maxName = 200

// asked is the wait that an agent asks for, without what only the engine says.
func asked(w *stint.Wait) *stint.Wait {
	out := *w
	out.Step, out.Since = stint.Position{}, time.Time{}
	return &out
}

// waitData bounds what is said of a wait, and lets a prompt end a wait for one.
func waitData(w *stint.Wait) journal.Waiting {
	out := *w
	out.What, out.Who = clip(firstLine(out.What), 1000), clip(out.Who, maxName)
	out.For = past.WaitFor(w)
	if out.For == stint.ForMessage && len(out.Wakes) == 0 {
		out.Wakes = []stint.MessageKind{stint.Prompt}
	}
	if out.For == stint.ForChild && !slices.Contains(out.Wakes, stint.ChildEnd) {
		out.Wakes = append(slices.Clone(out.Wakes), stint.ChildEnd)
	}
	out.Until = out.Until.UTC().Truncate(time.Microsecond)
	return out
}

// endData is what is recorded of an end.
func endData(p *parking) journal.Ended {
	d := journal.Ended{Outcome: p.end.Outcome, Reason: clip(firstLine(p.end.Reason), 1000), Hint: clip(p.hint, maxHint)}
	if d.Outcome == "" {
		d.Outcome = stint.Completed
	}
	return d
}

// newState encodes the state that a loop returned.
func (d *driver) newState(state json.RawMessage) (journal.StateRef, []byte, error) {
	s := d.w.session()
	if state == nil {
		return journal.StateRef{Enc: journal.Same, Size: s.Checkpoint.Size}, nil, nil
	}
	return journal.WriteState(s.Checkpoint, d.state, state, d.e.source(d.io, &s))
}

// stopCondition asks the agent's stop condition.
func (d *driver) stopCondition(s *stint.Session) (done bool, err error) {
	err = shielded(func() error {
		done, err = d.agent.Done(*s, d.state)
		return err
	})
	return done, err
}
