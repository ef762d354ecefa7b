package replay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// Source is what a replay reads.
type Source interface {
	stint.Reader
	stint.Blobs
}

// releaser is implemented by agents that keep a process between loops.
type releaser interface{ Release(session stint.ID) }

// Run does the completed loops of a line of a session again with agent, until one comes
// out otherwise than recorded. A difference is no error. Errors: [stint.NotFound] for a
// session, a line or loops that there are not, and for bodies that were erased;
// [stint.Invalid] for the system journal; [stint.Corrupt]; the error of ctx.
func Run(ctx context.Context, src Source, id stint.ID, agent stint.Agent, opt Options) (*Report, error) {
	t, rep, err := open(ctx, src, id, &opt)
	if err != nil {
		return nil, err
	}
	if r, ok := agent.(releaser); ok {
		defer r.Release(id)
	}
	states := past.NewWalk(past.States(ctx, src, id, t.family))
	for {
		c, err := t.next()
		if err != nil {
			return nil, readable(err)
		}
		if c == nil {
			return rep, nil
		}
		if opt.Settled {
			c.told, c.session.At.Approvals = c.steps, nil
		}
		l := &loop{tape: c, from: t, output: opt.Output}
		if l.state, err = states.At(c.session.Checkpoint); err != nil {
			return nil, readable(err)
		}
		next, failed := call(ctx, agent, l)
		if err := cmp.Or(ctx.Err(), l.err); err != nil {
			return nil, readable(err)
		}
		d, err := l.close(next, failed, states)
		if err != nil {
			return nil, readable(err)
		}
		if d != nil {
			rep.Divergence = d
			return rep, nil
		}
		done := Loop{Loop: c.loop.Number, Line: c.loop.Line, Attempt: c.session.At.Attempt, Steps: l.step, Headline: c.loop.Headline}
		rep.Loops = append(rep.Loops, done)
		if opt.Passed != nil {
			opt.Passed(done)
		}
	}
}

// open finds the loops that are to be done again.
func open(ctx context.Context, src Source, id stint.ID, opt *Options) (*tapes, *Report, error) {
	row, err := src.Session(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if row.Session.Trigger.OfServer() {
		return nil, nil, refuse(stint.Invalid, id, "give a session; stint ps -a lists them", "the system journal is no session that ran")
	}
	loops, line, err := past.Course(ctx, src, id, opt.Line)
	if err != nil {
		return nil, nil, err
	}
	loops = slices.DeleteFunc(loops, func(l journal.Loop) bool { return !l.Completed() })
	first, newest := 1, 0
	if len(loops) > 0 { // a branch begins behind a loop of another session
		first, newest = loops[0].Number, loops[len(loops)-1].Number
	}
	from, to := cmp.Or(opt.From, first), cmp.Or(opt.To, newest)
	switch {
	case newest == 0:
		return nil, nil, refuse(stint.NotFound, id, "stint show says how it stands", "no loop of it is completed yet, and only completed loops are done again")
	case from < first:
		return nil, nil, refuse(stint.NotFound, id, "give loops of those", "loop %d is none of this session; loops %d to %d are completed", from, first, newest)
	case from > newest || to > newest:
		return nil, nil, refuse(stint.NotFound, id, "give loops of those", "loop %d is not completed; loops %d to %d are", max(from, to), first, newest)
	case to < from:
		return nil, nil, refuse(stint.Invalid, id, "give the first loop and then the last", "loop %d comes before loop %d", to, from)
	}
	t := &tapes{ctx: ctx, src: src, family: row.Session.Family, fold: stint.Session{}, loops: loops[from-first : to-first+1], early: map[place][]stint.Message{}}
	es, err := src.Entries(ctx, stint.Range{Session: id, Limit: 2})
	if err != nil {
		return nil, nil, err
	}
	input, in, err := past.FirstInput(es)
	if err == nil && in != nil {
		t.input, t.inputSeq = input, in.Seq
		t.input.Body, err = past.Body(ctx, src, t.family, in)
	}
	if err != nil {
		return nil, nil, readable(err)
	}
	t.fold, err = journal.Fold(stint.Session{}, es[:1])
	t.after = es[0].Seq
	return t, &Report{Session: id, Line: line, From: from, To: to, Loops: []Loop{}}, err
}

func refuse(code stint.Code, id stint.ID, hint, format string, args ...any) error {
	return &stint.Error{Code: code, Op: "replay", Session: id, Err: fmt.Errorf(format, args...), Hint: hint}
}

// readable says what to do about a journal that cannot be read.
func readable(err error) error {
	var e *stint.Error
	if !errors.As(err, &e) || e.Hint != "" || e.Code != stint.NotFound && e.Code != stint.Corrupt {
		return err
	}
	return &stint.Error{Code: e.Code, Op: "replay", Err: err, Hint: "stint verify says what is missing; loops before it can be done again with --to"}
}

// call runs the agent; a panic is an error.
func call(ctx context.Context, agent stint.Agent, l *loop) (next stint.Next, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return agent.Loop(ctx, l)
}

// close compares how the loop ended with what is on record; nil: it is the same.
func (l *loop) close(next stint.Next, failed error, states *past.Walk) (*Divergence, error) {
	if l.diverged != nil {
		return l.diverged, nil
	}
	end := l.at(0, 0)
	if failed != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(failed.Error()), "\n")
		return &Divergence{What: AgentFailed, Pos: l.at(l.step, 0), Seq: l.loop.End, Text: "the loop was completed, and the agent fails: " + line}, nil
	}
	if at, intent, ok := l.left(l.step); ok {
		was, err := l.from.recordedStep(l.tape, at, intent)
		if err != nil {
			return nil, err
		}
		d := divergeStep(LeftStep, l.at(at[0], at[1]), was, nil)
		d.Seq = l.seqs[at]
		return d, nil
	}
	if d, err := l.compareState(next.State, states); d != nil || err != nil {
		return d, err
	}
	what, text := l.compareEnd(next)
	if text == "" {
		return nil, nil
	}
	return &Divergence{What: what, Pos: end, Seq: l.loop.End, Text: text}, nil
}

