package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// driver drives one claimed session in one goroutine, from its claim to the moment
// it is given back.
type driver struct {
	e       *Engine
	claim   // what it drives by
	w       *writer
	agent   Agent
	family  stint.ID
	fresh   *stint.Session // as this engine has just created it; nil: read it
	input   *stint.Message // what session.created carries
	place   stint.Place    // of the loop under way
	state   json.RawMessage
	io      context.Context // of reads and commits; never canceled
	ctx     context.Context // of the agent
	cancel  context.CancelCauseFunc
	once    atomic.Int32    // once steps under way
	skips   []skip          // what the line must not do; nil: not read
	toldOf  stint.Seq       // the head that an observer was told of
	brood   *brood          // of the Run that drives it; nil: it is served
	noticed map[string]bool // limits that the agent was told of in this drive
	above   []stint.ID      // the sessions that it is a child of, nearest first; nil: not read
	signals
	pulse pulse
}

// claim is what a driver knows of its lease.
type claim struct {
	lease     stint.Lease
	prior     stint.Prior // how the lease before this one ended
	claimed   time.Time   // when it began, on this process's clock
	foundLost stint.Seq   // the entry in which the loss of the lease before is recorded
	leaving   atomic.Bool // it is being given back
	serves    bool        // a session that is given back may be claimed here again at once
}

// signals is what reaches a driver from other goroutines.
type signals struct {
	mu       sync.Mutex
	inbox    []stint.Message // read, not taken
	seen     map[string]bool // ids of those taken in this drive
	draining bool
	drained  chan struct{} // closed with draining
	orders   atomic.Bool   // what is about orders that wait for a decision may be in the inbox
	news     chan struct{} // gets a value, if it has none, when messages are delivered
	timed    bool          // a stop's grace runs
	hastened bool          // a kill was sent on ahead
	grace    time.Duration // of the agent
	lostErr  error
	timer    *time.Timer
	over     *parking // the limit that the timer found used up
}

// parking is why a loop stops before its end, or a session after one.
type parking struct {
	wait  *stint.Wait
	end   *stint.End
	drain bool
	again bool // a message has to be acted on between loops, and the drive goes on
	lost  bool
	still bool           // it is parked already, and stays so
	by    *stint.Message // the message that asked for it
	hint  string         // of the error that led to it
}

// errStop cancels an agent whose session must stop now.
var errStop = errors.New("the session was stopped")

// drive runs the session until it parks, ends or is lost. The returned error is
// for the log: what concerns the session is in its journal.
func (d *driver) drive(settle bool) error {
	defer d.cancel(nil)
	defer d.stopTimer()
	if err := d.loss(); err != nil {
		return err
	}
	if err := d.load(settle); err != nil {
		return d.quit(err)
	}
	if d.prior != stint.Released {
		seq, err := d.w.add(journal.Draft{Kind: stint.LeaseLost, Pos: d.here(), Data: journal.LeaseLost{Prior: d.prior}})
		if err != nil {
			return d.quit(err)
		}
		d.foundLost = seq
	}
	for {
		done, err := d.pass(settle)
		if err != nil {
			return d.quit(err)
		}
		if done {
			d.e.fit(d.lease.Session)
			return nil
		}
	}
}

// pass does what stands before the next loop, and then that loop.
func (d *driver) pass(settle bool) (done bool, err error) {
	if d.fresh != nil {
		d.fresh = nil // nobody can have sent it anything that no signal will tell of
	} else if err := d.readInbox(); err != nil {
		return false, err
	}
	if err := d.control(); err != nil {
		return false, err
	}
	if p, err := d.expire(); err != nil {
		return false, err
	} else if p != nil {
		return true, d.leave(p)
	}
	p := d.wake()
	s := d.w.session()
	switch {
	case p != nil:
		return true, d.leave(p)
	case pastDeadline(&s):
		return true, d.leave(deadline(s.Limits))
	case s.Status != stint.Pending || settle || d.isDraining():
		return true, d.giveBack()
	}
	if why, on := journal.Brake(&s, faultpoint.Now()); on {
		return true, d.leave(&parking{end: &stint.End{Outcome: stint.Failed, Reason: why}})
	}
	if p, err := d.orphaned(); p != nil || err != nil {
		if err != nil {
			return false, err
		}
		return true, d.leave(p)
	}
	if p := d.overLimit(stint.Step{}, 0); p != nil {
		return true, d.leave(p)
	}
	d.freshContext()
	return d.loops()
}

