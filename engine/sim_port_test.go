package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stint-dev/stint"
)

// port is the store as one process reaches it. All that can go wrong between a
// process and a store goes wrong here; the store behind it stays sound.
//
//	dead    kill -9: its lock is gone and its calls do nothing. Appends that were on
//	        their way when it died arrive late or never, the later ones never before
//	        the earlier ones of the same session.
//	frozen  SIGSTOP: every call waits, and so does the effect of a step; no context
//	        is noticed. Appends on their way arrive, their answers wait.
//	deaf    renewals and claims do not reach the store, and the process does not know.
//	mute    renewals are refused as unavailable, all else works.
//	broken  appends are refused as unavailable, all else works.
//	blind   reads are refused as unavailable, all else works.
//	lag     appends reach the store late, and their answers come late.
type port struct {
	w     *world
	store stint.Store
	name  string
	role

	mu      sync.Mutex
	rng     *rand.Rand
	dead    bool
	died    time.Time
	thaw    chan struct{} // not nil: frozen, until it is closed
	deaf    bool
	mute    bool
	broken  bool
	blind   bool
	lag     time.Duration
	sick    []span // when it may have lost leases without dying
	gone    chan struct{}
	lanes   map[stint.Lease]*lane // by session and epoch
	release func() error
	calls   int // within one instant
	instant time.Time
}

// role is what a process is there for.
type role struct {
	tool  bool // a command line that settles, and runs nothing
	frail bool // it may die in the middle of something
}

// span is a time in which something was wrong; to is zero while it lasts.
type span struct{ from, to time.Time }

// lane is the appends of one lease on their way, in order.
type lane struct {
	queue []*flight
	busy  bool
}

// flight is one append on its way.
type flight struct {
	ctx    context.Context
	lease  stint.Lease
	batch  stint.Batch
	done   func(error)
	refuse error // it was queued behind one that was refused
	cut    bool  // its process died before it left
	late   time.Duration
	thaw   chan struct{} // it was sent while the process was frozen
}

var (
	_       stint.Store   = (*port)(nil)
	_       stint.Watcher = (*port)(nil)
	errGone               = errors.New("this process is dead")
)

// newPort is a new process. On a store that processes open for themselves it does.
func (w *world) newPort(name string) *port {
	p := &port{w: w, store: w.store, name: name, rng: w.dice("port", name), gone: make(chan struct{}), lanes: map[stint.Lease]*lane{}}
	if w.open != nil {
		s, err := w.open()
		if err != nil {
			w.broken(stint.ID{}, "process %s cannot open the store: %v", name, err)
		} else {
			p.store = s
		}
	}
	w.mu.Lock()
	w.ports = append(w.ports, p)
	w.mu.Unlock()
	return p
}

func (p *port) isDead() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// chance is true in n of 100 cases.
func (p *port) chance(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rng.IntN(100) < n
}

// upTo is a random time below d.
func (p *port) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.rng.Int64N(int64(d)))
}

// enter is where every call begins: the dead do not get in, the frozen wait. A
// process that asks the store thousands of times in one instant spins.
func (p *port) enter() error {
	p.mu.Lock()
	if now := time.Now(); !now.Equal(p.instant) {
		p.instant, p.calls = now, 0
	}
	p.calls++
	spins, thaw := p.calls > 5_000, p.thaw
	p.mu.Unlock()
	if spins {
		p.w.broken(stint.ID{}, "%s calls the store in a hot loop", p.name)
		<-time.After(time.Second)
	}
	if thaw != nil {
		select {
		case <-thaw:
		case <-p.gone:
		}
	}
	if p.isDead() {
		return &stint.Error{Code: stint.Fenced, Op: "call", Err: errGone}
	}
	return nil
}

// work is a step taking its time; then it may act, unless the process died.
func (p *port) work(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.gone:
		return errGone
	}
	return p.enter()
}

// writes is enter for what the disk may have no room for.
func (p *port) writes() error {
	if err := p.enter(); err != nil {
		return err
	}
	return p.w.door()
}

// door refuses while the disk is full.
func (w *world) door() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full {
		return stint.Unavailable.Errorf("store", "the disk is full")
	}
	return nil
}

