package storetest

import (
	"slices"
	"time"

	"github.com/stint-dev/stint"
)

func claimProperties() []property {
	return []property{
		{name: "pending sessions are taken oldest first", holds: claimOldest},
		{name: "at most Max are taken, and none to be had is no error", holds: claimMax},
		{name: "only sessions with a runtime that was asked for are taken", holds: claimRuntimes},
		{name: "caps count the live leases of the whole store", holds: claimCaps},
		{name: "the cap under no name counts all agents", holds: claimTotalCap},
		{name: "caps do not count leases that expired", holds: claimCapsExpired, timed: true},
		{name: "one session is taken or the conflict names its holder", holds: claimOneHeld},
		{name: "one session is taken or the conflict names what it waits for", holds: claimOneWaits},
		{name: "a session that ended is not taken", holds: claimOneEnded},
		{name: "a session that is not there is not found", holds: claimOneAbsent},
		{name: "a wait with a time is over at that time", holds: claimUntil, timed: true},
		{name: "sessions whose time has come are taken earliest first", holds: claimEarliest, timed: true},
		{name: "a wait without a time is not over by time", holds: claimForever, timed: true},
		{name: "a session that waits while it is held is nobody else's", holds: claimHeldWait, timed: true},
	}
}

func claimOldest(k *kit) {
	var want []stint.ID
	for range 5 {
		want = append(want, k.create().id())
	}
	r := k.runner("r")
	got := k.claimAny(r, 2)
	got = append(got, k.claimAny(r, 1)...)
	got = append(got, k.claimAny(r, 10)...)
	if !slices.Equal(got, want) {
		k.Errorf("taken in the order\n%v, want\n%v", got, want)
	}
}

func claimMax(k *kit) {
	r := k.runner("r")
	equal(k, "sessions of an empty store", len(k.claimAny(r, 10)), 0)
	for range 7 {
		k.create()
	}
	for _, want := range []int{3, 3, 1, 0} {
		equal(k, "sessions", len(k.claimAny(r, 3)), want)
	}
}

func claimRuntimes(k *kit) {
	exec, code, third := k.create(agent("a", "exec")), k.create(agent("b", "go/b")), k.create(agent("c", "go/c"))
	r := k.runner("r")
	only := func(runtimes ...string) stint.Claim {
		return stint.Claim{Holder: r, TTL: time.Minute, Max: 10, Runtimes: runtimes}
	}
	equal(k, "sessions with no runtime of these", len(k.claimAs(only("go/x", "go"))), 0)
	one := only("exec")
	one.Session = code.id()
	_, err := k.store.Claim(k.ctx(), one)
	k.refused(err, stint.Conflict, "go/b")
	if got, want := k.claimAs(only("go/b", "exec")), []stint.ID{exec.id(), code.id()}; !slices.Equal(got, want) {
		k.Errorf("taken %v, want %v", got, want)
	}
	if got, want := k.claimAs(only()), []stint.ID{third.id()}; !slices.Equal(got, want) {
		k.Errorf("taken %v, want %v", got, want)
	}
}

func claimCaps(k *kit) {
	for range 4 {
		k.create(agent("a", "exec"))
	}
	b := k.create(agent("b", "exec"))
	one, two := k.runner("one"), k.runner("two")
	first := k.create(agent("a", "exec"))
	k.claim(first, one)
	last := k.create(agent("a", "exec"))

	capped := stint.Claim{Holder: two, TTL: time.Minute, Max: 10, Caps: map[string]int{"a": 2, "other": 0}}
	got := k.claimAs(capped)
	if len(got) != 2 || !slices.Contains(got, b.id()) {
		k.Fatalf("taken %v, want one session of agent a and %v", got, b.id())
	}
	equal(k, "sessions beyond the cap", len(k.claimAs(capped)), 0)
	k.leave(first, ends())
	equal(k, "sessions after one ended", len(k.claimAs(capped)), 1)
	capped.Caps = map[string]int{"a": 0}
	equal(k, "sessions under a cap of none", len(k.claimAs(capped)), 0)
	for _, caps := range []map[string]int{{"a": 0}, {"": 2}, {"a": 9, "": 2}} { // two are held
		named := stint.Claim{Holder: two, TTL: time.Minute, Max: 1, Session: last.id(), Caps: caps}
		_, err := k.store.Claim(k.ctx(), named)
		k.refused(err, stint.Limit, "as many")
	}
	capped.Caps = nil
	equal(k, "sessions without caps", len(k.claimAs(capped)), 3)
}

func claimTotalCap(k *kit) {
	for range 3 {
		k.create(agent("a", "exec"))
		k.create(agent("b", "exec"))
	}
	one, two := k.runner("one"), k.runner("two")
	first := k.create(agent("a", "exec"))
	k.claim(first, one)
	capped := stint.Claim{Holder: two, TTL: time.Minute, Max: 10, Caps: map[string]int{"": 4, "b": 1}}
	equal(k, "sessions", len(k.claimAs(capped)), 3)
	equal(k, "sessions beyond the cap", len(k.claimAs(capped)), 0)
	k.leave(first, ends())
	equal(k, "sessions after one ended", len(k.claimAs(capped)), 1)
	capped.Caps = map[string]int{"": 100}
	equal(k, "sessions under a higher cap", len(k.claimAs(capped)), 2)
}