// freshContext gives the agent a context of its own again, where a message that has
// been dealt with canceled the one before.
func (d *driver) freshContext() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil && d.lostErr == nil && !d.draining {
		d.ctx, d.cancel = context.WithCancelCause(d.io)
	}
}

// quit ends a drive that an error cut short: the store failed, the journal is
// corrupt, or the agent cannot be made. The session is parked for a time that grows
// with each such try, or every runner would claim it and give it back in a loop.
func (d *driver) quit(err error) error {
	if d.isLost() || d.w == nil {
		return err
	}
	if errors.Is(err, stint.Corrupt) {
		d.w.abandon(err)
		return err
	}
	s := d.w.session()
	if s.Status == stint.Waiting || s.Status.Ended() {
		d.rest()
		_ = d.giveBack()
		return err
	}
	wait := &stint.Wait{For: stint.ForRetry, Until: faultpoint.Now().Add(d.e.unfitFor(s.ID, 5*time.Minute)), What: past.Unbegun + oneLine(err)}
	_ = d.leave(&parking{wait: wait, hint: hintOf(err)})
	return err
}

// maxRest is the longest that a session is held which cannot be parked.
const maxRest = 10 * time.Second

// rest holds on to a session that waits or has ended, and whose messages could not be
// acted on. It cannot be parked for a time, as it is; given back at once it would be
// claimed at once, for as long as the error lasts.
func (d *driver) rest() {
	if !d.serves {
		return // whoever asked for it is told
	}
	t := time.NewTimer(d.e.unfitFor(d.lease.Session, maxRest))
	defer t.Stop()
	select {
	case <-t.C:
	case <-d.drained:
	case <-d.e.ctx.Done():
	}
}

// giveBack releases the lease without an entry of its own.
func (d *driver) giveBack() error {
	if r, ok := d.agent.Loop.(releaser); ok {
		r.Release(d.lease.Session) // before another may begin what it would end
	}
	d.leaving.Store(true) // from here on a lease that is gone is no loss
	d.w.flush(true)
	if err := d.w.wait(); err != nil {
		return err
	}
	faultpoint.Hit(faultpoint.RecordedNotAcked)
	d.told()
	s := d.w.session()
	if t, ok := s.Ready(); ok && s.Status == stint.Waiting {
		d.e.wakeAt(t)
	}
	return nil
}

// read returns the session. A store that cannot be read for a moment is asked again,
// under the lease that the drive has: it could not even give it back.
func (d *driver) read() (stint.Row, error) { return d.readOf(d.lease.Session) }

// readOf is read for any session.
func (d *driver) readOf(id stint.ID) (stint.Row, error) {
	for {
		row, err := d.e.store.Session(d.io, id)
		if err == nil || !errors.Is(err, stint.Unavailable) || d.isDraining() {
			return row, err
		}
		<-time.After(retryCommit)
	}
}

