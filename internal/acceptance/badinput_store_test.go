//go:build linux

package acceptance_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/stint-dev/stint"
	stintdb "github.com/stint-dev/stint/store/sqlite"
)

// statement changes or makes a database behind the back of stint.
func statement(t *testing.T, path string, queries ...string) {
	t.Helper()
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range queries {
		if err := sqlitex.ExecuteTransient(c, q, nil); err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// sumOf tells whether a file has changed.
func sumOf(t *testing.T, path string) [32]byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return [32]byte{}
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return [32]byte(h.Sum(nil))
}

// readsAndWrites are commands that open a store, one of each kind.
func readsAndWrites() [][]string {
	return [][]string{{"ps", "-a"}, {"show", "@last"}, {"logs", "@last"}, {"verify", "--all"}, {"export", "@last"}, {"sql", "select 1"}, {"db", "size"}, {"db", "backup", "copy.db"},
		{"run", "-q", "--", "true"}, {"send", "@last", "x"}, {"stop", "@last"}, {"restart", "@last", "--from", "0"}}
}

// What is not a store of this program is refused by every command, keeps every byte,
// and gets nothing beside it.
func TestNotAStore(t *testing.T) {
	t.Parallel()
	good := newSite(t, nil)
	good.must("run", "-q", "--", "true")
	store, err := os.ReadFile(good.store())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		code  int
		cause string
		make  func(t *testing.T, path string)
	}{
		"another program's":      {5, "of another program", func(t *testing.T, path string) { statement(t, path, "CREATE TABLE t(x)", "INSERT INTO t VALUES (1)") }},
		"another's, in WAL mode": {5, "of another program", func(t *testing.T, path string) { statement(t, path, "PRAGMA journal_mode = WAL", "CREATE TABLE t(x)") }},
		"another's version":      {5, "of another program", func(t *testing.T, path string) { statement(t, path, "PRAGMA user_version = 1") }},
		"another's id":           {5, "of another program", func(t *testing.T, path string) { statement(t, path, "PRAGMA application_id = 7") }},
		"a newer one": {5, "schema version 999", func(t *testing.T, path string) {
			put(t, path, store)
			statement(t, path, "PRAGMA journal_mode = DELETE", "PRAGMA user_version = 999")
		}},
		"a text":       {10, "not a database", func(t *testing.T, path string) { put(t, path, bytes.Repeat([]byte("Dear diary, "), 1000)) }},
		"one byte":     {10, "not a database", func(t *testing.T, path string) { put(t, path, []byte("x")) }},
		"two bytes":    {10, "not a database", func(t *testing.T, path string) { put(t, path, []byte("x\n")) }},
		"zeros":        {10, "not a database", func(t *testing.T, path string) { put(t, path, make([]byte, 8192)) }},
		"half a store": {10, "malformed", func(t *testing.T, path string) { put(t, path, store[:len(store)/2/4096*4096]) }},
		"half a page":  {10, "not a database", func(t *testing.T, path string) { put(t, path, store[:300]) }},
		"a folder": {11, "is a folder, and a store is a file", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}},
		"a pipe": {11, "is no regular file", func(t *testing.T, path string) {
			if err := os.Symlink("/dev/null", path); err != nil { // a FIFO would be waited for
				t.Fatal(err)
			}
		}},
		"nowhere": {11, "", func(t *testing.T, path string) {
			if err := os.Symlink(filepath.Join(path, "x"), path); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil).with("STINT_STORE=sqlite:odd.db")
			c.make(t, s.path("odd.db"))
			beside := strings.Join(names(t, s.dir), " ")
			var before [32]byte
			if name != "nowhere" {
				before = sumOf(t, s.path("odd.db"))
			}
			for _, args := range readsAndWrites() {
				s.run(args...).said(t, c.code, c.cause)
			}
			s.run("ps", "--json").said(t, c.code, c.cause)
			if name != "nowhere" && sumOf(t, s.path("odd.db")) != before {
				t.Error("it was changed")
			}
			if now := strings.Join(names(t, s.dir), " "); now != beside {
				t.Errorf("there were %s, and now there are %s", beside, now)
			}
		})
	}
}

// names lists a folder.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		all = append(all, f.Name())
	}
	return all
}

func put(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// An empty file is a store to be: that of a process that died when it had made it.
func TestEmptyFile(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil).with("STINT_STORE=sqlite:empty.db")
	put(t, s.path("empty.db"), nil)
	s.must("ps", "-a")
	s.must("run", "-q", "--", "true")
	s.must("verify", "--all")
}

