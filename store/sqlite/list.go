package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
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

// way is how the rows of a list are come by: what stands before the joins of [sqlRow], the
// id that they are sorted by, and what is bound in it. CROSS JOIN keeps SQLite from turning
// the tables around.
type way struct {
	from, id string
	args     []any
	byLabel  string // the label whose sessions are looked at one by one
}

// wayTo chooses the way to the sessions that f selects, so that a list reads about as much
// as it returns: few that were created in a time are read and sorted; few with a label are
// looked at one by one; else those with a text are, by its index, or those with a label.
func wayTo(c *sqlite.Conn, f *stint.Filter) (way, error) {
	few, err := fewCreated(c, f)
	if err != nil {
		return way{}, err
	}
	labels, rare, err := byCount(c, f.Labels)
	switch {
	case err != nil:
		return way{}, err
	case few:
		return way{from: "sessions s INDEXED BY sessions_created ", id: "s.id"}, nil
	case f.Text != "" && !rare:
		w := way{from: "sessions t INDEXED BY sessions_text ", id: "t.id"}
		w.labelled(f.Labels, labels)
		w.from += "CROSS JOIN sessions s ON s.sid = t.sid "
		return w, nil
	case len(labels) > 0:
		w := way{from: "labels g ", id: "g.id", byLabel: labels[0]}
		w.labelled(f.Labels, labels[1:])
		w.from += "CROSS JOIN sessions s ON s.id = g.id "
		return w, nil
	}
	return way{from: "sessions s ", id: "s.id"}, nil
}

// labelled adds a look-up for each of the labels.
func (w *way) labelled(all map[string]string, names []string) {
	for i, name := range names {
		g := "g" + strconv.Itoa(i+1)
		w.from += "CROSS JOIN labels " + g + " ON " + g + ".key = ? AND " + g + ".value = ? AND " + g + ".id = " + w.id + " "
		w.args = append(w.args, name, all[name])
	}
}

// maxLabelled is up to how many sessions with a label are counted, to begin with the label
// that fewest have.
const maxLabelled = 20_000

// byCount returns the names of the labels, one that few sessions have first, and whether
// there is such a one.
func byCount(c *sqlite.Conn, labels map[string]string) (names []string, rare bool, err error) {
	names = slices.Sorted(maps.Keys(labels))
	least := maxLabelled
	for i, name := range names {
		n := 0
		if _, err := one(c, "SELECT count(*) FROM (SELECT 1 FROM labels WHERE key = ? AND value = ? LIMIT +?)",
			func(st *sqlite.Stmt) { n = st.ColumnInt(0) }, name, labels[name], maxLabelled); err != nil {
			return nil, false, err
		}
		if n < least {
			least = n
			names[0], names[i] = names[i], names[0]
		}
	}
	return names, least < maxFew, nil
}

// Sessions implements [stint.Reader]. Newest is by id, which sorts by creation.
func (s *Store) Sessions(ctx context.Context, f stint.Filter) (all []stint.Row, err error) {
	if f.Short != "" && len(f.Short) < minShort {
		return nil, nil
	}
	err = s.read(ctx, "sessions", func(c *sqlite.Conn) (err error) {
		if len(f.Statuses) < 2 {
			all, err = s.list(c, f)
			return err
		}
		// Each status has an order of its own in the index: together they would be read whole
		// and sorted.
		if err := exec(c, "BEGIN"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, exec(c, "COMMIT")) }()
		for _, status := range f.Statuses {
			part := f
			part.Statuses = []stint.Status{status}
			rows, err := s.list(c, part)
			if err != nil {
				return err
			}
			all = append(all, rows...)
		}
		slices.SortFunc(all, func(a, b stint.Row) int { return bytes.Compare(b.Session.ID[:], a.Session.ID[:]) })
		all = slices.CompactFunc(all, func(a, b stint.Row) bool { return a.Session.ID == b.Session.ID }) // running is pending too
		all = all[:min(len(all), cmp.Or(f.Limit, defaultLimit))]
		return nil
	})
	return all, err
}

// defaultLimit is how many sessions a list has that says no number.
const defaultLimit = 1_000

// list is one statement of [Store.Sessions].
func (s *Store) list(c *sqlite.Conn, f stint.Filter) (all []stint.Row, err error) {
	now, lives := micros(clock()), map[string]bool{}
	q, args, err := s.listing(c, &f, now, lives)
	if err != nil {
		return nil, err
	}
	err = each(c, q, func(st *sqlite.Stmt) error {
		var row stint.Row
		err := s.rows.scan(st, &row, now, lives)
		all = append(all, row)
		return err
	}, args...)
	if err == nil && len(all) == 0 && reflect.DeepEqual(f, stint.Filter{Limit: f.Limit}) { // nothing was asked for
		err = hollow(c)
	}
	return all, err
}

// listing is the statement that lists what f selects, and what is bound to it.
func (s *Store) listing(c *sqlite.Conn, f *stint.Filter, now int64, lives map[string]bool) (string, []any, error) {
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
	return q + " ORDER BY " + by.id + " DESC LIMIT +?", append(append(by.args, w.args...), cmp.Or(f.Limit, defaultLimit)), nil
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
	_, err := one(c, "SELECT count(*) FROM (SELECT 1 FROM sessions WHERE created >= ? AND created < ? LIMIT +?)",
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
	if f.Asking {
		w.and(`instr(s.fold, '"approvals":[') > 0`) // as the index has it
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
	if by.byLabel != "" {
		w.and("g.key = ? AND g.value = ?", by.byLabel, f.Labels[by.byLabel])
	}
	if by.id == "s.id" {
		for _, name := range slices.Sorted(maps.Keys(f.Labels)) {
			w.and("EXISTS (SELECT 1 FROM labels e WHERE e.key = ? AND e.value = ? AND e.id = s.id)", name, f.Labels[name])
		}
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
