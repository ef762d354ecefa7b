package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// holder is a store that can tell a dead process from a slow one.
type holder interface {
	Hold(ctx context.Context, holder string) (release func() error, err error)
}

// kit is a store under test and what the properties do with it.
type kit struct {
	*testing.T
	store  stint.Store
	open   func(t *testing.T) stint.Store // gives one more
	mu     sync.Mutex
	fates  []*fate
	closed bool // by the property itself
}

func newKit(t *testing.T, open func(t *testing.T) stint.Store) *kit {
	t.Helper()
	k := &kit{T: t, store: open(t), open: open}
	t.Cleanup(func() {
		if !k.closed {
			Check(t, k.store)
		}
		if err := k.store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		for _, f := range k.fates {
			if n := f.told.Load(); n != 1 {
				t.Errorf("the done of an append was called %d times", n)
			}
		}
	})
	return k
}

// ctx returns a context for one call.
func (k *kit) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.Context()), patience)
	k.Cleanup(cancel)
	return ctx
}

// pass lets time pass, in a bubble.
func (*kit) pass(d time.Duration) { <-time.After(d) }

// ok fails the property at once if err is one.
func (k *kit) ok(err error) {
	k.Helper()
	if err != nil {
		k.Fatalf("%v (code %s)", err, stint.CodeOf(err))
	}
}

// refused fails the property unless err has the code and names all of words.
func (k *kit) refused(err error, code stint.Code, words ...string) {
	k.Helper()
	if got := stint.CodeOf(err); got != code {
		k.Fatalf("the error is %v (code %q), want code %q", err, got, code)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			k.Errorf("the error %q does not name %q", err, w)
		}
	}
}

// hint fails the property unless err comes with a hint that has word in it.
func (k *kit) hint(err error, word string) {
	k.Helper()
	var e *stint.Error
	if !errors.As(err, &e) || !strings.Contains(e.Hint, word) {
		k.Errorf("the error %v has no hint with %q in it", err, word)
	}
}

// equal fails the property if got is not want.
func equal[T comparable](k *kit, what string, got, want T) {
	k.Helper()
	if got != want {
		k.Errorf("%s: %v, want %v", what, got, want)
	}
}

// runner makes holder live until the property ends, where a store can tell.
func (k *kit) runner(holder string) string {
	k.Helper()
	k.hold(holder)
	return holder
}

// hold is runner for a holder that is going to die: call die, and if it returns
// false, the store learns of it by expiry only.
func (k *kit) hold(name string) (die func() bool) {
	k.Helper()
	h, ok := k.store.(holder)
	if !ok {
		return func() bool { return false }
	}
	release, err := h.Hold(k.ctx(), name)
	k.ok(err)
	die = func() bool {
		if err := release(); err != nil {
			k.Errorf("release of holder %s: %v", name, err)
		}
		return true
	}
	k.Cleanup(func() { die() })
	return die
}

// clock is the time, d from now, as precise as a session keeps it.
func clock(d time.Duration) time.Time { return time.Now().Add(d).UTC().Truncate(time.Microsecond) }

// newID returns the id of a session that is newer than those before it.
func newID() stint.ID { return stint.ID(uuid.Must(uuid.NewV7())) }

// course is a session as its writer knows it.
type course struct {
	s     stint.Session
	lease stint.Lease
}

func (c *course) id() stint.ID { return c.s.ID }

// change makes a session to be differ from the plain one.
type change func(id *stint.ID, c *journal.Created, d *journal.Draft)

func agent(name, runtime string) change {
	return func(_ *stint.ID, c *journal.Created, _ *journal.Draft) { c.Agent.Name, c.Agent.Runtime = name, runtime }
}

func inFamily(family stint.ID) change {
	return func(_ *stint.ID, c *journal.Created, _ *journal.Draft) { c.Family = family }
}

func named(name string) change {
	return func(_ *stint.ID, c *journal.Created, _ *journal.Draft) { c.Name = name }
}

func withID(as stint.ID) change {
	return func(id *stint.ID, c *journal.Created, _ *journal.Draft) { *id, c.Family = as, as }
}

func createdAt(at time.Time) change {
	return func(_ *stint.ID, _ *journal.Created, d *journal.Draft) { d.At = at }
}