// Files beside the store that are not what they should be are named.
func TestOddNeighbours(t *testing.T) {
	t.Parallel()
	s := scripted(t, map[string]string{"a": " | " + over})
	s.file("prompt", strings.Repeat("x", 5000)) // long enough to need a key
	s.must("run", "-q", "a", "-f", "prompt")
	keys, err := os.ReadFile(s.store() + ".keys")
	if err != nil {
		t.Fatal(err)
	}
	before := s.must("export", "@last")
	for _, c := range []struct {
		code  int
		cause string
		keys  []byte
	}{
		{10, "is not a keys file", []byte("garbage")},
		{10, "is not a keys file", nil},
		{10, "is not a keys file", bytes.Repeat([]byte{0}, len(keys))},
		{5, "belongs to another store", append(bytes.Clone(keys[:16]), bytes.Repeat([]byte("z"), len(keys)-16)...)},
	} {
		put(t, s.store()+".keys", c.keys)
		s.refuses(c.code, c.cause, "run", "a", "-f", "prompt")
	}
	if err := os.Remove(s.store() + ".keys"); err != nil {
		t.Fatal(err)
	}
	s.must("run", "-q", "a", "-f", "prompt") // with a new key
	if after := s.must("export", s.list()[1].ID); body(after) != body(before) {
		t.Error("the first session came back as another")
	}

	put(t, s.store()+"-wal", bytes.Repeat([]byte("no WAL"), 10_000))
	s.must("verify", "@last")
	if len(s.list()) != 2 {
		t.Errorf("with garbage for a WAL there are %d sessions", len(s.list()))
	}
	if err := os.RemoveAll(s.store() + ".d"); err != nil {
		t.Fatal(err)
	}
	put(t, s.store()+".d", []byte("a file"))
	s.run("run", "-q", "a").said(t, 11, "")
	s.run("run", "-q", "a", "--json").said(t, 11, "")
}

// body is the lines of an export behind the first, which has its time.
func body(export string) string {
	_, rest, _ := strings.Cut(export, "\n")
	return rest
}

// asNobody makes commands of the site run as a user who owns nothing; for an
// ordinary user that is not needed, as files may be closed to their owner too.
func (s *site) asNobody(args ...string) result {
	s.t.Helper()
	if os.Geteuid() != 0 {
		return s.run(args...)
	}
	copied := s.path("stint-for-all")
	if !exists(copied) {
		b, err := os.ReadFile(bin.stint)
		if err == nil {
			err = os.WriteFile(copied, b, 0o755)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	cmd := s.command("setpriv", append([]string{"--reuid=65534", "--regid=65534", "--clear-groups", copied}, args...)...)
	r := s.start(cmd).wait(patience)
	r.args = args
	return r
}

func TestNoPermission(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil).with("LC_ALL=C")
	s.must("run", "-q", "--", "true")
	s.file("closed", "x")
	mode := func(path string, m os.FileMode) {
		t.Helper()
		if err := os.Chmod(path, m); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(s.dir, 0o700); _ = os.Chmod(filepath.Dir(s.store()), 0o700) })
	before := sumOf(t, s.store())
	all := func(what string) {
		t.Helper()
		for _, args := range readsAndWrites() {
			if r := s.asNobody(args...); r.code != 11 {
				t.Errorf("%s: want exit status 11: %s", what, r)
			} else {
				r.said(t, 11, "")
			}
		}
	}
	mode(s.dir, 0o755)
	mode(filepath.Dir(s.store()), 0o755)
	mode(s.store()+".d", 0o755)
	mode(s.store(), 0)
	all("a store without permission")
	mode(s.store(), 0o444)
	mode(filepath.Dir(s.store()), 0o555)
	all("a store that may only be read, in a folder that may only be read")
	mode(filepath.Dir(s.store()), 0)
	all("a folder without permission")
	mode(filepath.Dir(s.store()), 0o700)
	mode(s.store(), 0o600)
	if sumOf(t, s.store()) != before {
		t.Error("the store was changed")
	}

	s = s.with("STINT_STORE=sqlite:" + filepath.Join(t.TempDir(), "s.db"))
	mode(s.path("closed"), 0)
	mode(s.dir, 0o555)
	s.asNobody("start", "a", "--config", "closed").said(t, 2, "permission denied")
	s.asNobody("agent", "validate", "closed").said(t, 2, "permission denied")
	s.asNobody("ps", "--store", "sqlite:none/s.db").said(t, 11, "there is no store")
	s.asNobody("run", "-q", "--store", "sqlite:none/s.db", "--", "true").said(t, 11, "permission denied")
	if r := s.asNobody("init", "new"); r.code != 11 || !strings.Contains(r.talk, "permission denied") {
		t.Errorf("%s", r)
	}
}

