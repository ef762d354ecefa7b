//go:build linux

package acceptance_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// original is a store before anything was done to it, and all that commands say of
// it.
type original struct {
	file, keys []byte
	rows       map[string]string // by table: a sum of all its rows
	sessions   []session
	state      map[string]string           // by session
	export     map[string]string           // without its first line
	hash       map[string]map[int64]string // of each entry
}

// busyStore makes a store with sessions of all kinds.
func busyStore(t *testing.T) original {
	t.Helper()
	s := newSite(t, nil, workAgent, "bulk loops=3 size=20000", "chat", "few=bulk loops=2 size=3000 class=once")
	s.must("run", "-q", "-l", "team=billing", "--", "sh", "-c", "echo hello; echo world >&2")
	for range 2 {
		s.went("run", "work", "-q", "-p", "topic;")
		s.finish(s.list()[0].ID)
	}
	s.must("run", "bulk", "-q")
	s.must("run", "few", "-q", "--name", "few-1")
	s.must("restart", "few-1", "--from", "1", "--run", "--json")
	s.went("run", "chat", "-q", "-p", "one;")
	s.went("send", "@last", "two;")
	s.went("run", "work", "-q", "--loops", "1")
	s.must("stop", "@last", "--reason", "enough of it")
	s.must("start", "work", "--dedupe", "key", "-p", strings.Repeat("a long prompt ", 400))
	s.must("start", "chat", "--name", "later")
	s.went("run", "-q", "--", "sh", "-c", "exit 7")
	s.must("verify", "--all", "--states")
	return s.original()
}

func (s *site) original() original {
	s.t.Helper()
	o := original{state: map[string]string{}, export: map[string]string{}, hash: map[string]map[int64]string{}}
	var err error
	if o.file, err = os.ReadFile(s.store()); err != nil {
		s.t.Fatal(err)
	}
	if o.keys, err = os.ReadFile(s.store() + ".keys"); err != nil {
		s.t.Fatal(err)
	}
	if o.rows, err = rowsOf(s.store()); err != nil {
		s.t.Fatal(err)
	}
	o.sessions = s.list()
	for _, v := range o.sessions {
		if r := s.run("show", v.ID, "--state"); r.code == 0 {
			o.state[v.ID] = r.out
		}
		o.export[v.ID] = body(s.must("export", v.ID))
		o.hash[v.ID] = map[int64]string{}
		for _, e := range s.entries(v.ID) {
			o.hash[v.ID][e.Seq] = e.Hash
		}
	}
	return o
}

// rowsOf sums up the rows of each table as they can be read in order of their keys:
// two files with the same sums hold the same.
func rowsOf(path string) (map[string]string, error) {
	c, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	sums := map[string]string{}
	for _, table := range []string{"journal", "blobs", "names", "families", "sessions", "heads"} {
		h := sha256.New()
		err := sqlitex.ExecuteTransient(c, "SELECT * FROM "+table+" NOT INDEXED", &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
			for i := range st.ColumnCount() {
				fmt.Fprintf(h, "%d %q ", st.ColumnType(i), st.ColumnText(i))
			}
			return nil
		}})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", table, err)
		}
		sums[table] = string(h.Sum(nil))
	}
	return sums, nil
}

// TestFlippedBytes damages a store by one byte, at many places. Every command then
// works or says that it cannot, and none prints a state that is not the session's.
// What a verification calls sound comes back as it was, and what is salvaged is
// some of what was there.
func TestFlippedBytes(t *testing.T) {
	t.Parallel()
	o := busyStore(t)
	r := random(t)
	var reached, found atomic.Int32
	t.Run("flips", func(t *testing.T) {
		for i := range size(200, 4000) {
			at, with := r.IntN(len(o.file)), byte(1+r.IntN(255))
			pick := r.IntN(len(o.sessions))
			t.Run(fmt.Sprintf("%03d at %d by %#02x", i, at, with), func(t *testing.T) {
				t.Parallel()
				damaged := slices.Clone(o.file)
				damaged[at] ^= with
				s := inMemory(t)
				put(t, s.store(), damaged)
				put(t, s.store()+".keys", o.keys)
				if i%4 == 0 {
					s.salvages(o)
				}
				reaches := s.reaches(o)
				v := s.run("verify", "--all")
				s.clear(v)
				if v.code != 0 {
					found.Add(1)
				}
				if reaches != "" {
					reached.Add(1)
					if v.code == 0 {
						s.sameExports(o, reaches)
					}
				}
				s.reads(o, o.sessions[pick].ID, i)
			})
		}
	})
	t.Logf("of %d flips %d reached a row and %d were found", size(200, 4000), reached.Load(), found.Load())
	if min(reached.Load(), found.Load()) < int32(size(15, 300)) {
		t.Errorf("only %d of the flips reached a row, and %d were found", reached.Load(), found.Load())
	}
}

