package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// tree lists the files below dir with their sizes.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			fmt.Fprintln(&b, path, info.Mode(), map[bool]int64{true: 0, false: info.Size()}[e.IsDir()])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// closedStore is a store that nobody has open, with two sessions and a long body.
func closedStore(t *testing.T) (path string) {
	t.Helper()
	d := newDesk(t)
	d.run("done-1", works)
	long := engine.Request{Agent: engine.Agent{Name: "late", Loop: stint.AgentFunc(works)}, Name: "late-1", Input: noise(3000)}
	if _, err := d.e.RunNew(t.Context(), long, func(engine.Created) {}); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "stint.db")
	if err := d.store.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	return path
}

// noise is text that cannot be compressed much, and is kept as it is.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// at calls the program in dir, with the store there.
func at(t *testing.T, dir string, args ...string) (code int, out, talk string) {
	t.Helper()
	var o, e buffer
	a := &app{in: strings.NewReader(""), out: &o, err: &e, getenv: func(string) string { return "" }, getwd: func() (string, error) { return dir, nil }}
	code = a.run(t.Context(), args)
	return code, o.String(), e.String()
}

// TestRefusedLeavesNothing gives commands files that are no stores and no backups.
// Each says why, and what to do; and the files are as before, with nothing beside them.
func TestRefusedLeavesNothing(t *testing.T) {
	store, err := os.ReadFile(closedStore(t))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		"text": bytes.Repeat([]byte("Dear diary, "), 1000), "zeros": make([]byte, 8192), "half": store[:len(store)/2/4096*4096],
		"newer": bytes.Clone(store), "unversioned": bytes.Clone(store), "foreign": bytes.Clone(store), "schema": bytes.ReplaceAll(store, []byte(" actor "), []byte(" actxr ")),
	}
	files["newer"][63], files["unversioned"][63], files["foreign"][68] = 99, 0, 7
	for _, n := range []int{1, 2, 15, 16, 20, 99, 100, 101, 511} {
		files[fmt.Sprintf("%d bytes of text", n)] = bytes.Repeat([]byte("x"), n)
		files[fmt.Sprintf("%d bytes of a store", n)] = store[:n]
	}
	codes := map[string]int{"newer": exitRefused, "foreign": exitRefused}
	for name, b := range files {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			odd := filepath.Join(dir, "odd")
			if err := os.WriteFile(odd, b, 0o600); err != nil {
				t.Fatal(err)
			}
			want := exitCorrupt
			if c, ok := codes[name]; ok {
				want = c
			}
			before := tree(t, dir)
			for _, args := range [][]string{
				{"ps", "--store", "sqlite:" + odd}, {"ps", "-a", "--json", "--store", "sqlite:" + odd}, {"verify", "--all", "--store", "sqlite:" + odd},
				{"run", "-q", "--store", "sqlite:" + odd, "--", "true"}, {"db", "restore", odd, "--store", "sqlite:" + filepath.Join(dir, "sub", "new.db")},
			} {
				code, out, talk := at(t, dir, args...)
				if code != want || out != "" || !strings.Contains(talk, "\n  ") && !strings.Contains(talk, `"hint":"`) {
					t.Errorf("stint %q: exit status %d, want %d\n%s%s", args, code, want, out, talk)
				}
				if after := tree(t, dir); after != before {
					t.Fatalf("stint %q: there were\n%snow there are\n%s", args, before, after)
				}
			}
			if got, err := os.ReadFile(odd); err != nil || !bytes.Equal(got, b) {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
}

// TestFailedLeavesNothing has commands that make files fail.
func TestFailedLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		code  int
		words string
		args  []string
	}{
		"salvage of a text":      {exitInvalid, "nothing of a store in ", []string{"db", "salvage", "text", "new.db"}},
		"salvage of zeros":       {exitInvalid, "nothing of a store in ", []string{"db", "salvage", "zeros", "new.db"}},
		"salvage of nothing":     {exitInvalid, "nothing of a store in ", []string{"db", "salvage", "empty", "new.db"}},
		"salvage of a folder":    {exitInvalid, "is a folder", []string{"db", "salvage", "folder", "new.db"}},
		"salvage of no file":     {exitUnavailable, "no such file", []string{"db", "salvage", "none", "new.db"}},
		"salvage to a folder":    {exitRefused, "is there already", []string{"db", "salvage", "text", "folder"}},
		"salvage to nowhere":     {exitUnavailable, "no such file", []string{"db", "salvage", "text", "none/new.db"}},
		"restore of no file":     {exitNotFound, "no such file", []string{"db", "restore", "none", "--store", "sqlite:sub/new.db"}},
		"restore of a folder":    {exitInvalid, "is a folder", []string{"db", "restore", "folder", "--store", "sqlite:sub/new.db"}},
		"restore of an empty":    {exitCorrupt, "is empty", []string{"db", "restore", "empty", "--store", "sqlite:sub/new.db"}},
		"restore of a text":      {exitCorrupt, "not a database", []string{"db", "restore", "text", "--store", "sqlite:sub/sub/new.db"}},
		"restore below a file":   {exitUnavailable, "not a directory", []string{"db", "restore", "text", "--store", "sqlite:empty/new.db"}},
		"init where one is":      {exitRefused, "is there already", []string{"init", "folder"}},
		"init below a file":      {exitUnavailable, "not a directory", []string{"init", "empty"}},
		"init with a folder":     {exitRefused, "is there already", []string{"init", "odd"}},
		"a folder for the store": {exitUnavailable, "is a folder, and a store is a file", []string{"ps", "--store", "sqlite:folder"}},
		"a device for the store": {exitUnavailable, "is no regular file", []string{"ps", "--store", "sqlite:/dev/null"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			for path, text := range map[string]string{"text": strings.Repeat("Dear diary, ", 1000), "zeros": string(make([]byte, 8192)), "empty": "", "folder/stint.yaml": "agents: {}\n", "odd/stint.yaml/x": ""} {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			before := tree(t, dir)
			for _, args := range [][]string{c.args, append([]string{"--json"}, c.args...)} {
				code, out, talk := at(t, dir, args...)
				if code != c.code || out != "" || !strings.Contains(talk, c.words) || !strings.Contains(talk, "\n  ") && !strings.Contains(talk, `"hint":"`) {
					t.Errorf("stint %q: exit status %d, want %d with %q\n%s%s", args, code, c.code, c.words, out, talk)
				}
				if after := tree(t, dir); after != before {
					t.Fatalf("stint %q: there were\n%snow there are\n%s", args, before, after)
				}
			}
		})
	}
}