// load reads what the drive needs: the fold, the agent, the state. Settling needs no
// agent, so any program can settle any session.
func (d *driver) load(settle bool) error {
	s := d.fresh
	if s == nil {
		row, err := d.read()
		if err != nil {
			return err
		}
		s = &row.Session
	}
	d.family = s.Family
	w := &writer{sending: make(chan struct{}, 1), ctx: d.io, store: d.e.store, lease: d.lease, s: *s, lost: d.fence}
	d.mu.Lock()
	d.w = w
	d.mu.Unlock()
	if settle {
		return nil
	}
	var err error
	if d.agent, err = d.e.agentFor(d.io, s); err != nil {
		return err
	}
	if d.state, err = d.e.state(d.io, s); err != nil {
		return err
	}
	if err := d.loadSkips(s); err != nil {
		return err
	}
	d.mu.Lock()
	d.grace = d.agent.grace()
	d.mu.Unlock()
	d.watch()
	return nil
}

// loops runs loops until one of them parks or ends the session.
func (d *driver) loops() (bool, error) {
	l, err := d.open()
	if err != nil {
		return false, err
	}
	for {
		next, err := d.call(l)
		p, err := d.close(l, next, err)
		if err != nil {
			return false, err
		}
		if p != nil && !p.again {
			return d.leaves(p)
		}
		if p != nil || d.hasControl() {
			return false, d.leaveLoop()
		}
		if l, err = d.begin("next"); err != nil {
			return false, err
		}
		if err := d.w.sync(); err != nil {
			return false, err
		}
		d.told()
		faultpoint.Hit(faultpoint.AtLoopEnd)
	}
}

// leaves stops the session as p says, and gives it back unless there are messages that
// have to be acted on, such as a stop that followed a pause: a session that is parked
// may lie where no runner comes by.
func (d *driver) leaves(p *parking) (bool, error) {
	if p.by != nil {
		d.drop(p.by.ID)
	}
	if p.drain || p.lost || !d.hasControl() {
		return true, d.leave(p)
	}
	err := d.record(p)
	d.mu.Lock()
	d.over = nil
	d.mu.Unlock()
	d.watch()
	return false, err
}

// leaveLoop ends the running attempt without counting it, where a message has to be
// acted on between loops.
func (d *driver) leaveLoop() error {
	s := d.w.session()
	if !s.At.Open || s.At.Since.IsZero() {
		return nil
	}
	_, err := d.w.add(journal.Draft{Kind: stint.SessionReleased, Pos: d.here(), Data: journal.Released{Why: "message"}})
	return err
}

// open begins a loop, or an open one again.
func (d *driver) open() (*loop, error) {
	s := d.w.session()
	why := "next"
	switch {
	case s.At.Open && s.At.Parked:
		why = "wake"
	case s.At.Open && len(s.At.Failures) > 0 && s.At.Since.IsZero():
		why = "retry"
	case s.At.Open:
		why = "recover"
	case s.Checkpoint.Loop == 0 && s.At.Line == 0:
		why = "first"
	}
	l, err := d.begin(why)
	if err != nil {
		return nil, err
	}
	l.loose = l.start.Head // the inbox that it took is not durable yet
	d.w.flush(false)
	return l, nil
}

// begin makes the entries that begin a loop, and takes the prompts for it. It reads
// before it writes: a read that fails must not begin an attempt.
func (d *driver) begin(why string) (*loop, error) {
	s := d.w.session()
	pos := stint.Position{Loop: s.Checkpoint.Loop + 1, Attempt: 1}
	if s.At.Open {
		pos.Loop, pos.Attempt = s.At.Loop, s.At.Attempt+1
		if s.At.Parked {
			pos.Attempt--
		}
	}
	l := &loop{d: d, state: d.state, past: past.Steps{}, begun: time.Now()}
	d.place = s.At
	d.place.Loop = pos.Loop
	anew := false // it was interrupted before anything followed from its inbox
	if pos.Loop == 1 {
		in, err := d.firstInput()
		if err != nil {
			return nil, err
		}
		l.inbox = append(l.inbox, in...)
	}
	if s.At.LoopSeq != 0 { // it has entries: of earlier attempts, or prompts taken before its first
		if err := d.w.sync(); err != nil {
			return nil, err
		}
		o, err := d.loadPast(d.io)
		if err != nil {
			return nil, err
		}
		l.past, l.cut = o.past, o.cut
		l.inbox = append(l.inbox, o.inbox...)
		anew = o.early && len(o.past) == 0
	}
	if _, err := d.w.add(journal.Draft{Kind: stint.LoopStarted, Pos: pos, Data: journal.LoopStarted{Why: why}}); err != nil {
		return nil, err
	}
	if !s.At.Open || anew {
		taken, err := d.takeInput(pos)
		if err != nil {
			return nil, err
		}
		l.inbox = append(l.inbox, taken...)
	}
	l.start = d.w.session()
	d.place = l.start.At
	return l, nil
}

