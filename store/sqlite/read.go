package sqlite

import (
	"context"
	"encoding/json"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// rows makes values of rows.
type rows struct {
	names   *names
	runners *runners
}

// read calls fn with a connection for reading.
func (s *Store) read(ctx context.Context, op string, fn func(c *sqlite.Conn) error) error {
	var c *sqlite.Conn
	select {
	case c = <-s.pool:
	case <-ctx.Done():
		return &stint.Error{Code: stint.Unavailable, Op: op, Err: ctx.Err()}
	}
	defer func() { s.pool <- c }()
	s.mu.RLock()
	over := s.closed
	s.mu.RUnlock()
	if over {
		return closed(op)
	}
	if c == nil {
		var err error
		if c, err = openConn(s.opt.Path, sqlite.OpenReadOnly, "query_only = 1", "cache_size = -256"); err != nil {
			return explain(op, err)
		}
	}
	return explain(op, fn(c))
}

// sqlRow selects what [rows.scan] reads.
const sqlRow = sqlRowColumns + "sessions s " + sqlJoins

// sqlRowColumns is sqlRow up to where its rows come from.
const sqlRowColumns = `SELECT s.id, s.short, s.name, s.agent, s.status, s.created, s.fold,
	h.line, h.loop, h.attempt, h.step, h.flags, h.since, h.loopseq, h.head, h.hash, h.updated, h.mark, h.sum,
	f.id, l.holder, l.epoch, l.expires, l.claimed, l.prior, l.now, l.now_at,
	(SELECT count(*) FROM inbox i WHERE i.sid = s.sid AND i.taken IS NULL), s.rev
	FROM `

// A session without its head or its family is damaged, and must not be missing for
// that: see [damage].
const sqlJoins = `LEFT JOIN heads h ON h.sid = s.sid LEFT JOIN families f ON f.fid = s.fid LEFT JOIN leases l ON l.sid = s.sid `

// sqlSid is the number of a session.
const sqlSid = "(SELECT sid FROM sessions WHERE id = ?)"

// session returns one row.
func (r *rows) session(c *sqlite.Conn, id stint.ID) (row stint.Row, err error) {
	now, lives := micros(clock()), map[string]bool{}
	var bad error
	found, err := one(c, sqlRow+"WHERE s.sid = "+sqlSid, func(st *sqlite.Stmt) { bad = r.scan(st, &row, now, lives) }, id.String())
	switch {
	case err != nil:
		return row, err
	case !found:
		if err := beheaded(c, id); err != nil {
			return row, err
		}
		return row, notFound("session", id)
	}
	return row, bad
}

// printable is a short id as commands print it, bare, with a ? for what no id has: it may
// be damaged.
func printable(short string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
			return r
		}
		return '?'
	}, short)
}