// A disk without room for a store leaves nothing that is half a store, and once
// there is room the same command works.
func TestNoRoomForAStore(t *testing.T) {
	if !asRoot(t) {
		return
	}
	t.Parallel()
	for _, kib := range []int{4, 16, 64, 100, 128, 160} {
		t.Run(fmt.Sprintf("%d KiB", kib), func(t *testing.T) {
			dir := t.TempDir()
			tool(t, "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dk", kib), "tmpfs", dir)
			t.Cleanup(func() {
				if !soon(patience, func() bool { return exec.Command("umount", dir).Run() == nil }) {
					t.Errorf("%s cannot be unmounted", dir)
				}
			})
			s := newSite(t, nil).with("STINT_STORE=sqlite:" + filepath.Join(dir, "sub", "s.db"))
			r := s.run("run", "--", "true")
			if r.code != 0 {
				r.said(t, 11, "")
			}
			for _, args := range [][]string{{"ps", "-a"}, {"verify", "--all"}} {
				if r := s.run(args...); r.code != 0 {
					r.said(t, 11, "")
				}
			}
			tool(t, "mount", "-o", "remount,size=8m", dir)
			s.must("run", "-q", "--", "true")
			s.must("verify", "--all")
		})
	}
}

// Two runners of one name: the second, in another process, is told of the first.
func TestTwoRunnersOfOneName(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.must("run", "-q", "--", "true")
	dir := filepath.Join(s.store()+".d", "runners")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	first := s.start(s.command("flock", "-o", filepath.Join(dir, "twin.lock"), "sh", "-c", "echo locked; exec sleep 60"))
	eventually(t, "the first has its lock", patience, func() bool { return strings.Contains(first.out.String(), "locked") })
	st, err := stintdb.Open(t.Context(), stintdb.Options{Path: s.store()})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	hint := func(err error) string {
		if e, ok := err.(*stint.Error); ok {
			return e.Hint
		}
		return ""
	}
	if _, err := st.Hold(t.Context(), "twin"); stint.CodeOf(err) != stint.Conflict || hint(err) == "" {
		t.Errorf("while the first lives: %v", err)
	}
	first.kill()
	first.wait(patience)
	release := func() error { return nil }
	eventually(t, "the name is free", patience, func() bool {
		r, err := st.Hold(t.Context(), "twin")
		if err == nil {
			release = r
		}
		return err == nil
	})
	if _, err := st.Hold(t.Context(), "twin"); stint.CodeOf(err) != stint.Conflict || hint(err) == "" {
		t.Errorf("in the same process: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

// A runner whose lock file is gone is taken for dead by others. Whoever takes over
// finds the once step that is under way, and does not do it again; the first one is
// fenced and records nothing more.
func TestVanishedLock(t *testing.T) {
	t.Parallel()
	vanish := func(t *testing.T, s *site) *proc {
		t.Helper()
		first := s.start(s.command(bin.stint, "run", "hold", "--json"))
		eventually(t, "the effect is under way", patience, func() bool { return exists(s.path("held")) })
		locks, err := filepath.Glob(filepath.Join(s.store()+".d", "runners", "*.lock"))
		if err != nil || len(locks) != 1 {
			t.Fatalf("%v: the locks are %q", err, locks)
		}
		if err := os.Remove(locks[0]); err != nil {
			t.Fatal(err)
		}
		return first
	}
	t.Run("nobody sees it", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, nil, "hold")
		first := vanish(t, s)
		if v := s.list()[0]; v.Status != "pending" || v.Reason != "interrupted" {
			t.Errorf("without its lock it is %s: %s", v.Status, v.Reason)
		}
		s.file("release", "")
		if r := first.wait(patience); r.code != 0 {
			t.Errorf("%s", r)
		}
		s.sound(newAcks())
		s.honest(s.list()[0].ID)
	})
	t.Run("another takes over", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, nil, "hold")
		first := vanish(t, s)
		id := s.list()[0].ID
		if r := s.run("resume", id, "--run"); r.code != 6 {
			t.Errorf("%s", r)
		}
		if v := s.show(id); v.Status != "waiting" || v.Waiting.For != "doubt" {
			t.Errorf("it is %s: %+v", v.Status, v.Waiting)
		}
		s.file("release", "")
		r := first.wait(patience)
		if r.code != 5 {
			t.Errorf("want exit status 5, fenced: %s", r)
		}
		s.quiet()
		s.sound(newAcks())
		if n := len(s.ledger()); n != 1 {
			t.Errorf("the effect took place %d times", n)
		}
		if v := s.finish(id); v.Status != "completed" {
			t.Errorf("it ends as %s", v.Status)
		}
		s.honest(id)
	})
}

// A store on a file system in user space may lie on another machine, and is refused.
func TestNetworkFileSystem(t *testing.T) {
	if !asRoot(t) {
		return
	}
	t.Parallel()
	dir := fuse(t)
	for _, path := range []string{"s.db", "sub/s.db"} {
		s := newSite(t, nil).with("STINT_STORE=sqlite:" + filepath.Join(dir, path))
		if path == "s.db" {
			s.run("run", "--", "true").said(t, 2, "network file system (fuse")
			s.run("run", "--json", "--", "true").said(t, 2, "network file system (fuse")
		}
		s.run("ps").said(t, 11, "there is no store")
	}
}
