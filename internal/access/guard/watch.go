package guard

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/problem"
)

// A request that goes on is looked at again each second. When nobody could say for four
// that it may, it ends, and its connection a second later.
const (
	askEvery  = time.Second
	staleness = 4 * time.Second
	lastWords = time.Second
	slowWrite = 30 * time.Second // one write of a stream
)

// admit serves a request that got in, for as long as it would get in.
func (p *protected) admit(w http.ResponseWriter, r *http.Request, row access.Route, who visitor) {
	g := p.guard
	out := &writer{ResponseWriter: w, control: http.NewResponseController(w), stream: row.Stream}
	if row.Stream {
		leave, err := g.enter(who.Token)
		if err != nil {
			problem.Write(w, err)
			return
		}
		defer leave()
		out.begin()
	}
	ctx, stop := watch(context.WithValue(r.Context(), principalKey{}, who.Principal), who.Expires, func(ctx context.Context) error {
		now, err := who.again(ctx)
		if err == nil && !row.Allows(now) {
			err = stint.Denied.Errorf("request", "%s has no scope %s any more", now.Name, row.Scope)
		}
		return err
	})
	defer stop()
	cut := make(chan struct{})
	over := context.AfterFunc(ctx, func() {
		defer close(cut)
		out.end()
	})
	defer func() {
		if !over() { // what it does with the connection must not meet the next request
			<-cut
		}
	}()
	p.mux.ServeHTTP(out, r.WithContext(ctx))
}

// enter counts a stream of a token in, and returns how to count it out.
func (g *Guard) enter(token string) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if share := max(1, g.config.MaxStreams/streamShare); g.open >= g.config.MaxStreams || token != "" && g.streams[token] >= share {
		e := stint.Limit.Errorf("stream", "there are %d open streams, %d of this token", g.open, g.streams[token])
		e.Hint = "close some pages"
		return nil, stint.Retry(10*time.Second, e)
	}
	g.open++
	g.streams[token]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.open--
		if g.streams[token]--; g.streams[token] == 0 {
			delete(g.streams, token)
		}
	}, nil
}

// watch returns a context that ends at expires, when confirm says [stint.Denied], and when
// confirm has not said yes for longer than staleness, whether it fails or hangs. A channel
// of revocations was the other way: it loses what another process does and what happens
// while nobody listens.
func watch(parent context.Context, expires time.Time, confirm func(context.Context) error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	release := func() {}
	if !expires.IsZero() {
		ctx, release = context.WithDeadlineCause(ctx, expires, stint.Denied.Errorf("token", "it has expired"))
	}
	stale := time.AfterFunc(staleness, func() {
		cancel(stint.Unavailable.Errorf("token", "nobody could say whether it is still good"))
	})
	first := time.AfterFunc(askEvery, func() { keepAsking(ctx, cancel, stale, confirm) })
	return ctx, func() {
		first.Stop()
		stale.Stop()
		cancel(context.Canceled)
		release()
	}
}

func keepAsking(ctx context.Context, cancel context.CancelCauseFunc, stale *time.Timer, confirm func(context.Context) error) {
	for ctx.Err() == nil {
		began := time.Now()
		ask, done := context.WithTimeout(ctx, askEvery)
		err := confirm(ask)
		done()
		switch {
		case err == nil:
			stale.Reset(staleness - time.Since(began)) // what was answered was true when it was asked
		case errors.Is(err, stint.Denied):
			cancel(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(askEvery):
		}
	}
	stale.Stop()
}

// writer is the response of a request that got in. Each write of a stream has a limit of
// its own; once the request may not go on, all writes together have a second.
type writer struct {
	http.ResponseWriter

	control *http.ResponseController
	stream  bool

	mu    sync.Mutex
	ended bool
}

// Unwrap lets http.ResponseController reach the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements http.ResponseWriter.
func (w *writer) Write(b []byte) (int, error) {
	w.deadline(slowWrite)
	defer w.deadline(0)
	return w.ResponseWriter.Write(b)
}

// FlushError sends what was written; http.ResponseController uses it.
func (w *writer) FlushError() error {
	w.deadline(slowWrite)
	defer w.deadline(0)
	return w.control.Flush()
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() } // a Flusher cannot say it; the next Write does

// begin takes the limits of the server off a stream. That a test's response has no
// deadlines is no error.
func (w *writer) begin() {
	_ = w.control.SetReadDeadline(time.Time{})
	_ = w.control.SetWriteDeadline(time.Time{})
}

// deadline gives the writes of a stream d from now, 0: without end.
func (w *writer) deadline(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stream || w.ended {
		return
	}
	at := time.Time{}
	if d > 0 {
		at = time.Now().Add(d)
	}
	_ = w.control.SetWriteDeadline(at)
}

// end leaves the handler a second for its last words, also if it hangs in a write to
// somebody who does not read.
func (w *writer) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	_ = w.control.SetReadDeadline(time.Now())
	_ = w.control.SetWriteDeadline(time.Now().Add(lastWords))
}
