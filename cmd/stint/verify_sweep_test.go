package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// unseen are the columns that a change cannot be seen in, in the rows that where
// selects (empty: in all), and why.
func unseen() map[string]struct{ where, why string } {
	const wish = "it says when, or what for people, and nothing else does"
	return map[string]struct{ where, why string }{
		"leases.holder":   {"", "the name of a runner; its lock file may be gone with it"},
		"leases.expires":  {"", wish},
		"leases.claimed":  {"", wish},
		"leases.now":      {"", wish},
		"leases.now_at":   {"", wish},
		"heads.past":      {"held <> 0", "it is written anew when the lease is given back"},
		"families.keys":   {"keys IS NULL", "a family without a body outside the journal: no name was made with its key"},
		"families.slot":   {"id NOT IN (SELECT f.id FROM families f JOIN blobs b ON b.fid = f.fid)", "a family without a body outside the journal: no name was made with its key"},
		"names.text":      {"id >= 100 AND id NOT IN (SELECT kind FROM journal UNION SELECT actor FROM journal UNION SELECT agent FROM heads UNION SELECT runtime FROM heads)", "nothing uses the word"},
		"names.id":        {"id >= 100 AND id NOT IN (SELECT kind FROM journal UNION SELECT actor FROM journal UNION SELECT agent FROM heads UNION SELECT runtime FROM heads)", "nothing uses the word"},
		"blobs.id":        {"", "a number of SQLite's: nothing names it"},
		"inbox.id":        {"", "a number that only orders"},
		"inbox.at":        {"taken IS NULL", wish},
		"inbox.digest":    {"taken IS NOT NULL", "what it is of has moved to the journal; it tells the same message sent again"},
		"inbox.data":      {"taken IS NOT NULL", "nobody reads it once it is in the journal"},
		"inbox.body":      {"taken IS NOT NULL", "nobody reads it once it is in the journal"},
		"inbox.taken":     {"taken IS NOT NULL", "which commit took it: that one did is compared with the journal"},
		"keys.name":       {"", "the sender's own word: nothing else has it"},
		"keys.digest":     {"", "of what the sender said: it is compared with what the sender says again"},
		"keys.expires":    {"", wish},
		"ledger.id":       {"", "a number of SQLite's: nothing names it"},
		"meta.value":      {"name = 'feed.id'", "a random number that places in the feed are told by: nothing in the store names it"},
		"meters.metric":   {"", "what a family has used is counted here alone"},
		"meters.spent":    {"", "what a family has used is counted here alone"},
		"meters.reserved": {"", "what a family has used is counted here alone"},
	}
}

