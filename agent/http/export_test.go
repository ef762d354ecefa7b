package http

import (
	"context"
	"io"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
	"github.com/stint-dev/stint/internal/protocol"
)

// RetryAfter reads the header of that name.
func RetryAfter(text string, now time.Time) (time.Duration, bool) { return retryAfter(text, now) }

// Response reads a response that has begun, to its end, as the answer to the first
// request of a loop. It returns the kinds of the messages that the driver would act on.
func Response(body io.Reader, l stint.Loop, line int, whole int64) (kinds []string, err error) {
	spec := Spec{MaxLine: line, MaxBody: whole}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	d := &driver{agent: &Agent{spec: spec}, loop: l, sink: &child.Log{}}
	x := &exchange{d: d, book: protocol.NewBook(l), lines: newLineReader(body, line, whole), ctx: ctx, cancel: cancel}
	for {
		m, err := x.next()
		if m == nil || err != nil {
			return kinds, err
		}
		kinds = append(kinds, m.Kind)
	}
}
