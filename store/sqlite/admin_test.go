package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	zsqlite "zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/sqlite"
	"github.com/stint-dev/stint/store/storetest"
)

// story is a session with a step, a loop and a wait.
func story(t *testing.T, s *sqlite.Store) *course {
	t.Helper()
	c := begin(t, s, "me")
	usage := stint.Usage{Input: 1000, Output: 20, Cost: 1_500_000_000}
	step := stint.Position{Loop: 1, Attempt: 1, Step: 1}
	ok(t, c.write(s, journal.Draft{Kind: stint.StepCompleted, Pos: step, Body: []byte(`"ok"`), Data: journal.StepDone{
		StepRequested: journal.StepRequested{Name: "ask", Kind: stint.Model, Effect: stint.Idempotent}, MS: 12, Usage: usage,
	}}))
	ok(t, c.write(s, journal.Draft{Kind: stint.LoopCompleted, Body: []byte("{}"), Data: journal.LoopCompleted{
		Rollup: journal.Rollup{Steps: 1, Models: 1, Usage: usage}, MS: 13, Headline: "asked", State: journal.StateRef{Enc: journal.Full, Size: 2},
	}}))
	return c
}

// table runs a query and returns its rows as text.
func table(t *testing.T, s *sqlite.Store, q string) string {
	t.Helper()
	var b strings.Builder
	ok(t, s.Select(t.Context(), q, func(_ []string, row []any) error {
		for i, v := range row {
			if i > 0 {
				b.WriteByte('|')
			}
			fmt.Fprint(&b, v)
		}
		b.WriteByte('\n')
		return nil
	}))
	return b.String()
}

func TestSelectViews(t *testing.T) {
	s := open(t, dbPath(t))
	hold(t, s, "me")
	c := story(t, s)
	id := c.s.ID.String()
	created := c.s.Created.Format("2006-01-02T15:04:05.000000Z")
	sessions := "SELECT status, reason, loops, steps, input_tokens, output_tokens, cost, loop, created, holder, waiting_for, unread FROM v_sessions WHERE id = '" + id + "'"
	equal(t, "v_sessions", table(t, s, sessions), "running|<nil>|1|1|1000|20|1.5|1|"+created+"|me|<nil>|0\n")
	equal(t, "v_steps", table(t, s, "SELECT session, loop, step, outcome, name, kind, effect, ms, input_tokens, cost, error FROM v_steps"),
		id+"|1|1|completed|ask|model|idempotent|12|1000|1.5|<nil>\n")
	equal(t, "v_loops", table(t, s, "SELECT session, loop, ms, steps, models, tools, input_tokens, cost, headline FROM v_loops"),
		id+"|1|13|1|1|0|1000|1.5|asked\n")
	equal(t, "v_entries", table(t, s, "SELECT seq, kind, actor, cause, body FROM v_entries WHERE session = '"+id+"' ORDER BY seq"),
		"1|session.created|engine|<nil>|<nil>\n2|loop.started|engine|<nil>|<nil>\n3|step.completed|engine|<nil>|\"ok\"\n4|loop.completed|engine|<nil>|{}\n")
	b, err := c.next(journal.Draft{Kind: stint.SessionWaiting, Data: stint.Wait{For: stint.ForMessage, Who: "ada", Wakes: []stint.MessageKind{stint.Prompt}}})
	ok(t, err)
	b.Release = true
	ok(t, put(t.Context(), s, c.lease, b))
	ok(t, s.Send(t.Context(), c.s.ID, stint.Message{ID: "1", Kind: stint.Prompt}))
	equal(t, "v_sessions", table(t, s, sessions), "waiting|message|1|1|1000|20|1.5|1|"+created+"|<nil>|message|1\n")
}

