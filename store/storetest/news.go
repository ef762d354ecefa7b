package storetest

import (
	"fmt"
	"time"

	"github.com/stint-dev/stint"
)

func newsProperties() []property {
	return []property{
		{name: "a message of a batch lies in the other's inbox byte for byte, with the store's time", holds: newsPlain},
		{name: "a message of a create does too", holds: newsCreate},
		{name: "a batch that is refused sends nothing", holds: newsRefused},
		{name: "one id is one message, whichever way it came", holds: newsAgain},
		{name: "a message of other content under a known id is dropped, and the batch stands", holds: newsOther},
		{name: "a session that has ended, and one that is not there, get nothing, and the batch stands", holds: newsEnded},
		{name: "a message without an id refuses the batch", holds: newsNameless},
		{name: "it wakes a waiting session that names its kind, and no other", holds: newsWakes},
		{name: "rows and Unread count it", holds: newsUnread},
		{name: "Changed tells of it", holds: newsChanged, timed: true},
	}
}

func news(to *course, id, body string) stint.Message {
	return stint.Message{To: to.id(), ID: id, Kind: stint.ChildEnd, From: "session:x", Data: []byte(`{"outcome":"completed"}`), Body: []byte(body)}
}

// tells appends an entry to c with messages to others.
func (k *kit) tells(c *course, ms ...stint.Message) error {
	k.Helper()
	b := k.follow(c, said("x"))
	b.Sends = ms
	err := k.append(c.lease, b)
	if err == nil {
		c.s = b.Session
	}
	return err
}

func newsPlain(k *kit) {
	c, to := k.claimed(k.runner("r")), k.create()
	want := news(to, "m-1 é", "a\x00b\xffc")
	want.At = time.Unix(1, 0)
	before := clock(0)
	k.ok(k.tells(c, want, news(to, "second", "")))
	after := clock(time.Microsecond)
	k.unchanged(c)
	equal(k, "inbox", k.inbox(to.id()), "m-1 é second")
	ms, err := k.store.Inbox(k.ctx(), to.id())
	k.ok(err)
	if len(ms) != 2 {
		k.Fatalf("%d messages in the inbox, want 2", len(ms))
	}
	got := ms[0]
	if got.At.Before(before) || got.At.After(after) {
		k.Errorf("the message's time is %v, want one of the store between %v and %v", got.At, before, after)
	}
	equal(k, "kind", got.Kind, want.Kind)
	equal(k, "from", got.From, want.From)
	equal(k, "data", string(got.Data), string(want.Data))
	equal(k, "body", string(got.Body), string(want.Body))
	k.claim(to, "r")
	k.ok(k.take(to, got))
	equal(k, "inbox when it is taken", k.inbox(to.id()), "second")
}

func newsCreate(k *kit) {
	to := k.create()
	b := k.begin()
	b.Sends = []stint.Message{news(to, "born", "x")}
	_, err := k.store.Create(k.ctx(), b, stint.Claim{})
	k.ok(err)
	equal(k, "inbox", k.inbox(to.id()), "born")
}

func newsRefused(k *kit) {
	_, _, err := k.createWith("other", "bad")
	k.ok(err)
	c, to := k.claimed(k.runner("r")), k.create()
	for what, spoil := range map[string]func(b *stint.Batch, l *stint.Lease){
		"a key":   func(b *stint.Batch, _ *stint.Lease) { b.Keys = []stint.Key{key("bad", "content", c.id())} },
		"a limit": func(b *stint.Batch, _ *stint.Lease) { b.Meters = []stint.Meter{reserve("tokens", 1, 2)} },
		"a lease": func(_ *stint.Batch, l *stint.Lease) { l.Epoch++ },
		"a take":  func(b *stint.Batch, _ *stint.Lease) { b.Taken = []string{"never"} },
	} {
		b, l := k.follow(c, said("x")), c.lease
		b.Sends = []stint.Message{news(to, "m", "x")}
		spoil(&b, &l)
		if k.append(l, b) == nil {
			k.Fatalf("the batch that %s is wrong with was not refused", what)
		}
		equal(k, "inbox after a batch that was refused for "+what, k.inbox(to.id()), "")
	}
	k.ok(k.tells(c, news(to, "m", "other"))) // it would not come if the id had stayed
	equal(k, "inbox", k.inbox(to.id()), "m")
}