// call runs the agent and turns a panic into an error.
func (d *driver) call(l *loop) (next stint.Next, err error) {
	err = shielded(func() error {
		next, err = d.agent.Loop.Loop(d.ctx, l)
		return err
	})
	return next, err
}

// close ends a loop: it parks, completes or fails it, and says whether the session
// stops there.
func (d *driver) close(l *loop, next stint.Next, err error) (*parking, error) {
	if d.isLost() {
		return &parking{lost: true}, nil
	}
	if l.park == nil && err != nil {
		l.park = d.boundary() // an agent that was told to stop may say so in its own words
	}
	if l.park != nil {
		return l.park, nil
	}
	if err == nil {
		if p := l.past.Left(l.step); p != nil {
			return l.skipped(p), nil
		}
		err = checkNext(&next)
	}
	if err != nil {
		return d.failed(err)
	}
	next.State = bytes.Clone(next.State) // an agent may use its buffer again
	ref, body, err := d.newState(next.State)
	if err != nil {
		return nil, err // of the store: the agent's state was looked at
	}
	return d.complete(l, next, ref, body)
}

// complete records the end of a loop and what it leads to.
func (d *driver) complete(l *loop, next stint.Next, ref journal.StateRef, body []byte) (*parking, error) {
	faultpoint.Hit(faultpoint.AtCheckpoint)
	data := journal.LoopCompleted{Rollup: l.roll, MS: time.Since(l.begun).Milliseconds(), State: ref, Headline: clip(next.Headline, 200)}
	pos := l.at(0, 0)
	if err := d.voidAll(ofSteps, stint.ApprovalInvalidated, "the loop ended without its step"); err != nil {
		return nil, err
	}
	if _, err := d.w.add(journal.Draft{Kind: stint.LoopCompleted, Pos: pos, Data: data, Body: body}); err != nil {
		return nil, err
	}
	if next.State != nil {
		d.state = next.State // the next delta is made against it
	}
	s := d.w.session()
	d.place = s.At
	switch {
	case next.End != nil:
		return &parking{end: next.End}, nil
	case d.agent.Done != nil:
		done, err := d.stopCondition(&s)
		if err != nil {
			return &parking{hint: hintOf(err), end: &stint.End{Outcome: stint.Failed, Reason: past.StopFailed + oneLine(err)}}, nil
		}
		if done {
			return &parking{end: &stint.End{Outcome: stint.Completed, Reason: past.StopMet, Result: d.state}}, nil
		}
	}
	if next.Wait != nil {
		over, err := d.childless(next.Wait)
		if err != nil {
			return nil, err
		}
		if !over {
			return &parking{wait: asked(next.Wait)}, nil
		}
	}
	if p := d.boundary(); p != nil {
		return p, nil
	}
	if p := d.overLimit(stint.Step{}, 0); p != nil {
		return p, nil
	}
	return nil, d.nearLimit(&s)
}

