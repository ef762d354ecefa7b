package cli

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// feed holds what the stream has said and nobody has taken yet. Who reads the stream
// puts; the loop's goroutine takes. The end of a call goes to the call at once, past
// all that waits, so that a step which waits for it never waits for who it keeps busy.
type feed struct {
	mu    sync.Mutex
	front []event // given back, before queue
	queue []event
	size  int
	full  bool
	wake  chan struct{} // has room for one
	calls map[string]*call
	ended int
}

func newFeed() *feed { return &feed{wake: make(chan struct{}, 1), calls: map[string]*call{}} }

// put takes one event of the stream.
func (f *feed) put(e event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch e.kind {
	case evBegin:
		if f.calls[e.id] != nil {
			return // told twice
		}
		e.call.before = f.ended
		f.calls[e.id] = e.call
	case evEnd:
		if c := f.calls[e.id]; c != nil {
			c.out = e.outcome
			close(c.done)
			delete(f.calls, e.id)
			f.ended++
		}
		return
	case evDone, evFail, evExit:
		for id, c := range f.calls {
			c.lost = true
			close(c.done)
			delete(f.calls, id)
		}
	}
	if f.size += e.size(); f.size > maxQueued && e.kind != evExit {
		if f.full {
			return
		}
		f.full = true
		e = event{kind: evFail, text: fmt.Sprintf("it says more than %d bytes while one call is under way", maxQueued)}
	}
	f.queue = append(f.queue, e)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take returns the next event if there is one.
func (f *feed) take() (event, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from := &f.queue
	if len(f.front) > 0 {
		from = &f.front
	}
	if len(*from) == 0 {
		return event{}, false
	}
	e := (*from)[0]
	(*from)[0] = event{}
	*from = (*from)[1:]
	f.size -= e.size()
	return e, true
}

// back puts events back that were taken, in their order.
func (f *feed) back(es ...event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range es {
		f.size += es[i].size()
	}
	f.front = append(append([]event{}, es...), f.front...)
}

// next waits for an event: until ctx ends, late gets a value, or ended is closed and
// nothing that came before that waits. Without an event its kind is zero.
func (f *feed) next(ctx context.Context, late <-chan time.Time, ended <-chan struct{}) event {
	for {
		over := false
		select {
		case <-ended:
			over = true
		default:
		}
		if e, ok := f.take(); ok {
			return e
		}
		if over {
			return event{}
		}
		select {
		case <-f.wake:
		case <-ended:
		case <-ctx.Done():
			return event{}
		case <-late:
			return event{}
		}
	}
}
