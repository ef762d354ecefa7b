package exec

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/proc"
)

// ExitError says that a program which speaks the protocol left a loop without an
// end message. It is the cause of an [stint.Invalid] error.
type ExitError struct {
	Code   int      // exit code; -1 where a signal ended it, or nobody knows what did
	Signal string   // the signal's name without SIG, such as SEGV; empty: it exited
	Closed bool     // it closed its standard output and had to be ended
	Stderr []string // the last lines of its standard error, at most 20, each cut to 400 bytes
}

// Error says in its first line how the program ended and what it said last; the
// other lines of its standard error follow.
func (e *ExitError) Error() string {
	var b strings.Builder
	b.WriteString("the agent " + e.how() + " without an end message")
	for _, line := range slices.Backward(e.Stderr) {
		if last := strings.TrimSpace(line); last != "" {
			b.WriteString("; its last words: " + last)
			break
		}
	}
	if len(e.Stderr) > 1 {
		for _, line := range e.Stderr {
			b.WriteString("\n  stderr: " + line)
		}
	}
	return b.String()
}

func (e *ExitError) how() string {
	switch {
	case e.Closed:
		return "closed its standard output"
	case e.Signal != "":
		return "was ended by signal " + e.Signal
	case e.Code < 0:
		return "ended, nobody knows how,"
	}
	return fmt.Sprintf("exited with %d", e.Code)
}

// signalName is the name of a signal without SIG.
func signalName(x proc.Exit) string { return strings.TrimPrefix(x.Signal, "SIG") }

const specHint = "see docs/exec-protocol.md"

// protocolError is a fault of the agent; line is the one at fault, if any.
func protocolError(session stint.ID, line []byte, cause error, hint string) error {
	if line != nil {
		cause = fmt.Errorf("%w; the line: %s", cause, quoteLine(line))
	}
	if hint != "" {
		hint += "; "
	}
	return &stint.Error{Code: stint.Invalid, Op: "exec protocol", Session: session, Err: cause, Hint: hint + specHint}
}

// quoteLine shows the first 200 bytes of a line with its control characters, and
// what is no text, as escapes.
func quoteLine(line []byte) string {
	const most = 200
	if len(line) <= most {
		return strconv.Quote(string(line))
	}
	return strconv.Quote(string(wholeRunes(line[:most]))) + "…"
}

// startError says what it means that a program could not be started. A program
// that is not there, or is none, will not be there at the next attempt either.
func startError(session stint.ID, name string, err error) error {
	e := &stint.Error{Code: stint.Unavailable, Op: "start " + name, Session: session, Err: err,
		Hint: "it is tried again; look for limits on processes, files or memory"}
	if isForGood(err) {
		e.Code, e.Hint = stint.Invalid, "correct command, dir or PATH in the agent's configuration"
		return stint.Fail(e)
	}
	return stint.Retry(time.Second, e)
}

// isForGood reports that nothing was started and nothing would be next time.
func isForGood(err error) bool {
	for _, e := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.ENOEXEC, syscall.E2BIG, proc.ErrSpec} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// notBegun is the error of a step whose effect was never begun: nothing is in
// doubt, and another attempt may do it. Who looks for NotBegun may go on at once;
// to everybody else it is an error like others, and a [stint.Once] step is in doubt.
type notBegun struct{ error }

// NotBegun reports that the effect did not happen.
func (notBegun) NotBegun() bool { return true }

// Unwrap returns the cause.
func (n notBegun) Unwrap() error { return n.error }
