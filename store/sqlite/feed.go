package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/cursor"
)

// The order in which entries became durable is that of journal.id: who writes an
// entry takes the next number in the transaction that commits it, and one process
// writes at a time. Numbers begin again only behind the newest entry there is, so
// those of sessions that were deleted may be given once more: the hash in a cursor
// tells them apart.
//
// Columns are those of [rows.entry]; 17 is prev.
const sqlFeed = `SELECT j.seq, j.kind, j.epoch, j.line, j.loop, j.attempt, j.step, j.sub, j.ts, j.actor, j.cause, j.v, j.seal, j.data, j.body, j.blob, j.erased, j.prev,
	j.id, s.id, s.trigger FROM journal j LEFT JOIN sessions s ON s.sid = j.sid WHERE j.id > ? ORDER BY j.id LIMIT +?`

// Feed implements [stint.Watcher].
func (s *Store) Feed(ctx context.Context, after string, limit int) (entries []stint.Entry, cursors []string, err error) {
	err = s.read(ctx, "feed", func(c *sqlite.Conn) error {
		at, err := feedPlace(c, after)
		if err == nil && limit > 0 {
			entries, cursors, err = s.rows.feed(c, &at, limit)
		} else if err == nil {
			_, err = one(c, "SELECT id, seal FROM journal ORDER BY id DESC LIMIT 1", func(st *sqlite.Stmt) { moveTo(&at, st, 0, 1) })
		}
		cursors = append(cursors, at.String())
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return entries, cursors, nil
}

// feedPlace is the place that a cursor names, or says why there is no such place here.
func feedPlace(c *sqlite.Conn, after string) (cursor.Cursor, error) {
	var here cursor.Cursor
	id, err := feedID(c)
	if err == nil && len(id) != len(here.Store) {
		err = refuse(stint.Corrupt, "feed", stint.ID{}, salvageHint, "the id of the feed has %d bytes, not %d", len(id), len(here.Store))
	}
	copy(here.Store[:], id)
	if err != nil || after == "" {
		return here, err
	}
	want, err := cursor.Parse(after)
	if err != nil || want.Pos == 0 && want == here {
		return want, err
	}
	if _, err := one(c, "SELECT id, seal FROM journal WHERE id = ?", func(st *sqlite.Stmt) { moveTo(&here, st, 0, 1) }, want.Pos); err != nil {
		return here, err
	}
	if here != want {
		return here, cursor.Moved(after)
	}
	return want, nil
}

// feedID is what tells cursors of this file from those of others; nil: it has none.
func feedID(c *sqlite.Conn) (id []byte, err error) {
	_, err = one(c, "SELECT value FROM meta WHERE name = 'feed.id'", func(st *sqlite.Stmt) { id = column(st, 0) })
	return id, err
}

// moveTo makes at the place behind the entry that st stands on, whose id and seal are
// in these columns.
func moveTo(at *cursor.Cursor, st *sqlite.Stmt, id, seal int) {
	at.Pos = st.ColumnInt64(id)
	st.ColumnBytes(seal, at.Check[:])
}

// feed reads at most limit entries behind at, with the cursor behind each, and moves at
// behind them. Those of the system journal count and are left out.
func (r *rows) feed(c *sqlite.Conn, at *cursor.Cursor, limit int) (all []stint.Entry, cursors []string, err error) {
	err = each(c, sqlFeed, func(st *sqlite.Stmt) error {
		if st.ColumnIsNull(19) {
			return refuse(stint.Corrupt, "feed", stint.ID{}, salvageHint, "the entry with the number %d belongs to no session", st.ColumnInt64(18))
		}
		moveTo(at, st, 18, 12)
		if st.ColumnText(20) == "system" {
			return nil
		}
		id, err := stint.ParseID(st.ColumnText(19))
		if err != nil {
			return refuse(stint.Corrupt, "feed", stint.ID{}, salvageHint, "an entry's session has a damaged id: %w", err)
		}
		e, err := r.entry(c, st, id)
		all, cursors = append(all, e), append(cursors, at.String())
		return err
	}, at.Pos, limit)
	return all, cursors, err
}
