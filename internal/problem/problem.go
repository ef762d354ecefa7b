// Package problem answers HTTP requests that failed, in the form of RFC 9457. It is the one
// place that maps the codes of stint to HTTP statuses.
package problem

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
)

// ContentType is that of every problem.
const ContentType = "application/problem+json"

// Document is the body of a problem. Type is left out, which RFC 9457 reads as
// about:blank: Code says which problem it is.
type Document struct {
	Title   string     `json:"title"`  // the status in words
	Status  int        `json:"status"` // that of the response
	Detail  string     `json:"detail"` // what happened
	Code    stint.Code `json:"code"`   // what the caller should do next
	Hint    string     `json:"hint,omitempty"`
	Session string     `json:"session,omitempty"`
}

// withStatus is an error with a status that is more exact than that of its code.
type withStatus struct {
	error

	status int
}

func (e *withStatus) Unwrap() error { return e.error }

// With returns err to be answered with a status that says more than its code does: 401 or
// 403 for denied, 413 for a limit.
func With(status int, err error) error { return &withStatus{err, status} }

// Status returns the status of an error: that of the outermost [With], else that of its
// code. A request that is illegal as things stand is 400 as one that is malformed, since
// both are to be mended; a lost lease is a conflict, since 412 is for conditional headers.
func Status(err error) int {
	if s, ok := errors.AsType[*withStatus](err); ok {
		return s.status
	}
	switch stint.CodeOf(err) {
	case "":
		return http.StatusOK
	case stint.Invalid:
		return http.StatusBadRequest
	case stint.NotFound:
		return http.StatusNotFound
	case stint.Exists, stint.Conflict, stint.Fenced:
		return http.StatusConflict
	case stint.Denied:
		return http.StatusForbidden
	case stint.Limit:
		return http.StatusTooManyRequests
	case stint.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError // corrupt and internal
}

// retryAfter is what a service that is down asks for where the error does not say.
const retryAfter = 5 * time.Second

// Describe returns the body of the answer to err, which is not nil, and the headers that
// go with it. The text of an error of code internal stays out of it, because nobody chose
// its words; log it. An unavailable service, and every error that says so with
// [stint.Retry], has Retry-After.
func Describe(err error) (Document, http.Header) {
	doc := Document{Status: Status(err), Code: stint.CodeOf(err)}
	doc.Title = http.StatusText(doc.Status)
	if e, ok := errors.AsType[*stint.Error](err); ok {
		doc.Hint = e.Hint
		if !e.Session.IsZero() {
			doc.Session = e.Session.String()
		}
	}
	doc.Detail = strings.ToValidUTF8(err.Error(), "\uFFFD")
	if doc.Code == stint.Internal {
		doc.Detail, doc.Hint = "a fault of stint", "the log of the server says more"
	}
	h := http.Header{}
	if after := wait(err, doc.Code); after > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10))
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	return doc, h
}

// Write answers with what [Describe] returns.
func Write(w http.ResponseWriter, err error) {
	doc, more := Describe(err)
	h := w.Header()
	maps.Copy(h, more)
	// What was meant for another body must not describe this one.
	for _, name := range []string{"Content-Length", "Content-Encoding", "Content-Disposition", "Etag", "Last-Modified"} {
		h.Del(name)
	}
	h.Set("Content-Type", ContentType)
	w.WriteHeader(doc.Status)
	if body, err := json.Marshal(doc); err == nil { // strings and a number, it never fails
		_, _ = w.Write(append(body, '\n')) // who has gone does not read it
	}
}

// wait returns after which time the same request makes sense, 0 where that is not known.
func wait(err error, code stint.Code) time.Duration {
	var s interface {
		Steer() (after time.Duration, final, definite bool)
	}
	if errors.As(err, &s) {
		if after, _, _ := s.Steer(); after > 0 {
			return after
		}
	}
	if code == stint.Unavailable {
		return retryAfter
	}
	return 0
}
