package storetest

import (
	"sync"
	"time"

	"github.com/stint-dev/stint"
)

func createProperties() []property {
	return []property{
		{name: "a new session is the fold of its first entries", holds: createPlain},
		{name: "several first entries are one batch", holds: createSeveral},
		{name: "an id is taken once", holds: createTwice},
		{name: "the same key and digest name the first session and write nothing", holds: createAgain},
		{name: "another digest is a conflict that names the first session", holds: createOther},
		{name: "keys differ by scope and by name", holds: createScopes},
		{name: "one key that is there keeps the others from being taken", holds: createPartly},
		{name: "an expired key may be used again", holds: createExpired, timed: true},
		{name: "of many with one key one creates", holds: createRace},
		{name: "a claim in the same transaction makes the creator the holder", holds: createClaimed},
	}
}

func digest(s string) (h stint.Hash) {
	copy(h[:], s)
	return h
}

// key returns a key of the scope create that leads to session.
func key(name, content string, session stint.ID) stint.Key {
	return stint.Key{Scope: "create", Name: name, Digest: digest(content), Ref: session.String(), Expires: clock(31 * 24 * time.Hour)}
}

// createWith creates a session with keys of these names, all of one content.
func (k *kit) createWith(content string, names ...string) (stint.Lease, stint.ID, error) {
	k.Helper()
	b := k.begin()
	for _, n := range names {
		b.Keys = append(b.Keys, key(n, content, b.Session.ID))
	}
	l, err := k.store.Create(k.ctx(), b, stint.Claim{})
	return l, b.Session.ID, err
}

// absent fails the property if there is such a session.
func (k *kit) absent(id stint.ID) {
	k.Helper()
	_, err := k.store.Session(k.ctx(), id)
	k.refused(err, stint.NotFound)
	if es := k.entries(stint.Range{Session: id}); len(es) != 0 {
		k.Errorf("%d entries of it were written", len(es))
	}
}

func createPlain(k *kit) {
	b := k.begin()
	k.absent(b.Session.ID)
	l, err := k.store.Create(k.ctx(), b, stint.Claim{})
	k.ok(err)
	equal(k, "the lease", l, stint.Lease{Session: b.Session.ID})
	row := k.row(b.Session.ID)
	equal(k, "the session", text(row.Session), text(b.Session))
	equal(k, "live", row.Live, false)
	equal(k, "the lease of a session that nobody claimed", row.Lease, stint.Lease{})
	equal(k, "unread messages", row.Unread, 0)
	status, reason := row.Status()
	equal(k, "the shown status", status, stint.Pending)
	equal(k, "its reason", reason, "")
	equal(k, "entries", len(k.entries(stint.Range{Session: b.Session.ID})), 1)
}

func createSeveral(k *kit) {
	b := k.begin()
	more := k.follow(&course{s: b.Session}, said("one"), said("two"))
	b.Session, b.Entries = more.Session, append(b.Entries, more.Entries...)
	_, err := k.store.Create(k.ctx(), b, stint.Claim{})
	k.ok(err)
	k.unchanged(&course{s: b.Session})
	equal(k, "entries", len(k.entries(stint.Range{Session: b.Session.ID})), 4)
}

func createTwice(k *kit) {
	c := k.create()
	again := k.begin(withID(c.id()), named("other"))
	_, err := k.store.Create(k.ctx(), again, stint.Claim{})
	k.refused(err, stint.Exists, c.id().String())
	k.unchanged(c)
}

func createAgain(k *kit) {
	_, first, err := k.createWith("same", "k")
	k.ok(err)
	l, second, err := k.createWith("same", "k")
	k.ok(err)
	equal(k, "the lease", l, stint.Lease{Session: first})
	k.absent(second)

	// Asking to hold it does not take it from whom it belongs to.
	b := k.begin()
	b.Keys = []stint.Key{key("k", "same", b.Session.ID)}
	l, err = k.store.Create(k.ctx(), b, stint.Claim{Holder: k.runner("r"), TTL: time.Minute})
	k.ok(err)
	equal(k, "the lease", l, stint.Lease{Session: first})
	equal(k, "live", k.row(first).Live, false)
}

