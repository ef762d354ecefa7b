package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

func appendProperties() []property {
	return []property{
		{name: "a batch makes the session what its entries say", holds: appendPlain},
		{name: "every member of a session is kept", holds: appendMembers},
		{name: "a lease whose session was claimed again is fenced", holds: appendFenced, timed: true},
		{name: "an expired lease writes on as long as nobody took the session", holds: appendExpired, timed: true},
		{name: "a lease that was given back is fenced", holds: appendReleased},
		{name: "an epoch that was never granted is fenced", holds: appendForged},
		{name: "a session that is not there is refused", holds: appendAbsent},
		{name: "an entry that is not the head's successor is a conflict", holds: appendWrongSeq},
		{name: "appends queued without waiting commit in order", holds: appendQueued},
		{name: "what is queued behind a refused append is refused", holds: appendBehind},
		{name: "a key that is there is a conflict, whatever its digest", holds: appendKey},
		{name: "a key of an append binds creators too, and the other way round", holds: appendKeyShared},
		{name: "an expired key may be used again", holds: appendKeyExpired, timed: true},
		{name: "a batch that is refused for a key leaves nothing", holds: appendNothingKey},
		{name: "a batch that is refused for a limit leaves nothing", holds: appendNothingLimit},
		{name: "a batch that is refused for its epoch or seq leaves nothing", holds: appendNothingFence},
		{name: "neighbours of a refused append are not refused", holds: appendNeighbours},
		{name: "a closed store is unavailable", holds: appendClosed},
	}
}

func appendPlain(k *kit) {
	c := k.claimed(k.runner("me"))
	k.write(c, said("one"))
	k.unchanged(c)
	k.write(c, said("two"), said("three"))
	k.unchanged(c)
	k.write(c, journal.Draft{Kind: stint.LimitChanged, Data: journal.LimitChanged{Limits: stint.Limits{Tokens: 9, Cost: 1, Deadline: clock(time.Hour)}}},
		waits(stint.Wait{For: stint.ForMessage, Who: "ada", What: "what next?", Until: clock(time.Hour), Wakes: []stint.MessageKind{stint.Prompt}}))
	k.unchanged(c)
	k.write(c, resumes(), said("four"), ends())
	k.unchanged(c)
	equal(k, "live, as the lease is not given back", k.row(c.id()).Live, true)
	k.leave(c, resumes())
	k.unchanged(c)
}

// appendMembers leads a session through its life with every member set.
func appendMembers(k *kit) {
	from := newID()
	c := k.claimed(k.runner("me"), func(_ *stint.ID, c *journal.Created, _ *journal.Draft) {
		c.Agent.Pin = digest("pin")
		c.Config = []byte(`{"model":"<m>"}`)
		c.Trigger = stint.Trigger{Kind: "schedule", Ref: "nightly", Due: clock(-time.Minute)}
		c.Parent = stint.Parent{Session: from, Seq: 7, Hash: digest("parent"), Branch: true, Loop: 3, Detach: true, Reason: "try <this>"}
		c.Labels = map[string]string{"team": "a", "": "empty", "ü": "\x00"}
		c.Limits = stint.Limits{Wall: 1, Idle: 2, Deadline: clock(time.Hour), Loops: 3, Steps: 4, Tokens: 5, Cost: 6, Stop: true}
	})
	k.unchanged(c)
	usage := stint.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Cost: 5}
	starts := journal.Draft{Kind: stint.LoopStarted, Data: journal.LoopStarted{Why: "recover"}}
	step := journal.Draft{Kind: stint.StepCompleted, Data: journal.StepDone{Usage: usage}}
	fails := journal.Draft{Kind: stint.LoopFailed, Data: journal.LoopFailed{Error: "no <such> file"}}
	completes := func(ref journal.StateRef) journal.Draft {
		return journal.Draft{Kind: stint.LoopCompleted, Data: journal.LoopCompleted{State: ref, Headline: "done"}, Body: []byte("state")}
	}
	for _, d := range []journal.Draft{
		starts, step, fails, starts, fails, starts, step, drains(), starts,
		completes(journal.StateRef{Enc: journal.Full, Size: 5, Sum: digest("one")}),
		starts, step, completes(journal.StateRef{Enc: journal.Delta, Base: 11, Rank: 1, Weight: 9, Size: 1 << 40, Sum: digest("two")}),
		starts, waits(stint.Wait{For: stint.ForDoubt, Until: clock(time.Hour), What: "who\nknows", Who: "human:ada", Approval: "a-1",
			Step: stint.Position{Line: 1, Loop: 2, Attempt: 3, Step: 4, Sub: 5}, Wakes: []stint.MessageKind{stint.Decision, stint.Prompt}}),
		resumes(), starts, fails,
		{Kind: stint.LimitChanged, Data: journal.LimitChanged{Limits: stint.Limits{Tokens: 1 << 60}}},
		{Kind: stint.LineStarted, Data: journal.LineStarted{From: 4, Checkpoint: c.s.Checkpoint, Reason: "again", Park: true}},
		resumes(), starts, {Kind: stint.SessionEnded, Data: journal.Ended{Outcome: stint.Failed, Reason: "gave up"}},
		resumes(), ends(),
	} {
		k.write(c, d)
		k.unchanged(c)
	}
}

