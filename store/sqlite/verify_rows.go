package sqlite

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// This file checks the tables that name sessions.

// journal checks in one pass that each entry is the next one of its session.
func (a *audit) journal() error {
	told := 0
	unknown := map[int64]int{}
	err := each(a.c, "SELECT id, prev, sid, seq, kind, v, length(seal), length(blob), length(erased), iif(kind IN (14, 15), data, NULL) FROM journal NOT INDEXED", func(st *sqlite.Stmt) error {
		id, prev, sid, seq := st.ColumnInt64(0), st.ColumnInt64(1), st.ColumnInt64(2), st.ColumnInt64(3)
		if id&0xfff == 0 {
			if err := a.ctx.Err(); err != nil {
				return err
			}
		}
		of := a.sessions[sid]
		if of == nil {
			unknown[sid]++
			return nil
		}
		if told < maxFlaws && !of.beyond && (seq != of.seq+1 || prev != of.entry) {
			told++
			of.beyond = true
			a.tell(of.id, seq, "it is behind entry %d, and says that it follows row %d, which is none of the entry before", of.seq, prev)
		}
		of.seq, of.entry = seq, id
		if v := st.ColumnInt64(5); told < maxFlaws && (v < 1 || v > 255 || st.ColumnInt64(6) != 48 || !st.ColumnIsNull(7) && st.ColumnInt64(7) != 40 || !st.ColumnIsNull(8) && st.ColumnInt64(8) != 32) {
			told++
			a.tell(of.id, seq, "its columns are not as long as they must be, or of version %d", v)
		}
		if k := st.ColumnInt64(4); k == kindID(stint.MessageTaken) || k == kindID(stint.MessageRefused) {
			return a.takes(of, sid, seq, column(st, 9))
		}
		return nil
	})
	for sid, n := range unknown {
		a.tell(stint.ID{}, 0, "%d entries are of session number %d, and there is no such session", n, sid)
	}
	if err != nil {
		return err
	}
	for _, of := range a.sessions {
		if !of.beyond && (of.seq != of.head || of.entry != of.last) {
			a.tell(of.id, of.head, "the table heads names it as the newest entry, in row %d; the newest there is is %d, in row %d", of.last, of.seq, of.entry)
		}
	}
	return nil
}

// takes compares an entry that takes a message with the inbox. A store into which
// journals were brought has none for them.
func (a *audit) takes(of *audited, sid, seq int64, data []byte) error {
	var m struct {
		ID   string
		Kind stint.MessageKind
		From stint.Actor
		At   time.Time
	}
	if json.Unmarshal(data, &m) != nil {
		return nil // the chain tells
	}
	_, err := one(a.c, "SELECT taken, kind, sender, at FROM inbox WHERE sid = ? AND msg = ?", func(st *sqlite.Stmt) {
		of.takes++
		switch taken := st.ColumnInt64(0); {
		case st.ColumnIsNull(0):
			a.tell(of.id, seq, "it took message %q, and the inbox has that for a new one", m.ID)
			of.takes--
		case taken < seq || taken > of.head:
			a.tell(of.id, seq, "it took message %q, and the inbox says that entry %d did", m.ID, taken)
		}
		if st.ColumnInt64(1) != messageID(m.Kind) || st.ColumnText(2) != string(m.From) || st.ColumnInt64(3) != micros(m.At) {
			a.tell(of.id, seq, "the message %q that it took is another one in the inbox", m.ID)
		}
	}, sid, m.ID)
	return err
}

