package sqlite

import (
	"context"
	"embed"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
)

// The migrations: NNNN_words.sql, each run once, in one transaction that sets
// user_version to NNNN.
//
//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks the file as ours: "stnt".
const applicationID = 0x73746e74

func migrationFiles() []string {
	names, _ := fs.Glob(migrations, "migrations/*.sql") // the pattern is right, and the result sorted
	return names
}

// schemaVersion is what this program knows.
func schemaVersion() int { return len(migrationFiles()) }

// inspect returns the schema version of the file at path, 0 for an empty one, and
// refuses what is not ours, without writing anything to it or, where it can be helped,
// beside it.
func inspect(file string) (version int, err error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return 0, unavailable("open", err)
	case info.IsDir():
		return 0, refuse(stint.Unavailable, "open", stint.ID{}, "name a file in it", "%s is a folder, and a store is a file", file)
	case !info.Mode().IsRegular():
		return 0, refuse(stint.Unavailable, "open", stint.ID{}, "give the store a path of its own", "%s is no regular file, and a store is one", file)
	case info.Size() == 0:
		return 0, nil
	case info.Size() < minPage && !isThere(file+"-journal"):
		// SQLite takes one byte for an empty file, and would write over it.
		return 0, refuse(stint.Corrupt, "open", stint.ID{}, notOurs, "%s is not a database: it has %d bytes", file, info.Size())
	}
	// A connection that only reads makes a WAL and its index where there is none, and
	// leaves them: so the file is looked at as one that nobody changes, as long as
	// nothing beside it says that somebody does, or that something is to be played back.
	if alone := func() bool { return !isThere(file+"-wal") && !isThere(file+"-journal") }; alone() {
		version, err = judge(file, immutable(file), sqlite.OpenReadOnly|sqlite.OpenURI)
		if alone() || sqlite.ErrCode(err) == sqlite.ResultNotADB {
			return version, explain("open", err)
		}
	}
	// Who dies while a store is made leaves a rollback journal, which has to be played
	// back before anything can be read; only a writer may do that.
	version, err = judge(file, file, sqlite.OpenReadOnly)
	if sqlite.ErrCode(err) == sqlite.ResultReadOnlyRollback {
		version, err = judge(file, file, sqlite.OpenReadWrite)
	}
	return version, explain("open", err)
}

// minPage is the least size of a page, and so of a database.
const minPage = 512

// notOurs is the way out where a file is not, or no longer, a store.
const notOurs = "give the store a path of its own; if this was one, " + salvageHint

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// judge opens the file by its address and looks whose it is, in one transaction: a
// store that another process makes meanwhile must not be seen half way.
func judge(file, address string, how sqlite.OpenFlags) (version int, err error) {
	c, err := openConn(address, how)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := exec(c, "BEGIN"); err != nil {
		return 0, err
	}
	app, tables := 0, 0
	if _, err = one(c, "PRAGMA user_version", func(st *sqlite.Stmt) { version = st.ColumnInt(0) }); err == nil {
		_, err = one(c, "PRAGMA application_id", func(st *sqlite.Stmt) { app = st.ColumnInt(0) })
	}
	if err == nil {
		_, err = one(c, "SELECT count(*) FROM sqlite_schema", func(st *sqlite.Stmt) { tables = st.ColumnInt(0) })
	}
	switch {
	case sqlite.ErrCode(err).ToPrimary() == sqlite.ResultError: // these statements are right, so the file is not
		return 0, refuse(stint.Corrupt, "open", stint.ID{}, salvageHint, "%s is damaged: %w", file, err)
	case err != nil:
		return 0, err
	case app != applicationID && (app != 0 || version != 0 || tables != 0):
		return 0, refuse(stint.Conflict, "open", stint.ID{}, "give the store a path of its own", "%s is a database of another program", file)
	case version > schemaVersion():
		return 0, refuse(stint.Conflict, "open", stint.ID{}, "use the newer stint, or open another store; this one was not touched",
			"%s has schema version %d, this stint knows up to %d", file, version, schemaVersion())
	case version < 0, version == 0 && (app != 0 || tables != 0):
		return 0, refuse(stint.Corrupt, "open", stint.ID{}, salvageHint, "%s is damaged: its header has no schema version, and it is a store", file)
	case version == schemaVersion():
		return version, sameSchema(c)
	}
	return version, nil
}