// begin returns the first batch of a new session.
func (k *kit) begin(changes ...change) stint.Batch {
	k.Helper()
	id := newID()
	c := journal.Created{Family: id, Name: "triage", Agent: stint.AgentRef{Name: "triage", Runtime: "go/triage"}, Trigger: stint.Trigger{Kind: "prompt"}}
	d := journal.Draft{At: clock(0), Salt: salt()}
	for _, f := range changes {
		f(&id, &c, &d)
	}
	s, e, err := journal.Begin(id, c, d)
	k.ok(err)
	return stint.Batch{Session: s, Entries: []stint.Entry{e}}
}

// create makes a session that nobody holds.
func (k *kit) create(changes ...change) *course {
	k.Helper()
	b := k.begin(changes...)
	l, err := k.store.Create(k.ctx(), b, stint.Claim{})
	k.ok(err)
	equal(k, "the created session", l.Session, b.Session.ID)
	return &course{s: b.Session}
}

// claimed is create by someone who holds the session from then on.
func (k *kit) claimed(holder string, changes ...change) *course {
	k.Helper()
	b := k.begin(changes...)
	l, err := k.store.Create(k.ctx(), b, stint.Claim{Holder: holder, TTL: time.Minute, Max: 1})
	k.ok(err)
	return &course{s: b.Session, lease: l}
}

// claim makes holder hold c.
func (k *kit) claim(c *course, holder string) {
	k.Helper()
	ls, err := k.store.Claim(k.ctx(), stint.Claim{Holder: holder, TTL: time.Minute, Max: 1, Session: c.id()})
	k.ok(err)
	if len(ls) != 1 || ls[0].Session != c.id() {
		k.Fatalf("the claim of session %s gave %v", c.id(), ls)
	}
	c.lease = ls[0]
}

// claimAny claims up to n sessions and returns which.
func (k *kit) claimAny(holder string, n int) []stint.ID {
	k.Helper()
	return k.claimAs(stint.Claim{Holder: holder, TTL: time.Minute, Max: n})
}

func (k *kit) claimAs(c stint.Claim) []stint.ID {
	k.Helper()
	ls, err := k.store.Claim(k.ctx(), c)
	k.ok(err)
	ids := make([]stint.ID, 0, len(ls))
	for _, l := range ls {
		ids = append(ids, l.Session)
	}
	return ids
}

// isClaimable says whether a claim would get c, and lets it go again.
func (k *kit) isClaimable(c *course) bool {
	k.Helper()
	const who = "passer-by"
	die := k.hold(who)
	defer die()
	ls, err := k.store.Claim(k.ctx(), stint.Claim{Holder: who, TTL: time.Minute, Max: 1, Session: c.id()})
	if err != nil {
		k.refused(err, stint.Conflict)
		return false
	}
	k.ok(k.append(ls[0], stint.Batch{Session: c.s, Release: true}))
	return true
}

// follow returns the batch of ds after c. A draft without a position is where the
// session is; what needs an open loop opens one.
func (k *kit) follow(c *course, ds ...journal.Draft) stint.Batch {
	k.Helper()
	b := stint.Batch{Session: c.s}
	for i := 0; i < len(ds); i++ {
		d := ds[i]
		at := b.Session.At
		runs := at.Open && !at.Since.IsZero() && b.Session.Epoch == c.lease.Epoch
		if !runs && needsLoop(d.Kind) {
			d = journal.Draft{Kind: stint.LoopStarted, Data: journal.LoopStarted{Why: "next"}}
			i--
		}
		switch {
		case d.Kind == stint.LoopStarted && at.Open && !at.Parked:
			d.Pos = stint.Position{Loop: at.Loop, Attempt: at.Attempt + 1}
		case d.Kind == stint.LoopStarted && at.Open:
			d.Pos = stint.Position{Loop: at.Loop, Attempt: at.Attempt}
		case d.Kind == stint.LoopStarted:
			d.Pos = stint.Position{Loop: b.Session.Checkpoint.Loop + 1, Attempt: 1}
		case at.Open:
			d.Pos = stint.Position{Loop: at.Loop, Attempt: at.Attempt}
		}
		if d.Kind == stint.StepCompleted || d.Kind == stint.StepFailed {
			d.Pos.Step = at.Step + 1
		}
		if d.At.IsZero() {
			d.At = clock(0)
		}
		d.Epoch, d.Salt = c.lease.Epoch, salt()
		s, e, err := journal.Next(b.Session, d)
		k.ok(err)
		b.Session, b.Entries = s, append(b.Entries, e)
	}
	return b
}

