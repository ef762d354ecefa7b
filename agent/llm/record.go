package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
)

// Record is what the tools of another session gave. An agent that has one calls no tool:
// a call gets what an equal one got there. Its methods may be called from many goroutines.
type Record interface {
	// Key is the same for calls that are equal, and for no others.
	Key(name string, args json.RawMessage) string
	// Answer is what the call gave that had n equal ones before it, the last of them
	// where there were fewer; false if there was none. After an error it is asked again.
	Answer(ctx context.Context, name string, args json.RawMessage, n int) (Recorded, bool, error)
}

// Recorded is what became of a call.
type Recorded struct {
	Data  json.RawMessage // what its step gave
	Err   error           // the error that was its result instead, definite
	Args  json.RawMessage // what a person had put in the place of its arguments; nil: nobody had
	Child stint.ID        // the session that it began; zero: none
	End   *stint.Message  // how the session was told that Child had ended; nil: it was not
}

// OffRecord stands behind the name of a tool in the error of a call that is not on record.
const OffRecord = " is not on record: "

// recall has a call answered from the record, as the next of those that are equal. How
// many there were is in the state, so that it follows a session over restarts and branches.
func (p *pass) recall(c *planned) {
	switch {
	case p.a.spec.Record == nil || c.never != nil:
		return
	case c.tool.Name == finishName || c.tool.Name == readName: // which do nothing outside
		c.ask, c.why = "", ""
		return
	}
	key := p.a.spec.Record.Key(c.call.Name, c.args)
	c.recorded, c.nth = true, p.mem.Recalled[key]
	all := maps.Clone(p.mem.Recalled)
	if all == nil {
		all = map[string]int{}
	}
	all[key]++
	p.mem.Recalled = all
}

// recorded answers a call from the record. The tool is not called, whether there is an
// answer or not.
func (p *pass) recorded(ctx context.Context, c *planned) (stint.Result, error) {
	was, ok, err := p.a.spec.Record.Answer(ctx, c.call.Name, c.args, c.nth)
	switch {
	case err != nil:
		return stint.Result{}, err
	case !ok:
		return stint.Result{}, stint.Definite(&stint.Error{Code: stint.NotFound,
			Err:  errors.New(c.call.Name + OffRecord + "no result is recorded for these arguments, and nothing was done. Go on without it."),
			Hint: "the session runs with the recorded results of another one; a branch without --live-model calls its tools"})
	case was.Err != nil:
		return stint.Result{}, was.Err
	case c.asker != nil:
		return stint.Result{Data: was.Data}, nil
	}
	data, err := p.retold(&was)
	return stint.Result{Data: data}, err
}

// retold is a recorded result with what came of it then, since nothing else will tell.
func (p *pass) retold(was *Recorded) (json.RawMessage, error) {
	var is struct{ Text *string }
	var out tool.Output
	if json.Unmarshal(was.Data, &is) != nil || is.Text == nil || json.Unmarshal(was.Data, &out) != nil {
		return was.Data, nil // a person's word
	}
	if was.Child.IsZero() && was.Args == nil {
		return was.Data, nil
	}
	if was.Args != nil && !out.Error {
		out.Text = changedText(was.Args) + out.Text
	}
	if !was.Child.IsZero() {
		out.Text += childText(was.Child)
	}
	if was.End != nil {
		if text, _ := p.endText(was.End); text != "" {
			out.Text += " " + text
		}
	}
	return stint.Marshal(out)
}

// changedText stands before what a call gave whose arguments a person changed.
func changedText(args json.RawMessage) string {
	return fmt.Sprintf("(a person changed the arguments, to %s)\n", clip(string(args), 1000))
}

// childText stands behind what a call gave that began a session.
func childText(id stint.ID) string { return " Its id is " + id.String() + "." }
