package exec

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
type StartError struct {
	Program string // as the command names it
	Exit    int    // the exit code by which a shell says so: 127, it is not there; 126, it cannot be executed
	Why     string // "is not in PATH", "is not executable"
	Hint    string // what to do about it
	Err     error  // what the system said
}

// Error says in one sentence which program it is and what is wrong with it.
func (e *StartError) Error() string { return e.Program + " " + e.Why }

// Unwrap returns what the system said.
func (e *StartError) Unwrap() error { return e.Err }

// The exit codes by which a shell says that it could not execute a program (POSIX,
// Shell Command Language, 2.8.2).
const (
	exitNotExecutable = 126
	exitNotThere      = 127
)

// cannotStart is the StartError of a program that the system refused with err, or
// nil where it may not refuse it next time. dir is where a relative name begins.
func cannotStart(dir, name string, err error) *StartError {
	e := &StartError{Program: name, Exit: exitNotExecutable, Err: err}
	isPath := strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator)
	path := name
	if isPath && !filepath.IsAbs(name) {
		path = filepath.Join(dir, name)
	}
	fi, lost := os.Stat(path)
	switch {
	case errors.Is(err, proc.ErrSpec) && !errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrNotExist) && !isPath:
		e.Exit, e.Why, e.Hint = exitNotThere, "is not in PATH", "check its name, or give its path"
	case errors.Is(err, fs.ErrNotExist) && lost != nil:
		e.Exit, e.Why, e.Hint = exitNotThere, "does not exist", "check its path"
	case errors.Is(err, fs.ErrNotExist):
		e.Why, e.Hint = "needs an interpreter that does not exist", "see its first line"
	case isPath && lost == nil && fi.IsDir():
		e.Why, e.Hint = "is a directory", "give the path of a program in it"
	case errors.Is(err, fs.ErrPermission):
		e.Why, e.Hint = "is not executable", "chmod +x makes it so, unless its file system is mounted noexec"
	case errors.Is(err, syscall.ENOEXEC):
		e.Why, e.Hint = "is not a program for this machine", "give a script a first line such as #!/bin/sh"
	case errors.Is(err, syscall.E2BIG):
		e.Why, e.Hint = "is given more arguments and environment than the system takes", "hand over data on standard input or in a file"
	default:
		return nil
	}
	return e
}

// startError says what it means that a program could not be started. A program
// that is not there, or is none, will not be there at the next attempt either.
func (s Spec) startError(err error) error {
	name, dir := s.Command[0], s.Dir
	e := &stint.Error{Code: stint.Invalid, Hint: "correct command or dir in the agent's configuration"}
	if fi, lost := os.Stat(dir); dir != "" && (lost != nil || !fi.IsDir()) {
		e.Err = fmt.Errorf("the working directory %s does not exist", dir)
		return stint.Fail(e)
	}
	if cannot := cannotStart(dir, name, err); cannot != nil {
		e.Err, e.Hint = cannot, cannot.Hint
		return stint.Fail(e)
	}
	e.Err = fmt.Errorf("%s cannot be started: %w", name, err)
	if errors.Is(err, proc.ErrSpec) {
		return stint.Fail(e)
	}
	e.Code, e.Hint = stint.Unavailable, "it is tried again; look for limits on processes, files or memory"
	return stint.Retry(time.Second, e)
}