// reaches names the tables whose rows a flip has changed.
func (s *site) reaches(o original) (tables string) {
	rows, err := rowsOf(s.store())
	if err != nil {
		return err.Error()
	}
	for table, sum := range o.rows {
		if rows[table] != sum {
			tables += " " + table
		}
	}
	return tables
}

// inMemory is a site for a store that need not survive anything.
func inMemory(t *testing.T) *site {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "stint-acceptance-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := siteAt(t, dir, nil)
	return s.on(s.path("s.db"))
}

// sameExports checks that every session that is listed comes back as it was.
func (s *site) sameExports(o original, reached string) {
	s.t.Helper()
	for _, v := range s.list() {
		if r := s.run("export", v.ID); r.code != 0 || body(r.out) != o.export[v.ID] {
			s.t.Errorf("the flip reaches%s, the verification finds nothing, and this is not what was there: %s", reached, r)
		}
	}
}

// clear checks that a command that ran on a damaged store worked, or says why not.
// The damage may look like another program's database, like a session that is not
// there, or like an agent that cannot be read.
func (s *site) clear(r result) {
	s.t.Helper()
	if !slices.Contains([]int{0, 1, 2, 3, 5, 10, 11}, r.code) || r.code != 0 && r.out+r.talk == "" {
		s.t.Errorf("it neither works nor says why not: %s", r)
	}
	if strings.Contains(r.talk, "goroutine ") || strings.Contains(r.talk, "panic") || driving(r.out+r.talk) != "" {
		s.t.Errorf("it panics, or prints what it must not: %s", r)
	}
}

// reads looks at a damaged store with the commands that read, one of them in turn.
func (s *site) reads(o original, id string, i int) {
	s.t.Helper()
	s.clear(s.run("ps", "-a", "--json"))
	state := s.run("show", id, "--state")
	if want, ok := o.state[id]; ok || state.code == 0 {
		s.clear(state)
		if state.code == 0 && state.out != want {
			s.t.Errorf("a wrong state is printed: %s", state)
		}
	}
	s.clear(s.run([][]string{{"logs", id, "-o", "jsonl"}, {"export", id}, {"show", id}, {"sql", "select * from v_entries", "--json"}, {"db", "backup", "copy.db"}, {"stop", id}, {"db", "size"}, {"restart", id, "--from", "0", "--dry-run"}}[i%8]...))
}

// salvages checks that what can be salvaged of a damaged store is a part of the
// original, and sound.
func (s *site) salvages(o original) {
	s.t.Helper()
	r := s.run("db", "salvage", "s.db", "new.db", "--json")
	if r.code != 0 {
		s.t.Errorf("%s", r)
		return
	}
	n := s.on(s.path("new.db"))
	for _, v := range decode[struct {
		Items []struct {
			Name     string
			Problems []struct{ Check, What string }
		}
	}](s.t, n.run("verify", "--all", "--json").out).Items {
		for _, p := range v.Problems {
			if p.Check != "body" {
				s.t.Errorf("what was kept of %s is not sound: %s: %s", v.Name, p.Check, p.What)
			}
		}
	}
	report := decode[struct {
		Sessions []struct {
			Session string
			Kept    int64
		}
	}](s.t, r.out)
	kept := map[string]int64{}
	for _, v := range report.Sessions {
		kept[v.Session] = v.Kept
	}
	entries := decode[struct {
		Items []struct {
			Session string
			Seq     int64
			Hash    string
		}
	}](s.t, n.must("sql", "select session, seq, hash from v_entries", "--json")).Items
	for _, e := range entries {
		if o.hash[e.Session][e.Seq] != e.Hash || e.Seq > kept[e.Session] {
			s.t.Errorf("entry %d of session %s was invented", e.Seq, e.Session)
		}
	}
}
