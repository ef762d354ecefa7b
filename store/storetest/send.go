package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

func sendProperties() []property {
	return []property{
		{name: "a message lies in the inbox byte for byte, with the store's time", holds: sendPlain},
		{name: "the inbox is in the order of arrival, whatever the clock says", holds: sendOrder},
		{name: "one id with one content is one message", holds: sendAgain},
		{name: "one id with other content is a conflict", holds: sendOther},
		{name: "two sessions may get messages of one id", holds: sendTwoSessions},
		{name: "of many that send one message one is heard", holds: sendRace},
		{name: "a session that is not there is not found", holds: sendAbsent},
		{name: "an ended session takes a restart, a rollback or a branch, and else is a conflict that says so", holds: sendEnded},
		{name: "in each status a decision about an order is taken and wakes, and so does its deadline", holds: sendAsked},
		{name: "what ended the session may be sent again", holds: sendAgainEnded},
		{name: "a taken message is gone from the inbox and stays known", holds: sendTaken},
		{name: "a message can be taken once", holds: sendTakenTwice},
		{name: "a waiting session is woken by the kinds it names", holds: sendWakes},
		{name: "a waiting session is woken by any control", holds: sendControlWakes},
		{name: "a message that came before the wait wakes it too", holds: sendBeforeWait},
		{name: "what is left in the inbox of an ended session does not wake it", holds: sendLeftOver},
		{name: "rows and Unread count what nobody took", holds: sendUnread},
	}
}

func prompt(id, body string) stint.Message {
	return stint.Message{ID: id, Kind: stint.Prompt, From: "human:ada", Body: []byte(body)}
}

func control(id string, kind stint.MessageKind) stint.Message {
	return stint.Message{ID: id, Kind: kind, From: "human:ada", Data: json.RawMessage(`{"reason":"enough"}`)}
}

func (k *kit) send(c *course, m stint.Message) {
	k.Helper()
	k.ok(k.store.Send(k.ctx(), c.id(), m))
}

// take records m as taken by c and removes it from the inbox.
func (k *kit) take(c *course, m stint.Message) error {
	k.Helper()
	b := k.follow(c, took(m))
	b.Taken = []string{m.ID}
	err := k.append(c.lease, b)
	if err == nil {
		c.s = b.Session
	}
	return err
}

func sendPlain(k *kit) {
	c := k.create()
	want := stint.Message{ID: "m-1 é", Kind: stint.Stop, From: "hook:github", At: time.Unix(1, 0),
		Data: json.RawMessage(`{"reason":"<b>",  "n":12345678901234567890}`), Body: []byte("a\x00b\xffc\r\n")}
	before := clock(0)
	k.send(c, want)
	after := clock(time.Microsecond)
	ms, err := k.store.Inbox(k.ctx(), c.id())
	k.ok(err)
	if len(ms) != 1 {
		k.Fatalf("%d messages in the inbox, want 1", len(ms))
	}
	got := ms[0]
	if got.At.Before(before) || got.At.After(after) || got.At != got.At.UTC().Truncate(time.Microsecond) {
		k.Errorf("the message's time is %v, want one of the store between %v and %v, UTC, in whole microseconds", got.At, before, after)
	}
	equal(k, "id", got.ID, want.ID)
	equal(k, "kind", got.Kind, want.Kind)
	equal(k, "from", got.From, want.From)
	equal(k, "data", string(got.Data), string(want.Data))
	equal(k, "body", string(got.Body), string(want.Body))
	k.unchanged(c)
}

func sendOrder(k *kit) {
	c := k.create()
	var want []string
	for i := range 12 {
		id := fmt.Sprintf("m%d", (i*7)%12) // the ids are in no order
		m := prompt(id, "x")
		m.At = clock(-time.Duration(i) * time.Hour)
		k.send(c, m)
		want = append(want, id)
	}
	equal(k, "inbox", k.inbox(c.id()), strings.Join(want, " "))
}

func sendAgain(k *kit) {
	c := k.create()
	k.send(c, prompt("a", "x"))
	k.send(c, prompt("b", "x"))
	later := prompt("a", "x")
	later.At = clock(time.Hour)
	k.send(c, later)
	equal(k, "inbox", k.inbox(c.id()), "a b")
	equal(k, "unread", k.row(c.id()).Unread, 2)
}