// failed records a failed attempt and says what follows: another one later, or the
// end.
func (d *driver) failed(err error) (*parking, error) {
	after, final, _ := steering(err)
	text, hint := oneLine(err), clip(hintOf(err), maxHint)
	pos := stint.Position{Loop: d.place.Loop, Attempt: d.place.Attempt}
	if _, err := d.w.add(journal.Draft{Kind: stint.LoopFailed, Pos: pos, Actor: stint.ByAgent,
		Data: journal.LoopFailed{Error: text, Final: final, Hint: hint}}); err != nil {
		return nil, err
	}
	s := d.w.session()
	retry := d.agent.Retry.withDefaults()
	n := len(s.At.Failures)
	why, brake := journal.Brake(&s, faultpoint.Now())
	switch {
	case final:
		return &parking{hint: hint, end: &stint.End{Outcome: stint.Failed, Reason: text}}, nil
	case brake:
		return &parking{hint: hint, end: &stint.End{Outcome: stint.Failed, Reason: why}}, nil
	case retry.spent(s.At.Attempt):
		why = fmt.Sprintf("%s of loop %d failed, the last: %s", counted(s.At.Attempt, "attempt"), s.At.Loop, text)
		if s.At.Attempt == 1 {
			why = fmt.Sprintf("loop %d failed at its only attempt: %s", s.At.Loop, text)
		}
		return &parking{hint: hint, end: &stint.End{Outcome: stint.Failed, Reason: why}}, nil
	}
	delay := max(after, retry.delay(n, d.e.random()))
	return &parking{hint: hint, wait: &stint.Wait{For: stint.ForRetry, Until: faultpoint.Now().Add(delay), What: text}}, nil
}

// leave records why the session stops here and gives the lease back, in one
// commit.
func (d *driver) leave(p *parking) error {
	if err := d.record(p); err != nil || p.lost {
		return err
	}
	return d.giveBack()
}

// record makes the entries that park or end the session.
func (d *driver) record(p *parking) error {
	if err := d.loss(); p.lost || err != nil {
		return err
	}
	if p.by != nil {
		if err := d.take(*p.by, ""); err != nil {
			return err
		}
	}
	s := d.w.session()
	draft := journal.Draft{Pos: stint.Position{Loop: s.At.Loop, Attempt: s.At.Attempt}}
	if p.by != nil {
		draft.Actor = p.by.From
	}
	switch {
	case p.still:
		return nil
	case p.drain && s.At.Open:
		draft.Kind, draft.Data = stint.SessionReleased, journal.Released{Why: "drain"}
	case p.drain:
		return nil
	case p.end != nil:
		if err := d.voidAll(ofSteps, stint.ApprovalCanceled, "the session ended"); err != nil {
			return err
		}
		draft.Kind, draft.Data = stint.SessionEnded, endData(p)
		draft.Body = p.end.Result
		faultpoint.Hit(faultpoint.AtClose)
	default:
		if p.by != nil && p.by.Kind == stint.Interrupt {
			if err := d.voidAll(ofSteps, stint.ApprovalCanceled, "the turn was interrupted"); err != nil {
				return err
			}
		}
		draft.Kind, draft.Data = stint.SessionWaiting, journal.Parked{Waiting: waitData(p.wait), Hint: clip(p.hint, maxHint)}
	}
	if s.Status == stint.Waiting && p.wait != nil {
		if _, err := d.w.add(journal.Draft{Kind: stint.SessionResumed, Pos: draft.Pos, Data: journal.Resumed{Why: string(p.wait.For)}}); err != nil {
			return err
		}
	}
	var x extras
	if p.end != nil {
		var err error
		if x.sends, err = d.farewell(p); err != nil {
			return err
		}
	}
	_, err := d.w.addWith(draft, x)
	return err
}

// told tells an observer of what is durable now.
func (d *driver) told() {
	s := d.w.session()
	if d.e.opt.Observe == nil || s.Head == d.toldOf {
		return
	}
	d.toldOf = s.Head
	if err := shielded(func() error { d.e.opt.Observe(s); return nil }); err != nil {
		d.e.opt.Log.Error("the observer panicked", "session", s.ID, "error", err)
	}
}