// reads is enter for what a blind process cannot do.
func (p *port) reads() error {
	if err := p.enter(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.blind {
		return stint.Unavailable.Errorf("read", "the disk does not answer")
	}
	return nil
}

// Hold takes the process's lock; it vanishes with the process.
func (p *port) Hold(ctx context.Context, name string) (func() error, error) {
	h, ok := p.store.(interface {
		Hold(ctx context.Context, holder string) (func() error, error)
	})
	if !ok {
		return func() error { return nil }, nil
	}
	release, err := h.Hold(ctx, name)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.release = release
	p.mu.Unlock()
	return p.end, nil
}

// end is the process ending by itself: its lock is gone with it.
func (p *port) end() error {
	p.kill()
	return nil
}

func (p *port) Create(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
	if err := p.writes(); err != nil {
		return stint.Lease{}, err
	}
	child := isKid(&b.Session)
	if child && p.doomed(2) {
		return stint.Lease{}, &stint.Error{Code: stint.Fenced, Op: "create", Err: errGone}
	}
	l, err := p.store.Create(ctx, b, c)
	if err == nil && l.Epoch > 0 {
		p.w.granted(p, l)
	}
	if err == nil && child {
		p.w.born("child "+b.Session.Labels["n"], l.Session)
		if p.doomed(6) { // nobody has recorded it
			return stint.Lease{}, &stint.Error{Code: stint.Fenced, Op: "create", Err: errGone}
		}
	}
	return l, err
}

func (p *port) Claim(ctx context.Context, c stint.Claim) ([]stint.Lease, error) {
	if err := p.writes(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	deaf := p.deaf
	p.mu.Unlock()
	if deaf {
		return nil, nil
	}
	ls, err := p.store.Claim(ctx, c)
	heard := false
	for _, l := range ls {
		p.w.granted(p, l)
		heard = p.w.heardOfChild(l.Session) || heard
	}
	if heard && p.doomed(4) {
		return nil, &stint.Error{Code: stint.Fenced, Op: "claim", Err: errGone}
	}
	return ls, err
}

func (p *port) Renew(ctx context.Context, ttl time.Duration, held []stint.Lease) ([]stint.ID, error) {
	if err := p.writes(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	deaf, mute := p.deaf, p.mute
	p.mu.Unlock()
	switch {
	case deaf:
		return nil, nil
	case mute:
		return nil, stint.Unavailable.Errorf("renew", "the network is down")
	case ctx.Err() != nil: // it was frozen for longer than it waits
		return nil, stint.Unavailable.Errorf("renew", "%v", ctx.Err())
	}
	lost, err := p.store.Renew(ctx, ttl, held)
	for _, l := range held {
		if err == nil && !slices.Contains(lost, l.Session) {
			p.w.renewed(l, time.Now().Add(ttl))
		}
	}
	return lost, err
}

func (p *port) Session(ctx context.Context, id stint.ID) (stint.Row, error) {
	if err := p.reads(); err != nil {
		return stint.Row{}, err
	}
	return p.store.Session(ctx, id)
}

func (p *port) Sessions(ctx context.Context, f stint.Filter) ([]stint.Row, error) {
	if err := p.reads(); err != nil {
		return nil, err
	}
	return p.store.Sessions(ctx, f)
}

func (p *port) Entries(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
	if err := p.reads(); err != nil {
		return nil, err
	}
	return p.store.Entries(ctx, r)
}

func (p *port) Inbox(ctx context.Context, id stint.ID) ([]stint.Message, error) {
	if err := p.reads(); err != nil {
		return nil, err
	}
	return p.store.Inbox(ctx, id)
}

func (p *port) Keys(ctx context.Context, like stint.Key, limit int) ([]stint.Key, error) {
	if err := p.reads(); err != nil {
		return nil, err
	}
	return p.store.Keys(ctx, like, limit)
}

func (p *port) Blob(ctx context.Context, family stint.ID, ref stint.BlobRef) ([]byte, error) {
	if err := p.reads(); err != nil {
		return nil, err
	}
	return p.store.Blob(ctx, family, ref)
}

func (p *port) FamilyKey(ctx context.Context, family stint.ID) ([]byte, error) {
	if err := p.writes(); err != nil {
		return nil, err
	}
	return p.store.FamilyKey(ctx, family)
}

func (p *port) Send(ctx context.Context, id stint.ID, m stint.Message) error {
	if err := p.writes(); err != nil {
		return err
	}
	return p.store.Send(ctx, id, m)
}

func (p *port) Changed(ctx context.Context) <-chan struct{} {
	if s, ok := p.store.(stint.Watcher); ok {
		return s.Changed(ctx)
	}
	return nil
}

func (p *port) Unread(ctx context.Context, name string) ([]stint.ID, error) {
	if err := p.reads(); err != nil {
		return nil, err
	}
	if s, ok := p.store.(stint.Watcher); ok {
		return s.Unread(ctx, name)
	}
	return nil, nil
}

func (p *port) Feed(ctx context.Context, after string, limit int) ([]stint.Entry, []string, error) {
	if err := p.reads(); err != nil {
		return nil, nil, err
	}
	if s, ok := p.store.(stint.Watcher); ok {
		return s.Feed(ctx, after, limit)
	}
	return nil, []string{after}, nil
}

// Close does nothing: a process that ends does not close the store of the others.
func (*port) Close() error { return nil }
