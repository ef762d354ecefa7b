package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/cursor"
)

// Flaw is something in the tables that is not as the store would have written it.
type Flaw struct {
	Session stint.ID  // zero: it cannot be told of which, or it is of the store as a whole
	Seq     stint.Seq // the entry; 0: not one
	What    string    // one line; what it quotes of a damaged row may hold any byte
}

// Verify looks at what the tables hold beside the journals, in one snapshot, and
// calls found with each flaw: the file's own structure and indexes (SQLite's
// integrity check), that whatever a table names is there, that each entry stands in
// the chain of its own session, and that all columns that repeat what the row of a
// session says do so. Whether the row is what the entries add up to, and whether the
// entries are sound, is for the caller to check, who can read both.
//
// With a session it looks at what belongs to that one alone, and a session that is
// not there is [stint.NotFound]; with the zero ID it looks at everything, in a time
// that grows with the size of the file, and keeps some 100 bytes in memory for each
// session. It returns the ids of the sessions that it looked at, newest first, also
// of those that no list shows any more. Damage is never its error.
func (s *Store) Verify(ctx context.Context, session stint.ID, found func(Flaw)) (ids []stint.ID, err error) {
	s.mu.RLock()
	over := s.closed
	s.mu.RUnlock()
	if over {
		return nil, closed("verify")
	}
	c, err := openConn(s.opt.Path, sqlite.OpenReadOnly, "query_only = 1", "temp_store = MEMORY")
	if err != nil {
		return nil, explain("verify", err)
	}
	defer c.Close()
	c.SetInterrupt(ctx.Done())
	defer c.SetInterrupt(nil)
	a := &audit{s: s, c: c, ctx: ctx, found: found, one: session, sessions: map[int64]*audited{}, families: map[int64]stint.ID{}, words: map[int64]string{}}
	if err := exec(c, "BEGIN"); err != nil {
		return nil, explain("verify", err)
	}
	passes := []func() error{a.file, a.schema, a.meta, a.fixedWords, a.familyRows, a.rows, a.shorts, a.journal, a.leases, a.inbox, a.labels, a.rest, a.ledger, a.copies}
	if !session.IsZero() {
		passes = []func() error{a.rows, a.chain, a.inbox, a.labels}
	}
	for _, pass := range passes {
		if err := a.tolerate(pass()); err != nil {
			return nil, explain("verify", err)
		}
	}
	for _, of := range a.sessions {
		if !of.id.IsZero() {
			ids = append(ids, of.id)
		}
	}
	if !session.IsZero() && len(ids) == 0 {
		return nil, notFound("verify", session)
	}
	slices.SortFunc(ids, func(x, y stint.ID) int { return bytes.Compare(y[:], x[:]) })
	return slices.Compact(ids), nil
}

// audit is one verification at work.
type audit struct {
	s        *Store
	c        *sqlite.Conn
	ctx      context.Context
	found    func(Flaw)
	one      stint.ID // only this session; zero: all
	sessions map[int64]*audited
	families map[int64]stint.ID
	words    map[int64]string // some of the table names
}

// audited is what is known of a session by its number.
type audited struct {
	id         stint.ID
	head, last int64 // as the row of heads has them
	seq, entry int64 // of the newest entry seen so far, and its journal.id
	held       int64
	takes      int64 // entries that take a message which the inbox knows
	beyond     bool  // it was told that the chain is broken
}

// maxFlaws bounds what is told of one kind, so that a store in ruins is not told of
// line by line.
const maxFlaws = 200

func (a *audit) tell(id stint.ID, seq int64, format string, args ...any) {
	a.found(Flaw{id, stint.Seq(seq), fmt.Sprintf(format, args...)})
}

// tolerate makes a flaw of an error that only damage explains.
func (a *audit) tolerate(err error) error {
	if err == nil {
		return nil
	}
	if e := a.ctx.Err(); e != nil {
		return unavailable("verify", e)
	}
	if stint.CodeOf(explain("verify", err)) != stint.Corrupt {
		return err
	}
	a.tell(stint.ID{}, 0, "the file cannot be read on: %s", bare(err))
	return nil
}