// chain follows the entries of one session back, each of which must be its own.
func (a *audit) chain() error {
	for sid, of := range a.sessions {
		seq, id := of.head, of.last
		for id != 0 && seq > 0 {
			if err := a.ctx.Err(); err != nil {
				return err
			}
			var owner, at, prev int64
			found, err := one(a.c, "SELECT sid, seq, prev FROM journal WHERE id = ?", func(st *sqlite.Stmt) {
				owner, at, prev = st.ColumnInt64(0), st.ColumnInt64(1), st.ColumnInt64(2)
			}, id)
			if err != nil {
				return err
			}
			if !found || owner != sid || at != seq {
				a.tell(of.id, seq, "it should be row %d of the journal, which is missing, or another entry, or one of session number %d and not %d", id, owner, sid)
				return nil
			}
			seq, id = seq-1, prev
		}
		if seq != 0 || id != 0 {
			a.tell(of.id, seq+1, "the chain of its entries ends here, before row %d", id)
		}
	}
	return nil
}

// leases checks that they are of sessions. Whose each one is was compared with its
// session.
func (a *audit) leases() error {
	return each(a.c, "SELECT sid, holder FROM leases NOT INDEXED", func(st *sqlite.Stmt) error {
		if a.sessions[st.ColumnInt64(0)] == nil {
			a.tell(stint.ID{}, 0, "%q has a lease of session number %d, and there is no such session", st.ColumnText(1), st.ColumnInt64(0))
		}
		return nil
	})
}

// labels compares what sessions are found by with what their rows say.
func (a *audit) labels() error {
	const (
		said  = "SELECT s.id, e.key, e.value FROM sessions s, json_each(iif(json_valid(s.fold), s.fold, '{}'), '$.labels') e WHERE iif(?1 = '', TRUE, s.id = ?1)"
		found = "SELECT id, key, value FROM labels WHERE iif(?1 = '', TRUE, id = ?1)"
	)
	one := ""
	if !a.one.IsZero() {
		one = a.one.String()
	}
	for _, c := range []struct{ q, what string }{
		{said + " EXCEPT " + found, "it has the label %q, and is not found by it"},
		{found + " EXCEPT " + said, "it is found by the label %q, which it has not"},
	} {
		told := 0
		if err := each(a.c, c.q, func(st *sqlite.Stmt) error {
			if told++; told <= maxFlaws {
				id, _ := idOf(st.ColumnText(0)) // zero for what is none
				a.tell(id, 0, c.what, st.ColumnText(1)+"="+st.ColumnText(2))
			}
			return a.ctx.Err()
		}, one); err != nil {
			return err
		}
	}
	return nil
}

// inbox checks the messages: those to come by their digest, those that were taken
// against the entries that took them.
func (a *audit) inbox() error {
	q, args := "SELECT sid, msg, kind, sender, at, digest, data, body, taken FROM inbox NOT INDEXED", []any(nil)
	if !a.one.IsZero() {
		q, args = strings.Replace(q, "NOT INDEXED", "WHERE sid = (SELECT sid FROM sessions WHERE id = ?)", 1), []any{a.one.String()}
	}
	taken := map[int64]int64{}
	err := each(a.c, q, func(st *sqlite.Stmt) error {
		sid := st.ColumnInt64(0)
		of := a.sessions[sid]
		if of == nil {
			a.tell(stint.ID{}, 0, "message %q is for session number %d, and there is no such session", st.ColumnText(1), sid)
			return nil
		}
		if !st.ColumnIsNull(8) {
			taken[sid]++
			return nil
		}
		kinds, k := messageKinds(), st.ColumnInt64(2)
		if k < 0 || k >= int64(len(kinds)) || !sane(st.ColumnInt64(4)) {
			a.tell(of.id, 0, "its message %q is of kind number %d, or of no time", st.ColumnText(1), k)
			return nil
		}
		m := stint.Message{ID: st.ColumnText(1), Kind: kinds[k], From: stint.Actor(st.ColumnText(3)), Data: column(st, 6), Body: column(st, 7)}
		if sum := digestOf(of.id, &m); string(sum[:]) != string(column(st, 5)) {
			a.tell(of.id, 0, "its message %q is not the one that was sent", m.ID)
		}
		return nil
	}, args...)
	if err != nil || !a.one.IsZero() {
		return err
	}
	for sid, n := range taken {
		if of := a.sessions[sid]; of.takes != n {
			a.tell(of.id, 0, "%d of its messages count as taken, and its entries took %d of them", n, of.takes)
		}
	}
	return nil
}