// scan reads a row of sqlRow. lives remembers whether a holder does.
func (r *rows) scan(st *sqlite.Stmt, row *stint.Row, now int64, lives map[string]bool) error {
	s := &row.Session
	full := st.ColumnText(0)
	broken := func(err error) error {
		return refuse(stint.Corrupt, "session", s.ID, salvageHint, "the row of session %q is damaged: %w", full, err)
	}
	var err error
	if s.ID, err = stint.ParseID(full); err != nil {
		return broken(err)
	}
	if err := damage(st, full); err != nil {
		return broken(err)
	}
	var fold rest
	if err := json.Unmarshal(column(st, 6), &fold); err != nil {
		return broken(err)
	}
	row.Short = printable(st.ColumnText(1))
	s.Name, s.Status, s.Created = st.ColumnText(2), statusOf(st.ColumnInt64(4)), moment(st.ColumnInt64(5))
	s.Agent = stint.AgentRef{Name: st.ColumnText(3), Runtime: fold.Runtime, Pin: fold.Pin}
	s.Trigger, s.Parent, s.Labels, s.Limits = fold.Trigger, fold.Parent, fold.Labels, fold.Limits
	s.Reason, s.Wait, s.Ended = fold.Reason, fold.Wait, fold.Ended
	flags := st.ColumnInt64(11)
	s.At = stint.Place{
		Line: st.ColumnInt(7), Loop: st.ColumnInt(8), Attempt: st.ColumnInt(9), Step: st.ColumnInt(10),
		Open: flags&flagOpen != 0, Parked: flags&flagParked != 0, Since: moment(st.ColumnInt64(12)), LoopSeq: stint.Seq(st.ColumnInt64(13)),
		Failures: fold.Failures, Deaths: fold.Deaths, Error: fold.Error, Said: fold.Said, Approvals: fold.Approvals,
	}
	s.Head, s.Updated = stint.Seq(st.ColumnInt64(14)), moment(st.ColumnInt64(16))
	st.ColumnBytes(15, s.HeadHash[:])
	st.ColumnBytes(18, s.Checkpoint.Sum[:])
	if err := parseMark(column(st, 17), s); err != nil {
		return broken(err)
	}
	if s.Family, err = stint.ParseID(st.ColumnText(19)); err != nil {
		return broken(err)
	}
	row.Unread = st.ColumnInt(27)
	if st.ColumnIsNull(20) {
		if err := saneTimes(row); err != nil {
			return broken(err)
		}
		return nil
	}
	l := &row.Lease
	*l = stint.Lease{
		Session: s.ID, Holder: st.ColumnText(20), Epoch: st.ColumnInt64(21), Expires: moment(st.ColumnInt64(22)), Claimed: moment(st.ColumnInt64(23)),
		Prior: stint.Prior(st.ColumnText(24)), Now: st.ColumnText(25), NowAt: moment(st.ColumnInt64(26)),
	}
	alive, known := lives[l.Holder]
	if !known {
		alive = r.runners.alive(l.Holder)
		lives[l.Holder] = alive
	}
	row.Live = alive && now < st.ColumnInt64(22)
	if err := saneTimes(row); err != nil {
		return broken(err)
	}
	return nil
}

// Session implements [stint.Reader].
func (s *Store) Session(ctx context.Context, id stint.ID) (row stint.Row, err error) {
	err = s.read(ctx, "session", func(c *sqlite.Conn) error {
		row, err = s.rows.session(c, id)
		return err
	})
	return row, err
}

// Inbox implements [stint.Reader]. A session that is not there has an empty one.
func (s *Store) Inbox(ctx context.Context, id stint.ID) (all []stint.Message, err error) {
	err = s.read(ctx, "inbox", func(c *sqlite.Conn) error {
		return each(c, `SELECT msg, kind, sender, at, data, body FROM inbox
			WHERE sid = `+sqlSid+` AND taken IS NULL ORDER BY id`, func(st *sqlite.Stmt) error {
			kinds, k := messageKinds(), st.ColumnInt(1)
			if k < 0 || k >= len(kinds) {
				return refuse(stint.Corrupt, "inbox", id, salvageHint, "there is no kind %d of messages", k)
			}
			all = append(all, stint.Message{
				ID: st.ColumnText(0), Kind: kinds[k], From: stint.Actor(st.ColumnText(2)), At: moment(st.ColumnInt64(3)),
				Data: column(st, 4), Body: column(st, 5),
			})
			return nil
		}, id.String())
	})
	return all, err
}

// Unread implements [stint.Watcher].
func (s *Store) Unread(ctx context.Context, holder string) (ids []stint.ID, err error) {
	err = s.read(ctx, "unread", func(c *sqlite.Conn) error {
		return each(c, `SELECT s.id FROM leases l CROSS JOIN sessions s ON s.sid = l.sid
			WHERE l.holder = +? AND EXISTS (SELECT 1 FROM inbox i WHERE i.sid = l.sid AND i.taken IS NULL)`, func(st *sqlite.Stmt) error {
			id, err := stint.ParseID(st.ColumnText(0))
			ids = append(ids, id)
			return err
		}, holder)
	})
	return ids, err
}
