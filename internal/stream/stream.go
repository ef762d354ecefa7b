package stream

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/model"
)

// Store is what streams read.
type Store interface {
	stint.Reader
	stint.Watcher
}

// Options are what a server of streams is made of.
type Options struct {
	Store     Store
	Ring      int           // entries that are kept in memory for all; 0: 8,192
	RingBytes int           // and about so many bytes of them; 0: 16 MiB
	Queue     int           // events that may wait for one client, at most Ring; 0: 4,096
	Write     time.Duration // one write to a client; 0: 10 s
}

// Live gets text of models while they write it. It is what feeds Hear of package
// agent/llm: see [Server.Publish].
type Live interface {
	// Publish gives a piece of an answer to those who watch the session. It may be
	// called from many goroutines and waits for nobody.
	Publish(session stint.ID, loop int, d model.Delta)
}

// Server serves streams of one store. All methods may be called concurrently.
type Server struct{ hub *hub }

var _ Live = (*Server)(nil)

// New returns a server that reads o.Store from its first client on, and not while it
// has none. It serves until [Server.Close] or the end of ctx.
func New(ctx context.Context, o Options) *Server {
	o.Ring = cmp.Or(o.Ring, 8192)
	o.RingBytes = cmp.Or(o.RingBytes, 16<<20)
	o.Queue = min(cmp.Or(o.Queue, 4096), o.Ring)
	o.Write = cmp.Or(o.Write, 10*time.Second)
	return &Server{newHub(ctx, o)}
}

// Session serves GET /v1/sessions/{id}/events: the entries of one session, from its
// beginning or behind a place that Last-Event-ID or the parameter after gives.
func (s *Server) Session() http.Handler { return handler(s.hub, readSession) }

// Board serves GET /v1/events: the rows of sessions as they change, from now on or
// behind a place. The parameters status, agent, trigger and label select sessions.
func (s *Server) Board() http.Handler { return handler(s.hub, readBoard) }

// Publish implements [Live]. The text goes to the clients that have caught up with the
// session's journal, and is not kept: one that reads it too slowly is sent away.
func (s *Server) Publish(session stint.ID, loop int, d model.Delta) { s.hub.publish(session, loop, d) }

// Close ends all streams, each with an event that tells its client to come back, and
// returns when they have ended; who does not read has a second. Requests that come
// later are answered with [stint.Unavailable].
func (s *Server) Close() { s.hub.close() }