// bare is the message of err without what was attempted.
func bare(err error) string {
	var e *stint.Error
	if errors.As(err, &e) && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// file has SQLite check pages, cells and indexes. The quick check would do without
// the indexes, and a list is read by them: one broken cell of an index takes a session
// out of it.
func (a *audit) file() error {
	return each(a.c, fmt.Sprintf("PRAGMA integrity_check(%d)", maxFlaws), func(st *sqlite.Stmt) error {
		if text := st.ColumnText(0); text != "ok" {
			a.tell(stint.ID{}, 0, "the file: %s", text)
		}
		return nil
	})
}

func (a *audit) schema() error {
	if err := sameSchema(a.c); err != nil {
		a.tell(stint.ID{}, 0, "%s", bare(err))
	}
	return nil
}

// meta checks what the store knows of itself, against its keys file.
func (a *audit) meta() error {
	known := map[string]bool{}
	if err := each(a.c, "SELECT name FROM meta", func(st *sqlite.Stmt) error {
		known[st.ColumnText(0)] = true
		return nil
	}); err != nil {
		return err
	}
	for name := range known {
		if name != "store.id" && name != "keys.gen" && name != "feed.id" {
			a.tell(stint.ID{}, 0, "the table meta has %q, which means nothing", name)
		}
	}
	gen, id, err := generation(a.c)
	if err != nil {
		return err
	}
	if len(id) != 16 {
		a.tell(stint.ID{}, 0, "the store's own id has %d bytes, not 16", len(id))
	}
	feed, err := feedID(a.c)
	if err != nil {
		return err
	}
	if len(feed) != len(cursor.Cursor{}.Store) {
		a.tell(stint.ID{}, 0, "the id of the feed has %d bytes, not %d", len(feed), len(cursor.Cursor{}.Store))
	}
	slots := int64(-1)
	switch found, size, err := a.s.keys.look(id); {
	case stint.CodeOf(err) == stint.Unavailable:
		return err
	case err != nil:
		a.tell(stint.ID{}, 0, "%s", bare(err))
	case size < 0:
		// A copy of the database alone: its bodies cannot be checked, which is told there.
	case found != gen:
		a.tell(stint.ID{}, 0, "the keys file is number %d, the store has keys of number %d", found, gen)
	default:
		slots = (size - keysHeader) / keySize
	}
	return a.slots(gen, slots)
}

// slots checks where the keys of families lie: there, and each alone. slots is how
// many there are in the file number gen; -1: nobody knows.
func (a *audit) slots(gen, slots int64) error {
	owner := map[[2]int64]string{}
	return each(a.c, "SELECT id, keys, slot, (keys IS NULL) + (slot IS NULL) FROM families", func(st *sqlite.Stmt) error {
		id, n, slot := st.ColumnText(0), st.ColumnInt64(1), st.ColumnInt64(2)
		at := [2]int64{n, slot}
		switch other, twice := owner[at]; {
		case st.ColumnInt(3) == 2:
			return nil // it needed none so far
		case st.ColumnInt(3) == 1, n < 1, n > gen, slot < 0, n == gen && slots >= 0 && slot >= slots:
			a.tell(stint.ID{}, 0, "the key of family %q is place %d of keys file %d, which is not there", id, slot, n)
		case twice:
			a.tell(stint.ID{}, 0, "the families %q and %q have one key, place %d", other, id, slot)
		}
		owner[at] = id
		return nil
	})
}

// fixedWords checks the words whose numbers the program knows.
func (a *audit) fixedWords() error {
	want := fixedNames()
	err := each(a.c, "SELECT id, text FROM names WHERE id < 100", func(st *sqlite.Stmt) error {
		id, text := st.ColumnInt64(0), st.ColumnText(1)
		if want[id] != text {
			a.tell(stint.ID{}, 0, "the word number %d is %q, not %q", id, text, want[id])
		}
		delete(want, id)
		return nil
	})
	if err == nil && len(want) > 0 {
		a.tell(stint.ID{}, 0, "%d of the words that every store has are missing", len(want))
	}
	return err
}

// word is the text of a number; known is false if the number means nothing.
func (a *audit) word(id int64) (text string, known bool, err error) {
	if text, known = a.words[id]; known {
		return text, true, nil
	}
	known, err = one(a.c, "SELECT text FROM names WHERE id = ?", func(st *sqlite.Stmt) { text = st.ColumnText(0) }, id)
	if known && len(a.words) < maxNames {
		a.words[id] = text
	}
	return text, known, err
}

func (a *audit) familyRows() error {
	return each(a.c, "SELECT fid, id FROM families NOT INDEXED", func(st *sqlite.Stmt) error {
		id, ok := idOf(st.ColumnText(1))
		if !ok || id.String() != st.ColumnText(1) {
			a.tell(stint.ID{}, 0, "family number %d has the id %q, which is none", st.ColumnInt64(0), st.ColumnText(1))
		}
		a.families[st.ColumnInt64(0)] = id
		return nil
	})
}

// sqlAudit selects what of a session's rows is not in a [stint.Row], or not as it is
// kept.
const sqlAudit = `SELECT s.sid, s.id, s.rev, s.trigger, s.fold, h.sid, h.epoch, h.held, h.past, h.ready, h.agent, h.runtime, h.wakes, h.flags, h.hash, h.mark, h.sum,
	h.head, h.last, l.epoch, l.prior, s.status FROM sessions s %s LEFT JOIN heads h ON h.sid = s.sid LEFT JOIN leases l ON l.sid = s.sid`

// rows checks the rows of sessions and heads.
func (a *audit) rows() error {
	row := func(st *sqlite.Stmt) error {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		return a.row(st)
	}
	if !a.one.IsZero() {
		return each(a.c, fmt.Sprintf(sqlAudit, "")+" WHERE s.id = ?", row, a.one.String())
	}
	err := each(a.c, fmt.Sprintf(sqlAudit, "NOT INDEXED"), row)
	return errors.Join(err, each(a.c, "SELECT sid FROM heads NOT INDEXED", func(st *sqlite.Stmt) error {
		if a.sessions[st.ColumnInt64(0)] == nil {
			a.tell(stint.ID{}, 0, "there is a head of session number %d, and no such session", st.ColumnInt64(0))
		}
		return nil
	}))
}

// row checks the row of one session.
func (a *audit) row(st *sqlite.Stmt) error {
	of := &audited{head: st.ColumnInt64(17), last: st.ColumnInt64(18), held: st.ColumnInt64(7)}
	a.sessions[st.ColumnInt64(0)] = of
	text := st.ColumnText(1)
	id, ok := idOf(text)
	if !ok || id.String() != text {
		a.tell(stint.ID{}, 0, "session number %d has the id %q, which is none", st.ColumnInt64(0), text)
		return nil
	}
	of.id = id
	if st.ColumnIsNull(5) {
		a.tell(id, 0, "it has no row in the table heads")
		return nil
	}
	row, err := a.s.rows.session(a.c, id)
	if stint.CodeOf(err) == stint.NotFound {
		a.tell(id, 0, "its family is not there, or its row cannot be found by its id")
		return nil
	}
	if err != nil {
		if stint.CodeOf(explain("verify", err)) == stint.Corrupt {
			a.tell(id, 0, "%s", bare(err))
			return nil
		}
		return err
	}
	if row.Session.ID != id {
		a.tell(id, 0, "its row is found as that of %s", row.Session.ID)
		return nil
	}
	return errors.Join(a.repeated(st, &row), a.ownership(st, &row))
}

// repeated checks the columns that repeat, or work out, what row says.
func (a *audit) repeated(st *sqlite.Stmt, row *stint.Row) error {
	s := &row.Session
	full := s.ID.String()
	agent, _, err := a.word(st.ColumnInt64(10))
	if err != nil {
		return err
	}
	runtime, _, err := a.word(st.ColumnInt64(11))
	if err != nil {
		return err
	}
	woken, wakes := false, wakesOf(s)
	if row.Unread > 0 {
		if err := each(a.c, "SELECT kind FROM inbox WHERE sid = ? AND taken IS NULL", func(m *sqlite.Stmt) error {
			woken = woken || wokenBy(wakes, m.ColumnInt64(0))
			return nil
		}, st.ColumnInt64(0)); err != nil {
			return err
		}
	}
	fold, err := foldOf(s)
	if err != nil {
		a.tell(s.ID, 0, "its fold cannot be written again: %v", err)
	}
	status, _ := statusID(s.Status)
	var mark []byte
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"sessions.rev", st.ColumnText(2), reversed(full)},
		{"sessions.trigger", st.ColumnText(3), s.Trigger.Kind},
		{"sessions.status", st.ColumnInt64(21), status},
		{"heads.agent", agent, s.Agent.Name},
		{"heads.runtime", runtime, s.Agent.Runtime},
		{"heads.wakes", st.ColumnInt64(12), wakes},
		{"heads.flags", st.ColumnInt64(13), flagsOf(&s.At)},
		{"heads.ready", nullable(st, 9), plain(readyAt(s, woken))},
		{"heads.mark", st.ColumnText(15), string(appendMark(mark, s))},
		{"length of heads.hash", st.ColumnLen(14), len(s.HeadHash)},
		{"length of heads.sum", st.ColumnLen(16), len(s.Checkpoint.Sum)},
	} {
		if c.got != c.want {
			a.tell(s.ID, 0, "the column %s is %v, and the rest of its row makes it %v", c.name, quoted(c.got), quoted(c.want))
		}
	}
	if !sameJSON(column(st, 4), fold) {
		a.tell(s.ID, 0, "the column sessions.fold has more, or other, members than can be read from it")
	}
	return nil
}

