package sqlite

import (
	"bytes"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// valid refuses a batch that is none of session id.
func valid(op string, id stint.ID, b *stint.Batch) error {
	if id.IsZero() || b.Session.ID != id {
		return stint.Invalid.Errorf(op, "the batch is not one of session %s", id)
	}
	first := b.Session.Head - stint.Seq(len(b.Entries)) + 1
	for i := range b.Entries {
		if e := &b.Entries[i]; e.Session != id || e.Seq != first+stint.Seq(i) {
			return refuse(stint.Conflict, op, id, "read the journal again and decide anew",
				"entry %d does not lead to head %d of session %s", e.Seq, b.Session.Head, id)
		}
	}
	for i := range b.Sends {
		if err := sendable(op, &b.Sends[i]); err != nil {
			return err
		}
	}
	return nil
}

// check looks at all that may refuse a batch before anything of it is written.
func (w *writer) check(o *op, h *held, last stint.Seq) error {
	if err := w.obstacle(o, h, last); err != nil {
		return err
	}
	b, id, now := &o.batch, o.lease.Session, micros(clock())
	for i := range b.Keys {
		old, found, err := w.key(&b.Keys[i], now)
		if err != nil {
			return err
		}
		if found {
			return taken("append", id, &old)
		}
	}
	for _, m := range b.Taken {
		found, err := one(w.c, "SELECT 1 FROM inbox WHERE sid = +? AND msg = +? AND taken IS NULL", func(*sqlite.Stmt) {}, h.sid, m)
		if err != nil {
			return err
		}
		if !found {
			return refuse(stint.Conflict, "append", id, "read the inbox again: a message is taken once", "message %q is not in the inbox", m)
		}
	}
	return w.meters("append", h.fid, b.Meters)
}

// key returns who has k, unless it may be forgotten.
func (w *writer) key(k *stint.Key, now int64) (old stint.Key, found bool, err error) {
	old = stint.Key{Scope: k.Scope, Name: k.Name}
	found, err = one(w.c, "SELECT digest, ref FROM keys WHERE scope = ? AND name = ? AND (expires = 0 OR expires > +?)", func(st *sqlite.Stmt) {
		st.ColumnBytes(0, old.Digest[:])
		old.Ref = st.ColumnText(1)
	}, k.Scope, k.Name, now)
	return old, found, err
}

func taken(op string, id stint.ID, old *stint.Key) error {
	return refuse(stint.Conflict, op, id, "look at what has the key; something else needs another key",
		"the %s key %q is taken by %s", old.Scope, old.Name, old.Ref)
}

// meters refuses a reservation that would pass its limit.
func (w *writer) meters(op string, fid int64, ms []stint.Meter) error {
	for i := range ms {
		m := &ms[i]
		if m.Reserve <= 0 || m.Limit < 0 {
			continue
		}
		var spent, reserved int64
		if _, err := one(w.c, "SELECT spent, reserved FROM meters WHERE fid = ? AND metric = ?", func(st *sqlite.Stmt) {
			spent, reserved = st.ColumnInt64(0), st.ColumnInt64(1)
		}, fid, m.Metric); err != nil {
			return err
		}
		for j := range ms[:i] { // earlier changes of this batch are not written yet
			if e := &ms[j]; e.Metric == m.Metric {
				spent, reserved = spent+e.Spend, reserved+e.Reserve
			}
		}
		if spent+m.Spend+reserved+m.Reserve > m.Limit {
			e := stint.Limit.Errorf(op, "%d more %s after %d spent and %d reserved would pass the limit of %d", m.Reserve, m.Metric, spent, reserved, m.Limit)
			e.Metric, e.Hint = m.Metric, "raise the limit of "+m.Metric+", or wait until what is reserved was settled"
			return e
		}
	}
	return nil
}

// extras writes the parts of a batch that are not entries. They were checked.
func (w *writer) extras(o *op, h *held) error {
	b := &o.batch
	for i := range o.packed {
		p := &o.packed[i]
		if err := exec(w.c, "INSERT OR IGNORE INTO blobs(fid, sum, size, enc, data) VALUES (?, ?, ?, ?, ?)",
			h.fid, p.ref.Sum[:], p.ref.Size, p.enc, p.data); err != nil {
			return err
		}
	}
	for _, m := range b.Taken {
		if err := exec(w.c, "UPDATE inbox SET taken = ?, data = NULL, body = NULL WHERE sid = ? AND msg = ?", int64(b.Session.Head), h.sid, m); err != nil {
			return err
		}
	}
	for i := range b.Keys {
		if err := w.addKey(&b.Keys[i]); err != nil {
			return err
		}
	}
	for i := range b.Meters {
		m := &b.Meters[i]
		if err := exec(w.c, `INSERT INTO meters(fid, metric, spent, reserved) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET spent = spent + excluded.spent, reserved = reserved + excluded.reserved`,
			h.fid, m.Metric, m.Spend, m.Reserve); err != nil {
			return err
		}
	}
	return nil
}

// addKey writes a key, and forgets two that may be: so the table does not grow
// for ever, and nobody needs a broom.
func (w *writer) addKey(k *stint.Key) error {
	var expires int64
	if !k.Expires.IsZero() {
		expires = micros(k.Expires)
	}
	if err := exec(w.c, "INSERT OR REPLACE INTO keys(scope, name, digest, ref, expires) VALUES (?, ?, ?, ?, ?)",
		k.Scope, k.Name, k.Digest[:], k.Ref, expires); err != nil {
		return err
	}
	if k.Source != "" {
		if err := w.addLine(k); err != nil {
			return err
		}
	}
	w.fresh++
	return nil
}

// create makes a session.
func (w *writer) create(o *op) error {
	b, id, now := &o.batch, o.batch.Session.ID, micros(clock())
	for i := range b.Keys {
		k := &b.Keys[i]
		old, found, err := w.key(k, now)
		switch {
		case err != nil:
			return err
		case found && bytes.Equal(old.Digest[:], k.Digest[:]):
			ref, err := stint.ParseID(old.Ref)
			o.leases = []stint.Lease{{Session: ref}}
			return err
		case found:
			return taken("create", stint.ID{}, &old)
		}
	}
	h, err := w.lookup(id)
	if err != nil {
		return err
	}
	if h != nil {
		return refuse(stint.Exists, "create", id, "use the session that is there, or a new id", "there is such a session")
	}
	if len(b.Taken) > 0 {
		return refuse(stint.Conflict, "create", id, "a new session has no messages", "message %q is not in the inbox", b.Taken[0])
	}
	if _, ok := statusID(b.Session.Status); !ok {
		return stint.Invalid.Errorf("create", "a session cannot be stored as %q", b.Session.Status)
	}
	fid, known, err := w.familyRow(b.Session.Family)
	if err != nil {
		return err
	}
	if known {
		err = w.meters("create", fid, b.Meters)
	} else {
		err = w.meters("create", 0, b.Meters) // nothing has that number
	}
	if err != nil {
		return err
	}
	if !known {
		if fid, err = w.newFamily(b.Session.Family); err != nil {
			return err
		}
	}
	return w.insertSession(o, fid, now)
}

func (w *writer) familyRow(id stint.ID) (fid int64, found bool, err error) {
	found, err = one(w.c, "SELECT fid FROM families WHERE id = ?", func(st *sqlite.Stmt) { fid = st.ColumnInt64(0) }, id.String())
	return fid, found, err
}

func (w *writer) newFamily(id stint.ID) (int64, error) {
	var gen, slot any
	if p, ok := w.keys.pending.Load(id); ok {
		gen, slot = p.(place).gen, p.(place).slot
	}
	if err := exec(w.c, "INSERT INTO families(id, keys, slot) VALUES (?, ?, ?)", id.String(), gen, slot); err != nil {
		return 0, err
	}
	return w.c.LastInsertRowID(), nil
}

// insertSession writes the rows of a new session.
func (w *writer) insertSession(o *op, fid, now int64) error {
	s := &o.batch.Session
	status, _ := statusID(s.Status)
	fold, err := foldOf(s)
	if err != nil {
		return err
	}
	agent, err := w.intern(s.Agent.Name)
	if err != nil {
		return err
	}
	runtime, err := w.intern(s.Agent.Runtime)
	if err != nil {
		return err
	}
	full := s.ID.String()
	rev := reversed(full)
	n, err := w.shortest(rev)
	if err != nil {
		return err
	}
	if err := exec(w.c, `INSERT INTO sessions(id, rev, short, fid, name, agent, trigger, status, created, fold)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		full, rev, full[len(full)-n:], fid, s.Name, s.Agent.Name, s.Trigger.Kind, status, micros(s.Created), text(fold)); err != nil {
		return err
	}
	h := &held{sid: w.c.LastInsertRowID(), fid: fid}
	if err := w.label(s); err != nil {
		return err
	}
	epoch, owner := s.Epoch, int64(0) // above 0 if the journal was brought here from another store
	lease := stint.Lease{Session: s.ID}
	if o.claim.Holder != "" {
		epoch++
		owner = epoch
		h.epoch, h.base = epoch, new(*s)
		w.held[s.ID] = h
		lease, err = w.lease(h.sid, s.ID, &o.claim, epoch, now, stint.Released)
	} else {
		o.tell = true
	}
	if err != nil {
		return err
	}
	o.leases = []stint.Lease{lease}
	if err := w.place(o, h); err != nil {
		return err
	}
	for i := range o.batch.Entries {
		if err := w.entry(h, &o.batch.Entries[i]); err != nil {
			return err
		}
	}
	w.buf = appendMark(w.buf[:0], s)
	p := &s.At
	if err := exec(w.c, `INSERT INTO heads(sid, epoch, held, past, ready, agent, runtime, wakes, line, loop, attempt, step, flags, since, loopseq, head, last, hash, updated, mark, sum)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		h.sid, epoch, owner, s.Epoch, readyAt(s, false), agent, runtime, wakesOf(s), p.Line, p.Loop, p.Attempt, p.Step, flagsOf(p), micros(p.Since), int64(p.LoopSeq),
		int64(s.Head), h.last, s.HeadHash[:], micros(s.Updated), text(w.buf), s.Checkpoint.Sum[:]); err != nil {
		return err
	}
	if err := w.extras(o, h); err != nil {
		return err
	}
	return w.post(o)
}

// minShort is the least length of a short id.
const minShort = 4

// shortest returns the length of the shortest suffix that no session's id shares
// with the id whose characters rev holds backwards.
func (w *writer) shortest(rev string) (int, error) {
	n := minShort
	longer := func(st *sqlite.Stmt) {
		for _, other := range [...]string{st.ColumnText(0), st.ColumnText(1)} { // its neighbours
			for n < len(rev) && len(other) >= n && other[:n] == rev[:n] {
				n++
			}
		}
	}
	_, err := one(w.c, `SELECT (SELECT rev FROM sessions WHERE rev < ?1 ORDER BY rev DESC LIMIT 1), (SELECT rev FROM sessions WHERE rev > ?1 ORDER BY rev LIMIT 1)`, longer, rev)
	return n, err
}

func reversed(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}
