package exec

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/proc"
)

// talk is what is said in one loop. The reader of the process gives it the lines
// in order; what only the loop's own goroutine may act on goes to it through
// requests.
type talk struct {
	peer     *peer
	ses      stint.Session
	requests chan *message // step, steps and end; room for one
	over     chan struct{} // closed when nobody takes requests any more
	failed   chan struct{} // closed with the first fault

	mu       sync.Mutex
	fault    error
	heard    bool // a line came
	ended    bool
	used     map[int64]*call // by id
	open     int             // steps that neither side has answered
	memory   *memory
	reported error // the error that the agent gave as a step's result, until it begins another
}

func newTalk(p *peer, l stint.Loop) *talk {
	return &talk{peer: p, ses: l.Session(), requests: make(chan *message, 1), over: make(chan struct{}),
		failed: make(chan struct{}), used: map[int64]*call{}, memory: newMemory(l.State())}
}

func trimSpace(line []byte) []byte { return bytes.Trim(line, " \t\r") }

// take handles one line of the agent. It runs on the reader's goroutine and keeps
// nothing of the line.
func (t *talk) take(line proc.Line, limit int) {
	if line.Size >= int64(limit) {
		t.fail(protocolError(line.Data,
			fmt.Errorf("a line is longer than %d bytes", limit), "hand over large data as a file"))
		return
	}
	if len(trimSpace(line.Data)) == 0 {
		return
	}
	t.mu.Lock()
	first, deaf := !t.heard, t.fault != nil
	t.heard = true
	t.mu.Unlock()
	if deaf {
		return
	}
	m, err := parse(line.Data)
	if err == nil {
		err = t.handle(m)
	} else if line.Unterminated {
		err = fmt.Errorf("it ended in the middle of a line: %w", err)
	}
	if err == nil {
		return
	}
	var e *stint.Error
	var h hinted
	switch {
	case errors.As(err, &e): // it has its code and its hint
		t.fail(e)
	case errors.As(err, &h):
		t.fail(protocolError(line.Data, err, h.hint))
	case first:
		t.fail(protocolError(line.Data, err,
			"standard output is the protocol's alone, logs go to standard error; for a program that does not speak it set protocol: none"))
	default:
		t.fail(protocolError(line.Data, err, ""))
	}
}

// handle acts on a message, or returns what is wrong with it now.
func (t *talk) handle(m *message) error {
	switch m.kind {
	case "log":
		t.peer.sink.text(m.level, m.text)
		return nil
	case "progress":
		t.peer.sink.progress(m.text)
		return nil
	}
	if m.kind != "state" {
		t.peer.catchUp()
	}
	t.peer.sink.sync()
	t.mu.Lock()
	if t.ended {
		t.mu.Unlock()
		return fmt.Errorf("%s came after the end of the loop", m.kind)
	}
	var err error
	switch m.kind {
	case "result":
		err = t.result(m)
	case "state":
		err = t.change(m)
	case "end":
		if t.open > 0 {
			err = errors.New("the loop was ended while a step is open")
		}
		t.ended = err == nil
	default:
		err = t.announce(m.calls)
	}
	t.mu.Unlock()
	if err == nil && (m.calls != nil || m.end != nil) {
		select {
		case t.requests <- m:
		case <-t.over:
		}
	}
	return err
}

// change takes a change of the state. The caller holds mu.
func (t *talk) change(m *message) error {
	switch {
	case t.open > 0:
		return hinted{errors.New("the state was changed while a step is open, and a step that is answered from the journal would not change it again"),
			"give the value as the step's result, and send state when the step has come out"}
	case m.whole:
		return t.memory.replace(m.change, m.by)
	}
	return t.memory.patch(m.change, m.by)
}

// announce opens steps. The caller holds mu.
func (t *talk) announce(calls []*call) error {
	if t.open > 0 {
		return errors.New("a step was begun while another is open; steps that run at once are sent as one group, by steps")
	}
	t.reported = nil // it went on after an error
	for _, c := range calls {
		if t.used[c.id] != nil {
			return fmt.Errorf("the id %d is used a second time in this loop", c.id)
		}
		t.used[c.id] = c
		t.open++
	}
	return nil
}

// result takes the agent's answer. The caller holds mu.
func (t *talk) result(m *message) error {
	c := t.used[m.id]
	switch {
	case c == nil:
		return fmt.Errorf("a result for an unknown id: no step %d was begun in this loop", m.id)
	case c.done:
		return fmt.Errorf("a result for an unknown id: step %d has its answer already", m.id)
	case !c.started:
		return fmt.Errorf("a result for an unknown id: step %d was not told to proceed yet", m.id)
	}
	c.done = true
	t.open--
	if m.answer.err != nil {
		t.reported = m.answer.err
	}
	c.answers <- m.answer
	return nil
}

// start marks a step as told to proceed.
func (t *talk) start(c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.started = true
}

// settled marks a step as answered by stint.
func (t *talk) settled(c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !c.done {
		c.done = true
		t.open--
	}
}

// fail ends the loop by a fault of the agent; the first counts.
func (t *talk) fail(err error) {
	t.mu.Lock()
	first := t.fault == nil
	if first {
		t.fault = err
		close(t.failed)
	}
	t.mu.Unlock()
	if first {
		t.peer.stop()
	}
}

// breakdown is the error of a step that the process did not live to answer.
func (t *talk) breakdown() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fault != nil {
		return t.fault
	}
	return protocolError(nil, t.peer.exitError(), "")
}

// verdict is the error of a loop that ended badly, once the process is gone.
func (t *talk) verdict() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fault != nil {
		return t.fault
	}
	x := t.peer.exitError()
	exit := protocolError(nil, x, "")
	if t.reported != nil { // most likely why it left, and it may say when to try again
		if said, _, _ := strings.Cut(t.reported.Error(), "\n"); strings.Contains(x.lastWords(), said) {
			x.Stderr = nil // once is enough
		}
		return fmt.Errorf("%w; then %w", t.reported, exit)
	}
	return exit
}

// unheard reports that the process, which is gone, has neither said nor read
// anything in this loop: it had ended, or was about to, when the loop began. Where
// nobody knows what it has read, it counts as having begun.
func (t *talk) unheard(hello *outgoing) bool {
	<-t.peer.mute
	unread, known := t.peer.proc.Unread()
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.heard && t.fault == nil && known && int64(unread) >= hello.sent.Load()
}

// state returns what the loop made of the state; nil if it is as it was.
func (t *talk) state() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.memory.changed {
		return nil
	}
	return t.memory.value
}
