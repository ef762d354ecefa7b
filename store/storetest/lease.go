package storetest

import (
	"slices"
	"time"

	"github.com/stint-dev/stint"
)

func leaseProperties() []property {
	return []property{
		{name: "each claim raises the epoch", holds: leaseEpoch},
		{name: "a live lease keeps others away until it expires", holds: leaseExpires, timed: true},
		{name: "a renewed lease lives on, with its NOW line", holds: leaseRenew, timed: true},
		{name: "renewing tells which leases are lost", holds: leaseLost, timed: true},
		{name: "an expired lease that nobody took can be renewed", holds: leaseRevive, timed: true},
		{name: "a lease that was given back is the next one's prior", holds: leaseReleased},
		{name: "a lease not renewed by a living holder expired", holds: leaseExpired, timed: true},
		{name: "the lease of a dead holder is taken at once", holds: leaseDied},
		{name: "a holder that was never held is like a dead one", holds: leaseNeverHeld},
		{name: "a living holder's name is its own", holds: leaseHoldTwice},
		{name: "given back, a pending session is claimable", holds: leaseGivenPending},
		{name: "given back, a waiting or ended session is not", holds: leaseGivenWaiting},
		{name: "a lease can be given back by itself", holds: leaseGivenAlone},
		{name: "a session left in mid-loop is shown as interrupted", holds: leaseInterrupted, timed: true},
	}
}

func leaseEpoch(k *kit) {
	c := k.claimed(k.runner("one"))
	k.runner("two")
	for i, who := range []string{"two", "one", "two"} {
		before := c.lease.Epoch
		k.leave(c)
		k.claim(c, who)
		if c.lease.Epoch <= before {
			k.Errorf("claim %d has epoch %d after %d", i+2, c.lease.Epoch, before)
		}
		equal(k, "the stored lease", text(k.row(c.id()).Lease), text(c.lease))
	}
	k.write(c, said("the newest epoch writes"))
}

func leaseExpires(k *kit) {
	c := k.claimed(k.runner("me"))
	k.pass(time.Minute - time.Microsecond)
	equal(k, "live before the end", k.row(c.id()).Live, true)
	equal(k, "claimable before the end", k.isClaimable(c), false)
	k.pass(time.Microsecond)
	equal(k, "live at the end", k.row(c.id()).Live, false)
	equal(k, "the lease's holder, kept until the next claim", k.row(c.id()).Lease.Holder, "me")
	equal(k, "claimable at the end", k.isClaimable(c), true)
}

func leaseRenew(k *kit) {
	c := k.claimed(k.runner("me"))
	k.pass(50 * time.Second)
	now := c.lease
	now.Now, now.NowAt = "reading <issue> 4711 — ü", clock(-time.Second)
	lost, err := k.store.Renew(k.ctx(), 2*time.Minute, []stint.Lease{now})
	k.ok(err)
	equal(k, "lost leases", len(lost), 0)
	row := k.row(c.id())
	equal(k, "NOW", row.Lease.Now, now.Now)
	equal(k, "NOW's time", text(row.Lease.NowAt), text(now.NowAt))
	equal(k, "expiry", text(row.Lease.Expires), text(clock(2*time.Minute)))
	equal(k, "epoch", row.Lease.Epoch, c.lease.Epoch)
	equal(k, "time of the claim", text(row.Lease.Claimed), text(c.lease.Claimed))
	k.pass(2*time.Minute - time.Microsecond)
	equal(k, "live before the new end", k.row(c.id()).Live, true)
	equal(k, "claimable before the new end", k.isClaimable(c), false)
	k.pass(time.Microsecond)
	equal(k, "live at the new end", k.row(c.id()).Live, false)
	k.unchanged(c)
}

func leaseLost(k *kit) {
	me, other := k.runner("me"), k.runner("other")
	kept, given, gone := k.claimed(me), k.claimed(me), k.claimed(me)
	k.leave(given)
	k.pass(time.Minute)
	old := gone.lease
	k.claim(gone, other)
	absent := stint.Lease{Session: newID(), Holder: me, Epoch: 1}
	lost, err := k.store.Renew(k.ctx(), time.Minute, []stint.Lease{old, kept.lease, given.lease, absent})
	k.ok(err)
	want := []stint.ID{old.Session, given.id(), absent.Session}
	byID := func(a, b stint.ID) int { return slices.Compare(a[:], b[:]) }
	slices.SortFunc(lost, byID)
	slices.SortFunc(want, byID)
	if !slices.Equal(lost, want) {
		k.Errorf("lost %v, want %v", lost, want)
	}
	equal(k, "holder of what another took", k.row(gone.id()).Lease.Holder, other)
	equal(k, "expiry of what another took", text(k.row(gone.id()).Lease.Expires), text(gone.lease.Expires))
	equal(k, "live of what was given back", k.row(given.id()).Live, false)
	equal(k, "live of what was kept", k.row(kept.id()).Live, true)
	k.write(kept, said("still mine"))
}

