package sqlite

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
)

const (
	maxQueue = 1024 // operations that wait; further callers block
	maxGroup = 512  // operations that share a commit
)

// opKind says what an operation does.
type opKind uint8

const (
	opAppend opKind = iota
	opCreate
	opClaim
	opRenew
	opSend
	opReserve // a block of slots of the keys file
	opSlot    // the slot of a family that has none
	opPoll    // did another connection commit?
	opRest    // let go of the memory that work filled
)

// op is one operation on its way through the committer. What it needs is set by
// the caller, what came of it by the committer, who calls done last.
type op struct {
	kind   opKind
	begun  atomic.Bool // the committer or a canceled caller has it
	ticket uint64      // order of submission
	ctx    context.Context
	lease  stint.Lease
	batch  stint.Batch
	packed []packed
	claim  stint.Claim
	msg    stint.Message
	digest [32]byte
	held   []stint.Lease
	ttl    time.Duration
	n      int64 // in: slots or a slot; out: where they begin, what holds, or 1 for a change

	leases []stint.Lease
	lost   []stint.ID
	tell   bool // watchers want to know
	err    error
	done   func(error)
}

// name is how errors call the operation.
func (o *op) name() string {
	switch o.kind {
	case opAppend:
		return "append"
	case opCreate:
		return "create"
	case opClaim:
		return "claim"
	case opRenew:
		return "renew"
	case opSend:
		return "send"
	}
	return "store"
}

// submit puts o into the queue, or says why it cannot. Only an error means that
// done is not called.
func (s *Store) submit(o *op) error {
	if err := o.ctx.Err(); err != nil {
		return &stint.Error{Code: stint.Unavailable, Op: o.name(), Err: err}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return closed(o.name())
	}
	o.ticket = s.tickets.Add(1)
	select {
	case s.queue <- o:
		return nil
	default:
	}
	select {
	case s.queue <- o:
		return nil
	case <-o.ctx.Done():
		return &stint.Error{Code: stint.Unavailable, Op: o.name(), Err: o.ctx.Err()}
	}
}

// do submits o and waits until it is durable or refused. If ctx ends while it is
// still queued, it is taken back.
func (s *Store) do(ctx context.Context, o *op) error {
	if s.w == nil {
		return refuse(stint.Invalid, o.name(), stint.ID{}, "open the store for writing", "the store was opened for reading only")
	}
	over := make(chan struct{})
	o.ctx, o.done = ctx, func(error) { close(over) }
	if err := s.submit(o); err != nil {
		return err
	}
	select {
	case <-over:
		return o.err
	case <-ctx.Done():
	}
	if o.begun.CompareAndSwap(false, true) {
		return &stint.Error{Code: stint.Unavailable, Op: o.name(), Err: ctx.Err()}
	}
	<-over
	return o.err
}

// commits is the committer: it takes what is queued and makes it durable with one
// fsync, again and again, until the queue is closed.
func (s *Store) commits() {
	defer close(s.committed)
	group := make([]*op, 0, maxGroup)
	for first := range s.queue {
		group = append(group[:0], first)
		s.gather()
		for more := true; more && len(group) < maxGroup; {
			var o *op
			select {
			case o, more = <-s.queue:
				if more {
					group = append(group, o)
				}
			default:
				more = false
			}
		}
		s.commit(group)
		clear(group)
	}
}

// gather lets the callers that the last commit woke hand in what follows, as long
// as that makes the queue longer: a few large groups cost much less than many
// small ones. Where nobody else wants the processor it takes no time.
func (s *Store) gather() {
	for n, tries := -1, 0; tries < 2; tries++ {
		runtime.Gosched()
		if now := len(s.queue); now > n {
			n, tries = now, 0
		}
	}
}

