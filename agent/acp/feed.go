package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/stint-dev/stint"
)

// eventKind says what an event is.
type eventKind int

const (
	evText  eventKind = iota + 1 // the model's words
	evBegin                      // a call, or a file asked for outside of one
	evDone                       // the turn came to its end
	evFail                       // it failed
	evExit                       // the process is gone
)

type event struct {
	kind  eventKind
	text  string
	part  *part
	stop  string
	usage stint.Usage
	err   error
	exit  *exit
	bytes int // what it takes of the queue
}

// call is one as an answer of the model names it in the journal.
type call struct {
	Name   string          `json:"name"`
	Effect stint.Effect    `json:"effect"`
	Input  json.RawMessage `json:"input,omitempty"`
	Ask    string          `json:"ask,omitempty"`   // the question that a person is asked
	Waits  bool            `json:"waits,omitempty"` // it does not begin before stint lets it
}

// part is one stretch of a call: from its beginning, or from a permission that it asks
// for, to its end or to the next permission that it asks for. Only done is read without
// the feed's lock.
type part struct {
	live  *liveCall
	perm  *permission
	file  *fileCall
	taken bool          // it is a step now
	asks  chan struct{} // closed when it asks permission before it is a step
	done  chan struct{} // closed at its end
	over  bool          // done is closed
	lost  bool          // the process ended before it
	out   outcome
	files []file
}

// liveCall is what the process has told of a call.
type liveCall struct {
	known
	part *part // its newest
}

// permission is one that the agent waits for.
type permission struct {
	options []option
	answer  chan acp.RequestPermissionResponse // has room for one
	once    sync.Once
}

// allow gives it, once; it is false where the agent offers no such thing.
func (p *permission) allow() bool { return p.choose(acp.PermissionOptionKindAllowOnce) }

// reject refuses it, once. Where the agent offers no such thing the turn is canceled:
// a no for good is more than was said.
func (p *permission) reject() {
	if !p.choose(acp.PermissionOptionKindRejectOnce) {
		p.cancel()
	}
}

func (p *permission) choose(kind acp.PermissionOptionKind) bool {
	for _, o := range p.options {
		if o.Kind == string(kind) {
			p.tell(acp.RequestPermissionOutcome{Selected: &acp.RequestPermissionOutcomeSelected{Outcome: "selected", OptionId: acp.PermissionOptionId(o.ID)}})
			return true
		}
	}
	return false
}

func (p *permission) cancel() {
	p.tell(acp.RequestPermissionOutcome{Cancelled: &acp.RequestPermissionOutcomeCancelled{Outcome: "cancelled"}})
}

func (p *permission) tell(o acp.RequestPermissionOutcome) {
	p.once.Do(func() { p.answer <- acp.RequestPermissionResponse{Outcome: o} })
}

// feed holds what the agent has said and nobody has taken yet. Who reads the agent's
// output puts; the loop's goroutine takes. The end of a call goes to the call at once,
// past all that waits.
type feed struct {
	mu    sync.Mutex
	queue []event
	size  int
	full  bool
	wake  chan struct{} // has room for one
	calls map[string]*liveCall
	cost  stint.Money // of the session, as the agent counts
	perms map[*permission]bool
}

func newFeed() *feed {
	return &feed{wake: make(chan struct{}, 1), calls: map[string]*liveCall{}, perms: map[*permission]bool{}}
}

// put adds an event.
func (f *feed) put(e event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(e)
}

// add is put under the lock.
func (f *feed) add(e event) {
	if e.kind == evDone || e.kind == evFail || e.kind == evExit {
		for _, c := range f.calls {
			if c.part != nil && !c.part.over {
				c.part.lost = true
				c.part.end(outcome{})
			}
		}
		clear(f.calls)
	}
	last := len(f.queue) - 1
	if e.kind == evText && last >= 0 && f.queue[last].kind == evText && len(f.queue[last].text) < maxText {
		f.queue[last].text += e.text
		f.queue[last].bytes += len(e.text)
		f.size += len(e.text)
	} else {
		e.bytes = e.size()
		f.size += e.bytes
		if f.size > maxQueued && e.kind != evExit {
			if f.full {
				return
			}
			f.full = true
			e = event{kind: evFail, err: fmt.Errorf("it says more than %d bytes while one call is under way", maxQueued)}
		}
		f.queue = append(f.queue, e)
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (e *event) size() int {
	n := 200 + len(e.text)
	if e.part != nil && e.part.live != nil {
		n += len(e.part.live.input) + maxOut
	}
	if e.part != nil && e.part.file != nil && e.part.file.req.Content != nil {
		n += len(*e.part.file.req.Content)
	}
	return n
}

// end ends a part. The caller holds the feed's lock.
func (p *part) end(o outcome) {
	if p.over {
		return
	}
	p.over, p.out = true, o
	close(p.done)
}

func newPart() *part { return &part{done: make(chan struct{}), asks: make(chan struct{})} }

// told takes what the agent says of a call.
func (f *feed) told(u toolCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.call(u)
	switch deref(u.Status) {
	case "in_progress":
		f.begin(c)
	case "completed", "failed":
		f.begin(c)
		c.part.end(c.outcome())
		if c.part.taken {
			c.known = known{} // all that is kept of it is in its part
		}
	}
}

// call is what is known of a call, with u. The caller holds the lock.
func (f *feed) call(u toolCall) *liveCall {
	c := f.calls[u.ID]
	if c == nil {
		c = &liveCall{}
		f.calls[u.ID] = c
	}
	c.merge(u)
	return c
}

// begin makes the first part of a call. The caller holds the lock.
func (f *feed) begin(c *liveCall) {
	if c.part == nil {
		c.part = newPart()
		c.part.live = c
		f.add(event{kind: evBegin, part: c.part})
	}
}

// asked takes a permission that the agent asks for.
func (f *feed) asked(u toolCall, p *permission) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.perms[p] = true
	c := f.call(toolCall{ID: u.ID})
	c.asked(u)
	old := c.part
	if old != nil && !old.taken && !old.over && old.perm == nil {
		old.perm = p
		close(old.asks)
		return
	}
	c.part = newPart()
	c.part.live, c.part.perm = c, p
	if old != nil {
		old.end(outcome{Stint: markAsks})
	}
	f.add(event{kind: evBegin, part: c.part})
}

// answered forgets a permission.
func (f *feed) answered(p *permission) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.perms, p)
}

