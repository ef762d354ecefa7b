package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// Engine drives sessions of one store in this process. All methods may be called
// from any goroutine.
type Engine struct {
	store  stint.Store
	opt    Options
	ctx    context.Context // of the engine's own goroutines and of commits
	cancel context.CancelFunc
	unhold func() error
	wg     sync.WaitGroup
	kick   chan struct{} // there may be something to claim

	mu          sync.Mutex
	agents      map[string]Agent          // by runtime and name, the ones in code
	pinned      map[string]Agent          // resolved, by pin, runtime and name
	definitions map[stint.Hash]definition // by the hash of what was given
	unfit       map[stint.ID]unfit        // sessions that could not be begun here
	drivers     map[stint.ID]*driver
	renewed     time.Time // when the leases were renewed last
}

// holder is implemented by stores whose leases depend on a lock of the runner's
// process.
type holder interface {
	Hold(ctx context.Context, holder string) (release func() error, err error)
}

// New makes an engine on store. It renews leases and watches the store until Close
// or until ctx ends. A holder that another process of this store uses is
// [stint.Conflict].
func New(ctx context.Context, store stint.Store, opt Options) (*Engine, error) {
	opt = opt.withDefaults()
	if opt.Holder == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		id := ident.New().String()
		opt.Holder = fmt.Sprintf("%s-%d-%s", strings.ToLower(host), os.Getpid(), id[len(id)-6:])
	}
	e := &Engine{store: store, opt: opt, agents: map[string]Agent{}, pinned: map[string]Agent{}, definitions: map[stint.Hash]definition{}, unfit: map[stint.ID]unfit{},
		drivers: map[stint.ID]*driver{}, kick: make(chan struct{}, 1), renewed: time.Now()}
	for _, a := range opt.Agents {
		if a.Name == "" || a.Loop == nil {
			return nil, stint.Invalid.Errorf("engine", "an agent needs a name and a Loop")
		}
		e.agents[a.runtime()+"\x00"+a.Name] = a
	}
	if h, ok := store.(holder); ok {
		var err error
		if e.unhold, err = h.Hold(ctx, opt.Holder); err != nil {
			return nil, err
		}
	}
	e.ctx, e.cancel = context.WithCancel(ctx)
	e.wg.Go(e.renewals)
	e.wg.Go(e.watchStore)
	return e, nil
}

// Holder is the name of this runner in leases.
func (e *Engine) Holder() string { return e.opt.Holder }

// Close ends the engine's goroutines. Sessions that are still being driven are
// left as a crash would leave them: end Serve and Run first.
func (e *Engine) Close() error {
	e.cancel()
	e.wg.Wait()
	if e.unhold != nil {
		return e.unhold()
	}
	return nil
}

// Serve claims and drives sessions until ctx ends, then drains: no loop or once
// step begins any more, once steps under way get the drain time, and every session
// is given back. It returns the first error that made it give up.
func (e *Engine) Serve(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	poll := time.NewTicker(e.opt.Poll)
	defer poll.Stop()
	for {
		if ctx.Err() != nil {
			return nil
		}
		n, err := e.claimSome(ctx, &wg)
		if err != nil && ctx.Err() == nil {
			e.opt.Log.Warn("claim failed", "error", err)
			if stint.CodeOf(err) == stint.Corrupt {
				return err
			}
		}
		if n > 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-poll.C:
		case <-e.kick:
		}
	}
}

// claimSome claims what there is room for and begins to drive it.
func (e *Engine) claimSome(ctx context.Context, wg *sync.WaitGroup) (int, error) {
	e.mu.Lock()
	room := e.opt.Concurrency - len(e.drivers)
	e.mu.Unlock()
	if room <= 0 {
		return 0, nil
	}
	c := e.claim()
	c.Max = min(room, 256)
	faultpoint.Hit(faultpoint.BeforeClaim)
	leases, err := e.store.Claim(ctx, c)
	if err != nil {
		return 0, err
	}
	for _, l := range leases {
		d := e.newDriver(ctx, l)
		d.serves = true
		wg.Go(func() {
			e.finish(d, e.drive(ctx, d, false))
			e.poke()
		})
	}
	return len(leases), nil
}

