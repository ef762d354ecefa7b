package stream

import (
	"slices"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/model"
)

// ending is why the server ends a stream that is well otherwise.
type ending string

const (
	slow   ending = "slow"   // the client does not read what comes
	moved  ending = "moved"  // the store is another than it was
	failed ending = "failed" // the store cannot be read

	behind ending = "behind" // it goes on, from the store
)

// grace is how long what came first may wait for a client while more comes than fits.
// Within it many entries came at once, and it is not the client that is slow.
const grace = time.Second

// takeMost is how many events are written at once, and textMost how many bytes of a
// model's text may wait for one client.
const (
	takeMost = 256
	textMost = 64 << 10
)

// client is one stream, as the hub knows it. The hub's lock guards it.
type client struct {
	session stint.ID // zero: the board
	wake    chan struct{}

	live    bool      // it has caught up
	next    int64     // the first item that it has not taken; -1: none
	waiting int       // so many, since it caught up
	since   time.Time // since when the first of them waits
	has     string    // of the board: what is up to here it has got otherwise
	why     ending    // it is to go
	texts   []said
	bytes   int
	deaf    bool // it did not read them
}

// said is what a model wrote.
type said struct {
	loop int
	model.Delta
}

func newClient(session stint.ID) *client {
	return &client{session: session, wake: make(chan struct{}, 1), next: -1}
}

func (c *client) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default: // it is told already
	}
}

// attach makes the items from number n on the next ones.
func (c *client) attach(n int64, has string) {
	c.live, c.next, c.waiting, c.since, c.has = true, n, 0, time.Now(), has
	if c.why == slow && !c.deaf {
		c.why = ""
	}
	c.wakeUp()
}

// offer tells c of item n.
func (c *client) offer(n int64, most int) {
	if c.next < 0 { // else it was woken, and has not been here since
		c.next, c.since = n, time.Now()
		c.wakeUp()
	}
	if c.waiting++; c.waiting > most {
		c.sendAway(slow)
	}
}

// sendAway ends c's stream. That it is slow is the least of reasons: it is forgiven
// where it has not caught up yet.
func (c *client) sendAway(why ending) {
	if c.why == "" || c.why == slow {
		c.why = why
	}
	c.wakeUp()
}

// say gives c a piece of an answer. One who still reads the journal does not need it.
func (c *client) say(loop int, d model.Delta) {
	if !c.live {
		return
	}
	if c.bytes += len(d.Text); c.bytes > textMost {
		c.deaf = true
		c.sendAway(slow)
		return
	}
	last := len(c.texts) - 1
	if last >= 0 && !d.Void && c.texts[last].loop == loop && c.texts[last].Thought == d.Thought {
		c.texts[last].Text += d.Text
	} else {
		c.texts = append(c.texts, said{loop, d})
	}
	c.wakeUp()
}

// renew has c begin to catch up with the store: what waits for it, it will read there.
func (h *hub) renew(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.live, c.next, c.waiting = false, -1, 0
	if c.why == slow && !c.deaf {
		c.why = ""
	}
}

// caughtUp makes c one that is expected to keep up, unless it has fallen behind while
// it read the store.
func (h *hub) caughtUp(c *client) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.judge(c)
	c.live = c.why != slow || c.deaf
	return c.live
}

// judge finds out whether what c has not taken has left the ring.
func (h *hub) judge(c *client) {
	if c.next >= 0 && c.next < h.first {
		c.sendAway(slow)
	}
}

// take returns what c is to write next: items, and text that a model wrote before they
// came. place is up to where the board's client has everything then, empty where more
// is waiting.
func (h *hub) take(c *client) (items []*item, texts []said, place string, why ending) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.judge(c); c.why == slow && !c.deaf && time.Since(c.since) < grace {
		return nil, nil, "", behind
	}
	if c.why != "" {
		return nil, nil, "", c.why
	}
	texts, c.texts, c.bytes = c.texts, nil, 0
	if c.next >= 0 {
		rest := h.ring[c.next-h.first:]
		n := slices.IndexFunc(rest, func(it *item) bool {
			if c.session == it.id || c.session.IsZero() && it.row {
				items = append(items, it)
			}
			return len(items) == takeMost
		})
		if c.waiting = max(0, c.waiting-len(items)); n < 0 || n == len(rest)-1 {
			c.next, c.waiting = -1, 0
		} else {
			c.next, c.since = c.next+int64(n)+1, time.Now()
		}
	}
	if c.next < 0 {
		place = max(c.has, h.end)
	}
	return items, texts, place, ""
}