func TestSelectRefuses(t *testing.T) {
	s := open(t, dbPath(t))
	for _, q := range []string{
		"DELETE FROM journal", "CREATE TABLE t(x)", "PRAGMA journal_mode = DELETE", "ATTACH '/tmp/x' AS x", "VACUUM",
		"SELEC 1", "SELECT * FROM nowhere", "SELECT 1; SELECT 2", "",
		"SELECT load_extension('x')",
	} {
		err := s.Select(t.Context(), q, func([]string, []any) error { return nil })
		refused(t, err, stint.Invalid)
	}
	mine := errors.New("mine")
	if err := s.Select(t.Context(), "SELECT 1", func([]string, []any) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("the error of the function became %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := s.Select(ctx, "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c", nil)
	refused(t, err, stint.Unavailable, "took too long")
	var cols []string
	ok(t, s.Select(t.Context(), "SELECT 1 AS a, 2.5 AS b, 'x' AS c, x'00' AS d, NULL AS e", func(names []string, row []any) error {
		cols = names
		equal(t, "values", fmt.Sprintf("%#v", row), `[]interface {}{1, 2.5, "x", []uint8{0x0}, interface {}(nil)}`)
		return nil
	}))
	equal(t, "columns", strings.Join(cols, " "), "a b c d e")
}

func TestBackup(t *testing.T) {
	path, copied := dbPath(t), dbPath(t)
	s := open(t, path)
	hold(t, s, "me")
	c := story(t, s)
	key, err := s.FamilyKey(t.Context(), c.s.Family)
	ok(t, err)
	ok(t, s.Backup(t.Context(), copied))
	refused(t, s.Backup(t.Context(), copied), stint.Exists)
	before := c.s
	ok(t, c.write(s, journal.Draft{Kind: stint.LimitChanged, Data: journal.LimitChanged{}}))
	for _, f := range []string{copied, copied + ".keys"} {
		info, err := os.Stat(f)
		ok(t, err)
		equal(t, "mode of "+f, info.Mode().Perm(), 0o600)
	}
	b := open(t, copied)
	storetest.Check(t, b)
	row, err := b.Session(t.Context(), c.s.ID)
	ok(t, err)
	equal(t, "head of the copy", row.Session.Head, before.Head)
	same, err := b.FamilyKey(t.Context(), c.s.Family)
	ok(t, err)
	equal(t, "key", string(same), string(key))
	left, err := os.ReadDir(strings.TrimSuffix(copied, "/stint.db"))
	ok(t, err)
	if slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".part") }) {
		t.Errorf("something was left: %v", left)
	}
}

func TestSizeAndCheckpoint(t *testing.T) {
	s := open(t, dbPath(t))
	hold(t, s, "me")
	story(t, s)
	z, err := s.Size(t.Context())
	ok(t, err)
	if z.WAL == 0 || z.Rows["journal"] != 4 || z.Rows["sessions"] != 1 {
		t.Errorf("size: %+v", z)
	}
	ok(t, s.Checkpoint(t.Context()))
	z, err = s.Size(t.Context())
	ok(t, err)
	equal(t, "WAL", z.WAL, 0)
}

// A reader that has a snapshot open keeps the WAL from being emptied, and nothing
// else.
func TestCheckpointPinned(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	hold(t, s, "me")
	c := story(t, s)
	r, err := zsqlite.OpenConn(path, zsqlite.OpenReadOnly)
	ok(t, err)
	st, err := r.Prepare("SELECT seq FROM journal")
	ok(t, err)
	_, err = st.Step()
	ok(t, err)
	ok(t, c.write(s, journal.Draft{Kind: stint.LimitChanged, Data: journal.LimitChanged{}}))
	refused(t, s.Checkpoint(t.Context()), stint.Unavailable, "reader")
	ok(t, c.write(s, journal.Draft{Kind: stint.LimitChanged, Data: journal.LimitChanged{}}))
	ok(t, r.Close())
	ok(t, s.Checkpoint(t.Context()))
}

// The WAL is emptied once nobody has written for a while.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := dbPath(t)
		s := open(t, path)
		hold(t, s, "me")
		story(t, s)
		for range 2 {
			<-time.After(11 * time.Second)
			info, err := os.Stat(path + "-wal")
			ok(t, err)
			equal(t, "bytes in the WAL", info.Size(), 0)
			_, err = s.Create(t.Context(), first(t, "test"), stint.Claim{})
			ok(t, err)
		}
	})
}

// However long somebody writes without a pause, the WAL starts over.
func TestWALStartsOver(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	hold(t, s, "me")
	c := begin(t, s, "me")
	body := said(strings.Repeat("x", journal.InlineBytes))
	ds := slices.Repeat([]journal.Draft{body}, 64)
	for range 500 { // 64 MiB
		ok(t, c.write(s, ds...))
	}
	info, err := os.Stat(path + "-wal")
	ok(t, err)
	if info.Size() > 48<<20 {
		t.Errorf("the WAL has %d MiB", info.Size()>>20)
	}
}
