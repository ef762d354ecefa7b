package sqlite_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/sqlite"
	"github.com/stint-dev/stint/store/storetest"
)

// childVar makes this test binary one of the processes that tests need beside
// their own: see TestMain.
const childVar = "STINT_SQLITE_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(childVar); what != "" {
		os.Exit(child(what))
	}
	os.Exit(m.Run())
}

// dbPath is a path for a new store.
func dbPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "stint.db")
}

// open opens a store that the test's end closes.
func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	ok(t, err)
	t.Cleanup(func() { ok(t, s.Close()) })
	return s
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		var e *stint.Error
		if errors.As(err, &e) {
			t.Fatalf("%v (code %s; hint: %s)", err, e.Code, e.Hint)
		}
		t.Fatal(err)
	}
}

// refused fails the test unless err has the code, a hint, and all of words in it.
func refused(t testing.TB, err error, code stint.Code, words ...string) {
	t.Helper()
	var e *stint.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("the error is %v, want code %s", err, code)
	}
	for _, w := range words {
		if !strings.Contains(err.Error()+"\n"+e.Hint, w) {
			t.Errorf("neither the error %q nor its hint %q has %q in it", err, e.Hint, w)
		}
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// course is a session as its writer knows it.
type course struct {
	s     stint.Session
	lease stint.Lease
}

// newID returns an id newer than those before it.
func newID() stint.ID { return stint.ID(uuid.Must(uuid.NewV7())) }

func hold(t testing.TB, s *sqlite.Store, holder string) {
	t.Helper()
	_, err := s.Hold(t.Context(), holder)
	ok(t, err)
}

// first makes the batch that begins a session.
func first(t testing.TB, name string) stint.Batch {
	t.Helper()
	id := newID()
	s, e, err := journal.Begin(id, journal.Created{
		Family: id, Name: name, Agent: stint.AgentRef{Name: "triage", Runtime: "exec"}, Trigger: stint.Trigger{Kind: "prompt"},
	}, journal.Draft{At: time.Now(), Salt: salt()})
	ok(t, err)
	return stint.Batch{Session: s, Entries: []stint.Entry{e}}
}

func salt() (s [16]byte) {
	_, _ = rand.Read(s[:])
	return s
}

// begin makes a session in its first loop that holder has.
func begin(t testing.TB, s *sqlite.Store, holder string) *course {
	t.Helper()
	b := first(t, "test")
	l, err := s.Create(t.Context(), b, stint.Claim{Holder: holder, TTL: time.Minute})
	ok(t, err)
	c := &course{s: b.Session, lease: l}
	ok(t, c.write(s, journal.Draft{Kind: stint.LoopStarted, Data: journal.LoopStarted{Why: "first"}, Pos: stint.Position{Loop: 1, Attempt: 1}}))
	return c
}

// next makes the batch of ds.
func (c *course) next(ds ...journal.Draft) (stint.Batch, error) {
	b := stint.Batch{Session: c.s}
	for _, d := range ds {
		d.Epoch, d.At, d.Salt = c.lease.Epoch, time.Now(), salt()
		if d.Pos == (stint.Position{}) && c.s.At.Open {
			d.Pos = stint.Position{Loop: c.s.At.Loop, Attempt: c.s.At.Attempt}
		}
		s, e, err := journal.Next(b.Session, d)
		if err != nil {
			return b, err
		}
		b.Session, b.Entries = s, append(b.Entries, e)
	}
	return b, nil
}

// write appends ds and waits.
func (c *course) write(s *sqlite.Store, ds ...journal.Draft) error {
	b, err := c.next(ds...)
	if err != nil {
		return err
	}
	if err := put(context.Background(), s, c.lease, b); err != nil {
		return err
	}
	c.s = b.Session
	return nil
}

// put appends and waits.
func put(ctx context.Context, s *sqlite.Store, l stint.Lease, b stint.Batch) error {
	done := make(chan error, 1)
	s.Append(ctx, l, b, func(err error) { done <- err })
	return <-done
}

func said(body string) journal.Draft {
	return journal.Draft{Kind: stint.OutputWritten, Data: journal.Output{Stream: "log"}, Body: []byte(body)}
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) stint.Store { return open(t, dbPath(t)) })
}

// Everything of a second store on the same file must be seen by the first.
func TestTwoStores(t *testing.T) {
	path := dbPath(t)
	a, b := open(t, path), open(t, path)
	hold(t, a, "a")
	c := begin(t, a, "a")
	row, err := b.Session(t.Context(), c.s.ID)
	ok(t, err)
	equal(t, "live, seen from the other store", row.Live, true)
	_, err = b.Claim(t.Context(), stint.Claim{Holder: "b", TTL: time.Minute, Session: c.s.ID})
	refused(t, err, stint.Conflict, "held by a (process ")
	_, err = b.Hold(t.Context(), "a")
	refused(t, err, stint.Conflict, "process")
	ok(t, b.Send(t.Context(), c.s.ID, stint.Message{ID: "1", Kind: stint.Prompt, Body: []byte("hi")}))
	ids, err := a.Unread(t.Context(), "a")
	ok(t, err)
	if len(ids) != 1 || ids[0] != c.s.ID {
		t.Errorf("unread: %v", ids)
	}
	ok(t, c.write(a, said("one")))
	storetest.Check(t, b)
}
