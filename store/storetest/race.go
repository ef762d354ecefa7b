package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-dev/stint"
)

func raceProperties() []property {
	return []property{
		{name: "eight runners race for forty sessions and each is held by one", holds: raceRunners},
		{name: "runners that stall are overtaken and write nothing more", holds: raceStalls, timed: true},
	}
}

// race is some runners that pass sessions around until all have ended.
type race struct {
	k     *kit
	turns int // claims that a session needs

	mu      sync.Mutex
	courses map[stint.ID]*course // as left by its newest holder
	taken   map[stint.ID]int
	holders map[stint.ID]*atomic.Int32
	left    atomic.Int32 // sessions that have not ended
}

func (k *kit) newRace(sessions, turns int) *race {
	k.Helper()
	r := &race{k: k, turns: turns, courses: map[stint.ID]*course{}, taken: map[stint.ID]int{}, holders: map[stint.ID]*atomic.Int32{}}
	for range sessions {
		c := k.create()
		r.courses[c.id()], r.holders[c.id()] = c, &atomic.Int32{}
	}
	r.left.Store(int32(len(r.courses)))
	return r
}

// run claims and works until nothing is left or ctx ends.
func (r *race) run(ctx context.Context, holder string) {
	for r.left.Load() > 0 {
		ls, err := r.k.store.Claim(ctx, stint.Claim{Holder: holder, TTL: time.Minute, Max: 3})
		if err != nil {
			r.k.Errorf("%s: claim: %v", holder, err)
			return
		}
		for _, l := range ls {
			if err := r.turn(l); err != nil {
				r.k.Errorf("%s: session %s: %v", holder, l.Session, err)
				return
			}
		}
		if len(ls) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			r.k.Errorf("%s: %d sessions are left and none can be claimed", holder, r.left.Load())
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// turn writes an entry under l and gives it back with another.
func (r *race) turn(l stint.Lease) error {
	if n := r.holders[l.Session].Add(1); n != 1 {
		return fmt.Errorf("%d hold it at once", n)
	}
	r.mu.Lock()
	c := &course{s: r.courses[l.Session].s, lease: l}
	r.taken[l.Session]++
	last := r.taken[l.Session] == r.turns
	r.mu.Unlock()
	b := r.k.follow(c, said(l.Holder))
	first := r.k.queue(l, b)
	c.s = b.Session
	if last {
		b = r.k.follow(c, said("end"), ends())
	} else {
		b = r.k.follow(c, said("on"), drains())
	}
	b.Release = true
	r.mu.Lock()
	r.courses[l.Session] = &course{s: b.Session}
	r.mu.Unlock()
	r.holders[l.Session].Add(-1) // before the next can have it
	second := r.k.queue(l, b)
	if err := first.wait(); err != nil {
		return err
	}
	if err := second.wait(); err != nil {
		return err
	}
	if last {
		r.left.Add(-1)
	}
	return nil
}

func raceRunners(k *kit) {
	const runners, sessions, turns = 8, 40, 3
	r := k.newRace(sessions, turns)
	ctx, cancel := context.WithTimeout(k.Context(), 3*patience)
	defer cancel()
	var wg sync.WaitGroup
	for i := range runners {
		name := k.runner(fmt.Sprint("runner", i))
		wg.Go(func() { r.run(ctx, name) })
	}
	wg.Wait()
	for id, n := range r.taken {
		equal(k, "claims of a session", n, turns)
		k.unchanged(r.courses[id])
		row := k.row(id)
		equal(k, "status", row.Session.Status, stint.Completed)
		equal(k, "epoch of the newest entry", k.entries(stint.Range{Session: id, Last: true, Limit: 1})[0].Epoch, turns)
	}
	equal(k, "sessions", len(r.taken), sessions)
}

// Two runners take a session from each other by turns. Each writes on as long as
// the store lets it: what is accepted must be one course, whoever writes.
func raceStalls(k *kit) {
	who := []string{k.runner("one"), k.runner("two")}
	c := k.claimed(who[0])
	var stale []course
	for i := range 20 {
		k.write(c, said(fmt.Sprint("turn ", i)))
		k.pass(time.Minute)
		stale = append(stale, *c)
		k.claim(c, who[(i+1)%2])
		for _, old := range stale {
			at := *c
			k.refused(k.append(old.lease, k.follow(&old, said("late"))), stint.Fenced)
			k.refused(k.append(old.lease, k.follow(&at, said("late, with the right seq"))), stint.Fenced)
		}
		k.unchanged(c)
	}
}
