package notify

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// Source is a store that can say what happened after something else.
type Source interface {
	stint.Reader

	// Feed returns entries of all sessions in the order in which they became durable,
	// after a cursor, and the cursor after each of them; the last cursor is where to go on.
	Feed(ctx context.Context, after string, limit int) (entries []stint.Entry, cursors []string, err error)
	// Changed returns a channel that gets a value soon after something became durable.
	Changed(ctx context.Context) <-chan struct{}
}

// Notifier sends events to endpoints. There is one in a store, with the server that has the
// system journal. Its methods may be called from any goroutine.
type Notifier struct {
	system *engine.System
	source Source
	log    *slog.Logger

	setting sync.Mutex // one Set, Run or Resume at a time

	mu      sync.Mutex
	life    context.Context // of Run; nil while it does not run
	senders map[string]*sender
	lines   []stint.Key   // of what came to an end, not written yet
	notes   []engine.Note // on endpoints, not written yet
	dirty   bool          // there is something to write
	moved   bool          // places moved, past what nobody is told of
	writing sync.Mutex    // one flush at a time
}

const (
	// pollEvery is how often the feed is looked at without a sign that it has more.
	pollEvery = 5 * time.Second
	// pausedWait is how long a paused endpoint is left alone, unless it is resumed.
	pausedWait = time.Hour
	// flushEvery is how long places and lines may be behind what was sent.
	flushEvery = 5 * time.Second
	// movedEvery is after how many of these times a place is written that only moved, so
	// that nobody reads the whole feed again after a crash.
	movedEvery = 120
	// maxLines is how many lines may wait to be written before nothing more is sent.
	maxLines = 1000
	// linesAtOnce is how many of them are in one note.
	linesAtOnce = 200
	// lastFlush is how long the end of Run waits for the store.
	lastFlush = 10 * time.Second
)

// New makes a notifier without endpoints. log may be nil.
func New(system *engine.System, source Source, log *slog.Logger) (*Notifier, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	n := &Notifier{system: system, source: source, log: log, senders: map[string]*sender{}}
	all, err := readHeld(system.State(Section))
	if err != nil {
		return nil, err
	}
	for name, is := range all {
		n.senders[name] = &sender{n: n, Endpoint: Endpoint{Name: name}, held: is, kick: make(chan struct{}, 1), late: map[stint.ID]time.Time{}}
	}
	return n, nil
}

// Set replaces all endpoints. One that is new is told of what happens from now on; one that
// stays goes on where it was, and so does what is broken, by name: a mistake in a file is no
// wish to end it. What is wrong with one is [stint.Invalid], and changes nothing.
func (n *Notifier) Set(ctx context.Context, all []Endpoint, broken ...string) error {
	n.setting.Lock()
	defer n.setting.Unlock()
	for i := range all {
		if err := all[i].check(); err != nil {
			return err
		}
	}
	_, cursors, err := n.source.Feed(ctx, "", 0)
	if err != nil {
		return err
	}
	next := map[string]*sender{}
	for _, e := range all {
		s := &sender{n: n, Endpoint: e, kick: make(chan struct{}, 1), late: map[stint.ID]time.Time{}}
		s.held.Cursor = cursors[len(cursors)-1]
		n.mu.Lock()
		old := n.senders[e.Name]
		n.mu.Unlock()
		if old != nil {
			old.end()
			s.held = old.held // nobody else has it any more
		}
		switch {
		case e.Remind.Never():
			s.held.Reminded = time.Time{}
		case s.held.Reminded.IsZero():
			s.held.Reminded = clock()
		}
		next[e.Name] = s
	}
	n.mu.Lock()
	var gone []*sender
	for name, old := range n.senders {
		if next[name] == nil && slices.Contains(broken, name) {
			next[name] = old
			continue
		}
		gone = append(gone, old)
	}
	if len(next) == 0 && len(gone) == 0 {
		n.mu.Unlock()
		return nil
	}
	n.senders = next
	n.note(engine.Note{What: "notify.set", Data: map[string]int{"endpoints": len(next)}})
	n.mu.Unlock()
	for _, s := range gone {
		s.end()
	}
	for name, s := range next {
		if !slices.Contains(broken, name) { // that one has begun
			n.begin(s)
		}
	}
	return n.flush(ctx)
}

// begin starts a sender, if Run runs.
func (n *Notifier) begin(s *sender) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life == nil {
		return
	}
	ctx, cancel := context.WithCancel(n.life)
	s.cancel, s.over = cancel, make(chan struct{})
	go func() {
		defer close(s.over)
		s.run(ctx)
	}()
}

