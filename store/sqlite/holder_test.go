package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/stint-dev/stint"
)

func lockFile(path, holder string) string {
	return filepath.Join(path+".d", "runners", holder+".lock")
}

// A lock file that somebody removed is made again, as long as nobody else has it.
func TestHolderRemoved(t *testing.T) {
	path := dbPath(t)
	a, b := open(t, path), open(t, path)
	hold(t, a, "a")
	c := begin(t, a, "a")
	live := func() bool {
		row, err := b.Session(t.Context(), c.s.ID)
		ok(t, err)
		return row.Live
	}
	ok(t, os.Remove(lockFile(path, "a")))
	equal(t, "live, without its file", live(), false)
	lost, err := a.Renew(t.Context(), time.Minute, []stint.Lease{c.lease})
	ok(t, err)
	equal(t, "lost", len(lost), 0)
	equal(t, "live, after a renewal", live(), true)

	ok(t, os.Remove(lockFile(path, "a")))
	ok(t, os.WriteFile(lockFile(path, "a"), nil, 0o600))
	equal(t, "live, with its file replaced", live(), false)
	lost, err = a.Renew(t.Context(), time.Minute, []stint.Lease{c.lease})
	ok(t, err)
	equal(t, "lost", len(lost), 0)
	equal(t, "live, after a renewal", live(), true)
}

func TestHolderReplaced(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	hold(t, s, "a")
	c, d := begin(t, s, "a"), begin(t, s, "a")
	ok(t, os.Remove(lockFile(path, "a")))
	other := flock.New(lockFile(path, "a"))
	got, err := other.TryLock()
	ok(t, err)
	equal(t, "locked", got, true)
	defer other.Unlock()
	lost, err := s.Renew(t.Context(), time.Minute, []stint.Lease{c.lease, d.lease})
	ok(t, err)
	equal(t, "lost", len(lost), 2)
}

func TestHolderNames(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	for _, name := range []string{"../../evil", "a b/c:d", ".", "ü", "con\x00"} {
		release, err := s.Hold(t.Context(), name)
		ok(t, err)
		c := begin(t, s, name)
		row, err := s.Session(t.Context(), c.s.ID)
		ok(t, err)
		equal(t, "holder", row.Lease.Holder, name)
		equal(t, "live", row.Live, true)
		ok(t, release())
		ok(t, release())
	}
	left, err := os.ReadDir(filepath.Join(path+".d", "runners"))
	ok(t, err)
	equal(t, "files left", len(left), 0)
	_, err = s.Hold(t.Context(), "")
	refused(t, err, stint.Invalid)
}

// The files of those who died long ago are removed by the next one.
func TestHolderSweep(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	hold(t, s, "a")
	for _, f := range []string{"old", "young"} {
		ok(t, os.WriteFile(lockFile(path, f), nil, 0o600))
	}
	long := time.Now().Add(-48 * time.Hour)
	ok(t, os.Chtimes(lockFile(path, "old"), long, long))
	ok(t, os.Chtimes(lockFile(path, "a"), long, long))
	hold(t, s, "b")
	for f, want := range map[string]bool{"old": false, "young": true, "a": true, "b": true} {
		_, err := os.Stat(lockFile(path, f))
		equal(t, f+" is there", err == nil, want)
	}
}