// claim says what this engine can run.
func (e *Engine) claim() stint.Claim {
	c := stint.Claim{Holder: e.opt.Holder, TTL: e.opt.TTL, Max: 1, Runtimes: append([]string(nil), e.opt.Runtimes...)}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.agents {
		c.Runtimes = append(c.Runtimes, a.runtime())
		e.cap(&c, a)
	}
	for _, a := range e.pinned {
		e.cap(&c, a)
	}
	e.cap(&c, Agent{Concurrency: e.opt.Total}) // under no name: all of them
	return c
}

func (e *Engine) cap(c *stint.Claim, a Agent) {
	if a.Concurrency <= 0 {
		return
	}
	if c.Caps == nil {
		c.Caps = map[string]int{}
	}
	c.Caps[a.Name] = a.Concurrency
}

// Run claims the session and drives it in this goroutine until it ends, or waits
// for something other than time. When ctx ends it drains and returns. It returns
// the session as it is then; a session that another holds, or that has nothing to
// run, is [stint.Conflict].
//
// Its open children are driven here too, as long as that takes: it also returns where it
// waits for a child that waits for something else. The bounds of how many sessions may run
// at once hold for the children, and not for the session that is named.
func (e *Engine) Run(ctx context.Context, id stint.ID) (stint.Session, error) {
	b := e.newBrood(ctx, id)
	s, err := e.run(ctx, id, b)
	return s, errors.Join(err, b.end(&s))
}

// run is Run for a session of a brood.
func (e *Engine) run(ctx context.Context, id stint.ID, b *brood) (stint.Session, error) {
	c := e.claim()
	c.Session = id
	var err error
	if c.Caps, err = b.caps(ctx, id); err != nil {
		return stint.Session{}, err
	}
	for {
		leave, ok := b.enter(ctx, &c)
		if !ok {
			return stint.Session{}, nil
		}
		faultpoint.Hit(faultpoint.BeforeClaim)
		leases, err := e.store.Claim(ctx, c)
		if err != nil {
			leave()
			if stint.CodeOf(err) == stint.Limit && b.pause(ctx) {
				continue
			}
			return stint.Session{}, err
		}
		if err := b.adopt(ctx, id); err != nil {
			e.opt.Log.Warn("the children of a session are not driven here", "session", id, "error", err)
		}
		d := e.newDriver(ctx, leases[0])
		d.brood = b
		s, again, err := e.runOne(ctx, d, leave)
		if err != nil || !again {
			return s, err
		}
	}
}

// runOne drives one claim to its end, leaves the place of it, and waits out what time alone
// ends.
func (e *Engine) runOne(ctx context.Context, d *driver, leave func()) (s stint.Session, again bool, err error) {
	err = e.drive(ctx, d, false)
	e.finish(d, err)
	leave()
	if err == nil {
		s = d.w.session() // all of it is durable
	} else if row, rerr := e.store.Session(context.WithoutCancel(ctx), d.lease.Session); rerr == nil {
		s = row.Session
	}
	if err != nil || ctx.Err() != nil || s.Status.Ended() {
		return s, false, err
	}
	if s.Status == stint.Pending {
		return s, true, nil
	}
	if s.Wait != nil && s.Wait.For == stint.ForChild && d.brood != nil {
		return s, d.brood.wait(ctx, s.ID), nil
	}
	if s.Wait == nil || s.Wait.For != stint.ForTime && s.Wait.For != stint.ForRetry {
		return s, false, nil // a deadline, or an answer's, may be days away
	}
	until, ok := s.Ready()
	if !ok {
		return s, false, nil
	}
	return s, e.waitUntil(ctx, s.ID, until), nil
}

