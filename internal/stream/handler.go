package stream

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/problem"
)

// source is what one stream tells of.
type source interface {
	// begin finds the place that the client goes on from, and the notice to begin with.
	begin(ctx context.Context) (name string, n Notice, err error)
	// catchUp writes what the store has behind it, until the hub has the rest.
	catchUp(ctx context.Context, o *out) error
	// more writes items, and says up to where the client then has everything.
	more(ctx context.Context, o *out, items []*item, place string) error
	// place is up to where the client has everything.
	place() string
}

// reader makes a source of a request, whose parameters it checks, and the client of it.
type reader func(h *hub, r *http.Request, q url.Values) (source, *client, error)

// handler serves streams of one kind.
func handler(h *hub, read reader) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			problem.Write(w, stint.Invalid.Errorf("events", "the query cannot be read: %v", err))
			return
		}
		src, c, err := read(h, r, q)
		if err == nil && r.Method != http.MethodHead {
			err = h.enter(r.Context(), c)
		}
		if err != nil {
			problem.Write(w, err)
			return
		}
		if r.Method == http.MethodHead { // it has no body that could be waited for
			w.Header().Set("Content-Type", "text/event-stream")
			return
		}
		defer h.leave(c)
		name, notice, err := src.begin(r.Context())
		if err != nil {
			problem.Write(w, err)
			return
		}
		v := &visit{hub: h, client: c, src: src, out: &out{w: w, control: http.NewResponseController(w), limit: h.Write}}
		v.serve(r.Context(), name, notice)
	})
}

// visit is a stream that has begun.
type visit struct {
	hub    *hub
	client *client
	src    source
	out    *out
}

// serve writes events until the request or the server ends, or the client is sent away.
func (v *visit) serve(request context.Context, name string, first Notice) {
	ctx, cancel := context.WithCancel(request)
	defer cancel()
	defer context.AfterFunc(v.hub.ctx, cancel)()
	defer v.out.hurried(ctx)()
	err := v.out.begin()
	if err == nil {
		err = v.out.event(name, first.Cursor, first)
	}
	if err == nil {
		err = v.src.catchUp(ctx, v.out)
	}
	var why ending
	if err == nil {
		why, err = v.follow(ctx)
	}
	if errors.Is(err, errSlow) {
		return // it could not be told either
	}
	v.out.limit = lastWords
	v.last(request, why, err)
	_ = v.out.flush() // who has gone does not read it
}

// follow writes what comes.
func (v *visit) follow(ctx context.Context) (why ending, err error) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		items, texts, place, why := v.hub.take(v.client)
		if why == behind {
			if err := v.src.catchUp(ctx, v.out); err != nil {
				return "", err
			}
			continue
		}
		if why != "" {
			return why, nil
		}
		for _, t := range texts {
			d := Delta{Schema: SchemaDelta, Session: v.client.session, Loop: t.loop, Text: t.Text, Thought: t.Thought, Void: t.Void}
			if err := v.out.event(nameDelta, "", d); err != nil {
				return "", err
			}
		}
		if err := v.src.more(ctx, v.out, items, place); err != nil {
			return "", err
		}
		if err := v.out.flush(); err != nil {
			return "", err
		}
		if len(items) == takeMost {
			continue // there may be more, of which nobody tells again
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-v.client.wake:
		case <-beat.C:
			v.beat()
		}
	}
}

// beat adds what keeps the connection alive. It moves the client's id on where nothing
// came that it wanted, or it would come back with one from long ago.
func (v *visit) beat() {
	v.out.buf = append(append(v.out.buf, ":\nid: "...), v.src.place()...)
	v.out.buf = append(v.out.buf, "\n\n"...)
}

// last adds the last event.
func (v *visit) last(request context.Context, why ending, err error) {
	n := Notice{Schema: SchemaNotice, Cursor: v.src.place()}
	name := nameBye
	switch {
	case why == slow:
		name, n.Reason, n.Text = nameResync, string(slow), "more came than you read: come back with this cursor, which misses nothing, or read the newest anew"
	case why == moved:
		name, n.Reason, n.Text = nameResync, string(moved), movedText
	case v.hub.ctx.Err() != nil:
		n.Reason, n.Text = "drain", "the server ends: come back with this cursor"
	case request.Err() != nil:
		n.Reason = string(stint.CodeOf(context.Cause(request)))
		n.Text = "the request may not go on: " + context.Cause(request).Error()
	default:
		n.Reason, n.Text = string(failed), "the store cannot be read at the moment: come back with this cursor"
		if err != nil {
			n.Reason = string(stint.CodeOf(err))
		}
	}
	// Those whom one end hits come back one after the other.
	v.out.retry(comeBack + rand.N(comeBack))
	_ = v.out.event(name, "", n) // strings alone, it never fails
}

// movedText says what to do about an id that is not of this store as it is.
const movedText = "what you have is of another store, or of this one before a copy of it was put back: read anew what you need, then go on from here"

// strictly refuses parameters that are not in may, and those that come twice and are
// not in many.
func strictly(q url.Values, may, many []string) error {
	known := map[string]bool{}
	for _, name := range may {
		known[name] = true
	}
	for _, name := range many {
		known[name] = true
	}
	for name, values := range q {
		if !known[name] {
			return stint.Invalid.Errorf("events", "there is no parameter %.60q", name)
		}
		if len(values) > 1 && !slices.Contains(many, name) {
			return stint.Invalid.Errorf("events", "the parameter %q comes twice", name)
		}
	}
	return nil
}

// resumes returns the place that a client asks for: with the id of the newest event it
// got, which browsers send, or else with a parameter. header says which.
func resumes(r *http.Request, q url.Values) (place string, header bool) {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		return id, true
	}
	return q.Get("after"), false
}
