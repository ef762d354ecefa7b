package trigger

import (
	"context"
	"sync"

	"github.com/stint-dev/stint"
)

// turns lets those that name the same thing in one after the other. What they do is at
// most once in any case, by the store's keys; in turn they also learn what came of it,
// and do not try in vain. The zero value has nobody in it.
type turns struct {
	mu  sync.Mutex
	all map[string]*turn
}

// turn is a name that somebody has, or waits for.
type turn struct {
	free chan struct{} // has a value while nobody has the name
	n    int           // who has it and who wait for it
}

// take waits for the turn of name. leave gives it back; calling it again does nothing.
// If ctx ends first that is [stint.Unavailable].
func (t *turns) take(ctx context.Context, name string) (leave func(), err error) {
	t.mu.Lock()
	if t.all == nil {
		t.all = map[string]*turn{}
	}
	one := t.all[name]
	if one == nil {
		one = &turn{free: make(chan struct{}, 1)}
		one.free <- struct{}{}
		t.all[name] = one
	}
	one.n++
	t.mu.Unlock()
	select {
	case <-one.free:
		return sync.OnceFunc(func() {
			one.free <- struct{}{}
			t.quit(name, one)
		}), nil
	case <-ctx.Done():
		t.quit(name, one)
		return nil, stint.Unavailable.Errorf("hook", "the deliveries before this one take too long: %v", context.Cause(ctx))
	}
}

// quit forgets a name that nobody wants any more.
func (t *turns) quit(name string, one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.n--; one.n == 0 {
		delete(t.all, name)
	}
}