// salvaged runs a salvage of the store at path and returns what it says, and what the
// new store's verification does.
func salvaged(t *testing.T, path string) (out string, verified int, report []saved) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "new.db")
	code, out, talk := at(t, filepath.Dir(path), "db", "salvage", path, to, "--json")
	var v struct{ Sessions []saved }
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitOK || talk != "" {
		t.Fatalf("exit status %d (%v)\n%s%s", code, err, out, talk)
	}
	verified, said := verdict(t, to)
	if verified != exitOK {
		t.Errorf("what was kept is not sound\n%s", said)
	}
	if left := tree(t, filepath.Dir(to)); strings.Contains(left, "salvage") || strings.Contains(left, "new.db.d") && strings.Contains(left, "part") {
		t.Errorf("something was left:\n%s", left)
	}
	return out, verified, v.Sessions
}

// TestSalvage brings over what is sound, and names what is lost: a body that is not
// the one that its entry names, entries that are gone from the end, a session of which
// nothing is left, and an entry that lies in another session.
func TestSalvage(t *testing.T) {
	whole := func(all []saved) (n int) {
		for _, s := range all {
			if s.Why == "" {
				n++
			}
		}
		return n
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, path string)
		whole  int
		why    string
	}{
		"nothing": {func(*testing.T, string) {}, 2, ""},
		"a body": {func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			i := bytes.Index(b, noise(3000)[:1000])
			if err != nil || i < 0 {
				t.Fatalf("the body is not in the file: %v", err)
			}
			b[i+500] ^= 1
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}, 1, "the body of entry"},
		"the size of a body": {func(t *testing.T, path string) { damageAt(t, path, "UPDATE blobs SET size = size + 1") }, 1, "the body of entry"},
		"the key of a family": {func(t *testing.T, path string) {
			damageAt(t, path, "UPDATE families SET slot = slot + 7 WHERE fid IN (SELECT fid FROM blobs)")
		}, 1, "the body of entry"},
		"the last entry": {func(t *testing.T, path string) {
			damageAt(t, path, "DELETE FROM journal WHERE id = (SELECT max(id) FROM journal)")
			damageAt(t, path, "VACUUM")
		}, 1, "is lost, and all after it"},
		"all entries": {func(t *testing.T, path string) {
			damageAt(t, path, "DELETE FROM journal WHERE sid = 2")
			damageAt(t, path, "VACUUM")
		}, 1, "none of its entries is left"},
		"another session's entry": {func(t *testing.T, path string) {
			damageAt(t, path, "UPDATE journal SET sid = 2 WHERE sid = 1 AND seq = 3")
		}, 1, "entry 3 is lost"},
		"the schema version": {func(t *testing.T, path string) { damageAt(t, path, "PRAGMA user_version = 77") }, 2, ""},
		"the application":    {func(t *testing.T, path string) { damageAt(t, path, "PRAGMA application_id = 77") }, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := closedStore(t)
			c.damage(t, path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			out, _, report := salvaged(t, path)
			if len(report) != 2 || whole(report) != c.whole || !strings.Contains(out, c.why) {
				t.Errorf("want %d whole sessions of 2, and %q\n%s", c.whole, c.why, out)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the damaged file was changed (%v)", err)
			}
		})
	}
}

