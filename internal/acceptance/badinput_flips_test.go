//go:build linux

package acceptance_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"regexp"
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
	said       map[string]result           // by command line: what it printed, and how it ended
}

// askings are command lines that read, without what they say of the session id.
func askings(id string) [][]string {
	all := [][]string{{"ps", "-a", "--json"}, {"ps", "-a", "-o", "name"}, {"sql", "select id, name, agent, status, reason, loops, head from v_sessions order by id", "--json"}}
	if id != "" {
		all = append(all, []string{"show", id, "--json"}, []string{"logs", id, "-o", "jsonl"}, []string{"export", id}, []string{"show", id, "--state"}, []string{"result", id, "--json"})
	}
	return all
}

// timeless is what was printed without what the clock makes of it.
func timeless(out string) string {
	out = regexp.MustCompile(`"(age_ms|now|exported|elapsed_ms|running_ms)":("[^"]*"|[0-9.]+)`).ReplaceAllString(out, `"$1":0`)
	return out
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
	o.said = map[string]result{}
	for _, v := range o.sessions {
		for _, args := range askings(v.ID) {
			o.said[strings.Join(args, " ")] = s.run(args...)
		}
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
// works or says that the store is damaged; none prints a state that is not the
// session's, and none says that there is no session. What a verification calls sound
// comes back as it was, whatever it is asked by, and what is salvaged is some of what
// was there.
func TestFlippedBytes(t *testing.T) {
	t.Parallel()
	o := busyStore(t)
	r := random(t)
	var reached, found, told atomic.Int32
	t.Run("flips", func(t *testing.T) {
		for i := range size(200, 4000) {
			at, with := r.IntN(len(o.file)), byte(1+r.IntN(255))
			if i%4 == 3 {
				at = r.IntN(100) + 4096*r.IntN(len(o.file)/4096) // where a page says what it is
			}
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
				f := flipped{s, o, at, s.reaches(o), s.run("verify", "--all")}
				f.clear(f.verdict)
				if f.verdict.code == 10 {
					found.Add(1)
				}
				if f.reaches != "" {
					reached.Add(1)
				}
				if f.asks(o.sessions[pick].ID) {
					told.Add(1)
				}
				f.others(o.sessions[pick].ID, i)
			})
		}
	})
	t.Logf("of %d flips %d reached a row, the verification found %d, and %d were told of by a command that reads", size(200, 4000), reached.Load(), found.Load(), told.Load())
	if min(reached.Load(), found.Load()) < int32(size(15, 300)) || found.Load() < reached.Load()/2 {
		t.Errorf("only %d of the flips reached a row, and %d were found", reached.Load(), found.Load())
	}
}

// flipped is a store with one byte that is another.
type flipped struct {
	*site
	o       original
	at      int
	reaches string // the tables whose rows are not what they were
	verdict result // of the verification
}

// clear checks that a command that ran on the damaged store worked, or says that the
// store is damaged.
func (f *flipped) clear(r result) {
	f.t.Helper()
	// What a header says of the version, and whose the file is, is all that is known of it.
	header := f.at >= 60 && f.at < 72 && r.code == 5
	if r.code != 0 && r.code != 10 && !header || r.code != 0 && r.out+r.talk == "" {
		f.t.Errorf("it neither works nor says that the store is damaged: %s", r)
	}
	if strings.Contains(r.talk, "goroutine ") || strings.Contains(r.talk, "panic") || driving(r.out+r.talk) != "" {
		f.t.Errorf("it panics, or prints what it must not: %s", r)
	}
	if r.code == 10 && f.verdict.code != 10 && !slices.Equal(r.args, f.verdict.args) {
		f.t.Errorf("the verification finds nothing, and there is damage: %s", r)
	}
}

// asks checks the commands that read: each prints what it printed before, or else the
// damage is told of, by itself or by the verification. It reports whether one did.
func (f *flipped) asks(id string) (told bool) {
	f.t.Helper()
	for _, args := range askings(id) {
		r, was := f.run(args...), f.o.said[strings.Join(args, " ")]
		same := r.code == was.code && timeless(r.out) == timeless(was.out)
		told = told || r.code == 10
		if same {
			continue
		}
		if r.code == was.code {
			r.code = 0
		}
		f.missing(r)
		if f.verdict.code == 0 {
			f.t.Errorf("the flip reaches%s, the verification finds nothing, and this is not what was there: %s\nbut\n%s", f.reaches, r, clip(was.out))
		}
		if args[0] == "ps" && r.code == 0 && strings.Count(r.out, "\n") <= 1 && !strings.Contains(r.out, f.o.sessions[0].Name) {
			f.t.Errorf("there is no session any more: %s", r)
		}
		if slices.Contains(args, "--state") && r.code == 0 {
			f.t.Errorf("a wrong state is printed: %s", r)
		}
	}
	return told
}

// missing is clear for a command that names a session: it may not be found any more,
// where the verification tells why.
func (f *flipped) missing(r result) {
	f.t.Helper()
	if (r.code == 3 || r.code == 2 && r.args[1] == "sql") && f.verdict.code == 10 {
		return
	}
	f.clear(r)
}

// others runs one more command in turn.
func (f *flipped) others(id string, i int) {
	f.t.Helper()
	r := f.run([][]string{{"db", "backup", "copy.db"}, {"stop", id}, {"db", "size"}, {"restart", id, "--from", "0", "--dry-run"}, {"logs", id}, {"show", id}}[i%6]...)
	if r.code == 5 { // it has ended, or what it waits for stands against it
		r.code = 0
	}
	f.missing(r)
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
			s.t.Errorf("what was kept of %s is not sound: %s: %s", v.Name, p.Check, p.What)
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
