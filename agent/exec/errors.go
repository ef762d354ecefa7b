package exec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stint-dev/stint/internal/child"
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
	if last := e.lastWords(); last != "" {
		b.WriteString("; its last words: " + last)
	}
	if len(e.Stderr) > 1 {
		for _, line := range e.Stderr {
			b.WriteString("\n  stderr: " + line)
		}
	}
	return b.String()
}

// lastWords is the last line of its standard error that says something.
func (e *ExitError) lastWords() string {
	for _, line := range slices.Backward(e.Stderr) {
		if last := strings.TrimSpace(line); last != "" {
			return last
		}
	}
	return ""
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

// StartError says that a program cannot be executed, and will not be at the next
// attempt either. It is the cause of an [stint.Invalid] error.
type StartError = child.StartError

// startError says what it means that a program could not be started.
func (s Spec) startError(err error) error { return child.StartFailure(s.Dir, s.Command[0], err) }