// Where nothing can be kept, there is no new store.
func TestSalvageOfRuins(t *testing.T) {
	path := closedStore(t)
	damageAt(t, path, "DELETE FROM journal WHERE seq = 1")
	damageAt(t, path, "VACUUM")
	dir := t.TempDir()
	code, out, talk := at(t, dir, "db", "salvage", path, filepath.Join(dir, "new.db"))
	if code != exitCorrupt || !strings.Contains(talk, "nothing of its 2 sessions can be kept") || strings.Count(tree(t, dir), "\n") != 1 {
		t.Errorf("exit status %d\n%s%s%s", code, out, talk, tree(t, dir))
	}
}

// TestDamagedTimes has times that none can have: whoever would print them says whose
// they are, and what to do.
func TestDamagedTimes(t *testing.T) {
	for _, q := range []string{
		"UPDATE heads SET updated = 1 << 61 WHERE sid = 1", "UPDATE heads SET since = -(1 << 61) WHERE sid = 1", "UPDATE sessions SET created = 1 << 62 WHERE sid = 1",
		"UPDATE heads SET mark = json_set(mark, '$[2]', 1 << 61) WHERE sid = 1",
	} {
		path := closedStore(t)
		damageAt(t, path, q)
		for _, args := range [][]string{{"ps", "-a", "--json"}, {"ps", "-a"}, {"show", "done-1", "--json"}, {"verify", "--all"}} {
			code, out, talk := at(t, filepath.Dir(path), append(args, "--store", "sqlite:"+path)...)
			if code != exitCorrupt || args[0] != "verify" && (!strings.Contains(talk, "lies beyond all years") || !strings.Contains(talk, "stint db salvage")) {
				t.Errorf("%s: stint %q: exit status %d\n%s%s", q, args, code, out, talk)
			}
		}
	}
	path := closedStore(t)
	damageAt(t, path, "UPDATE journal SET ts = 1 << 61 WHERE sid = 1 AND seq = 3")
	for _, args := range [][]string{{"logs", "done-1", "--json"}, {"export", "done-1"}, {"verify", "done-1"}} {
		if code, out, talk := at(t, filepath.Dir(path), append(args, "--store", "sqlite:"+path)...); code != exitCorrupt || !strings.Contains(out+talk, "entry 3") {
			t.Errorf("stint %q: exit status %d\n%s%s", args, code, out, talk)
		}
	}
}

