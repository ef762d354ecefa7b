package sqlite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/sqlite"
)

// flaws is what a verification of the store tells.
func flaws(t testing.TB, s *sqlite.Store, session stint.ID) (all []string, ids []stint.ID) {
	t.Helper()
	ids, err := s.Verify(t.Context(), session, func(f sqlite.Flaw) {
		all = append(all, fmt.Sprintf("%s %d: %s", f.Session, f.Seq, f.What))
	})
	ok(t, err)
	return all, ids
}

// A store of the store's own making has no flaw: while sessions are held, after they
// were given back, and with messages that wait and that were taken.
func TestVerifySound(t *testing.T) {
	path := dbPath(t)
	fillStore(t, path, true)
	s := open(t, path)
	hold(t, s, "you")
	c := story(t, s)
	ok(t, s.Send(t.Context(), c.s.ID, stint.Message{ID: "m1", Kind: stint.Prompt, Body: []byte("hi")}))
	ok(t, s.Send(t.Context(), c.s.ID, stint.Message{ID: "m2", Kind: stint.Stop}))
	inbox, err := s.Inbox(t.Context(), c.s.ID)
	ok(t, err)
	b, err := c.next(journal.Draft{Kind: stint.MessageTaken, Actor: inbox[0].From, Body: inbox[0].Body, Pos: stint.Position{Loop: 1, Attempt: 1},
		Data: journal.Taken{ID: "m1", Kind: stint.Prompt, From: inbox[0].From, At: inbox[0].At}})
	ok(t, err)
	b.Taken = []string{"m1"}
	ok(t, put(t.Context(), s, c.lease, b))
	c.s = b.Session
	all, ids := flaws(t, s, stint.ID{})
	if len(all) > 0 || len(ids) != 21 || ids[0] != c.s.ID {
		t.Errorf("of %d sessions: %q", len(ids), all)
	}
	b, err = c.next(journal.Draft{Kind: stint.SessionWaiting, Data: stint.Wait{For: stint.ForMessage, Wakes: []stint.MessageKind{stint.Prompt}}})
	ok(t, err)
	b.Release = true
	ok(t, put(t.Context(), s, c.lease, b))
	if all, ids := flaws(t, s, stint.ID{}); len(all) > 0 || len(ids) != 21 {
		t.Errorf("of %d sessions: %q", len(ids), all)
	}
	if all, ids := flaws(t, s, c.s.ID); len(all) > 0 || len(ids) != 1 {
		t.Errorf("of one session: %q %v", all, ids)
	}
	_, err = s.Verify(t.Context(), newID(), func(sqlite.Flaw) {})
	refused(t, err, stint.NotFound)
	ok(t, s.Close())
	_, err = s.Verify(t.Context(), stint.ID{}, func(sqlite.Flaw) {})
	refused(t, err, stint.Unavailable, "closed")
}

// While others write, a verification sees one moment.
func TestVerifyWhileWriting(t *testing.T) {
	s := open(t, dbPath(t))
	hold(t, s, "me")
	quit, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-quit:
				done <- nil
				return
			default:
			}
			c := begin(t, s, "me")
			for range 5 {
				if err := c.write(s, said("x")); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	for range 10 {
		if all, _ := flaws(t, s, stint.ID{}); len(all) > 0 {
			t.Errorf("%q", all)
		}
	}
	close(quit)
	ok(t, <-done)
}

// A flaw is told of the session, and a verification of that session alone tells it too.
func TestVerifyOne(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	hold(t, s, "me")
	a, b := story(t, s), story(t, s)
	for q, want := range map[string]string{
		"UPDATE sessions SET trigger = 'hook' WHERE id = '%s'":                                           "sessions.trigger",
		"UPDATE heads SET wakes = 0 WHERE sid = (SELECT sid FROM sessions WHERE id = '%s')":              "heads.wakes",
		"INSERT INTO labels VALUES ('team', 'a', '%s')":                                                  "it is found by the label \"team=a\", which it has not",
		"UPDATE heads SET past = 7 WHERE sid = (SELECT sid FROM sessions WHERE id = '%s')":               "it is held under epoch 1",
		"UPDATE journal SET sid = 99 WHERE seq = 2 AND sid = (SELECT sid FROM sessions WHERE id = '%s')": "it should be row",
	} {
		raw(t, path, fmt.Sprintf(q, a.s.ID))
		all, _ := flaws(t, s, a.s.ID)
		if len(all) == 0 || !strings.Contains(strings.Join(all, "\n"), want) || !strings.HasPrefix(all[0], a.s.ID.String()) {
			t.Errorf("after %s: %q, want %q", q, all, want)
		}
		if all, _ := flaws(t, s, b.s.ID); len(all) > 0 {
			t.Errorf("of the other session: %q", all)
		}
	}
}

