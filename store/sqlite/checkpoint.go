package sqlite

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint/internal/faultpoint"
)

const (
	walEnough = 16 << 20        // bytes in the WAL at which it is copied back
	walIdle   = 5 * time.Second // without a commit, after which it is emptied
	lookAt    = 4 << 20         // bytes written, by a rough count, after which the WAL is looked at
	pageSize  = 4096

	walPatience = 50 * time.Millisecond // for readers, while the writers of this process wait
)

// checkpointer copies the WAL back into the database on a connection of its own,
// so that no commit waits for it.
type checkpointer struct {
	c       *sqlite.Conn
	kick    chan struct{}
	ended   chan struct{}
	commits atomic.Uint64
	grown   atomic.Bool // much was written since the WAL was looked at
	dirty   atomic.Bool // something was written since the WAL was emptied
	bytes   int         // since the last kick; only the committer uses it
}

// wrote is called by the committer after each commit.
func (s *Store) wrote(group []*op) {
	w := s.wal
	w.commits.Add(1)
	w.bytes += s.w.bytes + pageSize*len(group)/2
	s.w.bytes = 0
	first := !w.dirty.Load()
	if first {
		w.dirty.Store(true)
	}
	if w.bytes >= lookAt {
		w.bytes = 0
		w.grown.Store(true)
	} else if !first {
		return
	}
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// checkpoints runs until the store closes.
func (s *Store) checkpoints(ctx context.Context) {
	w := s.wal
	defer close(w.ended)
	idle := time.NewTimer(walIdle)
	defer idle.Stop()
	for seen := uint64(0); ; {
		select {
		case <-s.quit:
			return
		case <-w.kick:
			if w.grown.Swap(false) {
				if log, _, err := w.checkpoint("NOOP"); err == nil && log*pageSize >= walEnough {
					s.copyBack()
				}
			}
			idle.Reset(walIdle)
		case <-idle.C:
			if n := w.commits.Load(); n != seen {
				seen = n
				idle.Reset(walIdle)
			} else if w.dirty.Swap(false) {
				s.truncate()
				s.rest(ctx)
			}
		}
	}
}

// copyBack copies the WAL back beside the writers and makes the next commit start it
// over. While the writers are quick a pass never gets to the end: the second is
// shorter than the first, and for what is left then they have to wait.
func (s *Store) copyBack() {
	for range 2 {
		if _, _, err := s.wal.checkpoint("PASSIVE"); err != nil {
			return
		}
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	_, _, _ = s.wal.checkpoint("RESTART")
}

// truncate empties the WAL, if no reader needs it.
func (s *Store) truncate() {
	s.gate.Lock()
	defer s.gate.Unlock()
	_, _, _ = s.wal.checkpoint("TRUNCATE")
}

// rest lets go of the memory that reading and writing filled: a process that has had
// nothing to write for a while costs about what one with an empty store does.
func (s *Store) rest(ctx context.Context) {
	if s.do(ctx, &op{kind: opRest}) != nil {
		return // the store is closing
	}
	_ = pragma(s.wal.c, "shrink_memory")
	for range readers {
		select {
		case c := <-s.pool:
			if c != nil {
				_ = c.Close()
			}
			s.pool <- nil
		default: // somebody reads with it
		}
	}
	// The runtime collects by itself two minutes later, and keeps more of what it freed.
	debug.FreeOSMemory()
}

// checkpoint runs one checkpoint and returns how many pages are in the WAL, and
// how many of them are in the database too. It returns -1 for the pages of one
// that could not run.
func (w *checkpointer) checkpoint(mode string) (log, done int64, err error) {
	if mode != "NOOP" {
		faultpoint.Hit(faultpoint.InCheckpoint)
	}
	_, err = one(w.c, "PRAGMA wal_checkpoint("+mode+")", func(st *sqlite.Stmt) {
		log, done = st.ColumnInt64(1), st.ColumnInt64(2)
		if st.ColumnInt64(0) != 0 {
			done = -1 // it did not get as far as it should
		}
	})
	return log, done, err
}

// Checkpoint copies the WAL back into the database file and empties it, so that
// the file alone is the whole store. It is [stint.Unavailable] while a reader
// needs the WAL.
func (s *Store) Checkpoint(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return unavailable("checkpoint", err)
	}
	c, err := openConn(s.opt.Path, sqlite.OpenReadWrite)
	if err != nil {
		return explain("checkpoint", err)
	}
	defer c.Close()
	c.SetBusyTimeout(walPatience)
	s.gate.Lock()
	defer s.gate.Unlock()
	w := checkpointer{c: c}
	log, done, err := w.checkpoint("TRUNCATE")
	if err == nil && done != log {
		return unavailable("checkpoint", errPinned)
	}
	return explain("checkpoint", err)
}
