package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	zsqlite "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/store/sqlite"
	"github.com/stint-dev/stint/store/storetest"
)

// raw runs SQL on the file at path behind the store's back.
func raw(t *testing.T, path string, queries ...string) {
	t.Helper()
	c, err := zsqlite.OpenConn(path, zsqlite.OpenReadWrite|zsqlite.OpenCreate)
	ok(t, err)
	defer c.Close()
	for _, q := range queries {
		ok(t, sqlitex.ExecuteTransient(c, q, nil))
	}
}

func TestOpenPermissions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	path := filepath.Join(dir, "stint.db")
	s := open(t, path)
	hold(t, s, "me")
	begin(t, s, "me")
	_, err := s.FamilyKey(t.Context(), newID())
	ok(t, err)
	if runtime.GOOS == "windows" {
		return // it has no such permissions
	}
	for name, want := range map[string]os.FileMode{
		dir: 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600, path + ".keys": 0o600, path + ".d": 0o700,
		path + ".d/runners": 0o700, path + ".d/runners/me.lock": 0o600,
	} {
		info, err := os.Stat(name)
		ok(t, err)
		equal(t, name, info.Mode().Perm(), want)
	}
}

func TestOpenRefuses(t *testing.T) {
	newer := func(t *testing.T, path string) {
		ok(t, open(t, path).Close())
		raw(t, path, "PRAGMA user_version = 99")
	}
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, path string)
		code    stint.Code
		words   []string
	}{
		{"a newer schema", newer, stint.Conflict, []string{"99", "up to 6", "newer"}},
		{"another program's database", func(t *testing.T, path string) {
			raw(t, path, "CREATE TABLE t(x)", "PRAGMA user_version = 1")
		}, stint.Conflict, []string{"another program"}},
		{"another program's application id", func(t *testing.T, path string) {
			raw(t, path, "PRAGMA application_id = 77", "CREATE TABLE t(x)")
		}, stint.Conflict, []string{"another program"}},
		{"what is no database", func(t *testing.T, path string) {
			ok(t, os.WriteFile(path, bytes.Repeat([]byte("not a database. "), 1000), 0o600))
		}, stint.Corrupt, []string{"stint db salvage"}},
		{"a file with a destroyed beginning", func(t *testing.T, path string) {
			ok(t, open(t, path).Close())
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			ok(t, err)
			_, err = f.WriteAt(make([]byte, 512), 0)
			ok(t, err)
			ok(t, f.Close())
		}, stint.Corrupt, []string{"stint db salvage"}},
		{"a truncated file", func(t *testing.T, path string) {
			s := open(t, path)
			hold(t, s, "me")
			begin(t, s, "me")
			ok(t, s.Close())
			ok(t, os.Truncate(path, 5*4096))
		}, stint.Corrupt, []string{"stint db salvage"}},
		{"a folder", func(t *testing.T, path string) { ok(t, os.Mkdir(path, 0o700)) }, stint.Unavailable, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := dbPath(t)
			c.prepare(t, path)
			before, _ := os.ReadFile(path)
			_, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
			refused(t, err, c.code, c.words...)
			after, _ := os.ReadFile(path)
			if !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

// A backup has no WAL until it is opened as a store: in one without, a reader keeps
// writers out.
func TestOpenUsesWAL(t *testing.T) {
	path, copied := dbPath(t), dbPath(t)
	s := open(t, path)
	hold(t, s, "me")
	story(t, s)
	ok(t, s.Backup(t.Context(), copied))
	b := open(t, copied)
	reader, err := zsqlite.OpenConn(copied, zsqlite.OpenReadOnly)
	ok(t, err)
	defer reader.Close()
	st, err := reader.Prepare("SELECT seq FROM journal")
	ok(t, err)
	_, err = st.Step() // and it stays in the middle
	ok(t, err)
	hold(t, b, "you")
	c := begin(t, b, "you")
	ok(t, c.write(b, said("beside a reader")))
}

// A store of the first version is brought up to date with all that is in it.
func TestOpenMigrates(t *testing.T) {
	path, old := dbPath(t), dbPath(t)
	s := open(t, path)
	hold(t, s, "me")
	story(t, s)
	ok(t, s.Backup(t.Context(), old))
	raw(t, old, "DROP VIEW v_ledger", "DROP TABLE ledger", "DELETE FROM names WHERE id = 20", "DELETE FROM meta WHERE name = 'feed.id'",
		"DROP TABLE labels", "DROP INDEX sessions_text", "DROP INDEX sessions_trigger", "DROP INDEX sessions_asking", "UPDATE heads SET wakes = wakes & 2047", "PRAGMA user_version = 1")
	b := open(t, old)
	hold(t, b, "you")
	c := begin(t, b, "you")
	ok(t, c.write(b, said("after it")))
	m := stint.Message{ID: "m", Kind: stint.Prompt, Keys: []stint.Key{{Scope: "delivery", Source: "h", Name: "d", At: time.Unix(1, 0)}}}
	ok(t, b.Send(t.Context(), c.s.ID, m))
	lines, err := b.Keys(t.Context(), stint.Key{Scope: "delivery", Source: "h"}, 0)
	ok(t, err)
	equal(t, "lines", len(lines), 1)
	storetest.Check(t, b)
	_, err = b.Verify(t.Context(), stint.ID{}, func(f sqlite.Flaw) { t.Errorf("flaw: %v", f) })
	ok(t, err)
}

func TestOpenTogether(t *testing.T) {
	path := dbPath(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := s.Create(t.Context(), first(t, "test"), stint.Claim{}); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := open(t, path)
	rows, err := s.Sessions(t.Context(), stint.Filter{})
	ok(t, err)
	equal(t, "sessions", len(rows), 8)
	storetest.Check(t, s)
}

func TestOpenReadOnly(t *testing.T) {
	path := dbPath(t)
	_, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, ReadOnly: true})
	refused(t, err, stint.NotFound, "no store at")
	w := open(t, path)
	hold(t, w, "me")
	c := begin(t, w, "me")
	r, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, ReadOnly: true})
	ok(t, err)
	storetest.Check(t, r)
	row, err := r.Session(t.Context(), c.s.ID)
	ok(t, err)
	equal(t, "live", row.Live, true)
	refused(t, r.Send(t.Context(), c.s.ID, stint.Message{ID: "1", Kind: stint.Prompt}), stint.Invalid, "reading only")
	refused(t, put(t.Context(), r, c.lease, stint.Batch{Session: c.s}), stint.Invalid, "reading only")
	ok(t, r.Close())
}

