package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// lineSum is of all that a line and its key say, for [Store.Verify]: the row of a line
// stands alone, and nothing else tells what it should be.
func lineSum(k *stint.Key) (sum [32]byte) {
	h := sha256.New()
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(micros(k.At)))
	for _, part := range [][]byte{[]byte(k.Scope), []byte(k.Name), []byte(k.Source), at[:], k.Digest[:], []byte(k.Ref), k.Note, k.Body} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	h.Sum(sum[:0])
	return sum
}

// addLine writes the line of k, which has a source, in the place of one that expired.
func (w *writer) addLine(k *stint.Key) error {
	sum := lineSum(k)
	return exec(w.c, "INSERT OR REPLACE INTO ledger(source, at, scope, name, note, body, sum) VALUES (?, ?, ?, ?, ?, ?, ?)",
		k.Source, micros(k.At), k.Scope, k.Name, textOrNull(k.Note), orNull(k.Body), sum[:])
}

func textOrNull(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return text(b)
}

// dropKeys forgets up to n keys that may be, and their lines.
func (w *writer) dropKeys(n int) error {
	var gone []stint.Key
	if err := each(w.c, "SELECT scope, name FROM keys WHERE expires > 0 AND expires < +? ORDER BY expires LIMIT +?", func(st *sqlite.Stmt) error {
		gone = append(gone, stint.Key{Scope: st.ColumnText(0), Name: st.ColumnText(1)})
		return nil
	}, micros(clock()), n); err != nil {
		return err
	}
	for _, k := range gone {
		for _, table := range []string{"ledger", "keys"} {
			if err := exec(w.c, "DELETE FROM "+table+" WHERE scope = ? AND name = ?", k.Scope, k.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Keys implements [stint.Reader].
func (s *Store) Keys(ctx context.Context, like stint.Key, limit int) ([]stint.Key, error) {
	limit = cmp.Or(limit, 100)
	var got []stint.Key
	err := s.read(ctx, "keys", func(c *sqlite.Conn) error {
		got = nil
		add := func(st *sqlite.Stmt) error {
			k := stint.Key{Scope: like.Scope, Name: st.ColumnText(0), Ref: st.ColumnText(2), Source: st.ColumnText(4)}
			st.ColumnBytes(1, k.Digest[:])
			if t := st.ColumnInt64(3); t != 0 {
				k.Expires = moment(t)
			}
			if !st.ColumnIsNull(5) {
				k.At = moment(st.ColumnInt64(5))
			}
			k.Note, k.Body = json.RawMessage(column(st, 6)), column(st, 7)
			got = append(got, k)
			return nil
		}
		now := micros(clock())
		if like.Source == "" {
			return each(c, `SELECT k.name, k.digest, k.ref, k.expires, l.source, l.at, l.note, l.body FROM keys k LEFT JOIN ledger l ON l.scope = k.scope AND l.name = k.name
				WHERE k.scope = +? AND k.name = +? AND (k.expires = 0 OR k.expires > +?)`, add, like.Scope, like.Name, now)
		}
		before, name := int64(math.MaxInt64), ""
		if !like.At.IsZero() {
			before, name = micros(like.At), like.Name
		}
		return each(c, `SELECT k.name, k.digest, k.ref, k.expires, l.source, l.at, l.note, NULL FROM ledger l JOIN keys k ON k.scope = l.scope AND k.name = l.name
			WHERE l.scope = +? AND l.source = +? AND (l.at, l.name) < (+?, +?) AND (k.expires = 0 OR k.expires > +?)
			ORDER BY l.at DESC, l.name DESC LIMIT +?`, add, like.Scope, like.Source, before, name, now, limit)
	})
	return got, err
}

// ledger checks that each line is what was written, and the one of its key.
func (a *audit) ledger() error {
	return each(a.c, `SELECT l.id, l.scope, l.name, l.source, l.at, k.digest, k.ref, l.note, l.body, l.sum, k.expires FROM ledger l
		LEFT JOIN keys k ON k.scope = l.scope AND k.name = l.name`, func(st *sqlite.Stmt) error {
		k := stint.Key{Scope: st.ColumnText(1), Name: st.ColumnText(2), Source: st.ColumnText(3), At: moment(st.ColumnInt64(4)), Ref: st.ColumnText(6),
			Note: json.RawMessage(column(st, 7)), Body: column(st, 8)}
		st.ColumnBytes(5, k.Digest[:])
		sum := lineSum(&k)
		if st.ColumnIsNull(10) || !bytes.Equal(sum[:], column(st, 9)) {
			a.tell(stint.ID{}, 0, "line %d of the ledger, %q of %q, is not the one that was written", st.ColumnInt64(0), k.Name, k.Source)
		}
		return nil
	})
}