func appendFenced(k *kit) {
	old := k.claimed(k.runner("old"))
	k.write(old, said("mine"))
	k.pass(time.Minute)
	now := &course{s: old.s}
	k.claim(now, k.runner("new"))
	k.refused(k.append(old.lease, k.follow(old, said("late"))), stint.Fenced)
	k.unchanged(now)
	k.write(now, said("taken over"))
	k.refused(k.append(old.lease, k.follow(now, said("late, with the right seq"))), stint.Fenced)
	giving := k.follow(now)
	giving.Release = true
	k.refused(k.append(old.lease, giving), stint.Fenced)
	k.unchanged(now)
	equal(k, "live", k.row(now.id()).Live, true)
}

func appendExpired(k *kit) {
	c := k.claimed(k.runner("slow"))
	k.pass(24 * time.Hour)
	k.write(c, said("late, but nobody minds"))
	k.unchanged(c)
	equal(k, "live: an append is no renewal", k.row(c.id()).Live, false)
}

func appendReleased(k *kit) {
	c := k.claimed(k.runner("me"))
	k.leave(c, said("x"), drains())
	k.refused(k.append(c.lease, k.follow(c, ends())), stint.Fenced)
	k.unchanged(c)
}

func appendForged(k *kit) {
	c := k.claimed(k.runner("me"))
	for _, epoch := range []int64{c.lease.Epoch + 1, c.lease.Epoch - 1, 0, -1} {
		l := c.lease
		l.Epoch = epoch
		k.refused(k.append(l, k.follow(c, said("x"))), stint.Fenced)
	}
	k.unchanged(c)
	free := k.create()
	k.refused(k.append(stint.Lease{Session: free.id()}, k.follow(free, said("x"))), stint.Fenced)
	k.unchanged(free)
}

func appendAbsent(k *kit) {
	c := &course{s: k.begin().Session, lease: stint.Lease{Holder: k.runner("me"), Epoch: 1}}
	c.lease.Session = c.id()
	err := k.append(c.lease, k.follow(c, said("x")))
	if code := stint.CodeOf(err); code != stint.NotFound && code != stint.Fenced {
		k.Errorf("the error is %v (code %q), want code not_found or fenced", err, code)
	}
	k.absent(c.id())
}

func appendWrongSeq(k *kit) {
	c := k.claimed(k.runner("me"))
	stale := *c
	k.write(c, said("one"))
	again := k.follow(&stale, said("in place of one"))
	k.refused(k.append(c.lease, again), stint.Conflict)
	k.unchanged(c)

	ahead := *c
	ahead.s = k.follow(c, said("never written")).Session
	k.refused(k.append(c.lease, k.follow(&ahead, said("after a gap"))), stint.Conflict)
	k.unchanged(c)
	k.write(c, said("two"))
}

