package sqlite_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/sqlite"
)

// feedEnd is the cursor behind all that s has.
func feedEnd(t *testing.T, s *sqlite.Store) string {
	t.Helper()
	_, end, err := s.Feed(t.Context(), "", 0)
	ok(t, err)
	return end[0]
}

// fed is how many entries s has behind after.
func fed(t *testing.T, s *sqlite.Store, after string) int {
	t.Helper()
	es, _, err := s.Feed(t.Context(), after, 1000)
	ok(t, err)
	return len(es)
}

// moved fails the test unless after is no cursor of s as it is now.
func moved(t *testing.T, s *sqlite.Store, after string) {
	t.Helper()
	for _, limit := range []int{0, 10} {
		_, _, err := s.Feed(t.Context(), after, limit)
		refused(t, err, stint.Conflict, "not of this store as it is now", "brought back from a copy")
	}
}

// A cursor is good for as long as the file: for another process that has it open, for
// one that opens it later, and for those who only read.
func TestFeedOfOneFile(t *testing.T) {
	path := dbPath(t)
	a := open(t, path)
	hold(t, a, "me")
	c := begin(t, a, "me")
	cursor := feedEnd(t, a)
	b := open(t, path)
	equal(t, "entries behind the end, in another store on the file", fed(t, b, cursor), 0)
	ok(t, c.write(a, said("x")))
	equal(t, "entries behind it after another was written", fed(t, b, cursor), 1)
	ok(t, a.Close())
	ok(t, b.Close())
	again := open(t, path)
	equal(t, "entries behind it in a store that was opened anew", fed(t, again, cursor), 1)
	reader, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, ReadOnly: true})
	ok(t, err)
	equal(t, "entries behind it for a reader", fed(t, reader, cursor), 1)
	ok(t, reader.Close())
}

// A backup and its store go different ways from the moment of the backup on.
func TestFeedOfABackup(t *testing.T) {
	s, copied := open(t, dbPath(t)), dbPath(t)
	hold(t, s, "me")
	begin(t, s, "me")
	cursor := feedEnd(t, s)
	ok(t, s.Backup(t.Context(), copied))
	restored := open(t, copied)
	moved(t, restored, cursor)
	moved(t, s, feedEnd(t, restored))
	equal(t, "entries behind the cursor where it was given", fed(t, s, cursor), 0)
	equal(t, "entries of the copy", fed(t, restored, ""), 2)
}

// A copy of the file that somebody put back has the same feed up to where it was
// made, and another from there on, also where it has come further since.
func TestFeedOfAFilePutBack(t *testing.T) {
	path, other := dbPath(t), dbPath(t)
	s := open(t, path)
	hold(t, s, "me")
	c := begin(t, s, "me")
	before := feedEnd(t, s)
	ok(t, s.Close())
	file, err := os.ReadFile(path)
	ok(t, err)
	s = open(t, path)
	ok(t, c.write(s, said("lost")))
	lost := feedEnd(t, s)
	ok(t, s.Close())
	ok(t, os.WriteFile(other, file, 0o600))
	s = open(t, other)
	moved(t, s, lost)
	equal(t, "entries behind the place of the copy", fed(t, s, before), 0)
	ok(t, put(t.Context(), s, c.lease, mustNext(t, begun(t, s, c), said("instead"))))
	moved(t, s, lost)
	equal(t, "entries behind the place of the copy after another was written", fed(t, s, before), 1)
}

// begun is c as s has it.
func begun(t *testing.T, s *sqlite.Store, c *course) *course {
	t.Helper()
	row, err := s.Session(t.Context(), c.s.ID)
	ok(t, err)
	return &course{s: row.Session, lease: c.lease}
}

// mustNext is [course.next] that succeeds.
func mustNext(t *testing.T, c *course, ds ...journal.Draft) stint.Batch {
	t.Helper()
	b, err := c.next(ds...)
	ok(t, err)
	return b
}

// The numbers of entries that are deleted may be given once more. A cursor that stands
// behind one of them must not be taken for one behind the entry that has its number now.
func TestFeedOfADeletedSession(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	hold(t, s, "me")
	stays := begin(t, s, "me")
	kept := feedEnd(t, s)
	goes := begin(t, s, "me")
	cursor := feedEnd(t, s)
	id := goes.s.ID.String()
	ok(t, s.Close())
	raw(t, path,
		fmt.Sprintf("DELETE FROM journal WHERE sid = (SELECT sid FROM sessions WHERE id = '%s')", id),
		fmt.Sprintf("DELETE FROM heads WHERE sid = (SELECT sid FROM sessions WHERE id = '%s')", id),
		fmt.Sprintf("DELETE FROM leases WHERE sid = (SELECT sid FROM sessions WHERE id = '%s')", id),
		fmt.Sprintf("DELETE FROM sessions WHERE id = '%s'", id))
	s = open(t, path)
	moved(t, s, cursor)
	hold(t, s, "you")
	begin(t, s, "you") // takes the numbers again
	moved(t, s, cursor)
	equal(t, "entries behind one that stays", fed(t, s, kept), 2)
	ok(t, stays.write(s, said("x")))
	equal(t, "entries behind one that stays, with a new one", fed(t, s, kept), 3)
}

// Several processes write at once: nothing becomes visible before what has come.
func TestFeedOfSeveralProcesses(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	writers := []*process{spawn(t, "write", path), spawn(t, "write", path), spawn(t, "write", path)}
	heads, after := map[stint.ID]stint.Seq{}, ""
	read := func() int {
		es, cursors, err := s.Feed(t.Context(), after, 5)
		ok(t, err)
		for i := range es {
			if e := &es[i]; e.Seq != heads[e.Session]+1 {
				t.Fatalf("entry %d of %s comes after entry %d", e.Seq, e.Session, heads[e.Session])
			}
			heads[es[i].Session] = es[i].Seq
		}
		after = cursors[len(es)]
		return len(es)
	}
	acked := map[stint.ID]stint.Seq{}
	for range 100 {
		for _, p := range writers {
			a, more := p.next(t)
			if !more {
				t.Fatal("a child ended by itself")
			}
			acked[a.id] = max(acked[a.id], a.head)
		}
		read()
	}
	for _, p := range writers {
		p.kill()
	}
	for read() > 0 {
	}
	for id, head := range acked {
		if heads[id] < head {
			t.Errorf("the feed ends at entry %d of %s, and entry %d was acknowledged", heads[id], id, head)
		}
	}
	rows, err := s.Sessions(t.Context(), stint.Filter{})
	ok(t, err)
	for i := range rows {
		equal(t, "the newest entry in the feed", heads[rows[i].Session.ID], rows[i].Session.Head)
	}
}

// What belongs to no session is damage, and no reason to leave it out in silence.
func TestFeedOfDamage(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	hold(t, s, "me")
	begin(t, s, "me")
	raw(t, path, "DELETE FROM sessions")
	_, _, err := s.Feed(t.Context(), "", 10)
	refused(t, err, stint.Corrupt, "belongs to no session", "stint db salvage")
	raw(t, path, "DELETE FROM meta WHERE name = 'feed.id'")
	_, _, err = s.Feed(t.Context(), "", 10)
	refused(t, err, stint.Corrupt, "the id of the feed has 0 bytes", "stint db salvage")
}
