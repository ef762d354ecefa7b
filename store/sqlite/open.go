package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// errPinned says why a WAL cannot be emptied.
var errPinned = errors.New("a reader or another process still needs the WAL")

// Open opens a store, making the file and bringing an older one up to date. It
// refuses, without touching it, a file of a newer program ([stint.Conflict]), one
// of another program ([stint.Conflict]) and one on a network file system
// ([stint.Invalid]); a file that is no database is [stint.Corrupt].
//
// Five seconds after its last commit a store that can write lets go of its caches and
// has the Go runtime collect garbage and give memory back to the system, for the whole
// process, until it is written again.
func Open(ctx context.Context, opt Options) (*Store, error) {
	if opt.Path == "" {
		return nil, stint.Invalid.Errorf("open", "no path is given")
	}
	opt.Patience = cmp.Or(opt.Patience, 30*time.Second)
	path, err := filepath.Abs(opt.Path)
	if err != nil {
		return nil, unavailable("open", err)
	}
	opt.Path = path
	version, made, err := lookAndMake(&opt)
	if err != nil {
		return nil, err
	}
	s := &Store{
		opt: opt, names: newNames(), codec: newCodec(), watchers: &watchers{all: map[chan struct{}]bool{}},
		pool: make(chan *sqlite.Conn, readers), intake: intake{queue: make(chan *op, maxQueue)}, committed: make(chan struct{}), quit: make(chan struct{}),
	}
	s.runners = newRunners(filepath.Join(path+".d", "runners"))
	s.rows = &rows{s.names, s.runners}
	s.keys = newKeyring(s)
	for range readers {
		s.pool <- nil
	}
	if opt.ReadOnly {
		if version < schemaVersion() {
			return nil, refuse(stint.Conflict, "open", stint.ID{}, "open it for writing once", "the store has schema version %d, this program needs %d", version, schemaVersion())
		}
		return s, nil
	}
	if err := s.openWriter(ctx, version); err != nil {
		s.turn.close()
		if made {
			_ = os.Remove(path + ".d") // unless somebody has put something into it
		}
		return nil, err
	}
	go s.commits()
	go s.checkpoints(context.WithoutCancel(ctx))
	return s, nil
}

// lookAndMake looks at what is there and returns its schema version. What is refused is
// left as it is, with nothing beside it; a file that is not there is made with its
// folders, and so is the folder of the store's locks: made says that it was.
func lookAndMake(opt *Options) (version int, made bool, err error) {
	if kind := networkFS(nearest(opt.Path)); kind != "" && !opt.AllowNetworkFS {
		return 0, false, refuse(stint.Invalid, "open", stint.ID{}, "put the store on a local disk, or use PostgreSQL to share it between machines",
			"%s is on a network file system (%s), whose locks SQLite cannot rely on", opt.Path, kind)
	}
	if _, err := os.Stat(opt.Path); errors.Is(err, fs.ErrNotExist) {
		if opt.ReadOnly {
			return 0, false, refuse(stint.NotFound, "open", stint.ID{}, "the first session that is started makes the store", "there is no store at %s", opt.Path)
		}
		if err := makeFile(opt.Path); err != nil {
			return 0, false, unavailable("open", err)
		}
	}
	if version, err = inspect(opt.Path); err != nil || opt.ReadOnly {
		return version, false, err
	}
	locks := opt.Path + ".d"
	err = os.Mkdir(locks, 0o700)
	if made = err == nil; errors.Is(err, fs.ErrExist) {
		var info fs.FileInfo
		if info, err = os.Stat(locks); err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a folder", locks)
		}
	}
	if err != nil {
		return version, false, unavailable("open", err)
	}
	return version, made, nil
}

// nearest is the folder of path, or the one above it that is there.
func nearest(path string) string {
	dir := filepath.Dir(path)
	for {
		up := filepath.Dir(dir)
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || up == dir {
			return dir
		}
		dir = up
	}
}

// makeFile makes an empty file with the folders above it, unless somebody else does.
// SQLite gives the WAL the permissions of the file. One that is there must not be
// opened here: closing it would drop the locks that this process has on it.
func makeFile(path string) error {
	if err := makeDir(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = syncDir(path)
	}
	return err
}

// makeDir makes a folder with those above it, durably: after a power cut the
// store must not be gone with the folder.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeDir(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(dir)
}

// openWriter opens what only a store for writing has.
func (s *Store) openWriter(ctx context.Context, version int) error {
	s.turn = newTurn(s.opt.Path + ".d")
	if err := registerVFS(); err != nil {
		return err
	}
	c, err := openConn(layered(s.opt.Path), sqlite.OpenReadWrite|sqlite.OpenURI)
	if err != nil {
		return explain("open", err)
	}
	if err := s.setUp(ctx, c, version); err != nil {
		_ = c.Close()
		return explain("open", err)
	}
	ck, err := openConn(s.opt.Path, sqlite.OpenReadWrite, "synchronous = FULL", "fullfsync = 1", "checkpoint_fullfsync = 1", "wal_autocheckpoint = 0")
	if err != nil {
		_ = c.Close()
		return explain("open", err)
	}
	ck.SetBusyTimeout(walPatience)
	s.wal = &checkpointer{c: ck, kick: make(chan struct{}, 1), ended: make(chan struct{})}
	return nil
}

// setUp makes c the writer.
func (s *Store) setUp(ctx context.Context, c *sqlite.Conn, version int) (err error) {
	if err := s.useWAL(c); err != nil {
		return err
	}
	if version < schemaVersion() {
		if err := s.migrate(ctx, c, version); err != nil {
			return err
		}
	}
	for _, p := range []string{"synchronous = FULL", "fullfsync = 1", "checkpoint_fullfsync = 1", "wal_autocheckpoint = 0", "cache_size = -2048", "temp_store = MEMORY"} {
		if err := pragma(c, p); err != nil {
			return err
		}
	}
	s.w, err = newWriter(c, s.names, s.runners, s.keys)
	if err == nil {
		s.w.rows = s.rows
	}
	c.SetBusyTimeout(0) // from here on the turn waits; before, another that opens the store may be recovering the WAL
	return err
}

// Close waits until what was handed to the store is durable or refused, empties
// the WAL if nobody else needs it, and lets go of the holders of this process,
// whose leases end with that. Closing again does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	close(s.quit)
	close(s.queue)
	var errs []error
	if s.w != nil {
		<-s.committed
		<-s.wal.ended
		s.truncate()
		errs = append(errs, s.w.c.Close(), s.wal.c.Close())
		s.turn.close()
	}
	s.watching.Wait()
	for range readers { // each as soon as nobody reads with it
		if c := <-s.pool; c != nil {
			errs = append(errs, c.Close())
		}
	}
	for range readers { // those who read from now on find that the store is closed
		s.pool <- nil
	}
	errs = append(errs, s.runners.releaseAll())
	return explain("close", errors.Join(errs...))
}

// syncDir makes the entry of path in its folder durable.
func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !os.IsPermission(err) {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}
