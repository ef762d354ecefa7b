package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
)

// The exit codes. `stint explain exit` prints them.
const (
	exitOK          = 0
	exitInternal    = 1
	exitInvalid     = 2 // usage, bad input, an ambiguous name
	exitNotFound    = 3
	exitDenied      = 4
	exitRefused     = 5 // exists, conflict, fenced, an undecided doubt
	exitWaits       = 6 // for a person, a limit
	exitNotOK       = 7 // the session ended not completed; a replay diverged
	exitCorrupt     = 10
	exitUnavailable = 11
	exitTimeout     = 124
	exitInterrupted = 130
)

// exitError is an outcome that is told by the exit code, after everything has been
// printed.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// exitCode is the one place that maps errors to exit codes.
func exitCode(err error) int {
	var e exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return int(e)
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	switch stint.CodeOf(err) {
	case stint.Invalid:
		return exitInvalid
	case stint.NotFound:
		return exitNotFound
	case stint.Denied:
		return exitDenied
	case stint.Exists, stint.Conflict, stint.Fenced:
		return exitRefused
	case stint.Limit:
		return exitWaits
	case stint.Unavailable:
		return exitUnavailable
	case stint.Corrupt:
		return exitCorrupt
	}
	return exitInternal
}

// failure is an error as JSON, schema stint.error/1.
type failure struct {
	Schema   string           `json:"schema"`
	Code     stint.Code       `json:"code"`
	Error    string           `json:"error"`
	Hint     string           `json:"hint"`
	Exit     int              `json:"exit"`
	Problems []config.Problem `json:"problems,omitempty"` // of a stint.yaml
}

// fail prints err and returns its exit code. With --json the error is one JSON
// object on standard error.
func (a *app) fail(err error) int {
	code := exitCode(err)
	var quiet exitError
	if err == nil || errors.As(err, &quiet) {
		return code
	}
	var e *stint.Error
	text, hint := err.Error(), ""
	if errors.As(err, &e) {
		hint = e.Hint
	}
	switch err { // a person interrupted; they did not cancel a context
	case context.Canceled:
		text, hint = "interrupted before it was done", "the same command begins it anew"
	case context.DeadlineExceeded:
		text, hint = "it was not done in time", "the same command begins it anew"
	}
	if hint == "" { // there is always something to do next
		hint = "stint explain " + string(stint.CodeOf(err)) + "  says what it asks of you"
	}
	if a.json {
		var file *config.Problems
		doc := failure{Schema: "stint.error/1", Code: stint.CodeOf(err), Error: text, Hint: hint, Exit: code}
		if errors.As(err, &file) {
			doc.Problems = file.List
		}
		_ = view.WriteJSON(a.err, doc)
		return code
	}
	if e != nil && !e.Session.IsZero() { // the person named it; 26 characters more do not help
		text = strings.Replace(text, " "+e.Session.String(), "", 1)
	}
	fmt.Fprintf(a.err, "stint: %s\n", term.Escape(text))
	if hint != "" {
		fmt.Fprintf(a.err, "  %s\n", term.Escape(hint))
	}
	return code
}
