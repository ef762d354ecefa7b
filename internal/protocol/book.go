package protocol

import (
	"errors"
	"fmt"

	"github.com/stint-dev/stint"
)

// Book keeps what was said in a loop: which steps are open, what became of the state,
// and whether the loop has ended. One goroutine at a time uses it.
type Book struct {
	Memory *Memory
	// Reported is the error that the agent gave as a step's result, until it begins
	// another: if it leaves now, most likely that is why.
	Reported error

	used  map[int64]*Call // by id
	open  int             // steps that neither side has answered
	ended bool
}

// NewBook begins a loop.
func NewBook(l stint.Loop) *Book {
	return &Book{Memory: NewMemory(l.State()), used: map[int64]*Call{}}
}

// Take enters a message that is neither a log nor progress. Its error says what is wrong
// with the message now, for [Fault].
func (b *Book) Take(m *Message) error {
	if b.ended {
		return fmt.Errorf("%s came after the end of the loop", m.Kind)
	}
	switch m.Kind {
	case "result":
		return b.result(m)
	case "state":
		return b.change(m)
	case "end":
		if b.open > 0 {
			return errors.New("the loop was ended while a step is open")
		}
		b.ended = true
		return nil
	}
	return b.announce(m.Calls)
}

// change takes a change of the state.
func (b *Book) change(m *Message) error {
	switch {
	case b.open > 0:
		return hinted{errors.New("the state was changed while a step is open, and a step that is answered from the journal would not change it again"),
			"give the value as the step's result, and send state when the step has come out"}
	case m.Whole:
		return b.Memory.Replace(m.Change, m.By)
	}
	return b.Memory.Patch(m.Change, m.By)
}

// announce opens steps.
func (b *Book) announce(calls []*Call) error {
	if b.open > 0 {
		return errors.New("a step was begun while another is open; steps that run at once are sent as one group, by steps")
	}
	b.Reported = nil // it went on after an error
	for _, c := range calls {
		if b.used[c.ID] != nil {
			return fmt.Errorf("the id %d is used a second time in this loop", c.ID)
		}
		b.used[c.ID] = c
		b.open++
	}
	return nil
}

// result takes the agent's answer.
func (b *Book) result(m *Message) error {
	c := b.used[m.ID]
	switch {
	case c == nil:
		return fmt.Errorf("a result for an unknown id: no step %d was begun in this loop", m.ID)
	case c.done:
		return fmt.Errorf("a result for an unknown id: step %d has its answer already", m.ID)
	case !c.started:
		return fmt.Errorf("a result for an unknown id: step %d was not told to proceed yet", m.ID)
	}
	c.done = true
	b.open--
	if m.Answer.Err != nil {
		b.Reported = m.Answer.Err
	}
	c.Answers <- m.Answer
	return nil
}

// Start marks a step as told to proceed.
func (b *Book) Start(c *Call) { c.started = true }

// Settle marks a step as answered by stint.
func (b *Book) Settle(c *Call) {
	if !c.done {
		c.done = true
		b.open--
	}
}