// refuse tells the agent that nothing will come of what it waits for.
func (f *feed) refuse() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p := range f.perms {
		p.cancel()
	}
	for i := range f.queue {
		if p := f.queue[i].part; p != nil && p.file != nil {
			p.file.fail("the turn is canceled")
		}
	}
}

// closed ends a part that the agent will not get permission for.
func (f *feed) closed(p *part) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p.end(outcome{Status: "denied"})
}

// state is what became of a part.
func (f *feed) state(p *part) (o outcome, over, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o = p.out
	o.Files = p.files
	return o, p.over, p.lost
}

// served notes a file that was served for a part.
func (f *feed) served(p *part, x file) {
	f.mu.Lock()
	defer f.mu.Unlock()
	const most = 1000
	if len(p.files) < most {
		p.files = append(p.files, x)
	}
}

// take makes a part a step. Agents say that a call is in progress just before they ask
// permission for it, so it waits a little where there is no question yet.
func (f *feed) take(ctx context.Context, s *Spec, p *part, settle time.Duration) call {
	f.mu.Lock()
	wait := p.file == nil && p.perm == nil && !p.over
	f.mu.Unlock()
	if wait {
		timer := time.NewTimer(settle)
		defer timer.Stop()
		select {
		case <-p.asks:
		case <-p.done:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p.taken = true
	if p.file != nil {
		c := p.file.call(s)
		c.Waits = true
		return c
	}
	k := &p.live.known
	c := call{Name: k.name(), Effect: s.effect(k.class()), Input: k.arguments(), Waits: p.perm != nil}
	if p.perm != nil && s.Approve[k.class()] != Never {
		c.Ask = k.question()
	}
	if p.over {
		*k = known{}
	}
	return c
}

// next waits for an event until ctx ends; without one its kind is zero.
func (f *feed) next(ctx context.Context) event {
	for {
		f.mu.Lock()
		if len(f.queue) > 0 {
			e := f.remove(0)
			f.mu.Unlock()
			return e
		}
		f.mu.Unlock()
		select {
		case <-f.wake:
		case <-ctx.Done():
			return event{}
		}
	}
}

// deed waits for the first event that is more than words and leaves it where it is.
func (f *feed) deed(ctx context.Context) event {
	for {
		f.mu.Lock()
		for _, e := range f.queue {
			if e.kind != evText {
				f.mu.Unlock()
				return e
			}
		}
		f.mu.Unlock()
		select {
		case <-f.wake:
		case <-ctx.Done():
			return event{}
		}
	}
}

// claim takes a part out of the queue, wherever it stands.
func (f *feed) claim(p *part) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.queue {
		if f.queue[i].part == p {
			f.remove(i)
			if i > 0 && f.queue[i-1].kind == evText { // what stood on two sides of it
				f.queue[i-1].text += "\n"
				f.queue[i-1].bytes++
				f.size++
			}
			return
		}
	}
}

// file waits for a file that the agent asks for, until a call has ended; nil: it has.
func (f *feed) file(ctx context.Context, done <-chan struct{}) *fileCall {
	for {
		f.mu.Lock()
		for i := range f.queue {
			if p := f.queue[i].part; p != nil && p.file != nil {
				f.remove(i)
				f.mu.Unlock()
				return p.file
			}
		}
		f.mu.Unlock()
		select {
		case <-f.wake:
		case <-done:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// remove takes the i-th event. The caller holds the lock.
func (f *feed) remove(i int) event {
	e := f.queue[i]
	f.size -= e.bytes
	f.queue = append(f.queue[:i:i], f.queue[i+1:]...)
	return e
}

// back puts an event back that was taken.
func (f *feed) back(e event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.size += e.bytes
	f.queue = append([]event{e}, f.queue...)
}

// spent is what the session cost by now, as the agent counts.
func (f *feed) spent() stint.Money {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cost
}
