package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// Send implements [stint.Sender]. A message sent again is not judged again.
func (s *Store) Send(ctx context.Context, id stint.ID, m stint.Message) error {
	if err := sendable("send", &m); err != nil {
		return err
	}
	return s.do(ctx, &op{kind: opSend, lease: stint.Lease{Session: id}, msg: m, digest: digestOf(id, &m)})
}

// sendable refuses what cannot lie in any inbox.
func sendable(op string, m *stint.Message) error {
	switch {
	case m.ID == "":
		return stint.Invalid.Errorf(op, "a message needs an id, made by its sender")
	case messageID(m.Kind) < 0:
		return stint.Invalid.Errorf(op, "there are no messages of kind %q", m.Kind)
	}
	return nil
}

// post sends what a batch brings for other sessions. It is news: who does not accept it
// does without, and the batch stands.
func (w *writer) post(o *op) error {
	for i := range o.batch.Sends {
		m := &o.batch.Sends[i]
		one := op{kind: opSend, lease: stint.Lease{Session: m.To}, msg: *m, digest: digestOf(m.To, m)}
		err := w.send(&one)
		var refusal *stint.Error
		if err != nil && !errors.As(err, &refusal) {
			return err
		}
		o.tell = o.tell || one.tell
	}
	return nil
}

// digestOf tells messages of one id apart. Session and id are in it for [Store.Verify]:
// a row that damage gave to another session or another id no longer fits.
func digestOf(id stint.ID, m *stint.Message) (sum [32]byte) {
	h := sha256.New()
	for _, part := range [][]byte{id[:], []byte(m.ID), []byte(m.Kind), []byte(m.From), m.Data, m.Body} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	h.Sum(sum[:0])
	return sum
}

func (w *writer) send(o *op) error {
	id, m := o.lease.Session, &o.msg
	var sid, status, wakes int64
	found, err := one(w.c, `SELECT s.sid, s.status, h.wakes FROM sessions s JOIN heads h ON h.sid = s.sid WHERE s.id = +?`, func(st *sqlite.Stmt) {
		sid, status, wakes = st.ColumnInt64(0), st.ColumnInt64(1), st.ColumnInt64(2)
	}, id.String())
	if err != nil {
		return err
	}
	if !found {
		return notFound("send", id)
	}
	for i := range m.Keys {
		k := &m.Keys[i]
		switch had, there, err := w.key(k, micros(clock())); {
		case err != nil:
			return err
		case there && had.Digest == k.Digest:
			return nil
		case there:
			return taken("send", id, &had)
		}
	}
	var old [32]byte
	found, err = one(w.c, "SELECT digest FROM inbox WHERE sid = ? AND msg = ?", func(st *sqlite.Stmt) { st.ColumnBytes(0, old[:]) }, sid, m.ID)
	switch {
	case err != nil:
		return err
	case found && bytes.Equal(old[:], o.digest[:]):
		return nil
	case found:
		return refuse(stint.Conflict, "send", id, "give each message an id of its own; the first one stands",
			"message %q was sent before with other content", m.ID)
	}
	kind := messageID(m.Kind)
	fold := stint.Session{ID: id, Status: statusOf(status)}
	if err := fold.Accepts(m.Kind); err != nil && wakes>>kind&1 == 0 { // one that has ended is woken by what it accepts
		return err
	}
	if err := exec(w.c, "INSERT INTO inbox(sid, msg, kind, sender, at, digest, data, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		sid, m.ID, kind, string(m.From), micros(clock()), o.digest[:], orNull(m.Data), orNull(m.Body)); err != nil {
		return err
	}
	for i := range m.Keys {
		if err := w.addKey(&m.Keys[i]); err != nil {
			return err
		}
	}
	o.tell = true
	if wakes>>kind&1 == 0 {
		return nil
	}
	return exec(w.c, "UPDATE heads SET ready = 0 WHERE sid = ? AND ready IS NOT 0", sid)
}

func orNull(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}
