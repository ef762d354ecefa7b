package exec

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/proc"
	"github.com/stint-dev/stint/internal/protocol"
)

// talk is what is said in one loop. The reader of the process gives it the lines
// in order; what only the loop's own goroutine may act on goes to it through
// requests.
type talk struct {
	peer     *peer
	ses      stint.Session
	requests chan *protocol.Message // step, steps and end; room for one
	over     chan struct{}          // closed when nobody takes requests any more
	failed   chan struct{}          // closed with the first fault

	mu    sync.Mutex
	fault error
	heard bool // a line came
	book  *protocol.Book
}

func newTalk(p *peer, l stint.Loop) *talk {
	return &talk{peer: p, ses: l.Session(), requests: make(chan *protocol.Message, 1), over: make(chan struct{}),
		failed: make(chan struct{}), book: protocol.NewBook(l)}
}

func trimSpace(line []byte) []byte { return bytes.Trim(line, " \t\r") }

// take handles one line of the agent. It runs on the reader's goroutine and keeps
// nothing of the line.
func (t *talk) take(line proc.Line, limit int) {
	if line.Size >= int64(limit) {
		t.fail(protocol.Breach(line.Data,
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
	m, err := protocol.Parse(line.Data)
	if err == nil {
		err = t.handle(m)
	} else if line.Unterminated {
		err = fmt.Errorf("it ended in the middle of a line: %w", err)
	}
	if err == nil {
		return
	}
	hint := ""
	if first {
		hint = "standard output is the protocol's alone, logs go to standard error; for a program that does not speak it set protocol: none"
	}
	t.fail(protocol.Fault(line.Data, err, hint))
}

// handle acts on a message, or returns what is wrong with it now.
func (t *talk) handle(m *protocol.Message) error {
	switch m.Kind {
	case "log":
		t.peer.sink.Text(m.Level, m.Text)
		return nil
	case "progress":
		t.peer.sink.Progress(m.Text)
		return nil
	}
	if m.Kind != "state" {
		t.peer.catchUp()
	}
	t.peer.sink.Sync()
	t.mu.Lock()
	err := t.book.Take(m)
	t.mu.Unlock()
	if err == nil && (m.Calls != nil || m.End != nil) {
		select {
		case t.requests <- m:
		case <-t.over:
		}
	}
	return err
}

// start marks a step as told to proceed.
func (t *talk) start(c *protocol.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.book.Start(c)
}

// settled marks a step as answered by stint.
func (t *talk) settled(c *protocol.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.book.Settle(c)
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
	return protocol.Breach(nil, t.peer.exitError(), "")
}

// verdict is the error of a loop that ended badly, once the process is gone.
func (t *talk) verdict() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fault != nil {
		return t.fault
	}
	x := t.peer.exitError()
	exit := protocol.Breach(nil, x, "")
	if t.book.Reported != nil { // most likely why it left, and it may say when to try again
		if said, _, _ := strings.Cut(t.book.Reported.Error(), "\n"); strings.Contains(x.lastWords(), said) {
			x.Stderr = nil // once is enough
		}
		return fmt.Errorf("%w; then %w", t.book.Reported, exit)
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
	return t.book.Memory.Changed()
}
