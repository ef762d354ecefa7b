package sqlite

import (
	"context"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
)

// pollEvery is how often a watched store looks for commits of other processes.
const pollEvery = 50 * time.Millisecond

// watchers are those who want to know of changes.
type watchers struct {
	mu  sync.Mutex
	all map[chan struct{}]bool
}

// Changed implements [stint.Watcher]. Changes that this store commits are told of
// at once, those of other processes within 50 ms; the latter without knowing what
// they were. The channel closes with ctx or the store.
func (s *Store) Changed(ctx context.Context) <-chan struct{} {
	ch := make(chan struct{}, 1)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		close(ch)
		return ch
	}
	s.watchers.mu.Lock()
	s.watchers.all[ch] = true
	s.watchers.mu.Unlock()
	s.watching.Go(func() {
		defer s.watchers.remove(ch)
		s.poll(ctx, ch)
	})
	return ch
}

// poll tells ch when another connection than the writer committed.
func (s *Store) poll(ctx context.Context, ch chan struct{}) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	version := func() (int64, error) {
		o := &op{kind: opPoll}
		err := s.do(ctx, o)
		return o.n, err
	}
	if s.w == nil {
		c, err := openConn(s.opt.Path, sqlite.OpenReadOnly)
		if err == nil {
			defer c.Close()
		}
		version = func() (n int64, _ error) {
			if err != nil {
				return 0, err
			}
			_, err := one(c, "PRAGMA data_version", func(st *sqlite.Stmt) { n = st.ColumnInt64(0) })
			return n, err
		}
	}
	for last := int64(-1); ; {
		if n, err := version(); err == nil {
			if last >= 0 && n != last {
				tell(ch)
			}
			last = n
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		case <-s.quit:
			return
		}
	}
}

func tell(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // it has a value already
	}
}

func (w *watchers) remove(ch chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, ch)
	close(ch)
}

// signal tells everybody.
func (w *watchers) signal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch := range w.all {
		tell(ch)
	}
}