// ownership checks that the columns of a session agree on who holds it.
func (a *audit) ownership(st *sqlite.Stmt, row *stint.Row) error {
	s := &row.Session
	epoch, held, past, leased, lease := st.ColumnInt64(6), st.ColumnInt64(7), st.ColumnInt64(8), !st.ColumnIsNull(19), st.ColumnInt64(19)
	prior := stint.Prior(st.ColumnText(20))
	for _, c := range []struct {
		bad  bool
		what string
	}{
		{epoch < s.Epoch, fmt.Sprintf("the newest lease has epoch %d, and its newest entry was written under %d", epoch, s.Epoch)},
		{held == 0 && past != epoch, fmt.Sprintf("nobody holds it, the newest lease that was given back has epoch %d, and the newest one %d", past, epoch)},
		{held != 0 && (held != epoch || past < 0 || past >= epoch), fmt.Sprintf("it is held under epoch %d; the newest lease has %d, the newest that was given back %d", held, epoch, past)},
		{held == 0 && leased, "nobody holds it, and there is a lease"},
		{held != 0 && !leased, fmt.Sprintf("it is held under epoch %d, and there is no lease", held)},
		{held != 0 && leased && lease != held, fmt.Sprintf("it is held under epoch %d, and its lease has %d", held, lease)},
		{leased && prior != stint.Released && prior != stint.Died && prior != stint.Expired, fmt.Sprintf("the lease before its own is said to be %q", prior)},
	} {
		if c.bad {
			a.tell(s.ID, 0, "%s", c.what)
		}
	}
	return nil
}

// nullable is the number in a column, nil for none.
func nullable(st *sqlite.Stmt, col int) any {
	if st.ColumnIsNull(col) {
		return nil
	}
	return st.ColumnInt64(col)
}

// plain makes numbers comparable.
func plain(v any) any {
	if n, ok := v.(int); ok {
		return int64(n)
	}
	return v
}

func quoted(v any) any {
	switch t := v.(type) {
	case string:
		return fmt.Sprintf("%.200q", t)
	case nil:
		return "nothing"
	}
	return v
}

// sameJSON reports whether two documents hold the same, whatever the order of
// members.
func sameJSON(x, y []byte) bool {
	var a, b any
	for _, p := range []struct {
		from []byte
		to   *any
	}{{x, &a}, {y, &b}} {
		d := json.NewDecoder(bytes.NewReader(p.from))
		d.UseNumber()
		if d.Decode(p.to) != nil || d.More() {
			return false
		}
	}
	return reflect.DeepEqual(a, b)
}
