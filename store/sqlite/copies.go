package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// File is a file that a store keeps for sessions: a part of the agent that they are
// pinned to. It is not a body: it belongs to no journal, and its name says what it is.
type File struct {
	Set  string      // the name of the set that it is one of, made from what is in it
	Path string      // relative, with slashes
	Mode fs.FileMode // its permissions
	Data []byte
}

// sum is what tells whether a file is as it was kept.
func (f *File) sum() []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%d\x00", f.Set, f.Path, f.Mode.Perm())
	h.Write(f.Data)
	return h.Sum(nil)
}

// KeepFiles keeps files and returns once they are durable. Those of a set and path
// that are there already stay as they are: a set's name is made from what is in it.
func (s *Store) KeepFiles(ctx context.Context, files []File) error {
	s.mu.RLock()
	over := s.closed
	s.mu.RUnlock()
	switch {
	case over:
		return closed("keep")
	case s.w == nil:
		return refuse(stint.Invalid, "keep", stint.ID{}, "open the store for writing", "the store was opened for reading only")
	}
	// This is rare, and has no place among the operations of sessions: so it writes as
	// another process would.
	c, err := openConn(s.opt.Path, sqlite.OpenReadWrite, "synchronous = FULL", "fullfsync = 1", "checkpoint_fullfsync = 1", "wal_autocheckpoint = 0")
	if err != nil {
		return explain("keep", err)
	}
	defer c.Close()
	c.SetBusyTimeout(0)
	turn := newTurn(s.opt.Path + ".d")
	defer turn.close()
	if err := turn.wait(s.opt.Patience, func() error { return exec(c, "BEGIN IMMEDIATE") }); err != nil {
		return explain("keep", err)
	}
	for i := range files {
		f := &files[i]
		if err := ctx.Err(); err != nil {
			return unavailable("keep", err)
		}
		data := f.Data
		if data == nil {
			data = []byte{} // no bytes are not no value
		}
		if err := exec(c, "INSERT OR IGNORE INTO copies(name, path, mode, sum, data) VALUES (?, ?, ?, ?, ?)", f.Set, f.Path, int64(f.Mode.Perm()), f.sum(), data); err != nil {
			return explain("keep", err)
		}
	}
	return explain("keep", exec(c, "COMMIT"))
}

// Files returns the files of a set in order of path; a set that is not there has none.
// One that is not as it was kept is [stint.Corrupt].
func (s *Store) Files(ctx context.Context, set string) (all []File, err error) {
	err = s.read(ctx, "files", func(c *sqlite.Conn) error {
		return each(c, "SELECT name, path, mode, data, sum FROM copies WHERE name = ? ORDER BY path", func(st *sqlite.Stmt) error {
			f, ok := fileOf(st)
			if !ok {
				return refuse(stint.Corrupt, "files", stint.ID{}, "put the agent's file back as it was, and start a new session; `stint verify --all` names all damage",
					"the kept file %q is damaged", f.Path)
			}
			all = append(all, f)
			return nil
		}, set)
	})
	return all, err
}

// fileOf reads a row of copies; ok is false if it is not what was kept.
func fileOf(st *sqlite.Stmt) (f File, ok bool) {
	f = File{st.ColumnText(0), st.ColumnText(1), fs.FileMode(st.ColumnInt64(2)), column(st, 3)}
	return f, bytes.Equal(f.sum(), column(st, 4)) && f.Mode == f.Mode.Perm()
}

// copies checks the files that the store keeps.
func (a *audit) copies() error {
	return each(a.c, "SELECT name, path, mode, data, sum FROM copies NOT INDEXED", func(st *sqlite.Stmt) error {
		if f, ok := fileOf(st); !ok {
			a.tell(stint.ID{}, 0, "the kept file %q of set %q is not the one that was kept", f.Path, f.Set)
		}
		return a.ctx.Err()
	})
}

// file gives a kept file that is as it was kept.
func (s *scan) file(r record) error {
	set, ok1 := r.cols[0].(string)
	path, ok2 := r.cols[1].(string)
	mode, ok3 := r.cols[2].(int64)
	f := File{set, path, fs.FileMode(mode), bytesOf(r.cols[4])}
	if !ok1 || !ok2 || !ok3 || s.to.File == nil || f.Mode != f.Mode.Perm() || !bytes.Equal(f.sum(), bytesOf(r.cols[3])) {
		return nil
	}
	return s.to.File(f)
}
