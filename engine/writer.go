package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/journal"
)

// writer makes a session's entries and hands them to the store, in order. Its
// methods may be called from any goroutine.
//
// Two locks: sending is held across the store's Append, so that batches reach the
// store in the order they were made in; mu guards the fields and is never held
// while the store is called, which may answer from inside Append. sending comes
// first.
type writer struct {
	ctx   context.Context // ends only with the process: a commit is never given up
	store stint.Store
	lease stint.Lease
	lost  func(error) // called once, when the session cannot be written any more

	sending chan struct{} // a lock of one slot: the store may make a sender wait
	mu      sync.Mutex
	s       stint.Session // the fold of everything made so far, durable or not
	batch   stint.Batch   // made, not handed over
	last    *commit       // newest handed over
	key     []byte        // of the family
	salts   []byte
	err     error
	queue   []*commit     // not durable yet, in order
	open    int           // of those, how many the store has and has not answered
	halted  bool          // one was refused for a passing reason: nothing goes on its way but the first
	trial   chan struct{} // closed when the entry that is tried is durable or refused; nil: none is
	begun   time.Time     // when the attempt that runs began, on a clock that nobody sets; zero: none runs
}

// commit is one batch on its way.
type commit struct {
	batch stint.Batch
	done  chan struct{}
	err   error

	before *stint.Session // set for one that is tried: what stands again if a limit refuses it
}

// retryCommit is how long a full disk or a busy store is given before it is asked
// again.
const retryCommit = 500 * time.Millisecond

// try makes an entry and waits until it is durable. One that a meter refuses ([stint.Limit])
// was never made, and the session goes on without it.
func (w *writer) try(d journal.Draft, x extras) error {
	blob, err := w.apart(&d)
	if err != nil {
		return err
	}
	var c *commit
	for c == nil {
		if err := w.sync(); err != nil {
			return err
		}
		if c, err = w.begin(d, x, blob); err != nil {
			return err
		}
	}
	<-c.done
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.trial)
	w.trial = nil
	return c.err
}

// begin hands over an entry that is tried, alone; nil: there is something before it.
func (w *writer) begin(d journal.Draft, x extras, blob []byte) (*commit, error) {
	w.sending <- struct{}{}
	defer func() { <-w.sending }()
	w.mu.Lock()
	if len(w.batch.Entries) > 0 || len(w.queue) > 0 {
		w.mu.Unlock()
		return nil, nil
	}
	before := w.s
	if _, err := w.make(d, x, blob); err != nil {
		w.mu.Unlock()
		return nil, err
	}
	w.batch.Session = w.s
	c := &commit{batch: w.batch, done: make(chan struct{}), before: &before}
	w.batch, w.last, w.queue = stint.Batch{}, c, []*commit{c}
	w.trial = make(chan struct{})
	w.open++
	w.mu.Unlock()
	w.store.Append(w.ctx, w.lease, c.batch, func(err error) { w.answered(c, err) })
	return c, nil
}

// session returns the fold of everything made so far.
func (w *writer) session() stint.Session {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.s
}

// running is how long the session has run, the attempt under way included.
func (w *writer) running() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.s.Totals.Running
	if !w.begun.IsZero() {
		d += time.Since(w.begun)
	}
	return d
}

// add makes the next entry, which takes the given messages out of the inbox. It
// becomes durable some time after the next flush.
func (w *writer) add(d journal.Draft, taken ...string) (stint.Seq, error) {
	return w.addWith(d, extras{taken: taken})
}

// extras is what becomes durable with an entry.
type extras struct {
	taken  []string // messages that it takes out of the inbox
	sends  []stint.Message
	meters []stint.Meter
}

// addWith is add for an entry that brings more than itself.
func (w *writer) addWith(d journal.Draft, x extras) (stint.Seq, error) {
	blob, err := w.apart(&d)
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.trial != nil { // what came behind an entry that is then refused could not stand
		over := w.trial
		w.mu.Unlock()
		<-over
		w.mu.Lock()
	}
	return w.make(d, x, blob)
}

// make makes the next entry, whose body lies outside the journal if blob is set. w.mu is
// held.
func (w *writer) make(d journal.Draft, x extras, blob []byte) (stint.Seq, error) {
	if w.err != nil {
		return 0, w.err
	}
	d.Epoch, d.At, d.Salt = w.lease.Epoch, faultpoint.Now(), w.salt()
	if !w.begun.IsZero() {
		d.Data = measured(d.Data, time.Since(w.begun))
	}
	s, e, err := journal.Next(w.s, d)
	if err != nil {
		return 0, err
	}
	switch {
	case d.Kind == stint.LoopStarted:
		w.begun = time.Now()
	case s.At.Since.IsZero():
		w.begun = time.Time{}
	}
	if blob != nil {
		if w.batch.Blobs == nil {
			w.batch.Blobs = map[stint.BlobRef][]byte{}
		}
		w.batch.Blobs[d.Blob] = blob
	}
	w.s = s
	w.batch.Entries = append(w.batch.Entries, e)
	w.batch.Taken = append(w.batch.Taken, x.taken...)
	w.batch.Sends = append(w.batch.Sends, x.sends...)
	w.batch.Meters = append(w.batch.Meters, x.meters...)
	return e.Seq, nil
}

