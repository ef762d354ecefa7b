package replay

import (
	"context"
	"maps"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// place is one step, or one member of a group.
type place = [2]int

// tape is what the journal has of one completed loop.
type tape struct {
	loop    journal.Loop
	session stint.Session // as of the last entry into the loop
	epoch   int64         // that it was entered under
	inbox   []stint.Message
	steps   past.Steps
	told    past.Steps // those that had been left when it was entered last
	tries   map[place]*journal.StepDone
	inputs  past.Inputs
	seqs    map[place]stint.Seq
	entered bool // the entries that follow its beginning are still part of it

	done    journal.LoopCompleted
	byOrder bool // a message was acted on after the loop, before the session stopped
	ended   *journal.Ended
	result  []byte
	waits   *journal.Waiting
	whole   bool // what followed the loop is known
}

// tapes reads the loops of a line one after the other.
type tapes struct {
	ctx      context.Context
	src      past.Source
	family   stint.ID
	input    stint.Message
	inputSeq stint.Seq // of the entry that has it
	fold     stint.Session
	loops    []journal.Loop // wanted, and not given out yet
	current  *tape
	early    map[place][]stint.Message // taken for a loop that has not begun, by line and loop
	page     []stint.Entry
	after    stint.Seq
	end      bool
}

// readPage is how many entries are read at a time.
const readPage = 1000

// next returns the next wanted loop; nil: there is none.
func (t *tapes) next() (*tape, error) {
	if len(t.loops) == 0 {
		return nil, nil
	}
	l := t.loops[0]
	t.loops = t.loops[1:]
	t.current = &tape{loop: l, steps: past.Steps{}, told: past.Steps{}, tries: map[place]*journal.StepDone{}, inputs: past.Inputs{}, seqs: map[place]stint.Seq{}}
	if l.Number == 1 && len(t.input.Body) > 0 {
		t.current.inbox = append(t.current.inbox, t.input)
	}
	t.current.inbox = append(t.current.inbox, t.early[place{l.Line, l.Number}]...)
	delete(t.early, place{l.Line, l.Number})
	for !t.current.whole {
		e, err := t.entry()
		if err != nil {
			return nil, err
		}
		if e == nil {
			break
		}
		if t.current.follow(e); t.current.whole {
			break // e is of what comes after, and is read again
		}
		t.page = t.page[1:]
		if t.fold, err = journal.Apply(t.fold, *e); err != nil {
			return nil, err
		}
		if err := t.add(e); err != nil {
			return nil, err
		}
	}
	return t.current, nil
}

// entry is the next entry; nil: there is none.
func (t *tapes) entry() (*stint.Entry, error) {
	if len(t.page) == 0 && !t.end {
		es, err := t.src.Entries(t.ctx, stint.Range{Session: t.fold.ID, After: t.after, Limit: readPage})
		if err != nil {
			return nil, err
		}
		t.page, t.end = es, len(es) < readPage
		if len(es) > 0 {
			t.after = es[len(es)-1].Seq
		}
	}
	if len(t.page) == 0 {
		return nil, nil
	}
	return &t.page[0], nil
}

// follow looks whether e comes after all that belongs to the loop.
func (t *tape) follow(e *stint.Entry) {
	if e.Seq <= t.loop.End {
		return
	}
	switch e.Kind {
	case stint.LoopStarted, stint.LineStarted:
		t.whole = true
	default:
		t.whole = t.ended != nil || t.waits != nil
	}
}

// add notes what e says of the loop.
func (t *tapes) add(e *stint.Entry) error {
	c := t.current
	mine := e.Pos.Loop == c.loop.Number && e.Pos.Line == c.loop.Line
	if e.Kind == stint.MessageTaken && (!mine || e.Seq > c.loop.End) {
		return t.message(e)
	}
	if e.Seq > c.loop.End {
		return t.outcome(e)
	}
	if !mine {
		return nil
	}
	if c.entered && e.Kind != stint.MessageTaken && e.Kind != stint.MessageRefused {
		c.entered = false
	}
	switch e.Kind {
	case stint.LoopStarted:
		c.enter(e, t.fold)
	case stint.MessageTaken:
		return t.message(e)
	case stint.LoopCompleted:
		var err error
		c.done, err = journal.Decode[journal.LoopCompleted](e)
		return err
	}
	return c.step(e)
}

// enter notes that the loop was entered. A loop that was held for an answer goes on with
// such an entry too, under the same lease; it is not told from one that was left and entered
// again at once, so what the agent had gone on from by then is kept.
func (t *tape) enter(e *stint.Entry, now stint.Session) {
	if t.epoch != e.Epoch || t.session.At.Attempt != e.Pos.Attempt {
		clear(t.tries)
	}
	t.session, t.epoch, t.entered = now, e.Epoch, true
	t.told = past.Steps{}
	for at, s := range t.steps {
		was := *s
		t.told[at] = &was
	}
}

// message notes what was said to the loop.
func (t *tapes) message(e *stint.Entry) error {
	c := t.current
	m, err := past.Message(e, e.Body)
	if err != nil {
		return err
	}
	if e.Seq == t.inputSeq {
		return nil
	}
	if !m.Kind.Input() {
		c.byOrder = c.byOrder || e.Seq > c.loop.End
		return nil
	}
	if m.Body, err = past.Body(t.ctx, t.src, t.family, e); err != nil {
		return err
	}
	if at := (place{e.Pos.Line, e.Pos.Loop}); at != (place{c.loop.Line, c.loop.Number}) {
		t.early[at] = append(t.early[at], m)
		return nil
	}
	c.inbox = append(c.inbox, m)
	if c.entered {
		c.session = t.fold
	}
	return nil
}

// step notes what e says of a step.
func (t *tape) step(e *stint.Entry) error {
	if err := t.steps.Add(e); err != nil {
		return err
	}
	t.inputs.Add(e)
	at := place{e.Pos.Step, e.Pos.Sub}
	switch e.Kind {
	case stint.StepRequested, stint.ApprovalRequested:
		t.seqs[at] = e.Seq
	case stint.StepCompleted, stint.StepFailed:
		d, err := journal.Decode[journal.StepDone](e)
		if err != nil {
			return err
		}
		t.seqs[at] = e.Seq
		if e.Kind == stint.StepFailed && !d.Definite {
			t.tries[at] = &d
		}
	case stint.StepResolved:
		t.seqs[at] = e.Seq
		return t.resolved(at, e)
	}
	return nil
}

// resolved notes that a rule found out that a step had not happened: its agent got the
// error that led to that, and may have gone on from it.
func (t *tape) resolved(at place, e *stint.Entry) error {
	d, err := journal.Decode[journal.StepResolved](e)
	if err != nil || d.Verdict != journal.NotHappened || e.Actor != stint.ByPolicy {
		return err
	}
	_, why, _ := strings.Cut(d.Reason, ": ")
	t.tries[at] = &journal.StepDone{StepRequested: t.steps.At(at[0], at[1]).Intent, Error: why}
	return nil
}

// outcome notes what followed the loop.
func (t *tapes) outcome(e *stint.Entry) error {
	c := t.current
	switch e.Kind {
	case stint.SessionEnded:
		d, err := journal.Decode[journal.Ended](e)
		if err != nil {
			return err
		}
		c.ended = &d
		c.result, err = past.Body(t.ctx, t.src, t.family, e)
		return err
	case stint.SessionWaiting:
		d, err := journal.Decode[journal.Waiting](e)
		c.waits = &d
		return err
	}
	return nil
}

// recordedStep is the side of a divergence that is on record.
func (t *tapes) recordedStep(c *tape, at place, intent journal.StepRequested) (*Step, error) {
	s := &Step{Name: intent.Name, Kind: intent.Kind, Effect: intent.Effect, Hash: intent.Input, Size: -1}
	if intent.Asked != "" { // what is on record whole is what a person put in its place
		s.Hash = intent.Asked
		return s, nil
	}
	input, known, err := c.inputs.Of(t.ctx, t.src, t.family, at, intent)
	if known {
		s.Input, s.Size = input, len(input)
	}
	return s, err
}

// at is a place in the loop.
func (t *tape) at(step, sub int) stint.Position {
	p := t.session.At
	return stint.Position{Line: p.Line, Loop: p.Loop, Attempt: p.Attempt, Step: step, Sub: sub}
}

// tried is how a step came out that has no outcome: an error that the agent went on from.
func (t *tape) tried(step, sub int) *journal.StepDone {
	if s := t.steps.At(step, sub); s != nil && s.Answered() {
		return nil
	}
	return t.tries[place{step, sub}]
}

// left is the first step after the given number that has an outcome, or was tried.
func (t *tape) left(step int) (place, journal.StepRequested, bool) {
	var first place
	var intent journal.StepRequested
	found := false
	take := func(at place, r journal.StepRequested) {
		if at[0] > step && (!found || at[0] < first[0] || at[0] == first[0] && at[1] < first[1]) {
			first, intent, found = at, r, true
		}
	}
	for at, s := range t.steps {
		take(at, s.Intent)
	}
	for at := range maps.Keys(t.tries) {
		if t.steps.At(at[0], at[1]) == nil {
			take(at, t.tries[at].StepRequested)
		}
	}
	return first, intent, found
}
