package stream

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/view"
)

// The names of events.
const (
	nameReady   = "ready"   // the stream has begun, at this place
	nameEntry   = "entry"   // of a session
	nameDelta   = "delta"   // text that a model is writing
	nameSession = "session" // a row of the board
	nameGone    = "gone"    // a row that the board's filter does not select any more
	nameResync  = "resync"  // what the client has is not enough to go on from
	nameBye     = "bye"     // the stream ends, come back
)

// Notice is the data of the events ready, resync and bye, schema stint.stream/1.
type Notice struct {
	Schema view.Schema `json:"schema"`
	Reason string      `json:"reason,omitempty"` // in one word
	Text   string      `json:"text,omitempty"`   // the same for people, with what to do
	Cursor string      `json:"cursor"`           // where the stream goes on, or would
}

// Gone is the data of the event gone, schema stint.gone/1.
type Gone struct {
	Schema view.Schema `json:"schema"`
	ID     stint.ID    `json:"id"`
}

// Delta is the data of the event delta, schema stint.delta/1: a piece of an answer that
// is being written. The whole answer comes with the entry of its step.
type Delta struct {
	Schema  view.Schema `json:"schema"`
	Session stint.ID    `json:"session"`
	Loop    int         `json:"loop"`
	Text    string      `json:"text"`
	Thought bool        `json:"thought"` // it belongs to the model's thinking
	Void    bool        `json:"void"`    // what was heard of this answer is void: it begins again
}

// The schemas of what only streams have.
const (
	SchemaNotice view.Schema = "stint.stream/1"
	SchemaGone   view.Schema = "stint.gone/1"
	SchemaDelta  view.Schema = "stint.delta/1"
)

// The times of a stream.
const (
	heartbeat = 15 * time.Second
	comeBack  = 2 * time.Second // after which a client that lost its connection comes back
	lastWords = time.Second     // what a stream that ends has for its last event
)

// errSlow is that a write took too long.
var errSlow = errors.New("the client does not read")

// appendEvent adds one event to b. data has no line breaks.
func appendEvent(b []byte, name, id string, data []byte) []byte {
	b = append(append(b, "event: "...), name...)
	if id != "" {
		b = append(append(b, "\nid: "...), id...)
	}
	return append(append(append(b, "\ndata: "...), data...), "\n\n"...)
}

// document is v as one line of JSON.
func document(v any) ([]byte, error) {
	var b bytes.Buffer
	err := view.WriteJSON(&b, v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// out is a response that events are written to. Only the goroutine of the handler uses
// it, but for hurry.
type out struct {
	w       http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration // of one write
	buf     []byte
}

// flushAt is from how many bytes on they are sent, idleBuffer what a client that waits
// keeps of its buffer.
const (
	flushAt    = 32 << 10
	idleBuffer = 4 << 10
)

// begin sends the header of the response.
func (o *out) begin() error {
	// The limits of the server are for requests that end. A response in a test has none.
	_ = o.control.SetReadDeadline(time.Time{})
	_ = o.control.SetWriteDeadline(time.Time{})
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would keep events back
	h.Set("X-Content-Type-Options", "nosniff")
	o.w.WriteHeader(http.StatusOK)
	o.retry(comeBack)
	return o.flush()
}

// retry says when to come back after the end.
func (o *out) retry(d time.Duration) {
	o.buf = append(o.buf, "retry: "+strconv.FormatInt(d.Milliseconds(), 10)+"\n\n"...)
}

// event adds an event with v as its data.
func (o *out) event(name, id string, v any) error {
	data, err := document(v)
	if err != nil {
		return err
	}
	return o.add(appendEvent(nil, name, id, data))
}

// add adds what is an event already.
func (o *out) add(event []byte) error {
	if o.buf = append(o.buf, event...); len(o.buf) >= flushAt {
		return o.flush()
	}
	return nil
}

// flush sends what was added. After an error nothing more can be sent.
func (o *out) flush() error {
	if len(o.buf) == 0 {
		return nil
	}
	// A deadline in the past, and not one ahead: what wraps the response may have its
	// own for each write.
	late := time.AfterFunc(o.limit, func() { _ = o.control.SetWriteDeadline(time.Unix(1, 0)) })
	_, err := o.w.Write(o.buf)
	if err == nil {
		err = o.control.Flush()
	}
	if !late.Stop() {
		err = errSlow
	}
	if o.buf = o.buf[:0]; cap(o.buf) > idleBuffer {
		o.buf = nil
	}
	return err
}

// hurried has all writes end soon after ctx does, and returns how to stop that: behind a
// stream that its client ended the connection may have another request.
func (o *out) hurried(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	unused := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = o.control.SetWriteDeadline(time.Now().Add(lastWords))
	})
	return func() {
		if !unused() {
			<-done
		}
	}
}
