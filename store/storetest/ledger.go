package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

func ledgerProperties() []property {
	return []property{
		{name: "a line is what was written, byte for byte", holds: ledgerPlain},
		{name: "a create, an append and a message write lines with what they are of", holds: ledgerWriters},
		{name: "lines of a source come newest first, page by page", holds: ledgerPages},
		{name: "a message whose key is there with the same digest has come", holds: ledgerSent},
		{name: "a message whose key is there with another digest is a conflict", holds: ledgerOther},
		{name: "a message that is refused leaves no key", holds: ledgerRefused},
		{name: "an expired line is not shown", holds: ledgerExpired, timed: true},
		{name: "the system journal is listed only where it is asked for", holds: ledgerSystem},
	}
}

// line returns a key of the scope delivery in the ledger of source.
func line(source, name string, at time.Time) stint.Key {
	return stint.Key{Scope: "delivery", Name: name, Source: source, At: at, Digest: digest(name), Expires: clock(31 * 24 * time.Hour)}
}

// keys returns the names of what is like like.
func (k *kit) keys(like stint.Key, limit int) string {
	k.Helper()
	got, err := k.store.Keys(k.ctx(), like, limit)
	k.ok(err)
	names := make([]string, 0, len(got))
	for _, one := range got {
		names = append(names, one.Name)
	}
	return strings.Join(names, " ")
}

func ledgerPlain(k *kit) {
	b := k.begin()
	want := line("github é", "d-1 é", clock(0))
	want.Ref, want.Note, want.Body = b.Session.ID.String(), []byte(`{"n":12345678901234567890,  "<":"é"}`), []byte("a\x00b\xff\r\n")
	b.Keys = []stint.Key{want}
	_, err := k.store.Create(k.ctx(), b, stint.Claim{})
	k.ok(err)
	for how, like := range map[string]stint.Key{"by name": {Scope: want.Scope, Name: want.Name}, "by source": {Scope: want.Scope, Source: want.Source}} {
		got, err := k.store.Keys(k.ctx(), like, 0)
		k.ok(err)
		if len(got) != 1 {
			k.Fatalf("%s: %d lines, want 1", how, len(got))
		}
		body := ""
		if how == "by name" {
			body = string(want.Body)
		}
		equal(k, how+": name", got[0].Name, want.Name)
		equal(k, how+": source", got[0].Source, want.Source)
		equal(k, how+": digest", got[0].Digest, want.Digest)
		equal(k, how+": ref", got[0].Ref, want.Ref)
		equal(k, how+": at", got[0].At, want.At)
		equal(k, how+": expires", got[0].Expires, want.Expires)
		equal(k, how+": note", string(got[0].Note), string(want.Note))
		equal(k, how+": body", string(got[0].Body), body)
	}
	for _, like := range []stint.Key{{Scope: "create", Name: want.Name}, {Scope: want.Scope, Name: "d"}, {Scope: "create", Source: want.Source}, {Scope: want.Scope, Source: "github"}} {
		equal(k, "what is like "+like.Scope+like.Name+like.Source, k.keys(like, 0), "")
	}
}

func ledgerWriters(k *kit) {
	at := clock(0)
	b := k.begin()
	b.Keys = []stint.Key{line("h", "created", at)}
	_, err := k.store.Create(k.ctx(), b, stint.Claim{})
	k.ok(err)
	c := k.claimed(k.runner("r"))
	more := k.follow(c, said("x"))
	more.Keys = []stint.Key{line("h", "appended", at.Add(time.Second))}
	k.ok(k.append(c.lease, more))
	m := prompt("m", "x")
	m.Keys = []stint.Key{line("h", "sent", at.Add(2*time.Second))}
	k.ok(k.store.Send(k.ctx(), c.id(), m))
	equal(k, "the ledger", k.keys(stint.Key{Scope: "delivery", Source: "h"}, 0), "sent appended created")
	equal(k, "inbox", k.inbox(c.id()), "m")
}

