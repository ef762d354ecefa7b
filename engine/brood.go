package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stint-dev/stint"
)

// brood are the children that a Run drives beside its session, since there may be nobody
// else who would.
type brood struct {
	e      *Engine
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	busy    int               // sessions that are driven, those that wait for a child not counted
	waiting map[stint.ID]bool // those
	driven  map[stint.ID]bool

	root   stint.ID                 // the session of the Run
	places map[string]chan struct{} // of agents whose sessions are bounded, and under "" of all; behind mu
}

func (e *Engine) newBrood(ctx context.Context, root stint.ID) *brood {
	b := &brood{e: e, waiting: map[stint.ID]bool{}, driven: map[stint.ID]bool{}, busy: 1, root: root, places: map[string]chan struct{}{}}
	b.ctx, b.cancel = context.WithCancel(ctx)
	return b
}

// run drives a child, unless another runner has it.
func (b *brood) run(id stint.ID) { b.follow(id, nil) }

// follow drives a child, once the wait that it is in is over.
func (b *brood) follow(id stint.ID, in *stint.Wait) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.driven[id] || b.ctx.Err() != nil {
		return
	}
	b.driven[id] = true
	b.busy++
	b.wg.Go(func() {
		if b.over(id, in) {
			if _, err := b.e.run(b.ctx, id, b); err != nil && stint.CodeOf(err) != stint.Conflict && b.ctx.Err() == nil {
				b.e.opt.Log.Warn("a child is given up", "session", id, "error", err)
			}
		}
		b.mu.Lock()
		delete(b.driven, id)
		b.busy--
		b.mu.Unlock()
		b.e.poke()
	})
}

// caps are the bounds that a session is claimed with: none for the one of the Run, whoever
// named it has decided; for a child that of its agent, as it is defined now, and of all.
func (b *brood) caps(ctx context.Context, id stint.ID) (map[string]int, error) {
	if id == b.root {
		return nil, nil
	}
	row, err := b.e.store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	c := stint.Claim{}
	if a, err := b.e.agentNamed(row.Session.Agent.Name); err == nil {
		b.e.cap(&c, a)
	}
	b.e.cap(&c, Agent{Concurrency: b.e.opt.Total})
	return c.Caps, nil
}

// enter waits for a place to drive a session in, and returns what leaves it; false: the Run
// ends first. Those for whom there is none here do not ask the store for one, where what
// other processes drive counts too.
func (b *brood) enter(ctx context.Context, c *stint.Claim) (leave func(), ok bool) {
	if c.Session == b.root {
		return func() {}, true
	}
	var taken []chan struct{}
	leave = func() {
		for _, place := range taken {
			<-place
		}
	}
	bounds := maps.Clone(c.Caps)
	if bounds == nil {
		bounds = map[string]int{}
	}
	bounds[""] = b.e.opt.Concurrency
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(bounds))) { // that of all last, which nobody holds who waits for another
		place := b.place(name, bounds[name])
		select {
		case place <- struct{}{}:
			taken = append(taken, place)
		case <-ctx.Done():
			leave()
			return nil, false
		}
	}
	return leave, true
}

func (b *brood) place(name string, n int) chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.places[name] == nil {
		b.places[name] = make(chan struct{}, n)
	}
	return b.places[name]
}

// pause waits a moment for what others drive to end; false: the Run ends first.
func (b *brood) pause(ctx context.Context) bool {
	t := time.NewTimer(min(b.e.opt.Poll, 100*time.Millisecond))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-b.e.kick:
	}
	return ctx.Err() == nil
}

// adopt drives the children that an earlier process left.
func (b *brood) adopt(ctx context.Context, parent stint.ID) error {
	row, err := b.e.store.Session(ctx, parent)
	if err != nil {
		return err
	}
	rows, err := b.e.children(ctx, &row.Session)
	for i := range rows {
		s := &rows[i].Session
		switch {
		case s.Status == stint.Pending || rows[i].Unread > 0:
			b.run(s.ID)
		case s.Wait != nil && (s.Wait.For == stint.ForTime || s.Wait.For == stint.ForRetry || s.Wait.For == stint.ForChild):
			b.follow(s.ID, s.Wait)
		}
	}
	return err
}

// over waits until a wait that time or a child ends is over, and reports whether it is.
func (b *brood) over(id stint.ID, in *stint.Wait) bool {
	switch {
	case in == nil:
		return true
	case in.For != stint.ForChild:
		return b.e.waitUntil(b.ctx, id, in.Until)
	}
	if err := b.adopt(b.ctx, id); err != nil {
		b.e.opt.Log.Warn("the children of a session are not driven here", "session", id, "error", err)
	}
	return b.wait(b.ctx, id)
}

// wait waits for a message that ends the session's wait for a child, and reports whether
// one came. None will come once all that are driven here wait.
func (b *brood) wait(ctx context.Context, id stint.ID) bool {
	b.mu.Lock()
	b.waiting[id] = true
	b.busy--
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.waiting, id)
		b.busy++
		b.mu.Unlock()
	}()
	for {
		idle := b.idle()
		if b.e.woken(ctx, id) {
			return true
		}
		if idle && !b.stirs(ctx) {
			return false
		}
		if !b.pause(ctx) {
			return false
		}
	}
}

// idle reports whether nothing that is driven here can still end.
func (b *brood) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.busy == 0
}

// stirs reports whether one of those that wait has what it waits for, and will go on, or a
// child that another runner drives, and may get it.
func (b *brood) stirs(ctx context.Context) bool {
	b.mu.Lock()
	ids := make([]stint.ID, 0, len(b.waiting))
	for id := range b.waiting {
		ids = append(ids, id)
	}
	busy := b.busy > 0
	b.mu.Unlock()
	for _, id := range ids {
		busy = busy || b.e.woken(ctx, id) || b.elsewhere(ctx, id)
	}
	return busy
}

// elsewhere reports whether another runner drives a child of the session.
func (b *brood) elsewhere(ctx context.Context, id stint.ID) bool {
	row, err := b.e.store.Session(ctx, id)
	if err != nil {
		return false
	}
	rows, err := b.e.children(ctx, &row.Session)
	return err == nil && slices.ContainsFunc(rows, func(r stint.Row) bool { return r.Live })
}

// end gives the children back, and obeys for them what the end of the session asks.
func (b *brood) end(s *stint.Session) error {
	b.cancel()
	b.wg.Wait()
	if s.ID.IsZero() || !s.Status.Ended() {
		return nil
	}
	return b.e.settleTree(context.WithoutCancel(b.ctx), s)
}