func createOther(k *kit) {
	_, first, err := k.createWith("one", "k")
	k.ok(err)
	_, second, err := k.createWith("two", "k")
	k.refused(err, stint.Conflict, first.String())
	k.absent(second)
}

func createScopes(k *kit) {
	seen := map[stint.ID]bool{}
	for _, at := range [][2]string{{"create", "k"}, {"delivery", "k"}, {"create", "K"}, {"create", ""}} {
		b := k.begin()
		b.Keys = []stint.Key{key(at[1], "same", b.Session.ID)}
		b.Keys[0].Scope = at[0]
		l, err := k.store.Create(k.ctx(), b, stint.Claim{})
		k.ok(err)
		seen[l.Session] = true
	}
	equal(k, "sessions", len(seen), 4)
}

func createPartly(k *kit) {
	_, first, err := k.createWith("same", "old")
	k.ok(err)
	l, _, err := k.createWith("same", "new", "old")
	k.ok(err)
	equal(k, "the session", l.Session, first)
	l, third, err := k.createWith("different", "new")
	k.ok(err)
	equal(k, "the session with the key that was not taken", l.Session, third)
}

func createExpired(k *kit) {
	_, first, err := k.createWith("one", "k")
	k.ok(err)
	k.pass(30 * 24 * time.Hour)
	l, _, err := k.createWith("one", "k")
	k.ok(err)
	equal(k, "the session within the key's time", l.Session, first)
	k.pass(2 * 24 * time.Hour)
	l, second, err := k.createWith("two", "k")
	k.ok(err)
	equal(k, "the session after it", l.Session, second)
	_, _, err = k.createWith("three", "k")
	k.refused(err, stint.Conflict, second.String())
}

func createRace(k *kit) {
	const creators = 16
	var wg sync.WaitGroup
	leases, own := [creators]stint.Lease{}, [creators]stint.ID{}
	for i := range creators {
		b := k.begin()
		b.Keys = []stint.Key{key("k", "same", b.Session.ID)}
		own[i] = b.Session.ID
		wg.Go(func() {
			l, err := k.store.Create(k.ctx(), b, stint.Claim{})
			if err != nil {
				k.Errorf("creator %d: %v", i, err)
			}
			leases[i] = l
		})
	}
	wg.Wait()
	winners := 0
	for i, l := range leases {
		equal(k, "the session", l.Session, leases[0].Session)
		if l.Session == own[i] {
			winners++
		}
	}
	equal(k, "creators that made it", winners, 1)
	rows, err := k.store.Sessions(k.ctx(), stint.Filter{})
	k.ok(err)
	equal(k, "sessions", len(rows), 1)
}

func createClaimed(k *kit) {
	before := clock(0)
	me, other := k.runner("me"), k.runner("other")
	c := k.claimed(me)
	equal(k, "the lease's session", c.lease.Session, c.id())
	equal(k, "its holder", c.lease.Holder, me)
	equal(k, "the lease before it", c.lease.Prior, stint.Released)
	if c.lease.Epoch < 1 {
		k.Errorf("the epoch is %d, want 1 or more", c.lease.Epoch)
	}
	if c.lease.Claimed.Before(before) || c.lease.Expires.Sub(c.lease.Claimed) != time.Minute {
		k.Errorf("the lease is from %v to %v, want a minute from %v", c.lease.Claimed, c.lease.Expires, before)
	}
	equal(k, "sessions for another", len(k.claimAny(other, 10)), 0)
	row := k.row(c.id())
	equal(k, "live", row.Live, true)
	equal(k, "the stored lease", text(row.Lease), text(c.lease))
	k.write(c, said("mine"))
	k.unchanged(c)
}
