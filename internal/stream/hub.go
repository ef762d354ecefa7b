package stream

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/model"
)

const (
	feedPage  = 512                   // entries that are read at once
	lookEvery = 50 * time.Millisecond // Changed does not tell of every entry
	linger    = time.Minute           // without a client, until the feed is read no more
	patience  = 10 * time.Second      // with a store that fails, until streams end
)

// hub reads the feed and has the newest of it.
type hub struct {
	Options

	ctx     context.Context // of the server
	stop    context.CancelFunc
	clients sync.WaitGroup // and the reader
	begin   sync.Mutex     // who starts the reader
	rows    rows

	mu       sync.Mutex
	running  bool
	ring     []*item
	first    int64 // the number of ring[0]
	bytes    int
	base     string // the cursor before ring[0]
	end      string // and behind the newest
	all      map[*client]bool
	board    map[*client]bool
	sessions map[stint.ID]map[*client]bool
	left     time.Time // when the newest client left
}

// item is one entry of the feed.
type item struct {
	cursor string
	id     stint.ID
	at     spot
	row    bool // it changes what a list shows of its session
	size   int

	once  sync.Once
	entry view.Entry
	event []byte
	err   error
}

func newItem(e *stint.Entry, cursor string) *item {
	return &item{cursor: cursor, id: e.Session, at: spotOf(e.Seq, e.Hash), row: e.Kind != stint.OutputWritten, size: 1024 + 2*len(e.Data), entry: view.NewEntry(e)}
}

// text is the item as an event of its session, made for the first who asks.
func (it *item) text() ([]byte, error) {
	it.once.Do(func() {
		var data []byte
		data, it.err = document(it.entry)
		it.event, it.entry = appendEvent(nil, nameEntry, it.at.String(), data), view.Entry{}
	})
	return it.event, it.err
}

func newHub(ctx context.Context, o Options) *hub {
	ctx, stop := context.WithCancel(ctx)
	return &hub{
		Options: o, ctx: ctx, stop: stop, rows: rows{of: map[stint.ID]*row{}},
		all: map[*client]bool{}, board: map[*client]bool{}, sessions: map[stint.ID]map[*client]bool{},
	}
}

func (h *hub) close() {
	h.mu.Lock()
	h.stop() // in the lock: nobody is counted in any more
	h.mu.Unlock()
	h.clients.Wait()
}

// enter counts c in, and starts the reader for the first. Every enter that succeeds is
// followed by a leave.
func (h *hub) enter(ctx context.Context, c *client) error {
	h.begin.Lock()
	defer h.begin.Unlock()
	h.mu.Lock()
	running := h.running
	h.mu.Unlock()
	var end []string
	if !running {
		var err error
		if _, end, err = h.Store.Feed(ctx, "", 0); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		err := stint.Unavailable.Errorf("events", "the server is about to end")
		err.Hint = "come back in a moment"
		return err
	}
	h.clients.Add(1)
	h.all[c] = true
	if !c.session.IsZero() {
		of := h.sessions[c.session]
		if of == nil {
			of = map[*client]bool{}
			h.sessions[c.session] = of
		}
		of[c] = true
	}
	if !h.running { // it may have ended meanwhile; then it is behind what this client reads first
		if end != nil {
			h.reset(end[0])
		}
		h.running = true
		h.clients.Go(h.read)
	}
	return nil
}

// leave counts c out.
func (h *hub) leave(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, c)
	delete(h.board, c)
	if of := h.sessions[c.session]; of != nil {
		if delete(of, c); len(of) == 0 {
			delete(h.sessions, c.session)
		}
	}
	h.left = time.Now()
	h.clients.Done()
}

// reset forgets the ring, and has the feed read from end on.
func (h *hub) reset(end string) {
	h.first += int64(len(h.ring))
	h.ring, h.bytes, h.base, h.end = nil, 0, end, end
}

// read is the only reader of the feed.
func (h *hub) read() {
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	changed := h.Store.Changed(ctx)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	worked := time.Now()
	for {
		switch err := h.pull(ctx); {
		case err == nil:
			worked = time.Now()
		case stint.CodeOf(err) == stint.Conflict:
			h.moved(ctx)
		case time.Since(worked) > patience:
			h.sendAway(failed)
		}
		select {
		case <-ctx.Done():
			return
		case _, open := <-changed:
			if !open {
				changed = nil // of a store that is closed
			}
		case <-tick.C:
			if h.rests() {
				return
			}
		}
	}
}

// rests ends the reading where nobody has wanted it for a while.
func (h *hub) rests() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) > 0 || time.Since(h.left) < linger {
		return false
	}
	h.running = false
	h.reset(h.end)
	h.rows.forget()
	return true
}

// pull reads what is new.
func (h *hub) pull(ctx context.Context) error {
	h.mu.Lock()
	after := h.end
	h.mu.Unlock()
	for {
		entries, cursors, err := h.Store.Feed(ctx, after, feedPage)
		if err != nil || cursors[len(entries)] == after {
			return err
		}
		after = cursors[len(entries)]
		h.add(entries, cursors)
	}
}

// add puts entries into the ring and tells those whom they concern.
func (h *hub) add(entries []stint.Entry, cursors []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range entries {
		it := newItem(&entries[i], cursors[i])
		n := h.first + int64(len(h.ring))
		h.ring = append(h.ring, it)
		h.bytes += it.size
		for c := range h.sessions[it.id] {
			c.offer(n, h.Queue)
		}
		if !it.row {
			continue
		}
		for c := range h.board {
			if it.cursor > c.has {
				c.offer(n, h.Queue)
			}
		}
	}
	h.end = cursors[len(entries)]
	for len(h.ring) > h.Ring || h.bytes > h.RingBytes {
		h.base, h.bytes = h.ring[0].cursor, h.bytes-h.ring[0].size
		h.ring[0] = nil
		h.ring, h.first = h.ring[1:], h.first+1
	}
}

// moved begins anew behind a store that is another than it was.
func (h *hub) moved(ctx context.Context) {
	_, end, err := h.Store.Feed(ctx, "", 0)
	if err != nil {
		return // pull finds the same again
	}
	h.mu.Lock()
	h.reset(end[0])
	h.mu.Unlock()
	h.rows.forget()
	h.sendAway(moved)
}

// sendAway ends all streams there are.
func (h *hub) sendAway(why ending) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.all {
		c.sendAway(why)
	}
}

func (h *hub) publish(session stint.ID, loop int, d model.Delta) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.sessions[session] {
		c.say(loop, d)
	}
}

// attachSession makes c get the entries of its session behind seq from the ring, and
// reports false where some of them may lie before it.
func (h *hub) attachSession(c *client, seq stint.Seq) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	from := -1
	for i, it := range h.ring {
		if it.id != c.session {
			continue
		}
		if from < 0 && it.at.seq > seq+1 {
			return false
		}
		if from < 0 && it.at.seq <= seq+1 {
			from = i
		}
	}
	if from < 0 {
		return false
	}
	c.attach(h.first+int64(from), "")
	return true
}

// attachBoard makes c get what comes behind a cursor from the ring, and reports false
// where some of it lies before it.
func (h *hub) attachBoard(c *client, after string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if after < h.base {
		return false
	}
	from := sort.Search(len(h.ring), func(i int) bool { return h.ring[i].cursor > after })
	c.attach(h.first+int64(from), after)
	h.board[c] = true
	return true
}
