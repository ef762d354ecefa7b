package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/proc"
)

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
	ExitNotExecutable = 126
	ExitNotThere      = 127
)

// CannotStart is the StartError of a program that the system refused with err, or
// nil where it may not refuse it next time. dir is where a relative name begins.
func CannotStart(dir, name string, err error) *StartError {
	e := &StartError{Program: name, Exit: ExitNotExecutable, Err: err}
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
		e.Exit, e.Why, e.Hint = ExitNotThere, "is not in PATH", "check its name, or give its path"
	case errors.Is(err, fs.ErrNotExist) && lost != nil:
		e.Exit, e.Why, e.Hint = ExitNotThere, "does not exist", "check its path"
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

// StartFailure says what it means that a program could not be started. A program
// that is not there, or is none, will not be there at the next attempt either.
func StartFailure(dir, name string, err error) error {
	e := &stint.Error{Code: stint.Invalid, Hint: "correct command or dir in the agent's configuration"}
	if fi, lost := os.Stat(dir); dir != "" && (lost != nil || !fi.IsDir()) {
		e.Err = fmt.Errorf("the working directory %s does not exist", dir)
		return stint.Fail(e)
	}
	if cannot := CannotStart(dir, name, err); cannot != nil {
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
