package notify

import (
	"context"
	"strings"
	"time"

	"github.com/stint-dev/stint/internal/term"
)

// Channel is a way to tell somebody something. Its methods may be called from any goroutine.
type Channel interface {
	// Check says what is wrong with how the channel was set up, as a [stint.Invalid] error.
	Check() error
	// Send sends n once, and says what came of it. nil means that it was taken. With an
	// error it is sent again, unless the answer says that it was refused for good. It ends
	// with ctx, and otherwise after a time of its own.
	Send(ctx context.Context, n *Notification) (Answer, error)
}

// Notification is one thing to tell, for a channel.
type Notification struct {
	ID      string // the same whenever it is sent
	Message Message
	Body    []byte // the message as JSON, the same whenever it is sent
}

// Answer is what came of an attempt.
type Answer struct {
	Status int           // of HTTP or SMTP, or an exit code; 0: there was none
	After  time.Duration // it is not sent again before
	Final  bool          // it was refused, and would be again
	Closed bool          // whoever is there wants nothing any more
	Said   string        // one line; empty: nothing
}

// maxSaid bounds what is kept of what others said, in bytes.
const maxSaid = 300

// oneLine is what others wrote, as one line that can be recorded and shown.
func oneLine(s string) string { return clip(term.Line(strings.TrimSpace(s)), maxSaid) }