// commit makes group durable, or refuses it or parts of it, and tells.
func (s *Store) commit(group []*op) {
	n := 0
	for _, o := range group {
		if !o.begun.CompareAndSwap(false, true) {
			continue // its caller took it back
		}
		if err := o.ctx.Err(); err != nil {
			s.finish(o, &stint.Error{Code: stint.Unavailable, Op: o.name(), Err: err})
			continue
		}
		group[n] = o
		n++
	}
	group = group[:n]
	if dead := s.dead.Load(); dead != nil {
		s.fail(group, dead)
		return
	}
	if group = s.w.peek(group, s.finish); len(group) > 0 {
		s.transact(group)
	}
}

// transact is commit for operations that write.
func (s *Store) transact(group []*op) {
	s.gate.Lock()
	err := s.begin()
	if err != nil {
		s.gate.Unlock()
		s.fail(group, explain("commit", err))
		return
	}
	s.w.next, s.w.fresh = 0, 0
	for _, o := range group {
		if err = s.w.apply(o); err != nil {
			break
		}
	}
	if err == nil && s.w.fresh > 0 { // more than come, so that they never pile up
		err = s.w.dropKeys(2 * s.w.fresh)
	}
	if err == nil {
		faultpoint.Hit(faultpoint.BeforeCommit)
		err = step(s.w.commit)
	}
	if err != nil {
		s.rollback()
		s.gate.Unlock()
		s.undo(group, err)
		return
	}
	s.gate.Unlock()
	faultpoint.Hit(faultpoint.AfterCommit)
	s.w.named = s.w.named[:0]
	tell := false
	for _, o := range group {
		tell = tell || o.tell && o.err == nil
		if o.kind == opCreate && o.err == nil {
			s.keys.pending.Delete(o.batch.Session.Family)
		}
		s.finish(o, o.err)
	}
	if tell {
		s.watchers.signal()
	}
	s.wrote(group)
	s.turn.yield()
}

// undo deals with a group whose transaction was rolled back because of err. An
// error of one operation must not fail its neighbours: they are tried again, each
// by itself.
func (s *Store) undo(group []*op, err error) {
	s.w.names.forget(s.w.named)
	s.w.named = s.w.named[:0]
	for _, o := range group {
		delete(s.w.held, o.session())
		o.leases, o.lost, o.err, o.tell = nil, nil, nil, false
	}
	if unsynced(err) {
		e := explain("commit", err)
		var dead *stint.Error
		if errors.As(e, &dead) {
			dead.Hint = "the disk failed to keep what was written: stop this process, check the disk, and open the store again; what was acknowledged before is there"
			s.dead.Store(dead)
		}
		s.fail(group, e)
		return
	}
	if fatal(err) || len(group) == 1 {
		s.fail(group, explain(group[0].name(), err))
		return
	}
	for _, o := range group {
		s.transact([]*op{o})
	}
}

func (s *Store) rollback() {
	if !s.w.c.AutocommitEnabled() {
		_ = exec(s.w.c, "ROLLBACK")
	}
}

func (s *Store) fail(group []*op, err error) {
	for _, o := range group {
		s.finish(o, err)
	}
}

// finish tells o's caller.
func (s *Store) finish(o *op, err error) {
	o.err = err
	if err != nil && o.kind == opAppend {
		s.w.refused(o, err, s.tickets.Load())
	}
	o.done(err)
	if o.kind == opAppend {
		*o = op{}
		s.ops.Put(o)
	}
}

// begin starts a transaction that may write, waiting for other processes.
func (s *Store) begin() error {
	_, err := s.w.begin.Step()
	if err == nil {
		return s.w.begin.Reset()
	}
	if sqlite.ErrCode(err).ToPrimary() != sqlite.ResultBusy {
		return err
	}
	return s.turn.wait(s.opt.Patience, func() error { return step(s.w.begin) })
}

// session is the session that o concerns.
func (o *op) session() stint.ID {
	if o.kind == opCreate {
		return o.batch.Session.ID
	}
	return o.lease.Session
}
