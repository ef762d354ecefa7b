package sqlite

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// Backup writes a copy of the store as it is now to path, with what the keys file
// holds at path.keys; both are durable when it returns. It reads one snapshot while
// others write, and what they write meanwhile stays in the WAL until it is done. A
// file that is there already is [stint.Exists].
func (s *Store) Backup(ctx context.Context, path string) error {
	for _, p := range []string{path, path + ".keys"} {
		if _, err := os.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
			return refuse(stint.Exists, "backup", stint.ID{}, "choose another path, or remove the old copy", "%s is there already", p)
		}
	}
	// SQLite fills an empty file, which keeps its permissions.
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return unavailable("backup", err)
	}
	defer os.Remove(part)
	if err := f.Close(); err != nil {
		return unavailable("backup", err)
	}
	c, err := openConn(s.opt.Path, sqlite.OpenReadOnly)
	if err != nil {
		return explain("backup", err)
	}
	c.SetInterrupt(ctx.Done())
	err = exec(c, "VACUUM INTO ?", part)
	c.SetInterrupt(nil)
	if e := c.Close(); err == nil {
		err = e
	}
	if err != nil {
		return explain("backup", err)
	}
	if err := apart(part); err != nil {
		return explain("backup", err)
	}
	// The keys come second: each family of the copy has its key in them.
	if err := copyFile(s.keys.path, path+".keys"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unavailable("backup", err)
	}
	if err := settle(part, path); err != nil {
		return unavailable("backup", err)
	}
	return nil
}

// apart gives the copy a feed of its own: what is written to it from now on is not
// what is written here, and cursors must not be taken from one to the other.
func apart(part string) error {
	c, err := openConn(part, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	err = exec(c, "UPDATE meta SET value = randomblob(8) WHERE name = 'feed.id'")
	if e := c.Close(); err == nil {
		err = e
	}
	return err
}

// settle makes the file part durable under its name.
func settle(part, path string) error {
	f, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = f.Sync()
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err == nil {
		err = syncDir(path)
	}
	return err
}

// copyFile copies a small file to a new one.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if e := out.Close(); err == nil {
		err = e
	}
	return err
}

// Size is how large a store is.
type Size struct {
	File int64            // bytes of the database file
	WAL  int64            // bytes of the write-ahead log
	Keys int64            // bytes of the keys file
	Free int64            // bytes in the database file that hold nothing
	Rows map[string]int64 // rows of each table
}

// Size measures the store. It counts rows, which takes a second for some millions.
func (s *Store) Size(ctx context.Context) (Size, error) {
	z := Size{Rows: map[string]int64{}}
	for _, f := range []struct {
		path string
		size *int64
	}{{s.opt.Path, &z.File}, {s.opt.Path + "-wal", &z.WAL}, {s.keys.path, &z.Keys}} {
		info, err := os.Stat(f.path)
		switch {
		case err == nil:
			*f.size = info.Size()
		case !errors.Is(err, fs.ErrNotExist):
			return z, unavailable("size", err)
		}
	}
	err := s.read(ctx, "size", func(c *sqlite.Conn) error {
		if _, err := one(c, "SELECT (SELECT freelist_count FROM pragma_freelist_count) * (SELECT page_size FROM pragma_page_size)",
			func(st *sqlite.Stmt) { z.Free = st.ColumnInt64(0) }); err != nil {
			return err
		}
		var tables []string
		if err := each(c, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'", func(st *sqlite.Stmt) error {
			tables = append(tables, st.ColumnText(0))
			return nil
		}); err != nil {
			return err
		}
		for _, t := range tables {
			if err := ctx.Err(); err != nil {
				return unavailable("size", err)
			}
			if _, err := one(c, "SELECT count(*) FROM "+t, func(st *sqlite.Stmt) { z.Rows[t] = st.ColumnInt64(0) }); err != nil {
				return err
			}
		}
		return nil
	})
	return z, err
}

// Bytes is the size of the database file after a checkpoint: what the sessions in
// it take. It fails where [Store.Checkpoint] does.
func (s *Store) Bytes(ctx context.Context) (int64, error) {
	if err := s.Checkpoint(ctx); err != nil {
		return 0, err
	}
	info, err := os.Stat(s.opt.Path)
	if err != nil {
		return 0, unavailable("size", err)
	}
	return info.Size(), nil
}