func leaseRevive(k *kit) {
	c := k.claimed(k.runner("me"))
	k.pass(time.Hour)
	lost, err := k.store.Renew(k.ctx(), time.Minute, []stint.Lease{c.lease})
	k.ok(err)
	equal(k, "lost leases", len(lost), 0)
	equal(k, "live", k.row(c.id()).Live, true)
	equal(k, "claimable", k.isClaimable(c), false)
}

func leaseReleased(k *kit) {
	r := k.runner("r")
	c := k.create()
	k.claim(c, r)
	equal(k, "before the first lease", c.lease.Prior, stint.Released)
	k.leave(c, said("x"), drains())
	equal(k, "the lease, given back", k.row(c.id()).Lease, stint.Lease{})
	k.claim(c, r)
	equal(k, "after one that was given back", c.lease.Prior, stint.Released)
}

func leaseExpired(k *kit) {
	c := k.claimed(k.runner("slow"))
	k.pass(time.Minute)
	k.claim(c, k.runner("next"))
	equal(k, "prior", c.lease.Prior, stint.Expired)
}

func leaseDied(k *kit) {
	die := k.hold("victim")
	other := k.runner("other")
	c, spare := k.claimed("victim"), k.claimed("victim")
	k.write(c, said("last words"))
	if !die() {
		// The store has no Hold: only expiry frees the sessions.
		equal(k, "sessions before the expiry", len(k.claimAny(other, 10)), 0)
		return
	}
	equal(k, "live after its holder died", k.row(c.id()).Live, false)
	k.claim(c, other)
	equal(k, "prior", c.lease.Prior, stint.Died)
	if got := k.claimAny(other, 10); !slices.Equal(got, []stint.ID{spare.id()}) {
		k.Errorf("taken %v, want %v", got, spare.id())
	}
	k.write(c, said("taken over"))
}

func leaseNeverHeld(k *kit) {
	if _, ok := k.store.(holder); !ok {
		return // every holder is taken for living
	}
	c := k.claimed("ghost")
	equal(k, "live", k.row(c.id()).Live, false)
	k.write(c, said("the epoch is the newest"))
	k.claim(c, k.runner("other"))
	equal(k, "prior", c.lease.Prior, stint.Died)
}

func leaseHoldTwice(k *kit) {
	h, ok := k.store.(holder)
	if !ok {
		return // there are no names to hold
	}
	release, err := h.Hold(k.ctx(), "r")
	k.ok(err)
	_, err = h.Hold(k.ctx(), "r")
	k.refused(err, stint.Conflict, "r")
	k.ok(release())
	k.ok(release())
	again, err := h.Hold(k.ctx(), "r")
	k.ok(err)
	k.ok(release())
	c := k.claimed("r")
	equal(k, "live under the name held again", k.row(c.id()).Live, true)
	k.leave(c)
	k.ok(again())
}

func leaseGivenPending(k *kit) {
	c := k.claimed(k.runner("me"))
	equal(k, "claimable before", k.isClaimable(c), false)
	k.leave(c, said("x"), drains())
	row := k.row(c.id())
	equal(k, "live", row.Live, false)
	equal(k, "lease", row.Lease, stint.Lease{})
	_, reason := row.Status()
	equal(k, "the shown reason", reason, "")
	equal(k, "claimable after", k.isClaimable(c), true)
}

func leaseGivenWaiting(k *kit) {
	r := k.runner("r")
	waiting, ended := k.claimed(r), k.claimed(r)
	k.leave(waiting, said("x"), waits(stint.Wait{For: stint.ForOperator}))
	k.leave(ended, said("x"), ends())
	equal(k, "sessions", len(k.claimAny(r, 10)), 0)
	equal(k, "lease of the waiting one", k.row(waiting.id()).Lease, stint.Lease{})
	equal(k, "lease of the ended one", k.row(ended.id()).Lease, stint.Lease{})
}

func leaseGivenAlone(k *kit) {
	c := k.claimed(k.runner("me"))
	k.write(c, said("x"))
	k.leave(c)
	k.unchanged(c)
	equal(k, "live", k.row(c.id()).Live, false)
	equal(k, "claimable", k.isClaimable(c), true)
}

func leaseInterrupted(k *kit) {
	c := k.claimed(k.runner("me"))
	k.write(c, said("x"))
	shown := func() stint.Status {
		row := k.row(c.id())
		status, reason := row.Status()
		return status + " " + stint.Status(reason)
	}
	equal(k, "shown while it is held", shown(), "running ")
	k.pass(time.Minute)
	equal(k, "shown after that", shown(), "pending interrupted")
}
