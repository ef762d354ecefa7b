package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stint-dev/stint"
)

// Watch says which events are wanted.
type Watch struct {
	Session stint.ID   // of this session; zero: of the board, the rows of all sessions as they change
	After   string     // behind the event with this id; empty: of a session from its beginning, of the board from now on
	Query   url.Values // of the board: status, agent, trigger, label
}

// Event is one event of a stream, as docs/events.md describes them.
type Event struct {
	Name string          // entry, delta, session, gone, ready, resync
	ID   string          // the place behind it, for [Watch]; empty for what has none
	Data json.RawMessage // a JSON object
}

// Bounds of a stream.
const (
	maxEvent = 16 << 20         // bytes of one
	silence  = 45 * time.Second // a server says something every 15 s
	comeBack = 2 * time.Second  // until it says otherwise
)

// Events follows a stream until ctx ends, and goes on where it was when the connection or
// the server ends: no event is missed, and none that has an id comes twice. The event
// resync says that the server's store is another than it was, and its data what to do.
//
// An error is the last thing that comes: what the server refuses, or that of ctx. A server
// that is away is none, and is asked again and again.
func (c *Client) Events(ctx context.Context, w Watch) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		s := &subscription{c: c, w: w, place: w.After, wait: comeBack}
		for {
			goOn, err := s.follow(ctx, func(e Event) bool { return yield(e, nil) })
			if !goOn {
				return
			}
			var p passing
			if ctx.Err() != nil {
				err = ctx.Err()
			} else if err == nil || errors.As(err, &p) {
				err = s.rest(ctx, p.after)
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// subscription is a stream over its connections.
type subscription struct {
	c      *Client
	w      Watch
	place  string        // behind what came
	wait   time.Duration // before it is asked for again
	failed int           // connections in a row that gave nothing
}

// rest waits before the next connection.
func (s *subscription) rest(ctx context.Context, asked time.Duration) error {
	d := s.wait
	if s.failed++; s.failed > 1 {
		d = max(d, backoff(s.failed+2))
	}
	return sleep(ctx, max(d, asked))
}

// follow reads one connection until it ends; goOn is false once nobody wants more.
func (s *subscription) follow(ctx context.Context, yield func(Event) bool) (goOn bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	path := "/v1/events"
	if !s.w.Session.IsZero() {
		path = "/v1/sessions/" + s.w.Session.String() + "/events"
	}
	req, err := s.c.request(ctx, request{method: http.MethodGet, path: path, query: s.w.Query.Encode()}, nil)
	if err != nil {
		return true, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if s.place != "" {
		req.Header.Set("Last-Event-ID", s.place)
	}
	resp, err := s.c.http.Do(req)
	if err != nil {
		return true, passing{error: s.c.away(err)}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return true, s.c.refused(resp)
	}
	in := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		e, err := s.event(in, func() { quiet.Reset(silence) })
		if err != nil {
			return true, passing{error: s.c.away(err)} // it ended, and begins again
		}
		if s.failed = 0; e.Name == "bye" || e.Name == "resync" {
			var n struct{ Reason, Cursor string }
			if json.Unmarshal(e.Data, &n) == nil && n.Cursor != "" {
				s.place = n.Cursor
			}
			if e.Name == "bye" || n.Reason == "slow" { // that place misses nothing
				continue
			}
		}
		if !yield(e) {
			return false, nil
		}
	}
}

// event reads up to the end of one event that has data, and keeps what else it is told.
func (s *subscription) event(in *bufio.Reader, alive func()) (Event, error) {
	var e Event
	id, has := "", false
	for {
		line, err := readLine(in)
		if err != nil {
			return e, err
		}
		alive()
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			e.Name = string(value)
		case "data":
			if e.Data != nil {
				e.Data = append(e.Data, '\n')
			}
			if e.Data = append(e.Data, value...); len(e.Data) > maxEvent {
				return e, errors.New("an event is too long")
			}
		case "id":
			id, has = string(value), true
		case "retry":
			if ms, err := strconv.Atoi(string(value)); err == nil && ms >= 0 && ms < 600_000 {
				s.wait = time.Duration(ms) * time.Millisecond
			}
		}
		if len(line) > 0 {
			continue
		}
		if has {
			s.place = id
		}
		if e.Data != nil {
			e.ID = id
			return e, nil
		}
		e, id, has = Event{}, "", false
	}
}

// readLine reads a line without its end.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxEvent {
			return nil, errors.New("a line is too long")
		}
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}
