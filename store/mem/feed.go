package mem

import (
	"context"
	"crypto/rand"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/cursor"
)

// feed is which entries became durable, in order. A position is the number of
// entries up to there, those of the system journal included.
type feed struct {
	store [8]byte
	all   []fed
}

// fed is one entry: the record that has it, and its seq.
type fed struct {
	of  *record
	seq stint.Seq
}

func newFeed() (f feed) {
	_, _ = rand.Read(f.store[:]) // it never fails, see crypto/rand
	return f
}

func (f *feed) add(r *record, es []stint.Entry) {
	for i := range es {
		f.all = append(f.all, fed{r, es[i].Seq})
	}
}

func (e fed) entry() stint.Entry { return e.of.entries[e.seq-1] }

// at is the cursor behind the first n entries.
func (f *feed) at(n int64) cursor.Cursor {
	c := cursor.Cursor{Store: f.store, Pos: n}
	if n > 0 {
		e := f.all[n-1].entry()
		copy(c.Check[:], e.Hash[:])
	}
	return c
}

// Feed implements [stint.Watcher].
func (s *Store) Feed(_ context.Context, after string, limit int) (entries []stint.Entry, cursors []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.feed
	var from cursor.Cursor
	if after != "" {
		if from, err = cursor.Parse(after); err != nil {
			return nil, nil, err
		}
		if from.Pos > int64(len(f.all)) || from != f.at(from.Pos) {
			return nil, nil, cursor.Moved(after)
		}
	}
	end := int64(len(f.all))
	if limit > 0 {
		end = min(from.Pos+int64(limit), end)
		for i, one := range f.all[from.Pos:end] {
			if one.of.session.Trigger.Kind != "system" {
				entries = append(entries, one.entry())
				cursors = append(cursors, f.at(from.Pos+int64(i)+1).String())
			}
		}
	}
	return entries, append(cursors, f.at(end).String()), nil
}