func claimCapsExpired(k *kit) {
	for range 3 {
		k.create(agent("a", "exec"))
	}
	capped := stint.Claim{Holder: k.runner("r"), TTL: time.Minute, Max: 2, Caps: map[string]int{"a": 2}}
	equal(k, "sessions", len(k.claimAs(capped)), 2)
	equal(k, "sessions beyond the cap", len(k.claimAs(capped)), 0)
	k.pass(time.Minute)
	equal(k, "sessions when the leases expired", len(k.claimAs(capped)), 2)
}

// one claims c alone.
func one(c *course, holder string) stint.Claim {
	return stint.Claim{Holder: holder, TTL: time.Minute, Max: 1, Session: c.id()}
}

func claimOneHeld(k *kit) {
	c := k.create()
	k.claim(c, k.runner("runner-of-tuesday"))
	for _, who := range []string{k.runner("another"), "runner-of-tuesday"} {
		_, err := k.store.Claim(k.ctx(), one(c, who))
		k.refused(err, stint.Conflict, "runner-of-tuesday")
	}
	k.write(c, said("still mine"))
}

func claimOneWaits(k *kit) {
	r := k.runner("r")
	for _, w := range []stint.Wait{
		{For: stint.ForApproval, What: "may I?"},
		{For: stint.ForMessage, Wakes: []stint.MessageKind{stint.Prompt}},
		{For: stint.ForTime, Until: clock(time.Hour)},
	} {
		c := k.claimed(r)
		k.leave(c, waits(w))
		_, err := k.store.Claim(k.ctx(), one(c, r))
		k.refused(err, stint.Conflict, string(w.For))
		k.unchanged(c)
	}
	equal(k, "sessions", len(k.claimAny(r, 10)), 0)
}

func claimOneEnded(k *kit) {
	r := k.runner("r")
	c := k.claimed(r)
	k.leave(c, ends())
	_, err := k.store.Claim(k.ctx(), one(c, r))
	k.refused(err, stint.Conflict, string(stint.Completed))
	equal(k, "sessions", len(k.claimAny(r, 10)), 0)
}

func claimOneAbsent(k *kit) {
	_, err := k.store.Claim(k.ctx(), stint.Claim{Holder: k.runner("r"), TTL: time.Minute, Max: 1, Session: newID()})
	k.refused(err, stint.NotFound)
}

func claimUntil(k *kit) {
	r := k.runner("r")
	c := k.claimed(r)
	k.leave(c, waits(stint.Wait{For: stint.ForRetry, Until: clock(10 * time.Second)}))
	k.pass(10*time.Second - time.Microsecond)
	equal(k, "claimable a microsecond before", k.isClaimable(c), false)
	k.pass(time.Microsecond)
	equal(k, "claimable at the time", k.isClaimable(c), true)
	if got := k.claimAny(r, 10); !slices.Equal(got, []stint.ID{c.id()}) {
		k.Errorf("taken %v, want %v", got, c.id())
	}
}

func claimEarliest(k *kit) {
	r := k.runner("r")
	want := make([]stint.ID, 3)
	for _, place := range []int{1, 2, 0} {
		c := k.claimed(r)
		k.leave(c, waits(stint.Wait{For: stint.ForTime, Until: clock(time.Duration(place+1) * time.Minute)}))
		want[place] = c.id()
	}
	all := stint.Claim{Holder: r, TTL: time.Hour, Max: 10}
	k.pass(2 * time.Minute)
	got := k.claimAs(all)
	k.pass(time.Minute)
	got = append(got, k.claimAs(all)...)
	if !slices.Equal(got, want) {
		k.Errorf("taken %v, want %v", got, want)
	}
}

func claimForever(k *kit) {
	r := k.runner("r")
	c := k.claimed(r)
	k.leave(c, waits(stint.Wait{For: stint.ForOperator}))
	k.pass(10 * 365 * 24 * time.Hour)
	equal(k, "claimable after ten years", k.isClaimable(c), false)
}

// A question that is held open keeps its process, so it keeps its lease.
func claimHeldWait(k *kit) {
	c := k.claimed(k.runner("me"))
	k.write(c, waits(stint.Wait{For: stint.ForTime, Until: clock(time.Second)}))
	k.pass(2 * time.Second)
	equal(k, "claimable while it is held", k.isClaimable(c), false)
	equal(k, "status", k.row(c.id()).Session.Status, stint.Waiting)
	k.write(c, resumes(), said("on"))
	k.leave(c)
	equal(k, "claimable after", k.isClaimable(c), true)
}