// sweptStore is a store with something in every table.
func sweptStore(t *testing.T) string {
	t.Helper()
	d := newDesk(t)
	d.run("done-1", works)
	d.run("pay-1", doubts)
	d.run("chat-1", sleeps)
	d.run("chat-2", sleeps)
	long := engine.Request{Agent: engine.Agent{Name: "late", Loop: stint.AgentFunc(works)}, Name: "late-1", Input: bytes.Repeat([]byte("long "), 2000), Dedupe: "key-1", Actor: "human:ben",
		Keys: []stint.Key{{Scope: "delivery", Source: "github", Name: "d-1", At: time.Unix(1e9, 0), Note: []byte(`{"a":1}`), Body: []byte("body")}}}
	if _, err := d.e.RunNew(t.Context(), long, func(engine.Created) {}); err != nil {
		t.Fatal(err)
	}
	d.put("script.sh", ":\n")
	d.put("stint.yaml", "agents:\n  a: {kind: exec, command: [sh, script.sh], pin: copy}\n")
	d.ok("start", "a", "--name", "new-1", "-p", "some words", "-l", "team=a", "-l", "env=b")
	d.ok("pause", "chat-2", "--reason", "enough")
	d.ok("send", "chat-1", "hello")
	d.ok("send", "chat-2", "hello")
	held := d.id("new-1")
	if _, err := d.store.Hold(t.Context(), "runner-1"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.store.Claim(t.Context(), stint.Claim{Holder: "runner-1", TTL: time.Hour, Session: held}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "swept.db")
	damageAt(t, d.path(), "INSERT INTO meters SELECT max(fid), 'tokens', 7, 8 FROM families")
	if err := d.store.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	return path
}

// damageAt changes a database behind the program's back and returns how many rows.
func damageAt(t *testing.T, path, q string, args ...any) (rows int) {
	t.Helper()
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := sqlitex.ExecuteTransient(c, q, &sqlitex.ExecOptions{Args: args}); err != nil {
		if code := sqlite.ErrCode(err).ToPrimary(); code == sqlite.ResultConstraint || code == sqlite.ResultMismatch {
			return 0 // the column cannot be so
		}
		t.Errorf("%s: %v", q, err)
	}
	return c.Changes()
}

// swept is a column of a table, and the number of the table's rows.
type swept struct {
	table, column string
	rows          int
}

func columnsOf(t *testing.T, path string) (all []swept) {
	t.Helper()
	c, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := sqlitex.ExecuteTransient(c, "SELECT m.name, p.name FROM sqlite_schema m, pragma_table_info(m.name) p WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'",
		&sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
			all = append(all, swept{table: st.ColumnText(0), column: st.ColumnText(1)})
			return nil
		}}); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if err := sqlitex.ExecuteTransient(c, "SELECT count(*) FROM "+all[i].table, &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
			all[i].rows = st.ColumnInt(0)
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// changes are other values for a column, by what is done to it.
func changes(column string) map[string]string {
	return map[string]string{
		"another": "CASE typeof(" + column + ") WHEN 'integer' THEN " + column + " + 1000 WHEN 'text' THEN iif(" + column + " = '', 'x', " +
			"iif(substr(" + column + ", -1) = '1', substr(" + column + ", 1, length(" + column + ") - 1) || '2', substr(" + column + ", 1, length(" + column + ") - 1) || '1')) " +
			"WHEN 'blob' THEN CAST(iif(substr(" + column + ", -1) = x'01', substr(" + column + ", 1, length(" + column + ") - 1) || x'02', substr(" + column + ", 1, length(" + column + ") - 1) || x'01') AS BLOB) ELSE 1 END",
		"one more": "CASE typeof(" + column + ") WHEN 'integer' THEN " + column + " + 1 WHEN 'text' THEN " + column + " || '1' WHEN 'blob' THEN CAST(" + column + " || x'01' AS BLOB) ELSE 0 END",
		"none":     "CASE typeof(" + column + ") WHEN 'integer' THEN iif(" + column + " = 0, -1, 0) WHEN 'text' THEN iif(" + column + " = '', 'y', '') WHEN 'blob' THEN x'' ELSE -1 END",
		"nothing":  "iif(" + column + " IS NULL, 7, NULL)",
	}
}

// sweep is a store that is damaged again and again, each time as it was.
type sweep struct {
	t          *testing.T
	file, keys []byte
	path       string
}

func newSweep(t *testing.T) (w *sweep, path string) {
	t.Helper()
	path = sweptStore(t)
	w = &sweep{t: t, path: filepath.Join(t.TempDir(), "copy.db")}
	var err error
	if w.file, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if w.keys, err = os.ReadFile(path + ".keys"); err != nil {
		t.Fatal(err)
	}
	if code, out := verdict(t, path); code != exitOK {
		t.Fatalf("before anything was changed: exit status %d\n%s", code, out)
	}
	return w, path
}

// sees changes a copy by q and wants the verification to see it. It reports whether
// there was something to change.
func (w *sweep) sees(what, q string) bool {
	w.t.Helper()
	for _, p := range []string{"", "-wal", "-shm", ".keys"} {
		if err := os.RemoveAll(w.path + p); err != nil {
			w.t.Fatal(err)
		}
	}
	for p, b := range map[string][]byte{w.path: w.file, w.path + ".keys": w.keys} {
		if err := os.WriteFile(p, b, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	if damageAt(w.t, w.path, q) == 0 {
		return false
	}
	if code, out := verdict(w.t, w.path); code != exitCorrupt || strings.Contains(out, "all sound") || !strings.Contains(out, "NOT SOUND") {
		w.t.Errorf("with %s: exit status %d\n%s", what, code, out)
	}
	return true
}

// keyOf is what a row of a table is found by.
func keyOf(table string) string {
	switch table {
	case "meta":
		return "name"
	case "keys":
		return "scope"
	case "meters":
		return "fid"
	case "labels":
		return "key"
	}
	return "rowid"
}

// some are three of n rows: the last, one in the middle, the first.
func some(n int) []int { return slices.Compact([]int{n - 1, n / 2, 0}) }

// TestVerifySeesEveryColumn changes one value after the other, in every column of
// every table, in one row or at full size in three, and wants each to be seen, or to stand in the list of those that
// cannot be.
func TestVerifySeesEveryColumn(t *testing.T) {
	w, path := newSweep(t)
	listed := unseen()
	for _, c := range columnsOf(t, path) {
		name := c.table + "." + c.column
		if c.rows == 0 {
			t.Errorf("the table %s is empty: nothing can be learned of %s", c.table, c.column)
			continue
		}
		where := "1"
		if u, ok := listed[name]; ok {
			delete(listed, name)
			if where = "NOT (" + u.where + ")"; u.where == "" {
				continue
			}
		}
		tried := 0
		for what, value := range changes(c.column) {
			if !long() && (what == "one more" || what == "none") {
				continue
			}
			for _, row := range some(c.rows) {
				q := fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s = (SELECT %s FROM %s WHERE %s ORDER BY 1 LIMIT 1 OFFSET %d) AND %s IS NOT %s",
					c.table, c.column, value, keyOf(c.table), keyOf(c.table), c.table, where, row, c.column, value)
				if w.sees(fmt.Sprintf("%s in %s, row %d", what, name, row), q) {
					tried++
					if !long() {
						break
					}
				}
			}
		}
		if tried == 0 {
			t.Errorf("%s was changed in no row", name)
		}
	}
	for name := range listed {
		t.Errorf("there is no column %s any more", name)
	}
	for _, value := range []string{"NULL", "x''", "x'01020304050607'", "x'010203040506070809'", "7"} {
		w.sees("the feed's id "+value, "UPDATE meta SET value = "+value+" WHERE name = 'feed.id'")
	}
}

// TestVerifySeesEveryRow takes one row after the other out of every table.
func TestVerifySeesEveryRow(t *testing.T) {
	w, path := newSweep(t)
	// What nothing else names, or what a salvaged store does without.
	listed := map[string]string{
		"inbox": "1", "keys": "scope <> 'delivery'", "ledger": "1", "meters": "1", // the only record of what they are
		"names":    unseen()["names.text"].where,
		"families": "fid NOT IN (SELECT fid FROM sessions)",
	}
	tables := map[string]int{}
	for _, c := range columnsOf(t, path) {
		tables[c.table] = c.rows
	}
	for table, n := range tables {
		where := "NOT (" + cmp.Or(listed[table], "0") + ")"
		tried := 0
		for row := range n {
			if !long() && row%4 > 0 {
				continue
			}
			q := fmt.Sprintf("DELETE FROM %s WHERE %s = (SELECT %s FROM %s WHERE %s ORDER BY 1 LIMIT 1 OFFSET %d)", table, keyOf(table), keyOf(table), table, where, row)
			if w.sees(fmt.Sprintf("row %d of %s gone", row, table), q) {
				tried++
			}
		}
		if tried == 0 && listed[table] != "1" {
			t.Errorf("no row of %s was taken", table)
		}
	}
	for name, q := range map[string]string{
		"all sessions": "DELETE FROM sessions", "all heads": "DELETE FROM heads", "all families": "DELETE FROM families", "all entries": "DELETE FROM journal",
		"all bodies": "DELETE FROM blobs", "all words": "DELETE FROM names",
	} {
		if !w.sees(name+" gone", q) {
			t.Errorf("%s: nothing was taken", name)
		}
	}
}

// verdict is what stint verify --all says of the store at path.
func verdict(t *testing.T, path string) (code int, out string) {
	t.Helper()
	var o, e buffer
	a := &app{in: strings.NewReader(""), out: &o, err: &e, getenv: func(string) string { return "" }, getwd: func() (string, error) { return filepath.Dir(path), nil }}
	code = a.run(t.Context(), []string{"verify", "--all", "--store", "sqlite:" + path})
	return code, o.String() + e.String()
}
