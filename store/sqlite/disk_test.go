package sqlite_test

import (
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/sqlite"
	"github.com/stint-dev/stint/store/storetest"
)

// When somebody is told of a commit, all of it has been written and synced. A kill
// does not show whether that is so: the system keeps what was only written.
func TestCommitsAreSynced(t *testing.T) {
	disk := sqlite.WatchDisk(t)
	s := open(t, dbPath(t))
	hold(t, s, "me")
	before := int64(0)
	synced := func(what string) {
		t.Helper()
		if disk.Syncs() == before || disk.Loose() != 0 {
			t.Errorf("%s was acknowledged after %d syncs, with %d writes that a power cut loses", what, disk.Syncs()-before, disk.Loose())
		}
	}
	next := func() { before = disk.Syncs() }
	for i := range 20 {
		next()
		b := first(t, "synced")
		_, err := s.Create(t.Context(), b, stint.Claim{})
		ok(t, err)
		synced("a new session")
		next()
		ls, err := s.Claim(t.Context(), stint.Claim{Holder: "me", TTL: time.Minute, Session: b.Session.ID})
		ok(t, err)
		synced("a claim")
		next()
		ok(t, s.Send(t.Context(), b.Session.ID, stint.Message{ID: "m", Kind: stint.Prompt}))
		synced("a message")
		next()
		c := &course{s: b.Session, lease: ls[0]}
		batch, err := c.next(ends())
		ok(t, err)
		batch.Release = i%2 == 0
		done := make(chan error, 1)
		s.Append(t.Context(), c.lease, batch, func(err error) {
			synced("an append")
			done <- err
		})
		ok(t, <-done)
	}
	storetest.Check(t, s)
}

func ends() journal.Draft {
	return journal.Draft{Kind: stint.SessionEnded, Data: journal.Ended{Outcome: stint.Completed}}
}

// An append that a full disk refused has left nothing: neither a key nor a taken
// message nor a meter, and the store's own notes of the session are those of before. It is one
// commit, so that no second one can fail after a first.
func TestARefusedCommitLeavesNothing(t *testing.T) {
	disk := sqlite.WatchDisk(t)
	s := open(t, dbPath(t))
	hold(t, s, "me")
	c := begin(t, s, "me")
	refusals := 0
	for n := range int64(3) {
		m := stint.Message{ID: string('a' + rune(n)), Kind: stint.Prompt}
		ok(t, s.Send(t.Context(), c.s.ID, m))
		b, err := c.next(said("with a key"))
		ok(t, err)
		b.Keys = []stint.Key{{Scope: "create", Name: m.ID, Ref: c.s.ID.String()}}
		b.Taken = []string{m.ID}
		b.Meters = []stint.Meter{{Metric: "tokens", Limit: -1, Spend: 1}}
		disk.FillAt(n + 1)
		err = put(t.Context(), s, c.lease, b)
		disk.FillAt(0)
		if err != nil {
			refused(t, err, stint.Unavailable, "disk is full")
			refusals++
			row, err := s.Session(t.Context(), c.s.ID)
			ok(t, err)
			equal(t, "head after the refusal", row.Session.Head, c.s.Head)
			equal(t, "unread messages after the refusal", row.Unread, 1)
			ok(t, put(t.Context(), s, c.lease, b))
		}
		c.s = b.Session
	}
	if refusals == 0 {
		t.Error("the disk was never full")
	}
	ok(t, c.write(s, said("on")))
	storetest.Check(t, s)
}