// rest checks what other tables name.
func (a *audit) rest() error {
	err := each(a.c, "SELECT id, fid, enc, length(sum) FROM blobs NOT INDEXED", func(st *sqlite.Stmt) error {
		family, known := a.families[st.ColumnInt64(1)]
		switch enc := st.ColumnInt64(2); {
		case !known:
			a.tell(stint.ID{}, 0, "body number %d is of family number %d, and there is no such family", st.ColumnInt64(0), st.ColumnInt64(1))
		case enc != encPlain && enc != encZstd || st.ColumnInt64(3) != 32:
			a.tell(stint.ID{}, 0, "body number %d of family %s is kept in the way %d, which is none", st.ColumnInt64(0), family, enc)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := each(a.c, "SELECT DISTINCT fid FROM meters", func(st *sqlite.Stmt) error {
		if _, known := a.families[st.ColumnInt64(0)]; !known {
			a.tell(stint.ID{}, 0, "there are meters of family number %d, and no such family", st.ColumnInt64(0))
		}
		return nil
	}); err != nil {
		return err
	}
	scopes := []string{"create", "occurrence", "delivery", "repeat", "route", "order", "system", "approval", "request", "notification", "turn", "grant", "grant-revoked"}
	return each(a.c, "SELECT k.scope, k.name, k.ref, length(k.digest), k.expires, s.sid IS NULL FROM keys k LEFT JOIN sessions s ON s.id = k.ref", func(st *sqlite.Stmt) error {
		scope, name := st.ColumnText(0), st.ColumnText(1)
		switch {
		case !slices.Contains(scopes, scope), st.ColumnInt64(3) != 32, st.ColumnInt64(4) != 0 && !sane(st.ColumnInt64(4)):
			a.tell(stint.ID{}, 0, "the key %q of %q is none that a store writes", name, scope)
		case scope == "create" && st.ColumnBool(5):
			a.tell(stint.ID{}, 0, "the key %q led to session %q, and there is no such session", name, st.ColumnText(2))
		}
		return nil
	})
}

// shorts works out the short ids again, in the order in which the sessions were made:
// each is the shortest ending that none before it shared.
func (a *audit) shorts() error {
	type one struct {
		sid   int64
		rev   string
		short string
	}
	var group []one // of sessions that share the shortest ending that there may be
	judge := func() {
		if len(group) == 0 {
			return
		}
		slices.SortFunc(group, func(x, y one) int { return int(min(1, max(-1, x.sid-y.sid))) })
		var sorted []string
		for _, o := range group {
			at, _ := slices.BinarySearch(sorted, o.rev)
			n := minShort
			for _, other := range sorted[max(0, at-1):min(len(sorted), at+1)] {
				for n < len(o.rev) && len(other) >= n && other[:n] == o.rev[:n] {
					n++
				}
			}
			sorted = slices.Insert(sorted, at, o.rev)
			if want := reversed(o.rev[:min(n, len(o.rev))]); o.short != want {
				a.tell(a.sessions[o.sid].id, 0, "its short id is %q, and should be %q", o.short, want)
			}
		}
		group = group[:0]
	}
	err := each(a.c, "SELECT sid, rev, short FROM sessions ORDER BY rev", func(st *sqlite.Stmt) error {
		o := one{st.ColumnInt64(0), st.ColumnText(1), st.ColumnText(2)}
		if a.sessions[o.sid] == nil || len(o.rev) < minShort {
			return nil // told already
		}
		if len(group) > 0 && group[0].rev[:minShort] != o.rev[:minShort] {
			judge()
		}
		group = append(group, o)
		return nil
	})
	judge()
	return err
}
