package past

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// Unknown is what a step gives whose outcome nobody could tell.
const Unknown = `{"stint":"unknown","note":"interrupted; whether the effect took place is not known"}`

// Answered reports whether the step has an outcome that stands for doing it again.
func (s *Step) Answered() bool {
	return s.Done != nil || s.Verdict == journal.Happened || s.Verdict == journal.Unknown
}

// Usage is what the step used.
func (s *Step) Usage() stint.Usage {
	if s.Done == nil {
		return stint.Usage{}
	}
	return s.Done.Usage
}

// Answer is what a step that is answered gives: its result, or the error that is its
// result. body reads the body of the outcome.
func (s *Step) Answer(body func() (json.RawMessage, error)) (stint.Result, error) {
	if s.Done == nil && s.Verdict == journal.Unknown {
		return stint.Result{Data: json.RawMessage(Unknown)}, nil
	}
	b, err := body()
	switch {
	case err != nil && s.Failed:
		return stint.Result{}, fmt.Errorf("the recorded error of this step: %w", err)
	case err != nil:
		return stint.Result{Usage: s.Usage()}, fmt.Errorf("the recorded result of this step: %w", err)
	case s.Failed:
		f, err := s.Done.Failure(b)
		if err != nil {
			return stint.Result{}, err
		}
		return stint.Result{}, Error(f, s.Done.Final)
	case b == nil:
		b = json.RawMessage("null")
	}
	return stint.Result{Data: b, Usage: s.Usage()}, nil
}

// Error is the error that an agent gets for f: when the step has just failed, and when it
// is answered from the journal.
func Error(f journal.Failure, final bool) error {
	err := errors.New(f.Text)
	if f.Code != "" || f.Hint != "" {
		err = &stint.Error{Code: f.Code, Err: err, Hint: f.Hint}
	}
	if f.After > 0 {
		err = stint.Retry(f.After, err)
	}
	if final {
		err = stint.Fail(err)
	}
	return stint.Definite(err)
}

// memberErrors is the error of a group: the first, and all of them for agents that
// have to tell each member its own.
type memberErrors struct {
	error
	all []error
}

// Members returns one error for each step of the group, nil for those without.
func (m memberErrors) Members() []error { return m.all }

// Unwrap returns the first error.
func (m memberErrors) Unwrap() error { return m.error }

// GroupError is the error of a group whose members came to errs: nil, or one with a method
// Members() []error that is the first of them.
func GroupError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return memberErrors{err, errs}
		}
	}
	return nil
}

// Message turns a message.taken entry back into the message; body is the entry's.
func Message(e *stint.Entry, body []byte) (stint.Message, error) {
	t, err := journal.Decode[journal.Taken](e)
	return stint.Message{ID: t.ID, Kind: t.Kind, From: t.From, At: t.At, Data: t.Data, Body: body}, err
}

// Input is the input of a session as the message that its first loop gets; e is the
// session's first entry and body its body. One without a body is not said to the loop.
func Input(e *stint.Entry, body []byte) stint.Message {
	return stint.Message{ID: inputID, Kind: stint.Prompt, From: e.Actor, At: e.At, Body: body}
}

// inputID is the id of the message that a session's input is.
const inputID = "input"

// FirstInput is the input of a session that begins with es, its first two entries at least,
// and the entry whose body it is; nil: there is none. A branch from before the first loop
// has that of its parent in its second entry.
func FirstInput(es []stint.Entry) (stint.Message, *stint.Entry, error) {
	c, err := journal.Decode[journal.Created](&es[0])
	if err != nil || !c.Parent.Branch {
		return Input(&es[0], es[0].Body), &es[0], err
	}
	if len(es) < 2 || es[1].Kind != stint.MessageTaken {
		return stint.Message{}, nil, nil
	}
	m, err := Message(&es[1], es[1].Body)
	if err != nil || m.ID != inputID {
		return stint.Message{}, nil, err
	}
	return m, &es[1], nil
}

// What stands between loops where it was not the agent who said so.
const (
	StopMet    = "stop condition met"                   // the reason of the end that its stop condition brings about
	StopFailed = "the stop condition cannot be asked: " // how the reason of an end begins that it brings about by failing
	Unbegun    = "it could not be begun: "              // how begins what a session waits for whose next loop could not be begun
)

// WaitFor is what a session waits for whose agent asked for w.
func WaitFor(w *stint.Wait) stint.WaitFor {
	switch {
	case w.For != "":
		return w.For
	case !w.Until.IsZero():
		return stint.ForTime
	}
	return stint.ForMessage
}

// Source is where entries and bodies are read.
type Source interface {
	// Entries is that of [stint.Reader].
	Entries(ctx context.Context, r stint.Range) ([]stint.Entry, error)
	// Blob is that of [stint.Blobs].
	Blob(ctx context.Context, family stint.ID, ref stint.BlobRef) ([]byte, error)
}