// apart takes a long body out of d, which then names it, and returns it.
func (w *writer) apart(d *journal.Draft) (blob []byte, err error) {
	if len(d.Body) <= journal.InlineBytes || len(d.Body) > journal.MaxBody {
		return nil, nil
	}
	key, err := w.familyKey()
	if err != nil {
		return nil, err
	}
	blob, d.Body = d.Body, nil
	d.Blob = journal.BlobID(key, blob)
	return blob, nil
}

// measured is the data of an entry that ends an attempt, with how long that ran: a
// nanosecond at least, for none would mean that it was not measured.
func measured(data any, ran time.Duration) any {
	ran = max(ran, 1)
	switch d := data.(type) {
	case journal.Waiting:
		return journal.Parked{Waiting: d, Ran: ran}
	case journal.Parked:
		d.Ran = ran
		return d
	case journal.Released:
		d.Ran = ran
		return d
	case journal.Ended:
		d.Ran = ran
		return d
	case journal.LineStarted:
		d.Ran = ran
		return d
	case journal.LoopFailed:
		d.Ran = ran
		return d
	case journal.LoopCompleted:
		d.Ran = ran
		return d
	}
	return data
}

// familyKey returns the key that blobs are named with. A store that is not there
// for a moment is asked again, as a commit is.
func (w *writer) familyKey() ([]byte, error) {
	for {
		w.mu.Lock()
		key, family, err := w.key, w.s.Family, w.err
		w.mu.Unlock()
		if key != nil || err != nil {
			return key, err
		}
		key, err = w.store.FamilyKey(w.ctx, family)
		if err == nil {
			w.mu.Lock()
			w.key = key
			w.mu.Unlock()
			return key, nil
		}
		if !errors.Is(err, stint.Unavailable) || stopped(w.store) {
			return nil, err
		}
		<-time.After(retryCommit)
	}
}

func (w *writer) salt() (out [16]byte) {
	if len(w.salts) < len(out) {
		w.salts = make([]byte, 1024)
		_, _ = rand.Read(w.salts) // never fails, see crypto/rand
	}
	copy(out[:], w.salts)
	w.salts = w.salts[len(out):]
	return out
}

// flush hands over what was made, without waiting.
func (w *writer) flush(release bool) {
	w.sending <- struct{}{}
	defer func() { <-w.sending }()
	w.mu.Lock()
	if w.err != nil || len(w.batch.Entries) == 0 && !release {
		w.mu.Unlock()
		return
	}
	w.batch.Session, w.batch.Release = w.s, release
	c := &commit{batch: w.batch, done: make(chan struct{})}
	w.batch = stint.Batch{}
	w.last = c
	w.queue = append(w.queue, c)
	if w.halted {
		w.mu.Unlock()
		return
	}
	w.open++
	w.mu.Unlock()
	w.store.Append(w.ctx, w.lease, c.batch, func(err error) { w.answered(c, err) })
}

// answered takes the store's answer to a commit. Those behind a refused one are
// refused too; all of them stay in the queue, and once the store has answered them
// all, the first is handed over again.
func (w *writer) answered(c *commit, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
	switch {
	case w.err != nil: // fail has answered all
	case errors.Is(err, stint.Unavailable) && !stopped(w.store):
		w.halted = true
	case w.halted && errors.Is(err, stint.Conflict) && c != w.queue[0]:
		// It was on its way when the one before it was refused, and does not follow.
	case c.before != nil && errors.Is(err, stint.Limit):
		w.s, w.last, w.queue, c.err = *c.before, nil, nil, err
		close(c.done)
	case err != nil:
		w.fail(err)
	default:
		w.queue = w.queue[1:]
		close(c.done)
	}
	if w.halted && w.open == 0 && w.err == nil {
		w.again(err)
	}
}

// stopped reports whether the store has stopped for good, so that asking again is no
// use: stores that can, such as store/sqlite after a failed sync, have Err.
func stopped(st stint.Store) bool {
	s, ok := st.(interface{ Err() error })
	return ok && s.Err() != nil
}

// again goes on with the queue: after a pause if the first was refused, at once if
// it was not. w.mu is held.
func (w *writer) again(err error) {
	if len(w.queue) == 0 {
		w.halted = false
		return
	}
	pause := time.Duration(0)
	if err != nil {
		pause = retryCommit
	}
	time.AfterFunc(pause, w.resend)
}

// resend hands over the first of the queue, alone: what stands behind a refused
// commit must not reach the store before it.
func (w *writer) resend() {
	w.sending <- struct{}{}
	defer func() { <-w.sending }()
	w.mu.Lock()
	if w.err != nil || len(w.queue) == 0 {
		w.mu.Unlock()
		return
	}
	c := w.queue[0]
	w.open++
	w.mu.Unlock()
	w.store.Append(w.ctx, w.lease, c.batch, func(err error) { w.answered(c, err) })
}

// fail makes the writer refuse everything from now on. w.mu is held.
func (w *writer) fail(err error) {
	if w.err != nil {
		return
	}
	w.err = err
	for _, c := range w.queue {
		c.err = err
		close(c.done)
	}
	w.queue = nil
	go w.lost(err)
}

// abandon is fail for a lease that is known to be lost.
func (w *writer) abandon(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(err)
}

// sync flushes and waits until everything made so far is durable.
func (w *writer) sync() error {
	w.flush(false)
	return w.wait()
}

// wait returns once everything handed over is durable.
func (w *writer) wait() error {
	w.mu.Lock()
	c, err := w.last, w.err
	w.mu.Unlock()
	if err != nil || c == nil {
		return err
	}
	<-c.done
	return c.err
}
