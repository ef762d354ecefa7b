package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/stint-dev/stint"
)

// runners knows which holders of leases live: those whose lock file somebody has
// locked. The system lets go of a lock when a process ends, however it ends, so
// that nobody waits for a lease of a dead one to expire.
type runners struct {
	dir string
	mu  sync.Mutex
	own map[string]*flock.Flock
}

// presence is what a lock file says about who has it locked; for people.
type presence struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Started time.Time `json:"started"`
}

// lockPatience is how long a runner tries to lock its file: who looks whether a
// holder lives has it locked for an instant.
const lockPatience = 250 * time.Millisecond

// Hold says that this process lives under the name holder until release is called
// or the process ends; only then do leases of that holder live. A second runner of
// the same name, in whatever process, is [stint.Conflict]. Leases that were not
// given back before the release are those of a dead process. Releasing again does
// nothing.
func (s *Store) Hold(ctx context.Context, holder string) (release func() error, err error) {
	if holder == "" || len(holder) > 100 {
		return nil, stint.Invalid.Errorf("hold", "a holder's name has 1 to 100 bytes")
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, closed("hold")
	}
	if err := s.runners.hold(ctx, holder); err != nil {
		return nil, err
	}
	return sync.OnceValue(func() error {
		err := s.runners.release(holder)
		s.watchers.signal()
		return err
	}), nil
}

func (r *runners) path(holder string) string {
	var b strings.Builder
	for i := range len(holder) {
		switch c := holder[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return filepath.Join(r.dir, b.String()+".lock")
}

// hold locks holder's file. It does not keep the mutex while it waits.
func (r *runners) hold(ctx context.Context, holder string) error {
	r.sweep()
	for until := time.Now().Add(lockPatience); ; {
		ok, err := r.try(holder)
		switch {
		case err != nil:
			return err
		case ok:
			return nil
		case time.Now().After(until):
			return refuse(stint.Conflict, "hold", stint.ID{}, "give each runner a name of its own, or end the other one",
				"runner %s lives already", r.describe(holder))
		}
		select {
		case <-ctx.Done():
			return unavailable("hold", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (r *runners) try(holder string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own[holder] != nil {
		return false, refuse(stint.Conflict, "hold", stint.ID{}, "give each runner a name of its own", "this process is runner %q already", holder)
	}
	l, err := r.lock(holder)
	if l != nil {
		r.own[holder] = l
	}
	return l != nil, err
}

// lock locks the file of holder, if nobody has it, and writes who has it now.
func (r *runners) lock(holder string) (*flock.Flock, error) {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, unavailable("hold", err)
	}
	l := flock.New(r.path(holder), flock.SetFlag(os.O_CREATE|os.O_RDWR))
	ok, err := l.TryLock()
	switch {
	case err != nil:
		return nil, unavailable("hold", err)
	case !ok:
		return nil, nil
	case !same(l): // it was removed under the lock
		_ = l.Unlock()
		return nil, nil
	}
	host, _ := os.Hostname()
	if b, err := json.Marshal(presence{os.Getpid(), host, clock()}); err == nil {
		_ = os.WriteFile(l.Path(), b, 0o600) // only people read it, and Windows does not let us
	}
	return l, nil
}

// same reports whether the locked file is the one that others find.
func same(l *flock.Flock) bool {
	mine, err := l.Stat()
	if err != nil {
		return false
	}
	theirs, err := os.Stat(l.Path())
	return err == nil && os.SameFile(mine, theirs)
}

func unavailable(op string, err error) *stint.Error {
	return &stint.Error{Code: stint.Unavailable, Op: op, Err: err, Hint: "check the folder beside the database, and that it is this user's"}
}

// release lets go of a holder and removes its file.
func (r *runners) release(holder string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.own[holder]
	if l == nil {
		return nil
	}
	delete(r.own, holder)
	if same(l) {
		_ = os.Remove(l.Path()) // Windows keeps it while it is open; it is only a file
	}
	return l.Unlock()
}

// alive reports whether somebody has holder's file locked. What it cannot find out
// it takes for alive: then the lease has to expire first.
func (r *runners) alive(holder string) bool {
	r.mu.Lock()
	own := r.own[holder] != nil
	r.mu.Unlock()
	if own {
		return true
	}
	l := flock.New(r.path(holder), flock.SetFlag(os.O_RDWR)) // never creating it
	ok, err := l.TryRLock()
	if ok {
		_ = l.Unlock()
		return false
	}
	return !errors.Is(err, fs.ErrNotExist)
}

// lost reports whether a holder of this process no longer has its lock because
// somebody removed or replaced the file, and could not get it again.
func (r *runners) lost(holder string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.own[holder]
	if l == nil || same(l) {
		return false
	}
	again, err := r.lock(holder)
	if again == nil || err != nil {
		return true
	}
	_ = l.Unlock()
	r.own[holder] = again
	return false
}

// describe names a holder with its process, where its file tells.
func (r *runners) describe(holder string) string {
	var p presence
	b, err := os.ReadFile(r.path(holder))
	if err != nil || json.Unmarshal(b, &p) != nil || p.PID == 0 {
		return holder
	}
	return fmt.Sprintf("%s (process %d on %s since %s)", holder, p.PID, p.Host, p.Started.Format(time.RFC3339))
}

// sweep removes the files of runners that died more than a day ago.
func (r *runners) sweep() {
	files, _ := filepath.Glob(filepath.Join(r.dir, "*.lock"))
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || time.Since(info.ModTime()) < 24*time.Hour {
			continue
		}
		l := flock.New(f, flock.SetFlag(os.O_RDWR))
		if ok, err := l.TryLock(); ok && err == nil {
			if same(l) {
				_ = os.Remove(f)
			}
			_ = l.Unlock()
		}
	}
}

func newRunners(dir string) *runners {
	return &runners{dir: dir, own: map[string]*flock.Flock{}}
}

// releaseAll lets go of every holder of this store.
func (r *runners) releaseAll() error {
	r.mu.Lock()
	var all []string
	for h := range r.own {
		all = append(all, h)
	}
	r.mu.Unlock()
	var errs []error
	for _, h := range all {
		errs = append(errs, r.release(h))
	}
	return errors.Join(errs...)
}
