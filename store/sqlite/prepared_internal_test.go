package sqlite

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// TestPreparedOnce: what a store does for each session, message or step, it does with
// statements that stay prepared. See [prepare].
func TestPreparedOnce(t *testing.T) {
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "stint.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	// SQLite asks the authorizer while it prepares a statement, and at no other time.
	var prepared atomic.Int64
	count := sqlite.AuthorizeFunc(func(sqlite.Action) sqlite.AuthResult {
		prepared.Add(1)
		return sqlite.AuthResultOK
	})
	for range readers {
		<-s.pool
	}
	for range readers {
		c, err := openConn(s.opt.Path, sqlite.OpenReadOnly, "query_only = 1")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetAuthorizer(count); err != nil {
			t.Fatal(err)
		}
		s.pool <- c
	}
	if err := s.w.c.SetAuthorizer(count); err != nil {
		t.Fatal(err)
	}
	again := map[string]int64{} // by operation, how much was prepared the last time
	for n := range 3 * readers {
		c := &circle{T: t, s: s, n: n}
		for _, op := range c.ops() {
			prepared.Store(0)
			if err := op.do(); err != nil {
				t.Fatalf("%s: %v", op.name, err)
			}
			again[op.name] = prepared.Load()
		}
	}
	for name, n := range again {
		if n > 0 {
			t.Errorf("%s prepares a statement each time it runs", name)
		}
	}
}

// circle is the life of a session, as a store sees it.
type circle struct {
	*testing.T

	s      *Store
	n      int
	fold   stint.Session
	lease  stint.Lease
	cursor string
}

type circleOp struct {
	name string
	do   func() error
}

func (c *circle) ops() []circleOp {
	ctx, s := c.Context(), c.s
	id := stint.ID{1, 15: byte(c.n)}
	now := time.Now().UTC().Truncate(time.Microsecond)
	key := stint.Key{Scope: "delivery", Name: fmt.Sprint("h/", c.n), Digest: stint.Hash{1}, Ref: id.String(), Expires: now.Add(time.Hour), Source: "h", At: now, Note: []byte(`{}`)}
	c.fold = stint.Session{ID: id, Family: id, Name: "x", Agent: stint.AgentRef{Name: "a", Runtime: "exec"}, Status: stint.Pending, Created: now, Updated: now, Labels: map[string]string{"team": "a"}}
	entries := func(kind stint.Kind) []stint.Entry {
		c.fold.Head++
		return []stint.Entry{{Version: 1, Session: id, Seq: c.fold.Head, Epoch: c.fold.Epoch, Kind: kind, At: now}}
	}
	appended := func(b stint.Batch) error {
		b.Session = c.fold
		done := make(chan error, 1)
		s.Append(ctx, c.lease, b, func(err error) { done <- err })
		return <-done
	}
	message := func(id string, keys ...stint.Key) stint.Message {
		return stint.Message{ID: id, Kind: stint.Prompt, From: "person", Body: []byte("hello"), Keys: keys}
	}
	sent := stint.Key{Scope: "delivery", Name: fmt.Sprint("m/", c.n), Digest: stint.Hash{1}, Expires: now.Add(time.Hour), Source: "m", At: now}
	only := func(_ any, err error) error { return err }
	return []circleOp{
		{"Create", func() error {
			es := entries(stint.SessionCreated)
			return only(s.Create(ctx, stint.Batch{Session: c.fold, Entries: es, Keys: []stint.Key{key}}, stint.Claim{}))
		}},
		{"Create of what is there", func() error {
			other := c.fold
			other.ID = stint.ID{2, 15: byte(c.n)}
			return only(s.Create(ctx, stint.Batch{Session: other, Entries: []stint.Entry{{Version: 1, Session: other.ID, Seq: 1, Kind: stint.SessionCreated}}, Keys: []stint.Key{key}}, stint.Claim{}))
		}},
		{"Keys of a name", func() error { return only(s.Keys(ctx, stint.Key{Scope: key.Scope, Name: key.Name}, 1)) }},
		{"Keys of a source", func() error { return only(s.Keys(ctx, stint.Key{Scope: key.Scope, Source: key.Source}, 1)) }},
		{"Keys behind a cursor", func() error {
			return only(s.Keys(ctx, stint.Key{Scope: key.Scope, Source: key.Source, At: now, Name: key.Name}, 10))
		}},
		{"Send", func() error { return s.Send(ctx, id, message("m", sent)) }},
		{"Send of what has come", func() error { return s.Send(ctx, id, message("n", sent)) }},
		{"Claim", func() error {
			got, err := s.Claim(ctx, stint.Claim{Holder: "r", Max: 1, TTL: time.Minute, Runtimes: []string{"exec"}, Caps: map[string]int{"a": 1000}})
			if err == nil && len(got) == 0 {
				got, err = s.Claim(ctx, stint.Claim{Holder: "r", Session: id, TTL: time.Minute})
			}
			if err == nil {
				c.lease, c.fold.Epoch = got[0], got[0].Epoch
			}
			return err
		}},
		{"Unread", func() error { return only(s.Unread(ctx, "r")) }},
		{"Inbox", func() error { return only(s.Inbox(ctx, id)) }},
		{"Append", func() error {
			return appended(stint.Batch{Entries: entries(stint.MessageTaken), Taken: []string{"m"}, Meters: []stint.Meter{{Metric: "tokens", Limit: 1000, Reserve: 10}}})
		}},
		{"Renew", func() error { return only(s.Renew(ctx, time.Minute, []stint.Lease{c.lease})) }},
		{"Session", func() error { return only(s.Session(ctx, id)) }},
		{"Entries", func() error { return only(s.Entries(ctx, stint.Range{Session: id, After: 1, Limit: 10})) }},
		{"Entries to the end", func() error { return only(s.Entries(ctx, stint.Range{Session: id, Last: true, Limit: 10})) }},
		{"Entries of a kind", func() error {
			return only(s.Entries(ctx, stint.Range{Session: id, Kinds: []stint.Kind{stint.MessageTaken}}))
		}},
		{"Feed", func() error {
			_, cursors, err := s.Feed(ctx, c.cursor, 2)
			c.cursor = slices.Max(append(cursors, c.cursor))
			return err
		}},
		{"FamilyKey", func() error { return only(s.FamilyKey(ctx, id)) }},
		{"Append that releases", func() error {
			c.fold.Status, c.fold.Ended = stint.Completed, now
			return appended(stint.Batch{Entries: entries(stint.SessionEnded), Release: true})
		}},
	}
}
