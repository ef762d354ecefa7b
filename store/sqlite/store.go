package sqlite

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
)

var (
	_ stint.Store   = (*Store)(nil)
	_ stint.Watcher = (*Store)(nil)
)

// Options say how to open a store. The zero value of each field but Path is its
// documented default.
type Options struct {
	// Path of the database file. PATH-wal and PATH-shm belong to it while it is open;
	// PATH.d holds locks, PATH.keys the keys of families. Missing folders are made,
	// for this user only.
	Path string
	// ReadOnly opens a store that exists and changes nothing in it; every write is
	// [stint.Invalid].
	ReadOnly bool
	// Patience is how long a commit waits for other processes; 0: 30 s.
	Patience time.Duration
	// AllowNetworkFS opens a file on a network file system all the same. The locks of
	// most do not work as SQLite needs them, and then the file breaks.
	AllowNetworkFS bool
}

// Store is a [stint.Store] in one SQLite file, which several processes may have
// open at once. All methods may be called concurrently. Besides the errors that
// the interfaces name, each can return [stint.Unavailable] where the disk is full
// or fails, the store is closed, or another process keeps writing for longer than
// Options.Patience, and [stint.Corrupt] for a file that is damaged.
//
// After the disk failed to sync what was written, every later change is
// [stint.Unavailable]: nobody knows what such a disk still keeps, so end the
// process and look at the disk.
type Store struct {
	opt      Options
	w        *writer
	rows     *rows
	codec    *codec
	names    *names
	runners  *runners
	keys     *keyring
	watchers *watchers
	turn     *turn
	pool     chan *sqlite.Conn // readers; nil ones are not open yet
	wal      *checkpointer

	intake
	committed chan struct{} // closed when the committer has ended
	gate      sync.Mutex    // held while a transaction writes, or a checkpoint must not be overtaken
	dead      atomic.Pointer[stint.Error]
	quit      chan struct{} // closed with the store
	watching  sync.WaitGroup
}

// intake is the way of operations to the committer.
type intake struct {
	mu      sync.RWMutex // for closed; held by those who submit
	closed  bool
	tickets atomic.Uint64
	queue   chan *op
	ops     sync.Pool
}

// readers is how many reads go on at once.
const readers = 4

// Err returns why the store has stopped for good, nil while it has not: after the
// disk failed to sync, every change is refused until the store is opened again.
func (s *Store) Err() error {
	if dead := s.dead.Load(); dead != nil {
		return dead
	}
	return nil
}

// clock is the wall clock: what it says labels and expires, and orders nothing.
func clock() time.Time { return faultpoint.Now() }

// Create implements [stint.Writer]. Of several keys in b the first that is there
// decides. The caps of c do not bind it. A session of that id that is there
// without a key is [stint.Exists].
func (s *Store) Create(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
	if err := valid("create", b.Session.ID, &b); err != nil {
		return stint.Lease{}, err
	}
	if first := b.Session.Head - stint.Seq(len(b.Entries)); first != 0 || len(b.Entries) == 0 {
		return stint.Lease{}, stint.Invalid.Errorf("create", "a session begins with entry 1, not %d", first+1)
	}
	o := &op{kind: opCreate, batch: b, claim: c, packed: s.codec.pack(b.Blobs)}
	if err := s.do(ctx, o); err != nil {
		return stint.Lease{}, err
	}
	return o.leases[0], nil
}

// Append implements [stint.Writer]. A key that is there refuses b whatever its
// digest, and so does a message that is not in the inbox.
func (s *Store) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	if s.w == nil {
		done(refuse(stint.Invalid, "append", l.Session, "open the store for writing", "the store was opened for reading only"))
		return
	}
	o, _ := s.ops.Get().(*op)
	if o == nil {
		o = new(op)
	}
	o.kind, o.ctx, o.lease, o.batch, o.done = opAppend, ctx, l, b, done
	err := valid("append", l.Session, &o.batch)
	if err == nil {
		o.packed = s.codec.pack(b.Blobs)
		err = s.submit(o)
	}
	if err != nil {
		done(err)
	}
}

// Claim implements [stint.Writer]. First come the sessions of dead holders and of
// expired leases, then those that are ready and those that a message woke, oldest
// first, then those whose time has come, earliest first.
func (s *Store) Claim(ctx context.Context, c stint.Claim) ([]stint.Lease, error) {
	if c.Holder == "" {
		return nil, stint.Invalid.Errorf("claim", "a claim needs a holder")
	}
	o := &op{kind: opClaim, claim: c}
	err := s.do(ctx, o)
	return o.leases, err
}

// Renew implements [stint.Writer]. A lease that expired is revived if nobody took
// the session meanwhile. If the lock file of a holder of this process was removed
// or replaced, and another runner has it now, all leases of that holder are lost.
func (s *Store) Renew(ctx context.Context, ttl time.Duration, held []stint.Lease) (lost []stint.ID, err error) {
	if len(held) == 0 {
		return nil, nil
	}
	o := &op{kind: opRenew, held: held, ttl: ttl}
	err = s.do(ctx, o)
	return o.lost, err
}