// compareState compares the state that the loop leaves with the recorded one.
func (l *loop) compareState(state json.RawMessage, states *past.Walk) (*Divergence, error) {
	was := l.state
	if ref := l.done.State; ref.Enc != journal.Same {
		var err error
		if was, err = states.At(stint.Checkpoint{Seq: l.loop.End, Rank: ref.Rank, Weight: ref.Weight, Size: ref.Size, Sum: ref.Sum}); err != nil {
			return nil, err
		}
	}
	if state == nil {
		state = l.state
	}
	if bytes.Equal(was, state) {
		return nil, nil
	}
	c := past.Compare(was, state)
	d := &Divergence{What: OtherState, Pos: l.at(0, 0), Seq: l.loop.End, Change: &c}
	switch n := len(c.Changes) + c.More; {
	case n == 0:
		d.Text = "the loop leaves the same state, written otherwise"
	case n == 1:
		d.Text = "the loop leaves another state: it differs in 1 place"
	default:
		d.Text = fmt.Sprintf("the loop leaves another state: it differs in %d places", n)
	}
	return d, nil
}

// compareEnd says how what follows the loop differs from what did; empty: it does not.
func (l *loop) compareEnd(next stint.Next) (What, string) {
	if !l.whole && l.ended == nil && l.waits == nil {
		return "", "" // the journal ends with the loop, and its session may just be about to end
	}
	stopped := l.ended != nil && l.ended.Outcome == stint.Completed && l.ended.Reason == past.StopMet
	switch {
	case next.End != nil:
		return OtherEnd, l.compareEnded(next.End)
	case l.ended != nil && !stopped && l.endsByAgent():
		return OtherEnd, fmt.Sprintf("the session ended here (%s), and the agent goes on", endText(l.ended.Outcome, l.ended.Reason))
	case stopped:
		return "", ""
	case next.Wait != nil:
		want := past.WaitFor(next.Wait)
		switch {
		case want == stint.ForChild && l.ended == nil && (l.waits == nil || !l.waitsByAgent()): // which had ended by then
		case l.waits == nil && l.ended == nil:
			return OtherWait, fmt.Sprintf("the session went on, and the agent waits (for: %s)", want)
		case l.waits != nil && l.waits.For != want:
			return OtherWait, fmt.Sprintf("the session waited (for: %s), and the agent waits (for: %s)", l.waits.For, want)
		}
	case l.waits != nil && l.waitsByAgent():
		return OtherWait, fmt.Sprintf("the session waited (for: %s), and the agent goes on", l.waits.For)
	}
	return "", ""
}

// endsByAgent tells the agent's end from one that somebody else brought about.
func (l *loop) endsByAgent() bool {
	switch l.ended.Outcome {
	case stint.Completed:
		return true
	case stint.Failed:
		return !strings.HasPrefix(l.ended.Reason, past.StopFailed)
	case stint.Stopped:
		name, _, limit := strings.Cut(l.ended.Reason, ": ")
		return !limit || !slices.Contains([]string{"deadline", "wall", "idle", "loops", "steps", "tokens", "cost"}, name)
	}
	return false
}

// waitsByAgent tells the agent's wait from one that somebody else brought about.
func (l *loop) waitsByAgent() bool {
	switch l.waits.For {
	case stint.ForBudget, stint.ForOperator:
		return false
	case stint.ForRetry:
		return !strings.HasPrefix(l.waits.What, past.Unbegun)
	}
	return !l.byOrder
}

func (l *loop) compareEnded(e *stint.End) string {
	outcome := cmp.Or(e.Outcome, stint.Completed)
	if l.ended == nil {
		then := "went on"
		if l.waits != nil {
			then = fmt.Sprintf("waited (for: %s)", l.waits.For)
		}
		return fmt.Sprintf("the session %s, and the agent ends it (%s)", then, endText(outcome, e.Reason))
	}
	was := l.ended
	// A reason is recorded as one line of bounded length.
	sameReason := strings.Contains(strings.ToValidUTF8(e.Reason, "\uFFFD"), strings.TrimSuffix(was.Reason, "…")) && (was.Reason == "") == (strings.TrimSpace(e.Reason) == "")
	switch {
	case was.Outcome != outcome || !sameReason:
		return fmt.Sprintf("the session ended (%s), and the agent ends it (%s)", endText(was.Outcome, was.Reason), endText(outcome, e.Reason))
	case !bytes.Equal(l.result, e.Result):
		return "the session ended with another result than the agent gives now"
	}
	return ""
}

func endText(outcome stint.Status, reason string) string {
	reason, _, _ = strings.Cut(strings.TrimSpace(reason), "\n")
	if reason == "" {
		return string(outcome)
	}
	return string(outcome) + ": " + reason
}