// sameSchema refuses a file whose tables, indexes and views are not, to the letter,
// those of this version: a query would fail, or give what nobody wrote.
func sameSchema(c *sqlite.Conn) error {
	want, err := wantedSchema()
	if err != nil {
		return err
	}
	damaged := func(what string) error {
		return refuse(stint.Corrupt, "open", stint.ID{}, salvageHint, "the schema is damaged: %.100q", what)
	}
	if err := each(c, "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL", func(st *sqlite.Stmt) error {
		sql := st.ColumnText(1)
		if !want[sql] {
			return damaged(st.ColumnText(0))
		}
		delete(want, sql)
		return nil
	}); err != nil {
		return err
	}
	for sql := range want {
		return damaged(sql)
	}
	return nil
}

// wantedSchema is what SQLite keeps of the statements of all migrations that make
// something: the text from CREATE on.
func wantedSchema() (map[string]bool, error) {
	want := map[string]bool{}
	for _, name := range migrationFiles() {
		b, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for q := range strings.SplitSeq(string(b), ";\n") {
			for q = strings.TrimSpace(q); strings.HasPrefix(q, "--"); q = strings.TrimSpace(q) {
				_, q, _ = strings.Cut(q, "\n")
			}
			if strings.HasPrefix(q, "CREATE ") {
				want[strings.TrimSuffix(q, ";")] = true
			}
		}
	}
	return want, nil
}

// migrate brings the file from version up to date. Other processes may do the same
// at once: each migration looks again once it has the lock.
func (s *Store) migrate(ctx context.Context, c *sqlite.Conn, version int) error {
	for _, name := range migrationFiles()[version:] {
		if err := ctx.Err(); err != nil {
			return unavailable("open", err)
		}
		if err := s.patient(c, "BEGIN IMMEDIATE"); err != nil {
			return err
		}
		if err := migrateTo(c, name); err != nil {
			if !c.AutocommitEnabled() {
				_ = exec(c, "ROLLBACK")
			}
			return err
		}
	}
	return nil
}

// patient runs q, waiting for other processes.
func (s *Store) patient(c *sqlite.Conn, q string) error {
	err := script(c, q)
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultBusy {
		err = s.turn.wait(s.opt.Patience, func() error { return script(c, q) })
	}
	return err
}

// useWAL makes the file one with a WAL. A new one is none yet, and neither is a backup:
// in it whoever reads would keep out whoever writes.
func (s *Store) useWAL(c *sqlite.Conn) error {
	mode := ""
	look := func() error {
		_, err := one(c, "PRAGMA journal_mode", func(st *sqlite.Stmt) { mode = st.ColumnText(0) })
		return err
	}
	if err := look(); err != nil || mode == "wal" {
		return err
	}
	if err := s.patient(c, "PRAGMA journal_mode = WAL"); err != nil {
		return err
	}
	if err := look(); err == nil && mode != "wal" {
		return refuse(stint.Unavailable, "open", stint.ID{}, "put the store on a file system that can share memory between processes", "%s cannot have a write-ahead log", s.opt.Path)
	} else if err != nil {
		return err
	}
	return nil
}

// migrateTo runs one migration in the transaction that has begun, unless somebody
// was quicker, and commits.
func migrateTo(c *sqlite.Conn, name string) error {
	number, _, _ := strings.Cut(path.Base(name), "_")
	target, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	version := 0
	if _, err := one(c, "PRAGMA user_version", func(st *sqlite.Stmt) { version = st.ColumnInt(0) }); err != nil {
		return err
	}
	if version < target {
		q, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		if err := script(c, string(q)); err != nil {
			return err
		}
		faultpoint.Hit(faultpoint.InMigration)
		if err := pragma(c, "user_version = "+strconv.Itoa(target)); err != nil {
			return err
		}
	}
	return exec(c, "COMMIT")
}

// script runs the statements of q.
func script(c *sqlite.Conn, q string) error {
	for q = strings.TrimSpace(q); q != ""; {
		st, rest, err := c.PrepareTransient(q)
		if err != nil {
			return err
		}
		_, err = st.Step()
		if e := st.Finalize(); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
		q = strings.TrimSpace(q[len(q)-rest:])
	}
	return nil
}

// immutable is the address of a file that SQLite is to read as one that nobody
// changes: without locks, and without looking for a WAL.
func immutable(path string) string {
	path = filepath.ToSlash(path)
	if path != "" && path[0] != '/' {
		path = "/" + path // C:/folder
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "immutable=1"}).String()
}
