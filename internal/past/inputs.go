package past

import (
	"context"
	"encoding/json"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// Inputs finds what the steps of a loop were given, by step and member. That of a step that
// may be done again freely is on record up to a length, and beyond it as a hash.
type Inputs map[[2]int]*stint.Entry

// Add notes the entry that carries the input of a step, if e is one. It keeps e.
func (in Inputs) Add(e *stint.Entry) {
	at := [2]int{e.Pos.Step, e.Pos.Sub}
	switch e.Kind {
	case stint.StepRequested, stint.ApprovalRequested:
		in[at] = e
	case stint.StepCompleted, stint.StepFailed:
		if was := in[at]; was == nil || was.Kind == stint.StepCompleted || was.Kind == stint.StepFailed { // of a try
			in[at] = e
		}
	}
}

// Of returns the input of a step; known is false where there is only a hash of it.
func (in Inputs) Of(ctx context.Context, src Source, family stint.ID, at [2]int, intent journal.StepRequested) (input json.RawMessage, known bool, err error) {
	e := in[at]
	switch {
	case intent.Input == "":
		return nil, true, nil
	case e == nil:
		return nil, false, nil
	case e.Kind == stint.StepCompleted || e.Kind == stint.StepFailed:
		d, err := journal.Decode[journal.StepDone](e)
		return d.Args, len(d.Args) > 0, err
	}
	body, err := Body(ctx, src, family, e)
	return body, err == nil, err
}

// coursePage is how many entries are read at a time.
const coursePage = 1000

// Course returns the loops of a line of a session, -1 for the current one, and the number
// of the line. The errors are those of [journal.Course] and of the reads.
func Course(ctx context.Context, src Source, id stint.ID, line int) ([]journal.Loop, int, error) {
	kinds := []stint.Kind{stint.SessionCreated, stint.LineStarted, stint.LoopStarted, stint.LoopCompleted, stint.LoopFailed, stint.SessionEnded}
	var es []stint.Entry
	for after := stint.Seq(0); ; after = es[len(es)-1].Seq {
		more, err := src.Entries(ctx, stint.Range{Session: id, After: after, Kinds: kinds, Limit: coursePage})
		if err != nil {
			return nil, 0, err
		}
		for i := range more {
			more[i].Body = nil // states, which may be long
		}
		if es = append(es, more...); len(more) < coursePage {
			break
		}
	}
	loops, err := journal.Course(es, line)
	if err == nil && line < 0 {
		line = es[len(es)-1].Pos.Line
	}
	return loops, line, err
}