// waitUntil waits for a time, or for a message that ends the wait sooner.
func (e *Engine) waitUntil(ctx context.Context, id stint.ID, until time.Time) bool {
	for {
		wait := until.Sub(faultpoint.Now())
		if wait <= 0 {
			return ctx.Err() == nil
		}
		t := time.NewTimer(min(wait, e.opt.Poll))
		select {
		case <-ctx.Done():
			t.Stop()
			return false
		case <-t.C:
		case <-e.kick:
			t.Stop()
		}
		if e.woken(ctx, id) {
			return true
		}
	}
}

// woken reports whether a message ends the session's wait.
func (e *Engine) woken(ctx context.Context, id stint.ID) bool {
	row, err := e.store.Session(ctx, id)
	if err != nil || row.Unread == 0 {
		return false
	}
	ms, err := e.store.Inbox(ctx, id)
	return err == nil && slices.ContainsFunc(ms, func(m stint.Message) bool { return row.Session.WokenBy(m.Kind) })
}

// Settle applies the control messages of a session that nobody holds, without
// running it: a stop, a resolved doubt, a raised limit; and those that it passes on to
// its children. A session that another runner holds is left to it, without an error.
func (e *Engine) Settle(ctx context.Context, id stint.ID) error {
	c := e.claim()
	c.Session, c.Caps, c.Runtimes = id, nil, nil
	leases, err := e.store.Claim(ctx, c)
	if stint.CodeOf(err) == stint.Conflict {
		return nil
	}
	if err != nil {
		return err
	}
	d := e.newDriver(ctx, leases[0])
	err = e.drive(ctx, d, true)
	e.finish(d, err)
	if err != nil {
		return err
	}
	s := d.w.session()
	return e.settleTree(ctx, &s)
}

func (e *Engine) newDriver(ctx context.Context, l stint.Lease) *driver {
	d := &driver{e: e, claim: claim{lease: l, prior: l.Prior, claimed: time.Now()}}
	d.io = context.WithoutCancel(ctx)
	d.ctx, d.cancel = context.WithCancelCause(d.io)
	d.seen, d.grace, d.drained, d.news = map[string]bool{}, (&Agent{}).grace(), make(chan struct{}), make(chan struct{}, 1)
	if d.prior == "" {
		d.prior = stint.Released
	}
	e.mu.Lock()
	before := e.drivers[l.Session]
	e.drivers[l.Session] = d
	e.mu.Unlock()
	if before != nil { // its lease ran out, and nobody will tell it
		before.abandon(&stint.Error{Code: stint.Fenced, Op: "claim", Session: l.Session, Err: fmt.Errorf("epoch %d began", l.Epoch)})
	}
	return d
}

// drive runs d and lets it drain when ctx ends.
func (e *Engine) drive(ctx context.Context, d *driver, settle bool) error {
	faultpoint.Hit(faultpoint.AfterClaim)
	stop := context.AfterFunc(ctx, d.drain)
	defer stop()
	return d.drive(settle)
}

func (e *Engine) finish(d *driver, err error) {
	e.mu.Lock()
	if e.drivers[d.lease.Session] == d { // not a successor, which claimed it meanwhile
		delete(e.drivers, d.lease.Session)
	}
	e.mu.Unlock()
	if err != nil {
		e.opt.Log.Warn("session given up", "session", d.lease.Session, "epoch", d.lease.Epoch, "error", err)
	}
}

// releaser is implemented by agents that keep something of a session between its
// loops, such as a process.
type releaser interface{ Release(session stint.ID) }

// poke says that there may be something to claim.
func (e *Engine) poke() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

// wakeAt pokes when a wait that this engine recorded has ended.
func (e *Engine) wakeAt(t time.Time) {
	time.AfterFunc(max(0, t.Sub(faultpoint.Now())), e.poke)
}

// unfit is how often in a row a session could not be begun, and when it was tried last.
type unfit struct {
	tries int
	last  time.Time
}