// Run sends until ctx ends. It returns early only when nothing can be recorded any more.
func (n *Notifier) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n.setting.Lock()
	n.mu.Lock()
	n.life = ctx
	all := slices.Collect(maps.Values(n.senders))
	n.mu.Unlock()
	for _, s := range all {
		if s.Channel != nil { // it is not only remembered
			n.begin(s)
		}
	}
	n.setting.Unlock()
	err := n.keep(ctx)
	cancel()
	n.setting.Lock()
	defer n.setting.Unlock()
	n.mu.Lock()
	n.life = nil
	all = slices.Collect(maps.Values(n.senders))
	n.mu.Unlock()
	for _, s := range all {
		s.end()
	}
	if err != nil {
		return err
	}
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), lastFlush)
	defer stop()
	n.touch()
	if err := n.flush(last); err != nil {
		n.log.Warn("notify", "error", err)
	}
	return nil
}

// keep writes down what was sent, and wakes the senders when something happened.
func (n *Notifier) keep(ctx context.Context) error {
	changed := n.source.Changed(ctx)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for ticks := 1; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			n.mu.Lock()
			for _, s := range n.senders {
				s.poke()
			}
			n.mu.Unlock()
			continue
		case <-tick.C:
			if ticks++; ticks%movedEvery == 0 {
				n.touch()
			}
		}
		if err := n.flush(ctx); err != nil && ctx.Err() == nil {
			if stint.CodeOf(err) == stint.Fenced {
				return err
			}
			n.log.Warn("notify", "error", err)
		}
	}
}

// touch has places written that only moved.
func (n *Notifier) touch() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dirty, n.moved = n.dirty || n.moved, false
}

// note has something written that is not a place or a line. n.mu is held.
func (n *Notifier) note(one engine.Note) {
	n.notes, n.dirty = append(n.notes, one), true
}

// flush writes places, lines and notes, all that there are.
func (n *Notifier) flush(ctx context.Context) error {
	n.writing.Lock()
	defer n.writing.Unlock()
	for {
		n.mu.Lock()
		if !n.dirty {
			n.mu.Unlock()
			return nil
		}
		all := map[string]held{}
		for name, s := range n.senders {
			all[name] = s.held
		}
		some := slices.Clone(n.lines[:min(len(n.lines), linesAtOnce)])
		note := engine.Note{What: "notify.sent", Data: map[string]int{"lines": len(some)}}
		noted := min(len(n.notes), 1)
		if noted > 0 {
			note = n.notes[0]
		}
		n.dirty = len(some) < len(n.lines) || noted < len(n.notes)
		n.mu.Unlock()
		raw, err := json.Marshal(all) // what is in it is replaced, and never changed
		if err != nil {
			return stint.Internal.Errorf("notify", "what is held of endpoints is no JSON: %v", err)
		}
		note.Keys, note.Section, note.State = some, Section, raw
		err = n.system.Record(ctx, note)
		n.mu.Lock()
		if err != nil {
			n.dirty = true
		} else {
			n.lines, n.notes = slices.Clone(n.lines[len(some):]), slices.Clone(n.notes[noted:])
		}
		n.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// Status is how an endpoint does.
type Status struct {
	Name    string    `json:"name"`
	Failing time.Time `json:"failing,omitzero"` // since when it took nothing
	Paused  *Parked   `json:"paused,omitempty"`
	Pending []Pending `json:"pending,omitempty"`
}

// Status returns how the endpoints do, by name.
func (n *Notifier) Status() []Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]Status, 0, len(n.senders))
	for _, name := range slices.Sorted(maps.Keys(n.senders)) {
		is := n.senders[name].held
		all = append(all, Status{name, is.Failing, is.Paused, slices.Clone(is.Pending)})
	}
	return all
}

// Resume ends the pause of an endpoint, which goes on where it was. One that is not there is
// [stint.NotFound], one that is not paused [stint.Conflict].
func (n *Notifier) Resume(ctx context.Context, name string, by stint.Actor, reason string) error {
	n.mu.Lock()
	s := n.senders[name]
	switch {
	case s == nil:
		n.mu.Unlock()
		return stint.NotFound.Errorf("notify", "there is no endpoint %q", clip(name, 60))
	case s.held.Paused == nil:
		n.mu.Unlock()
		return stint.Conflict.Errorf("notify", "the endpoint %q is not paused", name)
	}
	s.held.Paused, s.held.Failing = nil, time.Time{}
	pending := slices.Clone(s.held.Pending)
	for i := range pending {
		pending[i].Next = clock() // somebody says that it is well again
	}
	s.held.Pending = pending
	n.note(engine.Note{What: "notify.resumed", Name: name, Actor: by, Reason: reason})
	n.mu.Unlock()
	s.poke()
	return n.flush(ctx)
}
