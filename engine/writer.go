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
type writer struct {
	ctx   context.Context // ends only with the process: a commit is never given up
	store stint.Store
	lease stint.Lease
	lost  func(error) // called once, when the session cannot be written any more

	mu    sync.Mutex
	s     stint.Session // the fold of everything made so far, durable or not
	batch stint.Batch   // made, not handed over
	last  *commit       // newest handed over
	key   []byte        // of the family
	salts []byte
	err   error
	stuck []*commit // refused for a passing reason, to be handed over again
	open  int       // handed over, not answered
}

// commit is one batch on its way.
type commit struct {
	batch stint.Batch
	done  chan struct{}
	err   error
}

// retryCommit is how long a full disk or a busy store is given before the batch
// is handed over again.
const retryCommit = 500 * time.Millisecond

// session returns the fold of everything made so far.
func (w *writer) session() stint.Session {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.s
}

// add makes the next entry. It becomes durable some time after the next flush.
func (w *writer) add(d journal.Draft) (stint.Seq, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.addLocked(d)
}

func (w *writer) addLocked(d journal.Draft) (stint.Seq, error) {
	if w.err != nil {
		return 0, w.err
	}
	if len(d.Body) > journal.InlineBytes && len(d.Body) <= journal.MaxBody {
		if err := w.externalise(&d); err != nil {
			return 0, err
		}
	}
	d.Epoch, d.At = w.lease.Epoch, faultpoint.Now()
	d.Salt = w.salt()
	s, e, err := journal.Next(w.s, d)
	if err != nil {
		return 0, err
	}
	w.s = s
	w.batch.Entries = append(w.batch.Entries, e)
	return e.Seq, nil
}

// externalise moves the body of d into a blob.
func (w *writer) externalise(d *journal.Draft) error {
	if w.key == nil {
		key, err := w.store.FamilyKey(w.ctx, w.s.Family)
		if err != nil {
			return err
		}
		w.key = key
	}
	d.Blob = journal.BlobID(w.key, d.Body)
	if w.batch.Blobs == nil {
		w.batch.Blobs = map[stint.BlobRef][]byte{}
	}
	w.batch.Blobs[d.Blob] = d.Body
	d.Body = nil
	return nil
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

// take records that the batch takes an inbox message.
func (w *writer) take(id string) {
	w.mu.Lock()
	w.batch.Taken = append(w.batch.Taken, id)
	w.mu.Unlock()
}

// flush hands over what was made, without waiting.
func (w *writer) flush(release bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || len(w.batch.Entries) == 0 && !release {
		return
	}
	w.batch.Session, w.batch.Release = w.s, release
	c := &commit{batch: w.batch, done: make(chan struct{})}
	w.batch = stint.Batch{}
	w.last = c
	if len(w.stuck) > 0 {
		w.stuck = append(w.stuck, c)
		return
	}
	w.send(c)
}

// send hands c over. w.mu is held: the order of commits is the order of calls.
func (w *writer) send(c *commit) {
	w.open++
	done := func(err error) { w.answered(c, err) }
	// The store may answer before Append returns, so the lock must not be held.
	w.mu.Unlock()
	w.store.Append(w.ctx, w.lease, c.batch, done)
	w.mu.Lock()
}

func (w *writer) answered(c *commit, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
	switch {
	case err == nil:
	case w.err == nil && errors.Is(err, stint.Unavailable) && w.ctx.Err() == nil:
		w.stuck = append(w.stuck, c)
		if w.open == 0 {
			time.AfterFunc(retryCommit, w.again)
		}
		return
	default:
		w.fail(err)
	}
	c.err = w.errFor(err)
	close(c.done)
}

func (w *writer) errFor(err error) error {
	if err != nil && w.err != nil {
		return w.err
	}
	return err
}

// again hands the stuck commits over once more, all of them in order.
func (w *writer) again() {
	w.mu.Lock()
	defer w.mu.Unlock()
	stuck := w.stuck
	w.stuck = nil
	for _, c := range stuck {
		if w.err != nil {
			c.err = w.err
			close(c.done)
			continue
		}
		w.send(c)
	}
}

// fail makes the writer refuse everything from now on. w.mu is held.
func (w *writer) fail(err error) {
	if w.err != nil {
		return
	}
	w.err = err
	for _, c := range w.stuck {
		c.err = err
		close(c.done)
	}
	w.stuck = nil
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
