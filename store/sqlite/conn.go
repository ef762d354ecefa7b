package sqlite

import (
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"
)

// openConn opens one connection of the given kind. None of them waits for a lock
// inside SQLite: the committer waits by itself, fairly, and the others are given
// a busy timeout by their owners.
func openConn(path string, flags sqlite.OpenFlags, pragmas ...string) (*sqlite.Conn, error) {
	c, err := sqlite.OpenConn(path, flags)
	if err != nil {
		return nil, err
	}
	c.SetBusyTimeout(readerPatience)
	for _, p := range pragmas {
		if err := pragma(c, p); err != nil {
			_ = c.Close()
			return nil, err
		}
	}
	return c, nil
}

// layered names the file for a connection through the layer of [registerVFS].
func layered(path string) string {
	path = filepath.ToSlash(path)
	if path != "" && path[0] != '/' {
		path = "/" + path // C:/folder
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "vfs=" + vfsName}).String()
}

// readerPatience is how long a reader waits for a lock: readers of a WAL meet one
// only while another process recovers or removes the WAL.
const readerPatience = 5 * time.Second

func pragma(c *sqlite.Conn, p string) error {
	st, _, err := c.PrepareTransient("PRAGMA " + p)
	if err != nil {
		return err
	}
	_, err = st.Step()
	if e := st.Finalize(); err == nil {
		err = e
	}
	return err
}

// prepare returns the connection's statement for q, bound to args. SQLite prepares a
// statement again, which takes longer than to run it, whenever a value is bound that its
// plan could depend on: a parameter in a join, in a WHERE that a partial index could serve,
// or as a LIMIT. Such a one is written as +?, on which no plan depends.
func prepare(c *sqlite.Conn, q string, args []any) (*sqlite.Stmt, error) {
	st, err := c.Prepare(q)
	if err != nil {
		return nil, err
	}
	for i, a := range args {
		switch a := a.(type) {
		case nil:
			st.BindNull(i + 1)
		case int64:
			st.BindInt64(i+1, a)
		case int:
			st.BindInt64(i+1, int64(a))
		case string:
			st.BindText(i+1, a)
		case []byte:
			st.BindBytes(i+1, a)
		default:
			return nil, fmt.Errorf("bind %T", a)
		}
	}
	return st, nil
}

// exec runs a statement that gives no rows.
func exec(c *sqlite.Conn, q string, args ...any) error {
	st, err := prepare(c, q, args)
	if err != nil {
		return err
	}
	return step(st)
}

// step runs a bound statement that gives no rows and makes it ready for the next use.
func step(st *sqlite.Stmt) error {
	if _, err := st.Step(); err != nil {
		return err
	}
	return st.Reset()
}

// one calls scan with the only row of q, if there is one.
func one(c *sqlite.Conn, q string, scan func(*sqlite.Stmt), args ...any) (found bool, err error) {
	st, err := prepare(c, q, args)
	if err != nil {
		return false, err
	}
	if found, err = st.Step(); err != nil {
		return false, err
	}
	if found {
		scan(st)
	}
	return found, st.Reset()
}

// each calls scan with each row of q; an error of scan ends it.
func each(c *sqlite.Conn, q string, scan func(*sqlite.Stmt) error, args ...any) error {
	st, err := prepare(c, q, args)
	if err != nil {
		return err
	}
	for {
		more, err := st.Step()
		if err != nil {
			return err
		}
		if !more {
			return st.Reset()
		}
		if err := scan(st); err != nil {
			_ = st.Reset()
			return err
		}
	}
}

// column returns a copy of the bytes of a column, nil for none.
func column(st *sqlite.Stmt, col int) []byte {
	n := st.ColumnLen(col)
	if n == 0 {
		return nil
	}
	b := make([]byte, n)
	st.ColumnBytes(col, b)
	return b
}

// micros is how a time is kept. The zero time keeps its own number.
func micros(t time.Time) int64 { return t.UnixMicro() }

// moment is the inverse of micros.
func moment(us int64) time.Time { return time.UnixMicro(us).UTC() }
