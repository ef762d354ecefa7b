package model

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Kind says what the caller of a failed call should do. It is an error itself, so that
// errors.Is(err, model.Rate) asks for it.
type Kind string

// The kinds. The first four pass by themselves; the others stay until somebody changes
// something.
const (
	Rate       Kind = "rate"       // too many requests: wait, all users of this provider
	Overloaded Kind = "overloaded" // the provider has no capacity: wait, all users of this provider
	Transient  Kind = "transient"  // a fault of the provider or the network: try again
	Cut        Kind = "cut"        // the stream ended without its end: try again, nothing of it counts

	Invalid  Kind = "invalid"   // the request is wrong: mend it
	TooLong  Kind = "too_long"  // the request does not fit the model's window: shorten it
	Auth     Kind = "auth"      // the key is missing, wrong or not allowed this: mend the key
	Quota    Kind = "quota"     // the account has no credit left: pay
	NotFound Kind = "not_found" // no such model, or no such service at this URL: mend the configuration
	Refused  Kind = "refused"   // the provider's policy refuses the content: do not repeat it
)

// Error makes a Kind usable as a target of errors.Is.
func (k Kind) Error() string { return string(k) }

// Retryable reports whether the same request may succeed later.
func (k Kind) Retryable() bool {
	return k == Rate || k == Overloaded || k == Transient || k == Cut
}

// Shared reports whether k is about the provider and not about one call, so that its
// other users should wait too.
func (k Kind) Shared() bool { return k == Rate || k == Overloaded }

// MaxAfter bounds what a provider may ask to wait for; a longer time is cut to it.
const MaxAfter = time.Hour

// Error is why a model did not answer.
type Error struct {
	Kind    Kind
	Model   string        // Name of the model
	Status  int           // of HTTP; 0 when it failed before or after one
	Code    string        // the provider's word: "overloaded_error", "context_length_exceeded"
	Message string        // the provider's own message, or ours, without any key; at most 2,000 bytes
	After   time.Duration // how long the provider asked to wait, at most [MaxAfter]; 0: it did not say
	Request string        // the provider's id of the request, for its support
	Partial string        // text that came before a stream broke, as a partial and never as an answer
	Usage   Usage         // what the provider had reported by then; it is paid for
	Err     error         // the cause; may be nil
}

// Error is one sentence: the model, what it is, and the provider's message.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Model != "" {
		b.WriteString(e.Model + ": ")
	}
	b.WriteString(e.Kind.says())
	if e.Status != 0 || e.Code != "" {
		b.WriteString(" (")
		if e.Status != 0 {
			b.WriteString("HTTP " + strconv.Itoa(e.Status))
		}
		if e.Status != 0 && e.Code != "" {
			b.WriteString(", ")
		}
		b.WriteString(e.Code + ")")
	}
	switch {
	case e.Message != "":
		b.WriteString(": " + e.Message)
	case e.Err != nil:
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

func (k Kind) says() string {
	switch k {
	case Rate:
		return "too many requests"
	case Overloaded:
		return "the provider is overloaded"
	case Transient:
		return "the provider failed"
	case Cut:
		return "the answer was cut off"
	case Invalid:
		return "the request was refused as invalid"
	case TooLong:
		return "the request is too long for the model"
	case Auth:
		return "the key was refused"
	case Quota:
		return "the account has no credit left"
	case NotFound:
		return "the model or the service was not found"
	case Refused:
		return "the provider's policy refused the content"
	}
	return string(k)
}

// Hint says what to do about it, in a sentence.
func (e *Error) Hint() string {
	switch e.Kind {
	case Rate, Overloaded:
		if e.After > 0 {
			return "the provider asks to wait " + e.After.Round(time.Second).String()
		}
		return "wait, or lower how many sessions use this provider at once"
	case Transient, Cut:
		return "try again; if it stays, look at the base URL and the provider's status page"
	case TooLong:
		return "shorten what is sent, or name a model with a larger window"
	case Auth:
		return "look at the key that the configuration names, and at what it is allowed"
	case Quota:
		return "look at the account's billing page"
	case NotFound:
		return "look at the model's name and the base URL in the configuration"
	case Refused:
		return "the same content will be refused again; change the prompt"
	default:
		return "the provider's message says what is wrong with the request"
	}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches a bare [Kind].
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool { return e.Kind.Retryable() }

// RetryAfter is how long to wait at least before that, 0 when the provider did not say.
func (e *Error) RetryAfter() time.Duration { return e.After }

// AsError returns the first [Error] in err's tree, nil if there is none.
func AsError(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}
