package protocol

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
)

const specHint = "see docs/exec-protocol.md"

// Breach is a fault of the agent; line is the one at fault, if any. Its text is one that
// people read as the reason of a session, so it is a sentence and names neither an
// operation nor the session.
func Breach(line []byte, cause error, hint string) error {
	if line != nil {
		cause = fmt.Errorf("the agent broke the protocol: %w; the line: %s", cause, quoteLine(line))
	}
	if hint != "" {
		hint += "; "
	}
	return &stint.Error{Code: stint.Invalid, Err: cause, Hint: hint + specHint}
}

// Fault makes of an error of [Parse] or [Book.Take] the one of the loop. One that has
// its code and its hint stays as it is, others are a [Breach]; otherwise is the hint of
// those that have none of their own.
func Fault(line []byte, err error, otherwise string) error {
	var e *stint.Error
	var h hinted
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &h):
		return Breach(line, err, h.hint)
	}
	return Breach(line, err, otherwise)
}

// hinted is a fault with a remedy of its own.
type hinted struct {
	error

	hint string
}

// quoteLine shows the first 200 bytes of a line with its control characters, and
// what is no text, as escapes.
func quoteLine(line []byte) string {
	const most = 200
	if len(line) <= most {
		return strconv.Quote(string(line))
	}
	return strconv.Quote(string(child.WholeRunes(line[:most]))) + "…"
}

// NotBegun is the error of a step whose effect was never begun: nothing is in doubt,
// and another attempt may do it. Who looks for the method may go on at once; to
// everybody else it is an error like others, and a [stint.Once] step is in doubt.
type NotBegun struct{ Err error }

// Error is that of the cause.
func (n NotBegun) Error() string { return n.Err.Error() }

// NotBegun reports that the effect did not happen.
func (NotBegun) NotBegun() bool { return true }

// Unwrap returns the cause.
func (n NotBegun) Unwrap() error { return n.Err }

// Members is implemented by an error of [stint.Loop.DoAll] that knows the errors of all
// members, and not only the first.
type Members interface {
	// Members returns one error for each step of the group, nil for those without.
	Members() []error
}

// MemberError is the error of member i of a group that ended with err and gave the
// member res, as far as it is known.
func MemberError(err error, i int, res stint.Result) error {
	var members Members
	switch {
	case err == nil || res.Data != nil:
		return nil
	case errors.As(err, &members):
		if all := members.Members(); i < len(all) {
			return all[i]
		}
	}
	return err
}

// Refused reports that err is the engine's and not a step's: there is no answer that
// the agent could go on with. Errors from the journal are definite, and a denied step
// is one that failed.
func Refused(err error) bool {
	return err != nil && !Definite(err) && !errors.Is(err, stint.Denied)
}

// Definite reports that err is the known outcome of a step.
func Definite(err error) bool {
	var s interface {
		Steer() (after time.Duration, final, definite bool)
	}
	for errors.As(err, &s) {
		if _, _, yes := s.Steer(); yes {
			return true
		}
		u, ok := s.(interface{ Unwrap() error })
		if !ok {
			return false
		}
		err = u.Unwrap()
	}
	return false
}

// ValidEffect reports that e is one of the classes.
func ValidEffect(e stint.Effect) bool {
	return e == stint.Read || e == stint.Idempotent || e == stint.Once
}

// Effect is the class of a step: as the configuration says by its name, else as the
// agent claims, else the configuration's for all, else once.
func Effect(byName map[string]stint.Effect, name string, claimed, otherwise stint.Effect) stint.Effect {
	switch {
	case byName[name] != "":
		return byName[name]
	case claimed != "":
		return claimed
	case otherwise != "":
		return otherwise
	}
	return stint.Once
}
