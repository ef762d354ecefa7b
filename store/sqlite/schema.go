package sqlite

import (
	"context"
	"embed"
	"io/fs"
	"os"
	"path"
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
// refuses what is not ours, without writing anything.
func inspect(file string) (version int, err error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, unavailable("open", err)
	}
	if info.Size() == 0 {
		return 0, nil
	}
	app, tables := 0, 0
	look := func(how sqlite.OpenFlags) error {
		c, err := openConn(file, how)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err = one(c, "PRAGMA user_version", func(st *sqlite.Stmt) { version = st.ColumnInt(0) }); err == nil {
			_, err = one(c, "PRAGMA application_id", func(st *sqlite.Stmt) { app = st.ColumnInt(0) })
		}
		if err == nil {
			_, err = one(c, "SELECT count(*) FROM sqlite_schema", func(st *sqlite.Stmt) { tables = st.ColumnInt(0) })
		}
		return err
	}
	// Who dies while a store is made leaves a rollback journal, which has to be played
	// back before anything can be read; only a writer may do that.
	if err = look(sqlite.OpenReadOnly); sqlite.ErrCode(err) == sqlite.ResultReadOnlyRollback {
		err = look(sqlite.OpenReadWrite)
	}
	switch {
	case err != nil:
		return 0, explain("open", err)
	case app != applicationID && (app != 0 || version != 0 || tables != 0):
		return 0, refuse(stint.Conflict, "open", stint.ID{}, "give the store a path of its own", "%s is a database of another program", file)
	case version > schemaVersion():
		return 0, refuse(stint.Conflict, "open", stint.ID{}, "use the newer stint, or open another store; this one was not touched",
			"%s has schema version %d, this stint knows up to %d", file, version, schemaVersion())
	}
	return version, nil
}

// migrate brings the file from version up to date. Other processes may do the same
// at once: each migration looks again once it has the lock.
func (s *Store) migrate(ctx context.Context, c *sqlite.Conn, version int) error {
	wait := func(q string) error {
		err := script(c, q)
		if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultBusy {
			err = s.turn.wait(s.opt.Patience, func() error { return script(c, q) })
		}
		return err
	}
	if err := wait("PRAGMA journal_mode = WAL"); err != nil {
		return err
	}
	for _, name := range migrationFiles()[version:] {
		if err := ctx.Err(); err != nil {
			return unavailable("open", err)
		}
		if err := wait("BEGIN IMMEDIATE"); err != nil {
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
