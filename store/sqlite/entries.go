package sqlite

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// What is read of an entry, and how entries are found: by id, each naming the one
// before it, from an anchor on; see the migration.
const (
	sqlEntry  = "SELECT seq, kind, epoch, line, loop, attempt, step, sub, ts, actor, cause, v, seal, data, body, blob, erased, prev FROM journal "
	sqlAnchor = "(kind = 8 OR kind = 6 OR kind = 1 OR seq & 63 = 0)"
)

// window is how many entries are read at once where those of some kinds are wanted,
// oldest first.
const window = 1024

// Entries implements [stint.Reader]. A session that is not there has none.
func (s *Store) Entries(ctx context.Context, r stint.Range) (all []stint.Entry, err error) {
	err = s.read(ctx, "entries", func(c *sqlite.Conn) error {
		w := walk{c: c, rows: s.rows, ctx: ctx, id: r.Session, most: cmp.Or(r.Limit, 10_000)}
		found, err := one(c, "SELECT sid, head, last FROM heads WHERE sid = "+sqlSid, func(st *sqlite.Stmt) {
			w.sid, w.head, w.last = st.ColumnInt64(0), st.ColumnInt64(1), st.ColumnInt64(2)
		}, r.Session.String())
		if err == nil && !found {
			err = beheaded(c, r.Session)
		}
		if err != nil || !found {
			return err
		}
		until := w.head
		if r.Until > 0 {
			until = min(until, int64(r.Until))
		}
		if r.Kinds != nil {
			if err := w.want(r.Kinds); err != nil {
				return err
			}
		}
		switch after := int64(r.After); {
		case r.Kinds != nil && !w.odd:
			err = w.anchors(after, until, r.Last)
		case r.Last:
			err = w.back(after, until, w.most)
			slices.Reverse(w.all)
		case r.Kinds == nil:
			err = w.back(after, min(until, after+int64(w.most)), w.most)
			slices.Reverse(w.all)
		default:
			err = w.forth(after, until)
		}
		all = w.all
		if err == nil {
			err = headless(&r, all)
		}
		return err
	})
	return all, err
}

// walk reads entries of one session.
type walk struct {
	c               *sqlite.Conn
	rows            *rows
	ctx             context.Context
	id              stint.ID
	sid, head, last int64
	most            int
	kinds           []int64 // nil: all
	odd             bool    // some of kinds are not in the index
	all             []stint.Entry
}

// want selects kinds.
func (w *walk) want(kinds []stint.Kind) error {
	w.kinds = make([]int64, 0, len(kinds))
	for _, k := range kinds {
		id := kindID(k)
		if id == 0 {
			found, ok, err := w.rows.names.lookup(w.c, string(k))
			if err != nil {
				return err
			}
			if !ok {
				continue // no entry has it
			}
			id = found
		}
		w.odd = w.odd || id != 1 && id != 6 && id != 8
		w.kinds = append(w.kinds, id)
	}
	return nil
}

// anchors reads entries of kinds that the index has.
func (w *walk) anchors(after, until int64, last bool) error {
	q, args := strings.Builder{}, []any{w.sid, after, until}
	q.WriteString(sqlEntry + "WHERE sid = ? AND seq > ? AND seq <= ? AND " + sqlAnchor + " AND kind IN (NULL")
	for _, k := range w.kinds {
		args = append(args, k)
		q.WriteString(", ?")
	}
	q.WriteString(") ORDER BY seq")
	if last {
		q.WriteString(" DESC")
	}
	q.WriteString(" LIMIT +?")
	err := each(w.c, q.String(), func(st *sqlite.Stmt) error {
		e, err := w.rows.entry(w.c, st, w.id)
		w.all = append(w.all, e)
		return err
	}, append(args, w.most)...)
	if last {
		slices.Reverse(w.all)
	}
	return err
}

// back reads up to most entries, newest first, from until back to after.
func (w *walk) back(after, until int64, most int) error {
	if until <= after || most <= 0 {
		return nil
	}
	id := w.last
	if until < w.head {
		// The first anchor at or after until is at most 64 entries away.
		if _, err := one(w.c, "SELECT id FROM journal WHERE sid = +? AND seq >= +? AND "+sqlAnchor+" ORDER BY seq LIMIT 1",
			func(st *sqlite.Stmt) { id = st.ColumnInt64(0) }, w.sid, until); err != nil {
			return err
		}
	}
	st, err := w.c.Prepare(sqlEntry + "WHERE id = ?")
	if err != nil {
		return err
	}
	for seq := int64(0); id != 0 && most > 0; {
		if err := w.ctx.Err(); err != nil {
			return unavailable("entries", err)
		}
		st.BindInt64(1, id)
		found, err := st.Step()
		if err != nil {
			return err
		}
		now := st.ColumnInt64(0)
		if !found || seq != 0 && now != seq-1 {
			_ = st.Reset()
			return refuse(stint.Corrupt, "entries", w.id, salvageHint, "the entry before entry %d is missing", seq)
		}
		seq, id = now, st.ColumnInt64(17)
		if seq <= after {
			id = 0
		} else if seq <= until && (w.kinds == nil || slices.Contains(w.kinds, st.ColumnInt64(1))) {
			e, err := w.rows.entry(w.c, st, w.id)
			if err != nil {
				_ = st.Reset()
				return err
			}
			w.all, most = append(w.all, e), most-1
		}
		if err := st.Reset(); err != nil {
			return err
		}
	}
	return nil
}

// forth reads entries of some kinds, oldest first, a window at a time.
func (w *walk) forth(after, until int64) error {
	for ; after < until && len(w.all) < w.most; after += window {
		n := len(w.all)
		if err := w.back(after, min(after+window, until), window); err != nil {
			return err
		}
		slices.Reverse(w.all[n:])
	}
	w.all = w.all[:min(w.most, len(w.all))]
	return nil
}

// entry reads a row of sqlEntry.
func (r *rows) entry(c *sqlite.Conn, st *sqlite.Stmt, id stint.ID) (e stint.Entry, err error) {
	kind, err := r.names.text(c, st.ColumnInt64(1))
	if err != nil {
		return e, err
	}
	actor, err := r.names.text(c, st.ColumnInt64(9))
	if err != nil {
		return e, err
	}
	if !sane(st.ColumnInt64(8)) {
		return e, refuse(stint.Corrupt, "entries", id, salvageHint, "the time of entry %d lies beyond all years", st.ColumnInt64(0))
	}
	e = stint.Entry{
		Version: uint8(st.ColumnInt64(11)), Session: id, Seq: stint.Seq(st.ColumnInt64(0)), Epoch: st.ColumnInt64(2), Kind: stint.Kind(kind),
		Pos: stint.Position{Line: st.ColumnInt(3), Loop: st.ColumnInt(4), Attempt: st.ColumnInt(5), Step: st.ColumnInt(6), Sub: st.ColumnInt(7)},
		At:  moment(st.ColumnInt64(8)), Actor: stint.Actor(actor), Cause: stint.Seq(st.ColumnInt64(10)),
		Data: column(st, 13), Body: column(st, 14),
	}
	var seal [len(e.Hash) + len(e.Salt)]byte
	st.ColumnBytes(12, seal[:])
	copy(e.Salt[:], seal[copy(e.Hash[:], seal[:]):])
	if b := column(st, 15); len(b) == len(e.Blob.Sum)+8 {
		e.Blob.Size = int64(binary.BigEndian.Uint64(b[copy(e.Blob.Sum[:], b):]))
	}
	if !st.ColumnIsNull(16) {
		e.Erased = true
		st.ColumnBytes(16, e.Commit[:])
	}
	return e, nil
}