func newsAgain(k *kit) {
	c, to := k.claimed(k.runner("r")), k.create()
	m := news(to, "a", "x")
	k.ok(k.tells(c, m, m))
	k.ok(k.tells(c, m))
	k.ok(k.store.Send(k.ctx(), to.id(), m))
	equal(k, "inbox", k.inbox(to.id()), "a")
	k.claim(to, "r")
	k.ok(k.take(to, m))
	k.ok(k.tells(c, m))
	equal(k, "inbox after it was taken and came again", k.inbox(to.id()), "")
	b := news(to, "b", "x")
	k.ok(k.store.Send(k.ctx(), to.id(), b))
	k.ok(k.tells(c, b))
	equal(k, "inbox", k.inbox(to.id()), "b")
}

func newsOther(k *kit) {
	c, to := k.claimed(k.runner("r")), k.create()
	k.ok(k.tells(c, news(to, "a", "x")))
	k.ok(k.tells(c, news(to, "a", "y"), news(to, "b", "z")))
	k.unchanged(c)
	equal(k, "inbox", k.inbox(to.id()), "a b")
	ms, err := k.store.Inbox(k.ctx(), to.id())
	k.ok(err)
	if len(ms) == 0 {
		return
	}
	equal(k, "the body that stands", string(ms[0].Body), "x")
}

func newsEnded(k *kit) {
	c, over, to := k.claimed(k.runner("r")), k.claimed("r"), k.create()
	k.leave(over, ends())
	gone := news(to, "m", "x")
	gone.To = newID()
	k.ok(k.tells(c, news(over, "m", "x"), gone, news(to, "m", "x")))
	k.unchanged(c)
	equal(k, "inbox of the one that ended", k.inbox(over.id()), "")
	equal(k, "inbox of the one behind them", k.inbox(to.id()), "m")
	equal(k, "claimable, the one that ended", k.isClaimable(over), false)
}

func newsNameless(k *kit) {
	c, to := k.claimed(k.runner("r")), k.create()
	k.refused(k.tells(c, news(to, "", "x")), stint.Invalid)
	k.unchanged(c)
	equal(k, "inbox", k.inbox(to.id()), "")
}

func newsWakes(k *kit) {
	c := k.claimed(k.runner("starter"))
	for _, w := range []struct {
		wait  stint.Wait
		wakes bool
	}{
		{stint.Wait{For: stint.ForChild, Wakes: []stint.MessageKind{stint.ChildEnd}}, true},
		{stint.Wait{For: stint.ForMessage, Wakes: []stint.MessageKind{stint.Prompt}}, false},
		{stint.Wait{For: stint.ForOperator}, false},
	} {
		to := k.sleeping(w.wait)
		equal(k, "claimable before", k.isClaimable(to), false)
		k.ok(k.tells(c, news(to, "m", "x")))
		equal(k, fmt.Sprintf("claimable, waiting for %s", w.wait.For), k.isClaimable(to), w.wakes)
	}
}

func newsUnread(k *kit) {
	c, to := k.claimed(k.runner("one")), k.claimed(k.runner("two"))
	k.ok(k.tells(c, news(to, "m", "x")))
	equal(k, "unread in the row", k.row(to.id()).Unread, 1)
	if w, ok := k.store.(stint.Watcher); ok {
		ids, err := w.Unread(k.ctx(), "two")
		k.ok(err)
		equal(k, "unread of its holder", fmt.Sprint(ids), fmt.Sprint([]stint.ID{to.id()}))
	}
}

func newsChanged(k *kit) {
	c, to := k.claimed(k.runner("r")), k.create()
	ch, told, _ := k.watch()
	if ch == nil {
		return // runners poll such a store
	}
	drain(ch)
	k.ok(k.tells(c, news(to, "m", "x")))
	told("a message of a batch")
}
