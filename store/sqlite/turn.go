package sqlite

import (
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"modernc.org/libc"
	"zombiezen.com/go/sqlite"
)

// turn shares the write lock between processes. SQLite's own lock has no queue: a
// process that commits without a pause would keep the others out for long. So one
// that found the lock taken says that it waits, by a shared lock on a file, and
// whoever has just committed looks at that file now and then and makes room.
//
// Only the committer uses it.
type turn struct {
	file   *flock.Flock
	tls    *libc.TLS // for naps: a timer of Go's can take a millisecond longer
	looked time.Time
}

const (
	lookEvery = time.Millisecond // how often a writer looks for those who wait
	nap       = 50               // microseconds between two tries for the lock, and as many again at random
	makeRoom  = 4                // naps that a writer takes where somebody waits
)

func newTurn(dir string) *turn {
	return &turn{file: flock.New(filepath.Join(dir, "turn.lock")), tls: libc.NewTLS()}
}

// doze waits for one nap, or for longer if it has waited long already. It returns
// how long that was at least.
func (t *turn) doze(waited time.Duration) time.Duration {
	us := nap + rand.N(uint32(nap))
	if waited > 20*time.Millisecond {
		us *= 20
	}
	libc.Xusleep(t.tls, us)
	return time.Duration(us) * time.Microsecond
}

// wait tries again until it is not busy any more, for at most patience.
func (t *turn) wait(patience time.Duration, try func() error) error {
	defer t.file.Unlock() //nolint:errcheck // it is a courtesy
	began := time.Now()
	for waited := time.Duration(0); ; { // a test's clock may stand still meanwhile
		if !t.file.RLocked() {
			_, _ = t.file.TryRLock()
		}
		waited = max(waited+t.doze(waited), time.Since(began))
		err := try()
		if sqlite.ErrCode(err).ToPrimary() != sqlite.ResultBusy || waited > patience {
			return err
		}
	}
}

// yield is called after a commit: it gives way to those who wait.
func (t *turn) yield() {
	now := time.Now()
	if now.Sub(t.looked) < lookEvery {
		return
	}
	if free, err := t.file.TryLock(); free || err != nil {
		_ = t.file.Unlock()
		t.looked = now
		return
	}
	for range makeRoom {
		t.doze(0)
	}
}

func (t *turn) close() { t.tls.Close() }
