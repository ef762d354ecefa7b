package sqlite

import (
	"encoding/binary"
	"errors"
	"maps"
	"unsafe"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// writer is the connection that writes, with what the committer remembers. Only
// the committer uses it.
type writer struct {
	c       *sqlite.Conn
	names   *names
	runners *runners
	keys    *keyring
	held    map[stint.ID]*held
	named   []string // names that this transaction made
	buf     []byte
	rows    *rows
	next    int64 // journal.id of the next entry; 0: to be looked up in this transaction
	fresh   int   // keys that this transaction wrote
	bytes   int   // of entries and bodies since the checkpointer was told

	begin, commit  *sqlite.Stmt
	touch, touched *sqlite.Stmt // heads, without and with mark and sum
	insert         *sqlite.Stmt // journal
}

// maxHeld bounds the cache of sessions being written.
const maxHeld = 1 << 16

// held is what the committer knows of a session that it wrote.
type held struct {
	sid, fid int64
	epoch    int64          // under which base was written; 0: base is not known
	base     *stint.Session // as it stands in the database
	last     int64          // journal.id of its newest entry
	refused  uint64         // appends under the lease of epoch of, up to this ticket, are refused
	of       int64
	why      error
}

// The statements of the hot path.
const (
	sqlTouch = `UPDATE heads SET line = ?, loop = ?, attempt = ?, step = ?, flags = ?, since = ?, loopseq = ?, head = ?, hash = ?, updated = ?, last = ?
		WHERE sid = ? AND held = ? AND head = ?`
	sqlTouched = `UPDATE heads SET line = ?, loop = ?, attempt = ?, step = ?, flags = ?, since = ?, loopseq = ?, head = ?, hash = ?, updated = ?, last = ?,
		mark = ?15, sum = ?16 WHERE sid = ?12 AND held = ?13 AND head = ?14`
	sqlInsert = `INSERT INTO journal(id, prev, sid, seq, kind, epoch, line, loop, attempt, step, sub, ts, actor, cause, v, seal, data, body, blob, erased)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

func newWriter(c *sqlite.Conn, n *names, r *runners, k *keyring) (*writer, error) {
	w := &writer{c: c, names: n, runners: r, keys: k, held: map[stint.ID]*held{}}
	for _, p := range []struct {
		st **sqlite.Stmt
		q  string
	}{
		{&w.begin, "BEGIN IMMEDIATE"},
		{&w.commit, "COMMIT"},
		{&w.touch, sqlTouch},
		{&w.touched, sqlTouched},
		{&w.insert, sqlInsert},
	} {
		var err error
		if *p.st, err = c.Prepare(p.q); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// peek answers what needs no transaction and returns the others.
func (w *writer) peek(group []*op, finish func(*op, error)) []*op {
	n := 0
	for _, o := range group {
		switch {
		case o.kind == opPoll:
			_, err := one(w.c, "PRAGMA data_version", func(st *sqlite.Stmt) { o.n = st.ColumnInt64(0) })
			finish(o, err)
		case o.kind == opRest:
			w.held = map[stint.ID]*held{}
			finish(o, pragma(w.c, "shrink_memory"))
		default:
			group[n] = o
			n++
		}
	}
	group = group[:n]
	if len(group) == 1 && group[0].kind == opClaim && group[0].claim.Session.IsZero() {
		o := group[0]
		if got, err := w.candidates(&o.claim, micros(clock())); err == nil && len(got) == 0 {
			finish(o, nil)
			return nil
		}
	}
	return group
}

// apply does o within the transaction. A refusal is stored in o, which then wrote
// nothing; an error means that the transaction must be rolled back.
func (w *writer) apply(o *op) error {
	var err error
	switch o.kind {
	case opAppend:
		err = w.append(o)
	case opCreate:
		err = w.create(o)
	case opClaim:
		err = w.claim(o)
	case opRenew:
		err = w.renew(o)
	case opSend:
		err = w.send(o)
	case opReserve:
		err = w.reserve(o)
	case opSlot:
		err = w.slot(o)
	case opPoll, opRest:
	}
	var refusal *stint.Error
	if errors.As(err, &refusal) {
		o.err = refusal
		if o.kind == opAppend {
			w.refused(o, refusal, o.ticket)
		}
		return nil
	}
	return err
}

// refused remembers that what is queued behind o under the same lease is refused too,
// up to ticket. What a stale lease is refused is no concern of its successor.
func (w *writer) refused(o *op, why error, ticket uint64) {
	id := o.lease.Session
	h := w.held[id]
	if h == nil {
		if len(w.held) >= maxHeld {
			clear(w.held)
		}
		h = &held{}
		w.held[id] = h
	}
	if o.lease.Epoch >= h.of {
		h.refused, h.of, h.why = ticket, o.lease.Epoch, why
	}
}

// lookup returns what is known of session id, nil if there is no such session.
func (w *writer) lookup(id stint.ID) (*held, error) {
	h := w.held[id]
	if h != nil && h.sid != 0 {
		return h, nil
	}
	if h == nil {
		h = &held{}
	}
	found, err := one(w.c, "SELECT sid, fid FROM sessions WHERE id = ?", func(st *sqlite.Stmt) {
		h.sid, h.fid = st.ColumnInt64(0), st.ColumnInt64(1)
	}, id.String())
	if err != nil || !found {
		return nil, err
	}
	if len(w.held) >= maxHeld {
		clear(w.held)
	}
	w.held[id] = h
	return h, nil
}

func (w *writer) append(o *op) error {
	b, id := &o.batch, o.lease.Session
	h, err := w.lookup(id)
	switch {
	case err != nil:
		return err
	case h == nil:
		return notFound("append", id)
	case o.ticket <= h.refused && o.lease.Epoch == h.of:
		return h.why
	case o.lease.Epoch <= 0:
		return fenced(id, o.lease.Epoch, 0)
	}
	last := b.Session.Head - stint.Seq(len(b.Entries))
	if len(b.Keys)+len(b.Meters)+len(b.Taken) > 0 {
		if err := w.check(o, h, last); err != nil {
			return err
		}
	}
	full := h.epoch != o.lease.Epoch || !sameMark(h.base, &b.Session)
	st := w.touch
	if full {
		st = w.touched
		w.buf = appendMark(w.buf[:0], &b.Session)
		st.BindText(15, text(w.buf))
		st.BindBytes(16, b.Session.Checkpoint.Sum[:])
	}
	if err := w.place(o, h); err != nil {
		return err
	}
	bindHead(st, &b.Session)
	if len(b.Entries) > 0 {
		st.BindInt64(11, w.next+int64(len(b.Entries))-1)
	} else {
		st.BindInt64(11, h.last)
	}
	st.BindInt64(12, h.sid)
	st.BindInt64(13, o.lease.Epoch)
	st.BindInt64(14, int64(last))
	if err := step(st); err != nil {
		return err
	}
	if w.c.Changes() == 0 {
		return w.obstacle(o, h, last)
	}
	return w.extend(o, h)
}

// place finds where the entries of an append go, and what they follow.
func (w *writer) place(o *op, h *held) error {
	if w.next == 0 {
		if _, err := one(w.c, "SELECT coalesce(max(id), 0) + 1 FROM journal", func(st *sqlite.Stmt) { w.next = st.ColumnInt64(0) }); err != nil {
			return err
		}
	}
	if h.epoch == o.lease.Epoch {
		return nil // last is what this lease wrote
	}
	_, err := one(w.c, "SELECT last FROM heads WHERE sid = ?", func(st *sqlite.Stmt) { h.last = st.ColumnInt64(0) }, h.sid)
	return err
}

// extend writes what belongs to an append whose place in heads is taken.
func (w *writer) extend(o *op, h *held) error {
	b := &o.batch
	moved := h.epoch != o.lease.Epoch || !sameRest(h.base, &b.Session)
	if moved {
		if err := w.rewrite(h, &b.Session); err != nil {
			return err
		}
	}
	for i := range b.Entries {
		if err := w.entry(h, &b.Entries[i]); err != nil {
			return err
		}
	}
	if err := w.extras(o, h); err != nil {
		return err
	}
	if moved || len(b.Taken) > 0 {
		if err := w.ready(h.sid, &b.Session); err != nil {
			return err
		}
	}
	if err := w.post(o); err != nil {
		return err
	}
	if b.Release {
		o.tell = true
		delete(w.held, o.lease.Session)
		if err := exec(w.c, "UPDATE heads SET held = 0, past = epoch WHERE sid = ?", h.sid); err != nil {
			return err
		}
		return exec(w.c, "DELETE FROM leases WHERE sid = ?", h.sid)
	}
	if h.base == nil {
		h.base = new(stint.Session)
	}
	*h.base, h.epoch = b.Session, o.lease.Epoch
	return nil
}

// entry inserts one entry.
func (w *writer) entry(h *held, e *stint.Entry) (err error) {
	kind, actor := kindID(e.Kind), actorID(e.Actor)
	if kind == 0 {
		if kind, err = w.intern(string(e.Kind)); err != nil {
			return err
		}
	}
	if actor == 0 {
		if actor, err = w.intern(string(e.Actor)); err != nil {
			return err
		}
	}
	st, p := w.insert, &e.Pos
	for i, v := range [...]int64{
		w.next, h.last, h.sid, int64(e.Seq), kind, e.Epoch, int64(p.Line), int64(p.Loop), int64(p.Attempt), int64(p.Step), int64(p.Sub),
		micros(e.At), actor, int64(e.Cause), int64(e.Version),
	} {
		st.BindInt64(i+1, v)
	}
	var seal [len(e.Hash) + len(e.Salt)]byte
	copy(seal[copy(seal[:], e.Hash[:]):], e.Salt[:])
	st.BindBytes(16, seal[:])
	bindBytes(st, 17, e.Data)
	bindBytes(st, 18, e.Body)
	if e.Blob.IsZero() {
		st.BindNull(19)
	} else {
		st.BindBytes(19, binary.BigEndian.AppendUint64(append(make([]byte, 0, len(e.Blob.Sum)+8), e.Blob.Sum[:]...), uint64(e.Blob.Size)))
	}
	if e.Erased {
		st.BindBytes(20, e.Commit[:])
	} else {
		st.BindNull(20)
	}
	h.last = w.next
	w.next++
	w.bytes += len(e.Data) + len(e.Body)
	return step(st)
}

func bindBytes(st *sqlite.Stmt, i int, b []byte) {
	if len(b) == 0 {
		st.BindNull(i)
	} else {
		st.BindBytes(i, b)
	}
}

// text is b as a string, without a copy: only for what is copied at once.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// rewrite writes the row of sessions anew.
func (w *writer) rewrite(h *held, s *stint.Session) error {
	status, ok := statusID(s.Status)
	if !ok {
		return stint.Invalid.Errorf("append", "a session cannot be stored as %q", s.Status)
	}
	fold, err := foldOf(s)
	if err != nil {
		return err
	}
	if h.base == nil || !sameIdentity(h.base, s) {
		agent, err := w.intern(s.Agent.Name)
		if err != nil {
			return err
		}
		runtime, err := w.intern(s.Agent.Runtime)
		if err != nil {
			return err
		}
		if err := exec(w.c, "UPDATE heads SET agent = ?, runtime = ? WHERE sid = ? AND (agent, runtime) IS NOT (?1, ?2)", agent, runtime, h.sid); err != nil {
			return err
		}
		if err := exec(w.c, `UPDATE sessions SET name = ?1, agent = ?2, trigger = ?3, created = ?4 WHERE sid = ?5
			AND (name, agent, trigger, created) IS NOT (?1, ?2, ?3, ?4)`,
			s.Name, s.Agent.Name, s.Trigger.Kind, micros(s.Created), h.sid); err != nil {
			return err
		}
	}
	if h.base == nil || !maps.Equal(h.base.Labels, s.Labels) {
		if err := w.relabel(h.sid, s); err != nil {
			return err
		}
	}
	return exec(w.c, "UPDATE sessions SET status = ?, fold = ? WHERE sid = ?", status, text(fold), h.sid)
}

// label adds the labels by which a new session is found.
func (w *writer) label(s *stint.Session) error {
	for key, value := range s.Labels {
		if err := exec(w.c, "INSERT INTO labels(key, value, id) VALUES (?, ?, ?)", key, value, s.ID.String()); err != nil {
			return err
		}
	}
	return nil
}

// relabel replaces the labels by which a session is found, if they are other ones than
// before. It comes before the fold is written, which says what they were.
func (w *writer) relabel(sid int64, s *stint.Session) error {
	was := map[string]string{}
	if err := each(w.c, "SELECT e.key, e.value FROM sessions s, json_each(s.fold, '$.labels') e WHERE s.sid = +?", func(st *sqlite.Stmt) error {
		was[st.ColumnText(0)] = st.ColumnText(1)
		return nil
	}, sid); err != nil || maps.Equal(was, s.Labels) {
		return err
	}
	for key, value := range was {
		if err := exec(w.c, "DELETE FROM labels WHERE key = ? AND value = ? AND id = ?", key, value, s.ID.String()); err != nil {
			return err
		}
	}
	return w.label(s)
}

// ready works out anew from when on the session may be claimed, and which
// messages wake it.
func (w *writer) ready(sid int64, s *stint.Session) error {
	wakes, woken := wakesOf(s), false
	err := each(w.c, "SELECT kind FROM inbox WHERE sid = +? AND taken IS NULL", func(st *sqlite.Stmt) error {
		woken = woken || wokenBy(wakes, st.ColumnInt64(0))
		return nil
	}, sid)
	if err != nil {
		return err
	}
	return exec(w.c, "UPDATE heads SET ready = ?, wakes = ? WHERE sid = ?", readyAt(s, woken), wakes, sid)
}

// readyAt is the column ready.
func readyAt(s *stint.Session, woken bool) any {
	at, ok := s.Ready()
	switch {
	case woken:
		return 0
	case !ok:
		return nil
	case at.IsZero():
		return 0
	}
	return max(micros(at), 1)
}

// obstacle says why an append found no row of heads to change.
func (w *writer) obstacle(o *op, h *held, last stint.Seq) error {
	var epoch, owner, head int64
	found, err := one(w.c, "SELECT epoch, held, head FROM heads WHERE sid = ?", func(st *sqlite.Stmt) {
		epoch, owner, head = st.ColumnInt64(0), st.ColumnInt64(1), st.ColumnInt64(2)
	}, h.sid)
	id := o.lease.Session
	switch {
	case err != nil:
		return err
	case !found:
		delete(w.held, id)
		return notFound("append", id)
	case owner != o.lease.Epoch:
		return fenced(id, o.lease.Epoch, epoch)
	case stint.Seq(head) != last:
		return refuse(stint.Conflict, "append", id, "read the journal again and decide anew",
			"entry %d cannot follow entry %d", last+1, head)
	}
	return nil
}

func fenced(id stint.ID, epoch, now int64) error {
	return refuse(stint.Fenced, "append", id, "write nothing more to this session: another may hold it now",
		"the lease of epoch %d is over; the session is at epoch %d", epoch, now)
}
