package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// The first and the last microsecond of the years 1 to 9999, which JSON and people
// can write. The first is how the zero time is kept.
const (
	minMicros = -62135596800000000
	maxMicros = 253402300799999999
)

// sane reports whether a time as it is kept can be one.
func sane(us int64) bool { return us >= minMicros && us <= maxMicros }

// saneTimes refuses a row with a time that none can have: the row is damaged, and
// whoever printed it would fail, or print what never was.
func saneTimes(row *stint.Row) error {
	s, l := &row.Session, &row.Lease
	for _, t := range []struct {
		name string
		at   time.Time
	}{
		{"created", s.Created}, {"updated", s.Updated}, {"since", s.At.Since}, {"checkpoint", s.Checkpoint.At},
		{"lease: expires", l.Expires}, {"lease: claimed", l.Claimed}, {"lease: now", l.NowAt},
	} {
		if !t.at.IsZero() && !sane(t.at.UnixMicro()) {
			return fmt.Errorf("its time %q is none: it lies beyond all years", t.name)
		}
	}
	return nil
}

// damage says what is wrong with a row of sqlRow that a sound store cannot have. A
// row that was found by a broken index is not the one that the index names.
func damage(st *sqlite.Stmt, id string) error {
	switch {
	case id == "":
		return errors.New("it has no id")
	case st.ColumnIsNull(7):
		return errors.New("it has no head")
	case st.ColumnIsNull(19):
		return errors.New("its family is not there")
	case st.ColumnText(28) != reversed(id):
		return errors.New("its id and the same backwards differ")
	case statusOf(st.ColumnInt64(4)) == "":
		return fmt.Errorf("there is no status %d", st.ColumnInt64(4))
	}
	return nil
}

// hollow refuses a store whose list of sessions is empty, and its journal has others than
// the system's.
func hollow(c *sqlite.Conn) error {
	found, err := one(c, "SELECT 1 FROM journal WHERE kind = 1 AND sid NOT IN (SELECT sid FROM sessions WHERE trigger = 'system') LIMIT 1", func(*sqlite.Stmt) {})
	if found && err == nil {
		return refuse(stint.Corrupt, "sessions", stint.ID{}, salvageHint, "the table of sessions is damaged: it is empty, and there are entries of sessions")
	}
	return err
}

// wokenBy reports whether wakes has the bit of a message's kind as it is kept, which
// may be damaged.
func wokenBy(wakes, kind int64) bool { return kind >= 0 && kind < 63 && wakes>>kind&1 == 1 }

// headless refuses entries that should begin with the first one and do not: its kind,
// or the index by which it is found, is damaged.
func headless(r *stint.Range, all []stint.Entry) error {
	if r.After > 0 || r.Last || r.Limit < 0 || r.Kinds != nil && !slices.Contains(r.Kinds, stint.SessionCreated) {
		return nil
	}
	if len(all) > 0 && all[0].Seq == 1 && all[0].Kind == stint.SessionCreated {
		return nil
	}
	return refuse(stint.Corrupt, "entries", r.Session, salvageHint, "the journal does not begin with its first entry")
}

// beheaded refuses a session that is there and has no head, or that its index does not
// lead to: it is looked for in the other one. One that is not there has no entries.
func beheaded(c *sqlite.Conn, id stint.ID) error {
	found, err := one(c, "SELECT 1 FROM sessions WHERE id = ? UNION ALL SELECT 1 FROM sessions WHERE rev = ? LIMIT 1", func(*sqlite.Stmt) {}, id.String(), reversed(id.String()))
	if found && err == nil {
		return refuse(stint.Corrupt, "session", id, salvageHint, "its head is missing, or its index is damaged")
	}
	return err
}
