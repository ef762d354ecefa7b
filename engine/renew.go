package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stint-dev/stint"
)

// renewals keeps the leases alive and their NOW lines fresh, apart from the
// drivers, so that no agent can starve it.
func (e *Engine) renewals() {
	tick := time.NewTicker(min(time.Second, e.opt.TTL/6))
	defer tick.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-tick.C:
		}
		e.mu.Lock()
		all := time.Since(e.renewed) >= e.opt.TTL/3
		ds := make([]*driver, 0, len(e.drivers))
		for _, d := range e.drivers {
			ds = append(ds, d)
		}
		e.mu.Unlock()
		e.renew(ds, all)
	}
}

// renew extends the leases of ds: all of them, or those whose NOW line changed.
func (e *Engine) renew(ds []*driver, all bool) {
	begun := time.Now()
	var held []stint.Lease
	for _, d := range ds {
		if l, dirty := d.pulse.beat(d.lease); all || dirty {
			held = append(held, l)
		}
	}
	if len(held) == 0 {
		if all {
			e.setRenewed(begun)
		}
		return
	}
	ctx, cancel := context.WithTimeout(e.ctx, e.opt.TTL/2)
	lost, err := e.store.Renew(ctx, e.opt.TTL, held)
	cancel()
	switch {
	case err == nil && all:
		e.setRenewed(begun)
	case err != nil:
		e.opt.Log.Warn("renewal failed", "leases", len(held), "error", err)
		e.distrust(ds)
	}
	for _, id := range lost {
		// Of those that were asked for: a successor may drive the session by now.
		if i := slices.IndexFunc(ds, func(d *driver) bool { return d.lease.Session == id }); i >= 0 {
			d := ds[i]
			d.abandon(&stint.Error{Code: stint.Fenced, Op: "renew", Session: id, Err: errors.New("the lease is lost")})
		}
	}
}

func (e *Engine) setRenewed(t time.Time) {
	e.mu.Lock()
	e.renewed = t
	e.mu.Unlock()
}

// distrust gives up sessions whose leases may have run out by now on the clock of
// others: the usual overlap of two runners is then zero, and the epoch covers the
// rest. Only a store that others may reach when this runner cannot needs it: on a
// full disk nobody can claim either, and a renewal revives a lease that nobody took.
func (e *Engine) distrust(ds []*driver) {
	if r, ok := e.store.(interface{ Remote() bool }); !ok || !r.Remote() {
		return
	}
	e.mu.Lock()
	renewed := e.renewed
	e.mu.Unlock()
	for _, d := range ds {
		last := d.claimed
		if renewed.After(last) {
			last = renewed
		}
		if time.Since(last) <= e.opt.TTL-e.opt.TTL/6 {
			continue
		}
		d.abandon(&stint.Error{Code: stint.Fenced, Op: "renew", Session: d.lease.Session,
			Err: errors.New("the lease could not be renewed in time")})
	}
}

// abandon ends a drive whose lease is lost.
func (d *driver) abandon(err error) {
	if d.leaving.Load() {
		return
	}
	d.mu.Lock()
	w := d.w
	d.mu.Unlock()
	if w != nil {
		w.abandon(err)
		return
	}
	d.fence(err)
}

// watchStore tells drivers of new messages and the claim loop of new work.
func (e *Engine) watchStore() {
	w, ok := e.store.(stint.Watcher)
	var changed <-chan struct{}
	if ok {
		changed = w.Changed(e.ctx)
	}
	poll := time.NewTicker(e.opt.Poll)
	defer poll.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case _, open := <-changed:
			if !open {
				changed = nil
			}
			e.poke()
		case <-poll.C:
		}
		e.dispatch(w)
	}
}

// dispatch hands their inbox to the drivers that have messages.
func (e *Engine) dispatch(w stint.Watcher) {
	e.mu.Lock()
	var ids []stint.ID
	for id := range e.drivers {
		ids = append(ids, id)
	}
	e.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	if w != nil {
		unread, err := w.Unread(e.ctx, e.opt.Holder)
		if err != nil {
			return // the next change or poll tries again
		}
		ids = unread
	}
	for _, id := range ids {
		e.mu.Lock()
		d := e.drivers[id]
		e.mu.Unlock()
		if d == nil {
			continue
		}
		if ms, err := e.store.Inbox(e.ctx, id); err == nil {
			d.deliver(ms)
		}
	}
}