// needsLoop reports whether an entry of kind k stands inside a running attempt.
func needsLoop(k stint.Kind) bool {
	switch k {
	case stint.OutputWritten, stint.StepCompleted, stint.StepFailed, stint.LoopCompleted, stint.LoopFailed:
		return true
	}
	return false
}

func salt() (s [16]byte) {
	_, _ = rand.Read(s[:]) // it never fails, see crypto/rand
	return s
}

func said(body string) journal.Draft {
	return journal.Draft{Kind: stint.OutputWritten, Data: journal.Output{Stream: "log"}, Body: []byte(body)}
}

func waits(w stint.Wait) journal.Draft {
	return journal.Draft{Kind: stint.SessionWaiting, Data: w}
}

func resumes() journal.Draft {
	return journal.Draft{Kind: stint.SessionResumed, Data: journal.Resumed{Why: "resume"}}
}

func ends() journal.Draft {
	return journal.Draft{Kind: stint.SessionEnded, Data: journal.Ended{Outcome: stint.Completed, Reason: "done"}}
}

func drains() journal.Draft {
	return journal.Draft{Kind: stint.SessionReleased, Data: journal.Released{Why: "drain"}}
}

func took(m stint.Message) journal.Draft {
	return journal.Draft{Kind: stint.MessageTaken, Body: m.Body,
		Data: journal.Taken{ID: m.ID, Kind: m.Kind, From: m.From, At: m.At, Data: m.Data}}
}

// write appends ds to c and has to succeed.
func (k *kit) write(c *course, ds ...journal.Draft) {
	k.Helper()
	b := k.follow(c, ds...)
	k.ok(k.append(c.lease, b))
	c.s = b.Session
}

// leave is write that gives the lease back.
func (k *kit) leave(c *course, ds ...journal.Draft) {
	k.Helper()
	b := k.follow(c, ds...)
	b.Release = true
	k.ok(k.append(c.lease, b))
	c.s = b.Session
}

// fate is what becomes of an append.
type fate struct {
	told atomic.Int32 // how often done was called
	err  chan error
}

// queue hands b to the store without waiting. Any goroutine may call it.
func (k *kit) queue(l stint.Lease, b stint.Batch) *fate {
	f := &fate{err: make(chan error, 1)}
	k.mu.Lock()
	k.fates = append(k.fates, f)
	k.mu.Unlock()
	k.store.Append(k.ctx(), l, b, func(err error) {
		if f.told.Add(1) == 1 {
			f.err <- err
		}
	})
	return f
}

// wait returns the outcome. A store that never tells it is an internal error.
func (f *fate) wait() error {
	select {
	case err := <-f.err:
		return err
	case <-time.After(patience):
		return stint.Internal.Errorf("append", "done was not called within %v", patience)
	}
}

// append is queue and wait.
func (k *kit) append(l stint.Lease, b stint.Batch) error { return k.queue(l, b).wait() }

// row returns the session as the store shows it.
func (k *kit) row(id stint.ID) stint.Row {
	k.Helper()
	row, err := k.store.Session(k.ctx(), id)
	k.ok(err)
	return row
}

// entries returns what r selects.
func (k *kit) entries(r stint.Range) []stint.Entry {
	k.Helper()
	es, err := k.store.Entries(k.ctx(), r)
	k.ok(err)
	return es
}

// inbox returns the ids of the messages that nobody has taken.
func (k *kit) inbox(id stint.ID) string {
	k.Helper()
	ms, err := k.store.Inbox(k.ctx(), id)
	k.ok(err)
	ids := make([]string, 0, len(ms))
	for _, m := range ms {
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, " ")
}

// unchanged fails the property unless c is stored as it was.
func (k *kit) unchanged(c *course) {
	k.Helper()
	row := k.row(c.id())
	if want, got := text(c.s), text(row.Session); want != got {
		k.Errorf("the session changed to\n%s\nfrom\n%s", got, want)
	}
	if es := k.entries(stint.Range{Session: c.id(), After: c.s.Head}); len(es) != 0 {
		k.Errorf("%d entries were written", len(es))
	}
}