func TestClosed(t *testing.T) {
	s := open(t, dbPath(t))
	hold(t, s, "me")
	c := begin(t, s, "me")
	ok(t, s.Close())
	ok(t, s.Close())
	_, err := s.Session(t.Context(), c.s.ID)
	refused(t, err, stint.Unavailable, "closed")
	refused(t, c.write(s, said("late")), stint.Unavailable, "closed")
	_, err = s.Hold(t.Context(), "me")
	refused(t, err, stint.Unavailable, "closed")
	refused(t, s.Select(t.Context(), "SELECT 1", nil), stint.Unavailable, "closed")
	select {
	case _, open := <-s.Changed(t.Context()):
		equal(t, "open", open, false)
	case <-time.After(time.Minute):
		t.Error("a watcher of a closed store waits")
	}
}

// A commit that another process keeps from happening is given up in the end.
func TestPatience(t *testing.T) {
	path := dbPath(t)
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Patience: 50 * time.Millisecond})
	ok(t, err)
	defer s.Close()
	hold(t, s, "me")
	c := begin(t, s, "me")
	other, err := zsqlite.OpenConn(path, zsqlite.OpenReadWrite)
	ok(t, err)
	defer other.Close()
	ok(t, sqlitex.ExecuteTransient(other, "BEGIN IMMEDIATE", nil))
	refused(t, c.write(s, said("x")), stint.Unavailable, "another process")
	ok(t, sqlitex.ExecuteTransient(other, "ROLLBACK", nil))
	ok(t, c.write(s, said("y")))
	storetest.Check(t, s)
}