// TestHiddenSessions has damage that takes sessions out of lists: nobody is told that
// there are none.
func TestHiddenSessions(t *testing.T) {
	for _, q := range []string{
		"UPDATE sessions SET fid = 99 WHERE sid = 1", "UPDATE families SET fid = 99 WHERE fid = 1", "UPDATE sessions SET sid = sid + 100", "UPDATE sessions SET sid = 99 WHERE sid = 1",
		"DELETE FROM heads WHERE sid = 1", "DELETE FROM heads", "DELETE FROM families", "DELETE FROM sessions",
	} {
		path := closedStore(t)
		damageAt(t, path, q)
		for _, args := range [][]string{{"ps", "-a"}, {"ps", "-a", "--json"}, {"verify", "--all"}, {"show", "@last"}} {
			if args[0] == "show" && strings.HasSuffix(q, "= 1") {
				continue // the newest is another
			}
			if code, out, talk := at(t, filepath.Dir(path), append(args, "--store", "sqlite:"+path)...); code != exitCorrupt || strings.Contains(out, "all sound") {
				t.Errorf("%s: stint %q: exit status %d\n%s%s", q, args, code, out, talk)
			}
		}
	}
}

// Each line of the size says what it is of, once.
func TestDBSize(t *testing.T) {
	d := newDesk(t)
	d.run("done-1", works)
	seen := map[string]bool{}
	for line := range strings.Lines(d.ok("db", "size")) {
		name := strings.Fields(line)[0]
		if name == "table" {
			name = strings.Fields(line)[1] + " rows"
		}
		if seen[name] {
			t.Errorf("there are two lines %q", name)
		}
		seen[name] = true
	}
	if !seen["file"] || !seen["keys rows"] || !seen["journal rows"] {
		t.Errorf("stint db size prints %v", seen)
	}
}

// TestSalvageOfATree: what a tree used of the limits that its sessions share stands in no
// journal, and is there after a salvage.
func TestSalvageOfATree(t *testing.T) {
	d := newDesk(t)
	var agents []engine.Agent
	pay := func(ctx context.Context, l stint.Loop, cents int64) error {
		_, err := l.Do(ctx, stint.Step{Name: "ask", Kind: stint.Model, Effect: stint.Read, Reserve: stint.Usage{Cost: 500_000}}, func(context.Context, string) (stint.Result, error) {
			return stint.Result{Data: []byte(`1`), Usage: stint.Usage{Input: 7, Cost: stint.Money(cents) * 10_000}}, nil
		})
		return err
	}
	for i, name := range []string{"top", "middle", "low"} {
		agents = append(agents, engine.Agent{Name: name, Loop: stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if l.Session().At.Loop > 1 || i == 2 {
				return stint.Next{End: &stint.End{}}, pay(ctx, l, 1)
			}
			if err := pay(ctx, l, 10); err != nil {
				return stint.Next{}, err
			}
			for n := range 2 {
				if _, err := l.(stint.Spawner).Spawn(ctx, stint.Child{Agent: agents[i+1].Name, Name: fmt.Sprint(agents[i+1].Name, n)}); err != nil {
					return stint.Next{}, err
				}
			}
			return stint.Next{Wait: &stint.Wait{For: stint.ForChild}}, nil
		})})
	}
	e, err := engine.New(t.Context(), d.store, engine.Options{Agents: agents})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.RunNew(t.Context(), engine.Request{Agent: agents[0], Name: "top", Limits: &stint.Limits{Cost: 5_000_000, Children: 20}}, func(engine.Created) {}); err != nil {
		t.Fatal(err)
	}
	path, to := filepath.Join(t.TempDir(), "stint.db"), filepath.Join(t.TempDir(), "new.db")
	if err := d.store.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	before := metersOf(t, path)
	if len(before) == 0 || !strings.Contains(strings.Join(before, "\n"), "children:") {
		t.Fatalf("the tree has the meters %q", before)
	}
	if code, out, talk := at(t, t.TempDir(), "db", "salvage", path, to); code != exitOK {
		t.Fatalf("exit status %d\n%s%s", code, out, talk)
	}
	if after := metersOf(t, to); !slices.Equal(after, before) {
		t.Errorf("the meters are\n%s\nand were\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
}

// metersOf are the meters of a store that are not zero.
func metersOf(t *testing.T, path string) (all []string) {
	t.Helper()
	c, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := sqlitex.ExecuteTransient(c, "SELECT f.id || ' ' || m.metric || ' ' || m.spent || ' ' || m.reserved FROM meters m JOIN families f ON f.fid = m.fid WHERE m.spent <> 0 OR m.reserved <> 0 ORDER BY 1",
		&sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
			all = append(all, st.ColumnText(0))
			return nil
		}}); err != nil {
		t.Fatal(err)
	}
	return all
}