func sendOther(k *kit) {
	c := k.create()
	k.send(c, prompt("a", "x"))
	kind, data := prompt("a", "x"), prompt("a", "x")
	kind.Kind = stint.Decision
	data.Data = json.RawMessage(`{}`)
	for _, m := range []stint.Message{prompt("a", "y"), prompt("a", ""), kind, data} {
		k.refused(k.store.Send(k.ctx(), c.id(), m), stint.Conflict, "a")
	}
	equal(k, "inbox", k.inbox(c.id()), "a")
	ms, err := k.store.Inbox(k.ctx(), c.id())
	k.ok(err)
	equal(k, "the body that stands", string(ms[0].Body), "x")
}

func sendTwoSessions(k *kit) {
	one, two := k.create(), k.create()
	k.send(one, prompt("a", "x"))
	k.send(two, prompt("a", "y"))
	equal(k, "inbox of one", k.inbox(one.id()), "a")
	equal(k, "inbox of two", k.inbox(two.id()), "a")
}

func sendRace(k *kit) {
	c := k.create()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if err := k.store.Send(k.ctx(), c.id(), prompt("a", "x")); err != nil {
				k.Errorf("sender %d: %v", i, err)
			}
			if err := k.store.Send(k.ctx(), c.id(), prompt(fmt.Sprint("own", i), "x")); err != nil {
				k.Errorf("sender %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	equal(k, "unread", k.row(c.id()).Unread, 17)
}

func sendAbsent(k *kit) {
	k.refused(k.store.Send(k.ctx(), newID(), prompt("a", "x")), stint.NotFound)
}

func sendEnded(k *kit) {
	c := k.claimed(k.runner("r"))
	k.leave(c, ends())
	for _, kind := range []stint.MessageKind{stint.Prompt, stint.Decision, stint.Stop, stint.Resume, stint.Pause} {
		err := k.store.Send(k.ctx(), c.id(), control(string(kind), kind))
		k.refused(err, stint.Conflict, string(stint.Completed))
		k.hint(err, "restart")
	}
	equal(k, "inbox", k.inbox(c.id()), "")
	equal(k, "claimable", k.isClaimable(c), false)
	k.send(c, control("again", stint.Restart))
	k.send(c, control("back", stint.Rollback))
	k.send(c, control("off", stint.BranchOff))
	equal(k, "inbox", k.inbox(c.id()), "again back off")
	equal(k, "claimable with a restart in the inbox", k.isClaimable(c), true)
}

// asks is a question about an order, which has no step.
func asks(until time.Time) journal.Draft {
	d := journal.ApprovalRequested{Text: "roll back?", Until: until}
	d.Name = string(stint.Rollback)
	return journal.Draft{Kind: stint.ApprovalRequested, Data: d}
}

func sendAsked(k *kit) {
	k.runner("r")
	for what, left := range map[string]journal.Draft{"ended": ends(), "paused": waits(stint.Wait{For: stint.ForOperator})} {
		c, late, due := k.claimed("r"), k.claimed("r"), k.claimed("r")
		k.leave(c, left, asks(time.Time{}))
		k.leave(late, left, asks(clock(time.Hour)))
		k.leave(due, left, asks(clock(-time.Hour)))
		equal(k, what+": claimable while nobody has decided", k.isClaimable(c), false)
		equal(k, what+": claimable before the deadline", k.isClaimable(late), false)
		equal(k, what+": claimable at the deadline", k.isClaimable(due), true)
		k.selects(stint.Filter{Asking: true}, c, late, due)
		k.send(c, control("yes", stint.Decision))
		equal(k, what+": inbox", k.inbox(c.id()), "yes")
		equal(k, what+": claimable with the decision", k.isClaimable(c), true)
		k.send(late, control("no", stint.Decision))
		for _, c := range []*course{c, late, due} {
			k.claim(c, "r")
			k.leave(c, journal.Draft{Kind: stint.ApprovalDecided, Data: journal.ApprovalDecided{State: stint.ApprovalDenied, Approval: c.s.At.Approvals[0].Seq}})
		}
		k.selects(stint.Filter{Asking: true})
		equal(k, what+": claimable once it is over", k.isClaimable(due), false)
	}
}

func sendAgainEnded(k *kit) {
	c := k.claimed(k.runner("r"))
	stop := control("s", stint.Stop)
	k.send(c, stop)
	k.ok(k.take(c, stop))
	k.leave(c, ends())
	k.send(c, stop) // its sender never got the answer
	equal(k, "inbox", k.inbox(c.id()), "")
	k.refused(k.store.Send(k.ctx(), c.id(), control("s2", stint.Stop)), stint.Conflict)
}

func sendTaken(k *kit) {
	c := k.claimed(k.runner("r"))
	for _, id := range []string{"a", "b", "c"} {
		k.send(c, prompt(id, "x"))
	}
	k.ok(k.take(c, prompt("b", "x")))
	equal(k, "inbox", k.inbox(c.id()), "a c")
	k.send(c, prompt("b", "x"))
	equal(k, "inbox after it was sent again", k.inbox(c.id()), "a c")
	k.refused(k.store.Send(k.ctx(), c.id(), prompt("b", "y")), stint.Conflict)
	equal(k, "unread", k.row(c.id()).Unread, 2)
	b := k.follow(c, took(prompt("c", "x")), took(prompt("a", "x")))
	b.Taken = []string{"c", "a"}
	k.ok(k.append(c.lease, b))
	equal(k, "inbox", k.inbox(c.id()), "")
	equal(k, "unread", k.row(c.id()).Unread, 0)
}

func sendTakenTwice(k *kit) {
	c := k.claimed(k.runner("r"))
	k.send(c, prompt("a", "x"))
	k.ok(k.take(c, prompt("a", "x")))
	k.refused(k.take(c, prompt("a", "x")), stint.Conflict, "a")
	k.refused(k.take(c, prompt("never", "x")), stint.Conflict, "never")
	k.unchanged(c)
}

// sleeping returns a session that nobody holds and that waits as w says.
func (k *kit) sleeping(w stint.Wait) *course {
	k.Helper()
	c := k.claimed("starter")
	k.leave(c, said("x"), waits(w))
	return c
}

func sendWakes(k *kit) {
	k.runner("starter")
	for _, w := range []struct {
		wait  stint.Wait
		kind  stint.MessageKind
		wakes bool
	}{
		{stint.Wait{For: stint.ForMessage, Wakes: []stint.MessageKind{stint.Prompt}}, stint.Prompt, true},
		{stint.Wait{For: stint.ForMessage, Wakes: []stint.MessageKind{stint.Prompt}}, stint.Decision, false},
		{stint.Wait{For: stint.ForApproval, Wakes: []stint.MessageKind{stint.Decision}}, stint.Prompt, false},
		{stint.Wait{For: stint.ForApproval, Wakes: []stint.MessageKind{stint.Decision}}, stint.Decision, true},
		{stint.Wait{For: stint.ForTime, Until: clock(time.Hour), Wakes: []stint.MessageKind{stint.Decision, stint.Prompt}}, stint.Prompt, true},
		{stint.Wait{For: stint.ForTime, Until: clock(time.Hour)}, stint.Prompt, false},
		{stint.Wait{For: stint.ForOperator}, stint.Prompt, false},
	} {
		c := k.sleeping(w.wait)
		equal(k, "claimable before", k.isClaimable(c), false)
		k.send(c, stint.Message{ID: "m", Kind: w.kind, From: "human:ada", Body: []byte("x")})
		what := fmt.Sprintf("claimable after a %s, waiting for %s with wakes %v", w.kind, w.wait.For, w.wait.Wakes)
		equal(k, what, k.isClaimable(c), w.wakes)
		equal(k, "status", k.row(c.id()).Session.Status, stint.Waiting)
		equal(k, what+", among all", slices.Contains(k.claimAny("starter", 100), c.id()), w.wakes)
	}
}

func sendControlWakes(k *kit) {
	k.runner("starter")
	for _, kind := range []stint.MessageKind{stint.Pause, stint.Resume, stint.Interrupt, stint.Stop, stint.Kill,
		stint.Restart, stint.Rollback, stint.Resolve, stint.SetLimit} {
		c := k.sleeping(stint.Wait{For: stint.ForApproval, Wakes: []stint.MessageKind{stint.Decision}})
		k.send(c, control("m", kind))
		equal(k, "claimable after "+string(kind), k.isClaimable(c), true)
	}
}

func sendBeforeWait(k *kit) {
	c := k.claimed(k.runner("r"))
	k.send(c, prompt("early", "x"))
	k.leave(c, said("x"), waits(stint.Wait{For: stint.ForApproval, Wakes: []stint.MessageKind{stint.Decision}}))
	equal(k, "claimable with a prompt that does not wake", k.isClaimable(c), false)
	k.send(c, control("resume", stint.Resume))
	k.claim(c, "r")
	k.ok(k.take(c, control("resume", stint.Resume)))
	k.leave(c, resumes(), waits(stint.Wait{For: stint.ForMessage, Wakes: []stint.MessageKind{stint.Prompt}}))
	equal(k, "claimable with a prompt that wakes", k.isClaimable(c), true)
}

func sendLeftOver(k *kit) {
	c := k.claimed(k.runner("r"))
	k.send(c, prompt("p", "x"))
	k.send(c, control("s", stint.Stop))
	k.leave(c, ends())
	equal(k, "claimable", k.isClaimable(c), false)
	equal(k, "sessions", len(k.claimAny("r", 10)), 0)
}

func sendUnread(k *kit) {
	one, two := k.runner("one"), k.runner("two")
	a, b, c, free := k.claimed(one), k.claimed(one), k.claimed(two), k.create()
	for _, to := range []*course{a, c, free} {
		k.send(to, prompt("m", "x"))
	}
	equal(k, "unread in the row", k.row(a.id()).Unread, 1)
	equal(k, "unread in the row without", k.row(b.id()).Unread, 0)
	w, ok := k.store.(stint.Watcher)
	if !ok {
		return // polls read the rows
	}
	unread := func(holder string) string {
		ids, err := w.Unread(k.ctx(), holder)
		k.ok(err)
		return fmt.Sprint(ids)
	}
	equal(k, "unread of one", unread(one), fmt.Sprint([]stint.ID{a.id()}))
	equal(k, "unread of two", unread(two), fmt.Sprint([]stint.ID{c.id()}))
	equal(k, "unread of nobody", unread("nobody"), "[]")
	k.ok(k.take(a, prompt("m", "x")))
	equal(k, "unread of one, when it is taken", unread(one), "[]")
	k.leave(c)
	equal(k, "unread of two, when it let go", unread(two), "[]")
}

func watchProperties() []property {
	return []property{
		{name: "Changed tells of a new session, a message and a lease given back", holds: watchChanges, timed: true},
		{name: "Changed merges what was not looked at", holds: watchMerges, timed: true},
		{name: "Changed ends with its context", holds: watchEnds, timed: true},
	}
}

// watch returns the channel of a store that has one, and a function that waits
// for it to tell of something.
func (k *kit) watch() (ch <-chan struct{}, told func(of string), stop func()) {
	k.Helper()
	w, ok := k.store.(stint.Watcher)
	if !ok {
		return nil, nil, nil
	}
	ctx, cancel := context.WithCancel(k.Context())
	k.Cleanup(cancel)
	ch = w.Changed(ctx)
	told = func(of string) {
		k.Helper()
		select {
		case _, open := <-ch:
			if !open {
				k.Fatalf("Changed closed before its context ended")
			}
		case <-time.After(patience):
			k.Errorf("Changed told nothing of %s within %v", of, patience)
		}
	}
	return ch, told, cancel
}

// drain empties ch of what was told already. A store may tell late, once per
// change at most, so what is left is told within a moment.
func drain(ch <-chan struct{}) {
	for {
		select {
		case <-ch:
		case <-time.After(300 * time.Millisecond):
			return
		}
	}
}

func watchChanges(k *kit) {
	r := k.runner("r")
	ch, told, _ := k.watch()
	if ch == nil {
		return // runners poll such a store
	}
	c := k.create()
	told("a new session")
	k.claim(c, r)
	drain(ch)
	k.send(c, prompt("m", "x"))
	told("a message")
	drain(ch)
	k.leave(c, said("x"))
	told("a lease given back")
}

func watchMerges(k *kit) {
	ch, told, _ := k.watch()
	if ch == nil {
		return // runners poll such a store
	}
	for range 20 {
		k.create()
	}
	told("new sessions")
	values := 1
	for {
		select {
		case <-ch:
			values++
			continue
		case <-time.After(300 * time.Millisecond):
		}
		break
	}
	if values > 10 {
		k.Errorf("20 changes that nobody looked at gave %d values, want them merged", values)
	}
}

func watchEnds(k *kit) {
	ch, _, stop := k.watch()
	if ch == nil {
		return // runners poll such a store
	}
	k.create()
	stop()
	end := time.After(patience)
	for {
		select {
		case _, open := <-ch:
			if !open {
				return
			}
		case <-end:
			k.Fatalf("Changed did not close within %v of its context's end", patience)
		}
	}
}