// unfitFor is how long a session that could not be begun is left alone: a second,
// doubling with every further try in a row up to most, and a fifth more or less.
func (e *Engine) unfitFor(id stint.ID, most time.Duration) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	for other, u := range e.unfit {
		if time.Since(u.last) > time.Hour { // another runner has begun it meanwhile, or nobody ever will
			delete(e.unfit, other)
		}
	}
	n := e.unfit[id].tries
	e.unfit[id] = unfit{n + 1, time.Now()}
	wait := min(time.Second<<min(n, 9), most)
	return wait + time.Duration((e.random()-0.5)*0.4*float64(wait))
}

// fit forgets that a session could not be begun.
func (e *Engine) fit(id stint.ID) {
	e.mu.Lock()
	delete(e.unfit, id)
	e.mu.Unlock()
}

func (e *Engine) random() float64 { return rand.Float64() }

// agentFor returns the agent that s is pinned to.
func (e *Engine) agentFor(ctx context.Context, s *stint.Session) (Agent, error) {
	a, err := e.agentOf(s.Agent, func() (json.RawMessage, error) { return Pinned(ctx, e.store, s) })
	var coded *stint.Error
	if errors.As(err, &coded) && coded.Session.IsZero() {
		coded.Session = s.ID
	}
	return a, err
}

// agentOf returns an agent by what a session is pinned to; config reads the definition where
// it is needed.
func (e *Engine) agentOf(ref stint.AgentRef, config func() (json.RawMessage, error)) (Agent, error) {
	e.mu.Lock()
	a, ok := e.agents[ref.Runtime+"\x00"+ref.Name]
	if !ok {
		a, ok = e.pinned[pinKey(ref)]
	}
	e.mu.Unlock()
	if ok {
		return a, nil
	}
	if e.opt.Resolve == nil {
		return a, stint.NotFound.Errorf("agent", "this program has no agent %q of runtime %q", ref.Name, ref.Runtime)
	}
	def, err := config()
	if err != nil {
		return a, err
	}
	if a, err = e.opt.Resolve(ref, def); err != nil {
		return a, err
	}
	e.mu.Lock()
	e.pinned[pinKey(ref)] = a
	e.mu.Unlock()
	return a, nil
}

// Pinned returns the definition of the agent that s is pinned to, as its journal has it: in
// its first entry, or in that of a line from which on it is another one.
func Pinned(ctx context.Context, r stint.Reader, s *stint.Session) (json.RawMessage, error) {
	for until := stint.Seq(0); ; {
		es, err := r.Entries(ctx, stint.Range{Session: s.ID, Until: until, Last: true, Limit: 100, Kinds: []stint.Kind{stint.SessionCreated, stint.LineStarted}})
		if err != nil {
			return nil, err
		}
		for i := range slices.Backward(es) {
			if es[i].Kind == stint.SessionCreated {
				d, err := journal.Decode[journal.Created](&es[i])
				return d.Config, err
			}
			d, err := journal.Decode[journal.LineStarted](&es[i])
			if err != nil || d.Agent != nil {
				return d.Config, err
			}
		}
		if len(es) == 0 || es[0].Seq == 1 {
			return nil, stint.Corrupt.Errorf("agent", "the journal has no first entry")
		}
		until = es[0].Seq - 1
	}
}

// pinKey is what a resolved agent is remembered by: agents in code have no
// definition, so the pin alone does not tell them apart.
func pinKey(r stint.AgentRef) string { return r.Pin.String() + "\x00" + r.Runtime + "\x00" + r.Name }

// source reads the entries that states lie in.
func (e *Engine) source(ctx context.Context, s *stint.Session) journal.Source {
	return Source(ctx, e.store, s.ID, s.Family)
}

func (e *Engine) state(ctx context.Context, s *stint.Session) ([]byte, error) {
	return journal.ReadState(s.Checkpoint, e.source(ctx, s))
}

// Source reads the entries that a session's states lie in, for
// [journal.ReadState].
func Source(ctx context.Context, st interface {
	stint.Reader
	stint.Blobs
}, id, family stint.ID) journal.Source {
	return past.States(ctx, st, id, family)
}
