package trigger

import (
	"context"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
)

// room bounds the sessions of a hook that have not ended. It knows those that may be
// open, from the store and from what it let in, so that a delivery costs no query while
// there is room; where there seems to be none, the store is asked what has ended. It
// counts what is there and never up and down, so that nothing can leak.
type room struct {
	mu     sync.Mutex
	open   map[stint.ID]bool // may be open; nil: not read yet
	coming int               // let in and not there yet
	read   time.Time         // when the store was asked for all that are open
	looked time.Time         // when it was asked which have ended
}

const (
	// rereadRoom is how long it may take until a session counts again that was begun
	// again after its end.
	rereadRoom = time.Minute
	// lookAgain is how long a full room is taken for full.
	lookAgain = 100 * time.Millisecond
	// fullWait is what a sender is told to wait for room.
	fullWait = 10 * time.Second
)

// enter lets one more session of the hook begin, in the place of another if besides is
// not zero. Where there is no room that is [stint.Limit], to be tried again. made is to be
// called with the session, zero if there came to be none.
func (r *room) enter(ctx context.Context, store stint.Reader, name string, most int, besides stint.ID) (made func(stint.ID), err error) {
	if most <= 0 {
		return func(stint.ID) {}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := faultpoint.Now(); r.open == nil || now.Sub(r.read) >= rereadRoom || now.Before(r.read) {
		if err := r.reread(ctx, store, name, now); err != nil {
			return nil, err
		}
	}
	if r.taken(besides) >= most {
		if err := r.look(ctx, store); err != nil {
			return nil, err
		}
	}
	if n := r.taken(besides); n >= most {
		return nil, tooMany(fullWait, "%d sessions of the hook have not ended; it has at most %d", n, most)
	}
	r.coming++
	return func(id stint.ID) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.coming--; !id.IsZero() {
			r.open[id] = true
		}
	}, nil
}

// taken is how many may be open, one not counted.
func (r *room) taken(besides stint.ID) int {
	n := len(r.open) + r.coming
	if r.open[besides] {
		n--
	}
	return n
}

// reread asks the store for all sessions of the hook that are open.
func (r *room) reread(ctx context.Context, store stint.Reader, name string, now time.Time) error {
	open := map[stint.ID]bool{}
	for f := (stint.Filter{Open: true, Trigger: "hook", Limit: 1000}); ; {
		rows, err := store.Sessions(ctx, f)
		if err != nil {
			return err
		}
		for i := range rows {
			if s := &rows[i].Session; s.Trigger.Ref == name {
				open[s.ID] = true
			}
		}
		if len(rows) < f.Limit {
			break
		}
		f.After = rows[len(rows)-1].Session.ID
	}
	r.open, r.read = open, now
	return nil
}

// look forgets those that have ended.
func (r *room) look(ctx context.Context, store stint.Reader) error {
	now := faultpoint.Now()
	if since := now.Sub(r.looked); since >= 0 && since < lookAgain {
		return nil
	}
	for id := range r.open {
		row, err := store.Session(ctx, id)
		switch {
		case stint.CodeOf(err) == stint.NotFound:
			delete(r.open, id)
		case err != nil:
			return err
		case row.Session.Status.Ended():
			delete(r.open, id)
		}
	}
	r.looked = now
	return nil
}