// A session that is made of a journal from elsewhere goes on above its epochs: its
// next entry could not be written otherwise.
func TestBroughtOver(t *testing.T) {
	from, to := open(t, dbPath(t)), open(t, dbPath(t))
	hold(t, from, "me")
	c := begin(t, from, "me")
	for range 3 {
		b, err := c.next(journal.Draft{Kind: stint.SessionReleased, Data: journal.Released{Why: "drain"}})
		ok(t, err)
		b.Release = true
		ok(t, put(t.Context(), from, c.lease, b))
		ls, err := from.Claim(t.Context(), stint.Claim{Holder: "me", TTL: time.Minute, Session: c.s.ID})
		ok(t, err)
		c.s, c.lease = b.Session, ls[0]
		ok(t, c.write(from, journal.Draft{Kind: stint.LoopStarted, Data: journal.LoopStarted{Why: "next"}, Pos: stint.Position{Loop: 1, Attempt: 1}}))
	}
	ok(t, c.write(from, journal.Draft{Kind: stint.SessionReleased, Data: journal.Released{Why: "drain"}}))
	es, err := from.Entries(t.Context(), stint.Range{Session: c.s.ID})
	ok(t, err)
	_, err = to.Create(t.Context(), stint.Batch{Session: c.s, Entries: es}, stint.Claim{})
	ok(t, err)
	if all, _ := flaws(t, to, stint.ID{}); len(all) > 0 {
		t.Errorf("%q", all)
	}
	hold(t, to, "you")
	ls, err := to.Claim(t.Context(), stint.Claim{Holder: "you", TTL: time.Minute})
	ok(t, err)
	if len(ls) != 1 || ls[0].Epoch != c.lease.Epoch+1 {
		t.Fatalf("the leases are %+v, want epoch %d", ls, c.lease.Epoch+1)
	}
	c.lease = ls[0]
	ok(t, c.write(to, journal.Draft{Kind: stint.LoopStarted, Data: journal.LoopStarted{Why: "next"}, Pos: stint.Position{Loop: 1, Attempt: 1}}))
}

// The time of a verification grows with the store, not faster.
func BenchmarkVerify(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			path := dbPath(b)
			s, err := sqlite.Open(b.Context(), sqlite.Options{Path: path})
			ok(b, err)
			hold(b, s, "me")
			for range n {
				c := begin(b, s, "me")
				ds := make([]journal.Draft, 100)
				for i := range ds {
					ds[i] = said(strings.Repeat("x", 500))
				}
				ok(b, c.write(s, ds...))
			}
			b.ResetTimer()
			for b.Loop() {
				if all, ids := flaws(b, s, stint.ID{}); len(all) > 0 || len(ids) != n {
					b.Fatalf("%q", all)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n*102), "ns/entry")
			ok(b, s.Close())
		})
	}
}

// The times of v_sessions have six digits, however many the fold has kept.
func TestViewTimes(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	hold(t, s, "me")
	c := story(t, s)
	for kept, want := range map[string]string{
		"2026-11-29T16:05:50Z": "2026-11-29T16:05:50.000000Z", "2026-11-29T16:05:50.5Z": "2026-11-29T16:05:50.500000Z",
		"2026-11-29T16:05:50.120Z": "2026-11-29T16:05:50.120000Z", "2026-11-29T16:05:50.123456Z": "2026-11-29T16:05:50.123456Z",
	} {
		raw(t, path, fmt.Sprintf("UPDATE sessions SET fold = json_set(fold, '$.ended', '%s', '$.waiting', json_object('until', '%s'))", kept, kept))
		equal(t, kept, table(t, s, "SELECT ended, waiting_until FROM v_sessions WHERE id = '"+c.s.ID.String()+"'"), want+"|"+want+"\n")
	}
	raw(t, path, "UPDATE sessions SET fold = json_remove(fold, '$.ended', '$.waiting')")
	equal(t, "none", table(t, s, "SELECT ended, waiting_until FROM v_sessions"), "<nil>|<nil>\n")
}