func appendQueued(k *kit) {
	c := k.claimed(k.runner("me"))
	var mu sync.Mutex
	var order []int
	answers := make(chan error, 50)
	for i := range cap(answers) {
		b := k.follow(c, said(fmt.Sprint(i)))
		k.store.Append(k.ctx(), c.lease, b, func(err error) {
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			answers <- err
		})
		c.s = b.Session
	}
	patient := time.After(patience)
	for i := range cap(answers) {
		select {
		case err := <-answers:
			k.ok(err)
		case <-patient:
			k.Fatalf("only %d of %d appends were answered", i, cap(answers))
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.IsSorted(order) {
		k.Errorf("answered in the order %v", order)
	}
	k.unchanged(c)
	for i, e := range k.entries(stint.Range{Session: c.id(), Kinds: []stint.Kind{stint.OutputWritten}}) {
		equal(k, "a body", string(e.Body), fmt.Sprint(i))
	}
}

func appendBehind(k *kit) {
	_, first, err := k.createWith("x", "taken")
	k.ok(err)
	c := k.claimed(k.runner("me"))
	const bad = 5
	at, kept := *c, *c
	var fates []*fate
	for i := range 20 {
		b := k.follow(&at, said(fmt.Sprint(i)))
		if i == bad {
			b.Keys = []stint.Key{key("taken", "y", at.id())}
		}
		if i < bad {
			kept.s = b.Session
		}
		fates = append(fates, k.queue(c.lease, b))
		at.s = b.Session
	}
	for i, f := range fates {
		switch err := f.wait(); {
		case i < bad:
			k.ok(err)
		case i == bad:
			k.refused(err, stint.Conflict, first.String())
		case err == nil || stint.CodeOf(err) == stint.Internal:
			k.Errorf("append %d, queued behind the refused %d: %v", i, bad, err)
		}
	}
	k.unchanged(&kept)
	k.write(&kept, said("and on from there"))
}

func appendKey(k *kit) {
	_, first, err := k.createWith("content", "k")
	k.ok(err)
	c := k.claimed(k.runner("me"))
	for _, content := range []string{"content", "other"} {
		b := k.follow(c, said("x"))
		b.Keys = []stint.Key{key("k", content, c.id())}
		k.refused(k.append(c.lease, b), stint.Conflict, first.String())
		k.unchanged(c)
	}
}

func appendKeyShared(k *kit) {
	c := k.claimed(k.runner("me"))
	b := k.follow(c, said("x"))
	b.Keys = []stint.Key{key("k", "content", c.id()), key("k2", "content", c.id())}
	k.ok(k.append(c.lease, b))
	c.s = b.Session
	l, _, err := k.createWith("content", "k2")
	k.ok(err)
	equal(k, "the session", l.Session, c.id())
	_, _, err = k.createWith("other", "k")
	k.refused(err, stint.Conflict, c.id().String())
}

func appendKeyExpired(k *kit) {
	_, _, err := k.createWith("content", "k")
	k.ok(err)
	c := k.claimed(k.runner("me"))
	k.pass(32 * 24 * time.Hour)
	b := k.follow(c, said("x"))
	b.Keys = []stint.Key{key("k", "content", c.id())}
	k.ok(k.append(c.lease, b))
	_, _, err = k.createWith("other", "k")
	k.refused(err, stint.Conflict, c.id().String())
}

// laden returns a batch that does everything a batch can.
func (k *kit) laden(c *course, m stint.Message) (stint.Batch, stint.BlobRef) {
	k.Helper()
	body := []byte("a body of session " + c.id().String())
	ref := k.name(c.s.Family, body)
	b := k.follow(c, took(m), journal.Draft{Kind: stint.OutputWritten, Data: journal.Output{Stream: "log"}, Blob: ref}, said("x"))
	b.Blobs = map[stint.BlobRef][]byte{ref: body}
	b.Taken = []string{m.ID}
	b.Keys = []stint.Key{key("good", "content", c.id()), key("bad", "content", c.id())}
	b.Meters = []stint.Meter{{Metric: "tokens", Limit: 100, Reserve: 60}, {Metric: "cost", Limit: 100, Reserve: 60}}
	b.Release = true
	return b, ref
}

// nothing fails the property if anything of the refused batch shows. After it the
// same batch is written, without what was wrong with it.
func (k *kit) nothing(c *course, b stint.Batch, ref stint.BlobRef, m stint.Message) {
	k.Helper()
	k.unchanged(c)
	equal(k, "live", k.row(c.id()).Live, true)
	equal(k, "inbox", k.inbox(c.id()), m.ID)
	_, err := k.store.Blob(k.ctx(), c.s.Family, ref)
	k.refused(err, stint.NotFound)
	k.ok(k.append(c.lease, b)) // it would not be if a key or a reservation had stayed
	c.s = b.Session
	k.unchanged(c)
	equal(k, "live", k.row(c.id()).Live, false)
	equal(k, "inbox", k.inbox(c.id()), "")
}

func (k *kit) ladenCourse() (*course, stint.Message) {
	k.Helper()
	c := k.claimed(k.runner("me"))
	m := prompt("m", "hello")
	k.ok(k.store.Send(k.ctx(), c.id(), m))
	return c, m
}

func appendNothingKey(k *kit) {
	_, first, err := k.createWith("other", "bad")
	k.ok(err)
	c, m := k.ladenCourse()
	b, ref := k.laden(c, m)
	k.refused(k.append(c.lease, b), stint.Conflict, first.String())
	b.Keys = b.Keys[:1]
	k.nothing(c, b, ref, m)
}

func appendNothingLimit(k *kit) {
	c, m := k.ladenCourse()
	b, ref := k.laden(c, m)
	good := b.Meters
	b.Meters = []stint.Meter{good[0], {Metric: "cost", Limit: 50, Reserve: 60}}
	k.refused(k.append(c.lease, b), stint.Limit, "cost")
	b.Meters = good
	k.nothing(c, b, ref, m)
}

func appendNothingFence(k *kit) {
	c, m := k.ladenCourse()
	b, ref := k.laden(c, m)
	forged := c.lease
	forged.Epoch++
	k.refused(k.append(forged, b), stint.Fenced)
	ahead := *c
	ahead.s = k.follow(c, said("never written")).Session
	gap, _ := k.laden(&ahead, m)
	k.refused(k.append(c.lease, gap), stint.Conflict)
	k.nothing(c, b, ref, m)
}

// neighbour is one of those who append at the same time, fenced or not.
type neighbour struct {
	*course
	fenced bool
}

// next returns the lease and the batch of the neighbour's next append.
func (n *neighbour) next(k *kit) (stint.Lease, stint.Batch) {
	l := n.lease
	if n.fenced {
		l.Epoch++
	}
	return l, k.follow(n.course, said("x"))
}

// judge looks at how the append of b went.
func (n *neighbour) judge(k *kit, b stint.Batch, err error) {
	switch {
	case n.fenced && stint.CodeOf(err) != stint.Fenced:
		k.Errorf("session %s, fenced: %v", n.id(), err)
	case !n.fenced && err != nil:
		k.Errorf("session %s, a neighbour: %v", n.id(), err)
	case !n.fenced:
		n.s = b.Session
	}
}

func appendNeighbours(k *kit) {
	const sessions, rounds = 32, 4
	me := k.runner("me")
	var all []*neighbour
	for i := range sessions {
		all = append(all, &neighbour{k.claimed(me), i%3 == 0})
	}
	// All in the queue at once, then each from a goroutine of its own.
	fates, batches := [sessions]*fate{}, [sessions]stint.Batch{}
	for i, n := range all {
		l, b := n.next(k)
		fates[i], batches[i] = k.queue(l, b), b
	}
	for i, n := range all {
		n.judge(k, batches[i], fates[i].wait())
	}
	var wg sync.WaitGroup
	start := make(chan struct{})
	for _, n := range all {
		wg.Go(func() {
			<-start
			for range rounds {
				l, b := n.next(k)
				n.judge(k, b, k.append(l, b))
			}
		})
	}
	close(start)
	wg.Wait()
	for _, n := range all {
		k.unchanged(n.course)
	}
}

func appendClosed(k *kit) {
	c := k.claimed(k.runner("me"))
	b, other := k.follow(c, said("x")), k.begin()
	Check(k.T, k.store)
	k.closed = true
	k.ok(k.store.Close())
	k.refused(k.append(c.lease, b), stint.Unavailable)
	_, err := k.store.Create(k.ctx(), other, stint.Claim{})
	k.refused(err, stint.Unavailable)
	_, err = k.store.Claim(k.ctx(), stint.Claim{Holder: "me", TTL: time.Minute, Max: 1})
	k.refused(err, stint.Unavailable)
	k.refused(k.store.Send(k.ctx(), c.id(), prompt("m", "hello")), stint.Unavailable)
}
