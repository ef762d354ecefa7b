package sqlite

import (
	"context"
	"errors"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// selectPatience bounds one statement of [Store.Select].
const selectPatience = 30 * time.Second

// Select runs one SQL statement that only reads and calls fn with each row. The
// views v_sessions, v_loops, v_steps and v_entries are meant for it; everything
// else may change with a version. A value is nil, int64, float64, string or
// []byte. The statement is ended with ctx, after 30 s at most, with
// [stint.Unavailable]; one that is wrong or would write is [stint.Invalid]. An
// error of fn ends it and is returned as it is. A statement that names one session
// by v_entries or v_steps still reads the whole journal.
func (s *Store) Select(ctx context.Context, query string, fn func(cols []string, row []any) error) error {
	ctx, cancel := context.WithTimeout(ctx, selectPatience)
	defer cancel()
	s.mu.RLock()
	over := s.closed
	s.mu.RUnlock()
	if over {
		return closed("sql")
	}
	c, err := openConn(s.opt.Path, sqlite.OpenReadOnly, "query_only = 1", "temp_store = MEMORY")
	if err != nil {
		return explain("sql", err)
	}
	defer c.Close()
	if err := c.SetAuthorizer(sqlite.AuthorizeFunc(readsOnly)); err != nil {
		return explain("sql", err)
	}
	c.SetInterrupt(ctx.Done())
	defer c.SetInterrupt(nil)
	st, rest, err := c.PrepareTransient(query)
	if err != nil {
		return badSQL(err)
	}
	defer st.Finalize() //nolint:errcheck // what failed was said by Step
	if rest > 0 {
		return refuse(stint.Invalid, "sql", stint.ID{}, "run one statement at a time, without anything behind it", "there is more than one statement")
	}
	cols := make([]string, st.ColumnCount())
	for i := range cols {
		cols[i] = st.ColumnName(i)
	}
	for {
		more, err := st.Step()
		if err != nil {
			return badSQL(err)
		}
		if !more {
			return nil
		}
		row := make([]any, len(cols))
		for i := range row {
			row[i] = value(st, i)
		}
		if err := fn(cols, row); err != nil {
			return err
		}
	}
}

func value(st *sqlite.Stmt, i int) any {
	switch st.ColumnType(i) {
	case sqlite.TypeInteger:
		return st.ColumnInt64(i)
	case sqlite.TypeFloat:
		return st.ColumnFloat(i)
	case sqlite.TypeText:
		return st.ColumnText(i)
	case sqlite.TypeBlob:
		return append([]byte{}, column(st, i)...)
	case sqlite.TypeNull:
	}
	return nil
}

// readsOnly lets a statement read, compute and nothing else.
func readsOnly(a sqlite.Action) sqlite.AuthResult {
	switch a.Type() {
	case sqlite.OpSelect, sqlite.OpRead, sqlite.OpFunction, sqlite.OpRecursive:
		return sqlite.AuthResultOK
	}
	return sqlite.AuthResultDeny
}

// badSQL tells a wrong statement from a store that fails.
func badSQL(err error) error {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultError, sqlite.ResultAuth, sqlite.ResultReadOnly, sqlite.ResultMismatch, sqlite.ResultRange,
		sqlite.ResultMisuse: // of nothing
		return &stint.Error{
			Code: stint.Invalid, Op: "sql", Err: errors.Unwrap(err),
			Hint: "`stint sql` reads v_sessions, v_loops, v_steps, v_entries and v_ledger; SELECT * FROM one of them LIMIT 1 shows its columns",
		}
	}
	return explain("sql", err)
}
