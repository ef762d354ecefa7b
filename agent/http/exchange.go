package http

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/protocol"
)

// exchange is one request and its response. One goroutine at a time uses it; its timers
// cancel it from theirs.
type exchange struct {
	d      *driver
	book   *protocol.Book
	known  []*declared // what the agent has to declare again, in order
	again  int         // how many of them it has
	step   *proceeding // nil: it may do none
	body   io.ReadCloser
	lines  *lineReader
	ctx    context.Context //nolint:containedctx // the request's
	cancel context.CancelCauseFunc
	idle   *time.Timer
	whole  *time.Timer
	loose  func() bool // lets go of the step's context
	heard  bool        // a line came
	breach bool        // it ended by a fault of the agent
}

// next reads to the next message that the driver acts on: a step or group that is new,
// the result of the step that proceeds, or the end. nil: the response has ended.
func (x *exchange) next() (*protocol.Message, error) {
	for {
		line, ended, err := x.lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case errors.Is(err, errLongLine):
			return nil, x.fault(line, fmt.Errorf("a line is longer than %d bytes", x.d.agent.spec.MaxLine), "hand over large data as a file")
		case errors.Is(err, errMuch):
			return nil, x.fault(nil, fmt.Errorf("the agent sent a response of more than %d bytes", x.d.agent.spec.MaxBody), "hand over large data as a file")
		case err != nil:
			return nil, x.broken("the response of the agent broke off", err)
		}
		if len(bytes.Trim(line, " \t\r")) == 0 {
			continue // a sign of life
		}
		first := !x.heard
		x.heard = true
		if safe := x.d.agent.redact(string(line)); len(safe) != len(line) || safe != string(line) {
			line = []byte(safe)
		}
		m, err := protocol.Parse(line)
		switch {
		case err == nil:
			m, err = x.take(m)
		case !ended:
			err = fmt.Errorf("it ended in the middle of a line: %w", err)
		}
		if err != nil {
			hint := ""
			if first {
				hint = "the body of a response is JSON Lines, each a message; see docs/http-protocol.md"
			}
			return nil, x.fault(line, err, hint)
		}
		if m != nil {
			return m, nil
		}
	}
}

// take acts on a message, and returns it if the driver has to.
func (x *exchange) take(m *protocol.Message) (*protocol.Message, error) {
	switch m.Kind {
	case "log", "progress":
		if x.again < len(x.known) {
			return nil, nil // an earlier response had it
		}
		if m.Kind == "log" {
			x.d.sink.Text(m.Level, m.Text)
		} else {
			x.d.sink.Progress(m.Text)
		}
		return nil, nil
	case "end":
		if x.again < len(x.known) {
			s := x.known[x.again].steps[0]
			return nil, differs("the loop was ended without step %d, %s, which an earlier response declared", s.id, s.name)
		}
	}
	if x.again == len(x.known) {
		x.d.sink.Sync()
	}
	if err := x.book.Take(m); err != nil {
		return nil, err
	}
	switch m.Kind {
	case "state":
		return nil, nil
	case "step", "steps", "spawn":
		if x.again == len(x.known) {
			return m, nil
		}
		return nil, x.declared(m)
	}
	return m, nil
}

// declared compares what the agent declares with what it declared before in its place,
// and marks the steps that the request has an answer for.
func (x *exchange) declared(m *protocol.Message) error {
	e := x.known[x.again]
	if m.Group != e.group || len(m.Calls) != len(e.steps) {
		return differs("step %d, %s, is another one than in an earlier response", m.Calls[0].ID, m.Calls[0].Step.Name)
	}
	for i, c := range m.Calls {
		s := e.steps[i]
		switch {
		case c.ID != s.id || c.Step.Name != s.name:
			return differs("step %d, %s, stands where an earlier response had step %d, %s", c.ID, c.Step.Name, s.id, s.name)
		case sumOf(c) != s.sum:
			return differs("step %d, %s, has another kind, effect or input than in an earlier response", c.ID, c.Step.Name)
		case s.answer != nil:
			x.book.Settle(c)
		case x.step != nil && x.step.step == s:
			x.book.Start(c)
		}
	}
	x.again++
	return nil
}

// differs is the fault of an agent that does not do the same twice.
func differs(format string, args ...any) error {
	return &stint.Error{Code: stint.Conflict, Err: fmt.Errorf("the agent did not begin the loop as before: "+format, args...),
		Hint: "the steps of a loop follow from its state, its inbox and the results of earlier steps, and from nothing else; see docs/http-protocol.md"}
}

// rest reads a response to its end, in which only logs and progress are right.
func (x *exchange) rest() error {
	for {
		m, err := x.next()
		if m == nil || err != nil {
			return err
		}
	}
}

// release lets the response go on without the step, whose time was its own.
func (x *exchange) release() {
	x.loose()
	x.whole.Reset(x.d.agent.spec.Timeout)
}

// close ends the exchange. A response that has not ended is cut off.
func (x *exchange) close() {
	if x == nil {
		return
	}
	x.idle.Stop()
	x.whole.Stop()
	x.loose()
	x.cancel(context.Canceled)
	x.body.Close()
}

// fault is the error of an agent that broke the protocol.
func (x *exchange) fault(line []byte, err error, hint string) error {
	x.breach = true
	if line != nil {
		line = []byte(x.d.agent.redact(string(line)))
	}
	return protocol.Fault(line, err, hint)
}

// broken is the error of what the network did, or of the end of somebody's patience.
func (x *exchange) broken(what string, err error) error {
	if cause := context.Cause(x.ctx); cause != nil {
		return cause
	}
	return &stint.Error{Code: stint.Unavailable, Err: fmt.Errorf("%s: %s", what, x.d.agent.redact(err.Error())),
		Hint: "it is tried again; look whether the agent's server is well"}
}

// patient is the body of a response, of which something has to come from time to time.
type patient struct {
	io.ReadCloser

	idle *time.Timer
	most time.Duration
}

func (p *patient) Read(b []byte) (int, error) {
	p.idle.Reset(p.most) // only while stint waits for it
	n, err := p.ReadCloser.Read(b)
	p.idle.Stop()
	return n, err
}

var _ io.ReadCloser = (*patient)(nil)

// accept reads the head of a response.
func (x *exchange) accept(resp *http.Response) (begun bool, err error) {
	if resp.StatusCode != http.StatusOK {
		return x.refusal(resp)
	}
	head := func(name string) string { return x.d.agent.redact(resp.Header.Get(name)) }
	if v := head(VersionHeader); v != "" && v != version {
		return true, x.fault(nil, fmt.Errorf("the agent speaks version %.20q of the protocol, and this is version %s", v, version), "")
	}
	if enc := head("Content-Encoding"); enc != "" && enc != "identity" {
		return true, x.fault(nil, fmt.Errorf("the agent sent a response in %.20q, which was not asked for", enc), "")
	}
	if kind := head("Content-Type"); !isLines(kind) {
		return true, x.fault(nil, fmt.Errorf("the agent answered with Content-Type %q and not with %s", protocol.Clip(kind, 100), ContentType),
			"look whether the URL is the agent's, and set Content-Type: "+ContentType)
	}
	return true, nil
}