func ledgerPages(k *kit) {
	at := clock(0)
	var want []string
	for i := range 7 {
		b := k.begin()
		l := line("h", fmt.Sprintf("n%d", (i*3)%7), at.Add(time.Duration((i*3)%7/2)*time.Second)) // some times are equal
		b.Keys = []stint.Key{l, line("other", "o"+l.Name, at)}
		_, err := k.store.Create(k.ctx(), b, stint.Claim{})
		k.ok(err)
		want = append([]string{fmt.Sprintf("n%d", i)}, want...)
	}
	equal(k, "all", k.keys(stint.Key{Scope: "delivery", Source: "h"}, 0), strings.Join(want, " "))
	like := stint.Key{Scope: "delivery", Source: "h"}
	var got []string
	for range want {
		page, err := k.store.Keys(k.ctx(), like, 2)
		k.ok(err)
		if len(page) == 0 {
			break
		}
		for _, one := range page {
			got = append(got, one.Name)
		}
		like.At, like.Name = page[len(page)-1].At, page[len(page)-1].Name
	}
	equal(k, "page by page", strings.Join(got, " "), strings.Join(want, " "))
}

func ledgerSent(k *kit) {
	c := k.create()
	for _, id := range []string{"m1", "m2"} {
		m := prompt(id, "x")
		m.Keys = []stint.Key{line("h", "d", clock(0))}
		k.ok(k.store.Send(k.ctx(), c.id(), m))
	}
	equal(k, "inbox", k.inbox(c.id()), "m1")

	b := k.begin()
	b.Keys = []stint.Key{line("h", "made", clock(0))}
	b.Keys[0].Ref = b.Session.ID.String()
	_, err := k.store.Create(k.ctx(), b, stint.Claim{})
	k.ok(err)
	m := prompt("m3", "x")
	m.Keys = []stint.Key{line("h", "made", clock(0))}
	k.ok(k.store.Send(k.ctx(), c.id(), m))
	equal(k, "inbox", k.inbox(c.id()), "m1")
}

func ledgerOther(k *kit) {
	c := k.create()
	m := prompt("m1", "x")
	m.Keys = []stint.Key{line("h", "d", clock(0))}
	k.ok(k.store.Send(k.ctx(), c.id(), m))
	m = prompt("m2", "y")
	m.Keys = []stint.Key{line("h", "d2", clock(0)), line("h", "d", clock(0))}
	m.Keys[1].Digest = digest("other")
	k.refused(k.store.Send(k.ctx(), c.id(), m), stint.Conflict, "d")
	equal(k, "inbox", k.inbox(c.id()), "m1")
	equal(k, "the ledger", k.keys(stint.Key{Scope: "delivery", Source: "h"}, 0), "d")
}

func ledgerRefused(k *kit) {
	c := k.claimed(k.runner("r"))
	k.leave(c, ends())
	m := prompt("m", "x")
	m.Keys = []stint.Key{line("h", "d", clock(0))}
	k.refused(k.store.Send(k.ctx(), c.id(), m), stint.Conflict)
	equal(k, "the ledger", k.keys(stint.Key{Scope: "delivery", Source: "h"}, 0), "")
}

func ledgerExpired(k *kit) {
	c := k.create()
	m := prompt("m", "x")
	m.Keys = []stint.Key{line("h", "d", clock(0))}
	k.ok(k.store.Send(k.ctx(), c.id(), m))
	<-time.After(32 * 24 * time.Hour)
	equal(k, "the ledger", k.keys(stint.Key{Scope: "delivery", Source: "h"}, 0), "")
	equal(k, "the key", k.keys(stint.Key{Scope: "delivery", Name: "d"}, 0), "")
	m = prompt("m2", "x")
	m.Keys = []stint.Key{line("h", "d", clock(0))}
	m.Keys[0].Digest = digest("other")
	k.ok(k.store.Send(k.ctx(), c.id(), m))
	equal(k, "the ledger", k.keys(stint.Key{Scope: "delivery", Source: "h"}, 0), "d")
}

func ledgerSystem(k *kit) {
	k.create(named("system"), func(_ *stint.ID, c *journal.Created, _ *journal.Draft) { c.Trigger.Kind = "system" })
	c := k.create()
	for what, f := range map[string]stint.Filter{"all": {}, "open": {Open: true}, "by name": {Name: "system"}} {
		rows, err := k.store.Sessions(k.ctx(), f)
		k.ok(err)
		for _, r := range rows {
			if r.Session.ID != c.id() {
				k.Errorf("%s: the system journal is listed", what)
			}
		}
	}
	rows, err := k.store.Sessions(k.ctx(), stint.Filter{Trigger: "system"})
	k.ok(err)
	equal(k, "of the trigger system", len(rows), 1)
}
