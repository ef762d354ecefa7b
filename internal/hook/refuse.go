package hook

import (
	"errors"
	"fmt"

	"github.com/stint-dev/stint"
)

// The HTTP statuses of refusals. 403 is not among them: who is not known gets 401,
// and of who is known nothing is withheld. 404, 405, 409, 429 belong to the server.
const (
	badRequest    = 400 // genuine, but nothing that can be read
	unauthorized  = 401 // not shown to be genuine: no proof, a wrong one, or an old one
	tooLarge      = 413 // longer than the hook's limit
	unsupported   = 415 // compressed
	unprocessable = 422 // genuine and readable, but the hook's expressions do not fit it
	unavailable   = 503 // the hook's own secrets cannot be used
)

// Refusal is the cause of every error of [Hook.Receive]. Its text may be shown to the
// sender.
type Refusal struct {
	Status int // of HTTP
	Text   string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

// Status returns the HTTP status of an error of [Hook.Receive]: 400, 401, 413, 415, 422
// or 503, 500 for an error of elsewhere, and 200 for nil.
func Status(err error) int {
	var r *Refusal
	switch {
	case err == nil:
		return 200
	case errors.As(err, &r):
		return r.Status
	default:
		return 500
	}
}

// refuse makes the error of a status. The hint is for who looks after the hook.
func refuse(status int, hint, format string, args ...any) error {
	code := stint.Invalid
	switch status {
	case unauthorized:
		code = stint.Denied
	case tooLarge:
		code = stint.Limit
	case unavailable:
		code = stint.Unavailable
	}
	return &stint.Error{Code: code, Op: "hook", Hint: hint, Err: &Refusal{status, fmt.Sprintf(format, args...)}}
}

// unproven is the refusal of a request that is not shown to be genuine.
func unproven(hint, format string, args ...any) error {
	return refuse(unauthorized, hint, format, args...)
}
