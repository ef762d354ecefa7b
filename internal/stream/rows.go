package stream

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/view"
)

// rowsMost is how many bytes of rows are kept.
const rowsMost = 8 << 20

// row is a session as a list shows it, as it was when its newest entry was head.
type row struct {
	stint.Row

	gone bool   // there is no such session any more
	doc  []byte // stint.session/1
}

// rows are rows that clients were sent, so that each is read once for all of them.
type rows struct {
	mu    sync.Mutex
	of    map[stint.ID]*row
	bytes int
}

// get returns the row of a session as it was at entry seq or later.
func (rs *rows) get(ctx context.Context, store stint.Reader, id stint.ID, seq stint.Seq) (*row, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock() // also while one reads: the others want the same
	old := rs.of[id]
	if old != nil && old.Session.Head >= seq {
		return old, nil
	}
	now, err := store.Session(ctx, id)
	if errors.Is(err, stint.NotFound) {
		return &row{gone: true}, nil
	}
	if err != nil {
		return nil, err
	}
	doc, err := document(view.NewSession(&now, time.Now()))
	if err != nil {
		return nil, err
	}
	r := &row{Row: now, doc: doc}
	if old != nil {
		rs.bytes -= old.size()
	}
	if rs.bytes += r.size(); rs.bytes > rowsMost {
		clear(rs.of)
		rs.bytes = r.size()
	}
	rs.of[id] = r
	return r, nil
}

// size is about how many bytes r takes.
func (r *row) size() int { return 2*len(r.doc) + 512 }

// forget drops all rows.
func (rs *rows) forget() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	clear(rs.of)
	rs.bytes = 0
}
