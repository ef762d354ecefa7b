package stint

import (
	"context"
	"encoding/json"
	"io"
	"time"
)

// Store keeps journals. It interprets nothing: which entry may follow which is the
// business of package journal, and only the engine writes. Implementations pass
// store/storetest. All methods may be called concurrently; all honour ctx while
// they wait, but never give up a commit that has begun.
//
// Optional abilities are separate interfaces, probed by type assertion:
// [Watcher], [Blobs].
type Store interface {
	Writer
	Reader
	Sender
	Blobs
	io.Closer
}

// Writer is the engine's side.
type Writer interface {
	// Create makes a session from its first entries (b.Session is their fold) in one
	// transaction with b.Keys. If a key is already there with the same digest,
	// nothing is written and the lease names the session that has it (its Ref) with
	// Epoch 0; with another digest it is [Conflict]. With c.Holder set the session is
	// claimed in the same transaction, so that nobody else gets it; else the returned
	// lease is only the id. It returns once the transaction is durable.
	Create(ctx context.Context, b Batch, c Claim) (Lease, error)
	// Claim takes up to c.Max sessions that are ready and that nobody holds, raising
	// the epoch of each. None to be had is no error. With c.Session set it takes that
	// one or says why not: [NotFound]; [Conflict] naming the holder or what the session
	// waits for; [Limit] where nothing but c.Caps stands in the way.
	Claim(ctx context.Context, c Claim) ([]Lease, error)
	// Append adds b under the lease's epoch, all or nothing, and calls done once, when
	// b is durable or refused, from a goroutine of the store: done must not block.
	// Appends of one session commit in the order of the calls, and once one is refused
	// so are those queued behind it. Errors: [Fenced] if the epoch is not the lease's;
	// [Conflict] if b.Entries[0].Seq is not the head's successor or a key is taken;
	// [Limit] if a meter would pass its limit, which the error names; [Unavailable] if the disk is full or
	// the store closed. Neighbours in a group commit do not fail each other.
	Append(ctx context.Context, l Lease, b Batch, done func(error))
	// Renew extends the leases to ttl from now and sets their NOW lines. It returns
	// those that are lost.
	Renew(ctx context.Context, ttl time.Duration, held []Lease) (lost []ID, err error)
}

// Reader is the views' side. Reads see committed data and never block a writer.
type Reader interface {
	// Session returns one session, or [NotFound].
	Session(ctx context.Context, id ID) (Row, error)
	// Sessions returns those that match f, newest first.
	Sessions(ctx context.Context, f Filter) ([]Row, error)
	// Entries returns entries of one session in order of seq. Bodies that lie outside
	// the journal are named by Blob and not loaded. An entry whose hash does not
	// follow from its bytes is returned as it is: verifying is the caller's.
	Entries(ctx context.Context, r Range) ([]Entry, error)
	// Inbox returns the messages that nobody has taken, oldest first.
	Inbox(ctx context.Context, id ID) ([]Message, error)
	// Keys returns keys of like's Scope that have not expired: the one of its Name, or
	// the lines of its Source's ledger, or of all ledgers of the scope. Lines come newest
	// first, by At and then by Name, at most limit, or 100 if it is 0. With At set, At
	// and Name are a cursor, and what comes after it is returned; a key with a body is
	// returned with its body only if it was named.
	Keys(ctx context.Context, like Key, limit int) ([]Key, error)
}

// Sender is the door in from outside.
type Sender interface {
	// Send puts m into the inbox and returns once it is durable. The same id with the
	// same content again is no error and changes nothing; with other content it is
	// [Conflict]. So are its keys: one that is there with the same digest means that the
	// message has come. What the session does not accept (see [Session.Accepts]) is refused
	// in the same transaction.
	Send(ctx context.Context, id ID, m Message) error
}

// Blobs is where large bodies lie.
type Blobs interface {
	// Blob returns the plain bytes of a body, [NotFound] if it was erased or never
	// there, [Corrupt] if they do not have the size that ref says.
	Blob(ctx context.Context, family ID, ref BlobRef) ([]byte, error)
	// FamilyKey returns the 32 byte key that the family's blob ids are made with,
	// making one for a family that has none. The same family always gets the same
	// key; it is durable before anything that was named with it.
	FamilyKey(ctx context.Context, family ID) ([]byte, error)
}

// Watcher is implemented by stores that can tell of changes sooner than polling.
type Watcher interface {
	// Changed returns a channel that gets a value soon after another committed
	// something that may concern a runner: a new session, a message, a lease given
	// back. Values are merged, never queued; the channel closes with ctx.
	Changed(ctx context.Context) <-chan struct{}
	// Unread returns the sessions held by holder whose inbox has messages.
	Unread(ctx context.Context, holder string) ([]ID, error)
	// Feed returns entries of all sessions but the system journal, in the order in
	// which they became durable, that come behind a cursor ("" is the beginning): at
	// most limit, each as Entries has it. cursors has one more: the place behind each of
	// them, and as the last one the place to go on from. That is after itself only where
	// there is nothing more, while no entries may mean that others come. A limit of 0
	// gives the place behind all that is there. A cursor is text of this store, at most
	// 64 letters, digits and dashes, good in every process and for as long as the store;
	// the later of two is the greater string. Errors: [Invalid] for what no store gives
	// as a cursor, [Conflict] for one of another store, or of this one as it was before a
	// copy of it was put back.
	Feed(ctx context.Context, after string, limit int) (entries []Entry, cursors []string, err error)
}

