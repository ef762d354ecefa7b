package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// The layer over the WAL, with transactions that spill, outgrow its buffer, and
// are rolled back, must leave what SQLite without it reads as the same database. Two
// connections take turns in writing, as two processes would: what one of them rolled
// back must never come to lie on what the other committed.
func TestLayer(t *testing.T) {
	if err := registerVFS(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "odd name?&%41#.db")
	var writers [2]*sqlite.Conn
	for i := range writers {
		var err error
		if writers[i], err = openConn(layered(path), sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenURI,
			"journal_mode = WAL", "synchronous = FULL", "cache_size = 8", "wal_autocheckpoint = 0"); err != nil {
			t.Fatal(err)
		}
		defer writers[i].Close()
	}
	r, err := openConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(exec(writers[0], "CREATE TABLE t(id INTEGER PRIMARY KEY, b BLOB)"))
	rnd := rand.New(rand.NewPCG(1, 2))
	model := map[int64][]byte{}
	for round := range 100 {
		next, w := maps.Clone(model), writers[rnd.IntN(2)]
		must(exec(w, "BEGIN IMMEDIATE"))
		for range 1 + rnd.IntN(40) {
			id, size := rnd.Int64N(100), rnd.IntN(9000)
			if rnd.IntN(150) == 0 {
				size = 3 << 20
			}
			b := bytes.Repeat([]byte{byte(rnd.IntN(256))}, size)
			if rnd.IntN(4) == 0 {
				delete(next, id)
				must(exec(w, "DELETE FROM t WHERE id = ?", id))
				continue
			}
			next[id] = b
			must(exec(w, "INSERT OR REPLACE INTO t(id, b) VALUES (?, ?)", id, b))
		}
		if rnd.IntN(3) == 0 {
			must(exec(w, "ROLLBACK"))
		} else {
			must(exec(w, "COMMIT"))
			model = next
		}
		if rnd.IntN(10) == 0 {
			mode := []string{"PASSIVE", "RESTART", "TRUNCATE"}[rnd.IntN(3)]
			must(exec([]*sqlite.Conn{r, w}[rnd.IntN(2)], "PRAGMA wal_checkpoint("+mode+")"))
		}
		for _, c := range []*sqlite.Conn{r, writers[0], writers[1]}[:1+2*rnd.IntN(2)] {
			n := 0
			must(each(c, "SELECT id, b FROM t", func(st *sqlite.Stmt) error {
				n++
				if want := model[st.ColumnInt64(0)]; !bytes.Equal(column(st, 1), want) {
					return fmt.Errorf("round %d: row %d has %d bytes, want %d", round, st.ColumnInt64(0), st.ColumnLen(1), len(want))
				}
				return nil
			}))
			if n != len(model) {
				t.Fatalf("round %d: %d rows, want %d", round, n, len(model))
			}
		}
	}
	must(each(r, "PRAGMA integrity_check", func(st *sqlite.Stmt) error {
		if st.ColumnText(0) != "ok" {
			return fmt.Errorf("integrity: %s", st.ColumnText(0))
		}
		return nil
	}))
}

// An error of one operation inside SQLite fails it alone; one of the disk fails
// the group; a failed sync ends the store.
func TestUndo(t *testing.T) {
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "stint.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	send := func(n int) []*op {
		id := stint.ID{6: 0x70, 8: 0x80, 15: byte(n)}
		fold := stint.Session{ID: id, Family: id, Status: stint.Pending, Head: 1}
		b := stint.Batch{Session: fold, Entries: []stint.Entry{{Session: id, Seq: 1, Kind: stint.SessionCreated}}}
		return []*op{
			{kind: opCreate, ctx: t.Context(), batch: b, done: func(error) {}},
			{kind: opSend, ctx: t.Context(), lease: stint.Lease{Session: id}, msg: stint.Message{ID: "m", Kind: stint.Prompt}, done: func(error) {}},
		}
	}
	group := send(1)
	s.undo(group, sqlite.ResultConstraint.ToError())
	for i, o := range group {
		if o.err != nil {
			t.Errorf("operation %d after an error of a neighbour: %v", i, o.err)
		}
	}
	group = send(2)
	s.undo(group, sqlite.ResultFull.ToError())
	for i, o := range group {
		if stint.CodeOf(o.err) != stint.Unavailable {
			t.Errorf("operation %d with a full disk: %v", i, o.err)
		}
	}
	if _, err := s.Create(t.Context(), send(3)[0].batch, stint.Claim{}); err != nil {
		t.Errorf("after a full disk: %v", err)
	}
	s.undo(send(4), sqlite.ResultIOErrFsync.ToError())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Create(ctx, send(5)[0].batch, stint.Claim{}); stint.CodeOf(err) != stint.Unavailable {
		t.Errorf("after a failed sync: %v", err)
	}
	if _, err := s.Session(ctx, stint.ID{6: 0x70, 8: 0x80, 15: 3}); err != nil {
		t.Errorf("reading after a failed sync: %v", err)
	}
}
