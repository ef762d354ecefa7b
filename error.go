package stint

import (
	"errors"
	"fmt"
	"time"
)

// Code says what the caller of a failed operation should do next. It is an error
// itself, so that errors.Is(err, stint.Fenced) asks for it.
type Code string

// The codes. One table maps them to exit codes, and later to HTTP statuses and a
// metric: nothing else in the module interprets an error's text.
const (
	Invalid     Code = "invalid"     // malformed, or illegal now: mend the request
	NotFound    Code = "not_found"   // no such session, loop, step or agent: ask otherwise
	Exists      Code = "exists"      // already there: use what is there
	Conflict    Code = "conflict"    // the journal moved on, or another holds it: reload and decide again
	Fenced      Code = "fenced"      // the lease is lost: stop now and write nothing more
	Denied      Code = "denied"      // a person or a policy said no: do not retry
	Limit       Code = "limit"       // time, loops, steps, tokens, money or bytes used up: raise the limit
	Unavailable Code = "unavailable" // store, model or tool is down: back off and try again
	Corrupt     Code = "corrupt"     // a chain or an entry is broken: stop and keep the evidence
	Internal    Code = "internal"    // a fault of stint: report it
)

// Error makes a Code usable as a target of errors.Is.
func (c Code) Error() string { return string(c) }

// Error is the one error type of the module.
type Error struct {
	Code    Code
	Op      string // what was attempted, in a word or two: "append", "config"
	Session ID     // zero when no session is concerned
	Err     error  // the cause; may be nil
	Hint    string // what to do next, best a command; may be empty
	Metric  string // of [Limit] from a store: the meter that would have passed its limit; else empty
}

// Error returns "op session: cause". The hint is not part of it: print it on a
// line of its own.
func (e *Error) Error() string {
	s := e.Op
	if !e.Session.IsZero() {
		s += " " + e.Session.String()
	}
	if s != "" {
		s += ": "
	}
	if e.Err != nil {
		return s + e.Err.Error()
	}
	return s + string(e.Code)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches a bare [Code].
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// Errorf makes an [Error] of code c with a cause built like fmt.Errorf, and no hint.
func (c Code) Errorf(op, format string, args ...any) *Error {
	return &Error{Code: c, Op: op, Err: fmt.Errorf(format, args...)}
}

// CodeOf returns the code of the first [Error] in err's tree, "" for nil, and
// [Internal] for an error that has none.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	var c Code
	if errors.As(err, &c) {
		return c
	}
	return Internal
}

// ErrParked is what [Loop.Do] and [Loop.DoAll] return once the session must stop
// here: it waits for a person, a time or a raised limit, was paused or stopped, or
// its lease is lost. Return it from Loop, wrapped or not; the engine knows the
// reason. After the first one every further Do of that entry returns it too.
var ErrParked = errors.New("the session is parked here: return this error from Loop")

// steer is an error that tells the engine how to go on; the engine reads it
// through an interface of its own.
type steer struct {
	err      error
	after    time.Duration
	final    bool
	definite bool
}

func (s *steer) Error() string { return s.err.Error() }
func (s *steer) Unwrap() error { return s.err }

// Steer returns what this wrapping asks for.
func (s *steer) Steer() (after time.Duration, final, definite bool) {
	return s.after, s.final, s.definite
}

// Retry returns err as one that should be tried again, not before d has passed.
// From a step or from Loop it fails the attempt; the loop begins again with its
// finished steps answered from the journal.
func Retry(d time.Duration, err error) error { return &steer{err: err, after: max(d, 0)} }

// Fail returns err as one that no further attempt can mend: the session ends as
// failed without using up its retries.
func Fail(err error) error { return &steer{err: err, final: true} }

// Definite returns err as the known outcome of a step: the effect did not happen,
// or it happened and failed, and either way nothing is in doubt. It is journaled
// as the step's result, and what the agent gets is what is journaled, at once and in
// every loop that is begun again: an error with the same text (as valid UTF-8; what is
// beyond 64 KiB is cut, and says so), with the [Code] and the Hint of the first [Error]
// in it, and with what [Retry] and [Fail] asked for. Other types are not kept: ask
// errors.Is for codes. Errors of a [Once] step that are not wrapped so leave the step
// in doubt.
func Definite(err error) error { return &steer{err: err, definite: true} }
