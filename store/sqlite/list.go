package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// where builds the condition of a query from terms and their parameters.
type where struct {
	terms []string
	args  []any
}

func (w *where) and(term string, args ...any) {
	w.terms, w.args = append(w.terms, term), append(w.args, args...)
}

// way is how the rows of a list are come by: what stands before the joins of [sqlRow], and
// the id that they are sorted by. CROSS JOIN keeps SQLite from turning the two around.
type way struct{ from, id string }

// wayTo chooses the way to the sessions that f selects, so that a list reads about as much
// as it returns.
func wayTo(c *sqlite.Conn, f *stint.Filter) (way, error) {
	few, err := fewCreated(c, f)
	switch {
	case err != nil:
		return way{}, err
	case few:
		return way{"sessions s INDEXED BY sessions_created ", "s.id"}, nil
	case len(f.Labels) > 0:
		return way{"labels g CROSS JOIN sessions s ON s.id = g.id ", "g.id"}, nil
	case f.Text != "":
		return way{"sessions t INDEXED BY sessions_text CROSS JOIN sessions s ON s.sid = t.sid ", "t.id"}, nil
	}
	return way{"sessions s ", "s.id"}, nil
}

// Sessions implements [stint.Reader]. Newest is by id, which sorts by creation.
func (s *Store) Sessions(ctx context.Context, f stint.Filter) (all []stint.Row, err error) {
	if f.Short != "" && len(f.Short) < minShort {
		return nil, nil
	}
	err = s.read(ctx, "sessions", func(c *sqlite.Conn) error {
		now, lives := micros(clock()), map[string]bool{}
		q, w, err := s.listing(c, &f, now, lives)
		if err != nil {
			return err
		}
		err = each(c, q, func(st *sqlite.Stmt) error {
			var row stint.Row
			err := s.rows.scan(st, &row, now, lives)
			all = append(all, row)
			return err
		}, w.args...)
		if err == nil && len(all) == 0 && len(w.terms) == 1 && f.Trigger == "" { // nothing was asked for but what is no system journal
			err = hollow(c)
		}
		return err
	})
	return all, err
}

// listing is the statement that lists what f selects, and what is bound to it.
func (s *Store) listing(c *sqlite.Conn, f *stint.Filter, now int64, lives map[string]bool) (string, *where, error) {
	by, err := wayTo(c, f)
	if err != nil {
		return "", nil, err
	}
	w, err := s.where(c, f, by, now, lives)
	if err != nil {
		return "", nil, err
	}
	q := sqlRowColumns + by.from + sqlJoins
	if len(w.terms) > 0 {
		q += "WHERE " + strings.Join(w.terms, " AND ")
	}
	w.args = append(w.args, cmp.Or(f.Limit, 1_000))
	return q + " ORDER BY " + by.id + " DESC LIMIT ?", w, nil
}

// maxFew is how many sessions are sorted to save reading all others.
const maxFew = 2_000

// fewCreated reports whether so few sessions were created in the time that f names
// that they are better found by it: SQLite would read all sessions, newest first,
// until it has enough of them.
func fewCreated(c *sqlite.Conn, f *stint.Filter) (bool, error) {
	if f.Since.IsZero() && f.Before.IsZero() {
		return false, nil
	}
	since, before, n := int64(-1<<63), int64(1<<63-1), 0
	if !f.Since.IsZero() {
		since = micros(f.Since)
	}
	if !f.Before.IsZero() {
		before = micros(f.Before)
	}
	_, err := one(c, "SELECT count(*) FROM (SELECT 1 FROM sessions WHERE created >= ? AND created < ? LIMIT ?)",
		func(st *sqlite.Stmt) { n = st.ColumnInt(0) }, since, before, maxFew)
	return n < maxFew, err
}

func (s *Store) where(c *sqlite.Conn, f *stint.Filter, by way, now int64, lives map[string]bool) (*where, error) {
	w := &where{}
	if f.Statuses != nil {
		if err := s.statuses(c, w, f.Statuses, now, lives); err != nil {
			return nil, err
		}
	}
	if f.Open {
		w.and("s.status <= 2")
	}
	for _, term := range []struct{ column, value string }{{"s.agent", f.Agent}, {"s.name", f.Name}, {"s.trigger", f.Trigger}} {
		if term.value != "" {
			w.and(term.column+" = ?", term.value)
		}
	}
	if f.Trigger == "" {
		w.and("s.trigger <> 'system'")
	}
	if f.Short != "" {
		rev := reversed(f.Short)
		w.and("s.rev >= ? AND s.rev < ?", rev, rev+"~") // no character of an id comes after ~
	}
	if !f.Family.IsZero() {
		w.and("s.fid = (SELECT fid FROM families WHERE id = ?)", f.Family.String())
	}
	for i, name := range slices.Sorted(maps.Keys(f.Labels)) {
		if i == 0 && by.id == "g.id" {
			w.and("g.key = ? AND g.value = ?", name, f.Labels[name])
			continue
		}
		w.and("EXISTS (SELECT 1 FROM labels e WHERE e.key = ? AND e.value = ? AND e.id = s.id)", name, f.Labels[name])
	}
	if f.Text != "" {
		of := "s"
		if by.id == "t.id" {
			of = "t"
		}
		w.and("instr(lower("+of+".name || char(10) || "+of+".agent), lower(?)) > 0", f.Text)
	}
	if !f.Since.IsZero() {
		w.and("s.created >= ?", micros(f.Since))
	}
	if !f.Before.IsZero() {
		w.and("s.created < ?", micros(f.Before))
	}
	if !f.After.IsZero() {
		w.and(by.id+" < ?", f.After.String())
	}
	return w, nil
}

// statuses adds the terms for statuses as stored; running ones are pending under
// a lease that lives.
func (s *Store) statuses(c *sqlite.Conn, w *where, want []stint.Status, now int64, lives map[string]bool) error {
	var terms []string
	var args []any
	for _, status := range want {
		if id, ok := statusID(status); ok {
			terms, args = append(terms, "s.status = ?"), append(args, id)
			continue
		}
		if status != stint.Running {
			continue
		}
		all, err := holders(c)
		if err != nil {
			return err
		}
		alive := []string{}
		for _, h := range all {
			if lives[h] = s.runners.alive(h); lives[h] {
				alive = append(alive, h)
			}
		}
		b, err := json.Marshal(alive)
		if err != nil {
			return err
		}
		terms = append(terms, "s.status = 1 AND s.sid IN (SELECT sid FROM leases WHERE expires > ? AND holder IN (SELECT value FROM json_each(?)))")
		args = append(args, now, string(b))
	}
	if len(terms) == 0 {
		terms = []string{"FALSE"}
	}
	w.and("("+strings.Join(terms, " OR ")+")", args...)
	return nil
}