// Claim says who claims, for how long, and what it can run.
type Claim struct {
	Holder   string         // unique to this runner process
	TTL      time.Duration  // of the lease
	Max      int            // at most so many; at least 1
	Session  ID             // only this one; zero: any
	Runtimes []string       // only sessions with one of these runtimes; nil: any
	Caps     map[string]int // per agent name, and for all agents together under "": at most so many live leases in the whole store
}

// Prior is how the lease before this one ended.
type Prior string

// How a lease ends.
const (
	Released Prior = "released" // given back, or there was none
	Died     Prior = "died"     // its holder's process is gone
	Expired  Prior = "expired"  // not renewed in time by a process that may still live
)

// Lease is the exclusive right to append to a session. The epoch is the fencing
// token: it only rises, and every append is checked against it.
type Lease struct {
	Session ID        `json:"session"`
	Holder  string    `json:"holder"`
	Epoch   int64     `json:"epoch"`
	Expires time.Time `json:"expires"`
	Claimed time.Time `json:"claimed"`
	Prior   Prior     `json:"prior,omitempty"`
	Now     string    `json:"now,omitempty"` // what the agent is doing; at most a second old
	NowAt   time.Time `json:"now_at,omitzero"`
}

// Batch is what one Append or Create makes durable, all of it or nothing.
//
// Each of Sends comes as [Sender.Send] would have brought it, in the same transaction.
// It is news and not an order, so a session that is not there or does not accept it, and
// an id that came before, do not refuse the batch: nothing is sent then. One without an
// id or of a kind that there is not is [Invalid].
type Batch struct {
	Session Session            // the fold after Entries
	Entries []Entry            // in order, without gaps
	Blobs   map[BlobRef][]byte // bodies that Entries name
	Taken   []string           // ids of inbox messages that Entries record
	Keys    []Key
	Meters  []Meter
	Sends   []Message // to the sessions that their To names, after all else in this batch
	Release bool      // give the lease back
}

// Key makes something happen at most once: insert-or-compare on (Scope, Name). One
// with a Source is a line of that source's ledger besides, which is listed: the
// occurrences of a schedule, the deliveries to a hook.
type Key struct {
	Scope   string // "create", "occurrence", "delivery", "system"
	Name    string
	Digest  Hash      // of the content: the same again is the same thing
	Ref     string    // what it led to, a session's id; empty: to none
	Expires time.Time // may be forgotten after; at least 30 days ahead

	Source string          // the schedule's or hook's name
	At     time.Time       // its place in the ledger: an occurrence's nominal time, a delivery's arrival
	Note   json.RawMessage // what became of it
	Body   []byte          // what came, byte for byte
}

// Meter changes a family's use of something limited. Reserve is added to what is
// reserved and Spend to what is spent; a reservation (Reserve > 0) is refused
// where spent + reserved would pass Limit.
type Meter struct {
	Metric  string // "tokens", "cost", "children"
	Limit   int64  // negative: none
	Reserve int64
	Spend   int64
}

// Row is a session as a reader sees it.
type Row struct {
	Session Session `json:"session"`
	Short   string  `json:"short"` // shortest suffix of the id, at least 4, that was unique when it was created
	Lease   Lease   `json:"lease,omitzero"`
	Live    bool    `json:"live"` // the lease has not expired and its holder's process lives
	Unread  int     `json:"unread,omitempty"`
}

// Status is the status to show: the fold's, made running by a live lease. reason
// is "interrupted" for a loop that was begun and that nobody holds any more.
func (r *Row) Status() (s Status, reason string) {
	s, reason = r.Session.Status, r.Session.Reason
	switch {
	case s == Pending && r.Live:
		return Running, ""
	case s == Pending && (!r.Lease.Session.IsZero() || r.Session.At.Open && !r.Session.At.Parked):
		return Pending, "interrupted"
	}
	return s, reason
}

// Filter selects sessions. Zero members select all; set ones are combined by and.
type Filter struct {
	Statuses []Status // as stored: Running selects pending sessions under a live lease
	Open     bool     // not ended
	Agent    string
	Name     string // exact
	Short    string // exact, or a suffix of the id of at least 4 characters
	Family   ID
	Trigger  string // its kind; the system journal, of kind system, is selected by that alone
	Labels   map[string]string
	Asking   bool      // a question to a person is on its row, of a step or about an order
	Text     string    // part of the name or the agent's name; ASCII letters match in either case
	Since    time.Time // created at or after
	Before   time.Time // created before
	After    ID        // keyset cursor: older than this session
	Limit    int       // at most; 0: 1,000
}

// Range selects entries of one session.
type Range struct {
	Session ID
	After   Seq    // greater than
	Until   Seq    // at most; 0: no bound
	Kinds   []Kind // nil: all
	Last    bool   // the newest Limit entries of the selection instead of the oldest
	Limit   int    // at most; 0: 10,000
}
