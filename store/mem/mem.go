// Package mem keeps sessions in memory: for tests, for trying stint out, and as
// the specification of a store in the fewest lines. Each method takes the one
// lock, decides, and changes everything or nothing.
//
// # Ownership of bytes
//
// The store keeps the slices and maps of a batch or a message as they are and
// hands them out again. Nobody may change them after the call, neither who gave
// them nor who reads them.
//
// # Leases
//
// A lease lives while it has not expired and its holder is held ([Store.Hold]). A
// holder that never called Hold is like a process that died: it may claim and
// append, but its leases are not live, and the next claim takes the session.
// Letting go of a holder that has leases is how a test makes a runner die.
//
// The end of a lease's life only permits another claim. What fences a writer is
// the epoch alone: an append under a lease that expired is accepted as long as
// nobody else claimed the session. A lease that was given back is over.
package mem

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stint-dev/stint"
)

var (
	_ stint.Store   = (*Store)(nil)
	_ stint.Watcher = (*Store)(nil)
)

// Store is a [stint.Store] in memory; make it with [New]. All methods may be called
// concurrently, and none waits. After Close nothing can be written any more: that
// is [stint.Unavailable]. What is there can still be read.
type Store struct {
	mu       sync.Mutex
	closed   bool
	sessions map[stint.ID]*record
	keys     map[[2]string]stint.Key // by scope and name
	families map[stint.ID]*family
	holders  map[string]bool // those that live
	watchers map[chan struct{}]bool
	feed     feed
}

// record is one session with all that belongs to it.
type record struct {
	session stint.Session
	short   string
	entries []stint.Entry
	epoch   int64       // of the newest lease; only rises
	lease   stint.Lease // zero: nobody's
	inbox   []stint.Message
	sent    map[string]stint.Message // every message that ever came, by id
}

// New returns an empty store.
func New() *Store {
	return &Store{
		sessions: map[stint.ID]*record{}, keys: map[[2]string]stint.Key{}, families: map[stint.ID]*family{},
		holders: map[string]bool{}, watchers: map[chan struct{}]bool{}, feed: newFeed(),
	}
}

// lock takes the lock for a change, unless the store is closed.
func (s *Store) lock(op string) error {
	s.mu.Lock()
	if !s.closed {
		return nil
	}
	s.mu.Unlock()
	return refuse(stint.Unavailable, op, stint.ID{}, "nothing was written; open a store and try again", "the store is closed")
}

func refuse(code stint.Code, op string, id stint.ID, hint, format string, args ...any) error {
	return &stint.Error{Code: code, Op: op, Session: id, Hint: hint, Err: fmt.Errorf(format, args...)}
}

func notFound(op string, id stint.ID) error {
	return refuse(stint.NotFound, op, id, "`stint ps -a` lists the sessions", "there is no such session")
}

// now is the time as precise as it is kept.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Close makes every later change fail. Closing again is no error.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Hold says that a process lives under the name holder until release is called.
// A second one of that name is [stint.Conflict]. Leases that are not given back
// before the release are those of a dead process. Releasing again does nothing.
func (s *Store) Hold(_ context.Context, holder string) (release func() error, err error) {
	if err := s.lock("hold"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if holder == "" || s.holders[holder] {
		return nil, refuse(stint.Conflict, "hold", stint.ID{}, "give each runner process a name of its own", "a runner %q lives already", holder)
	}
	s.holders[holder] = true
	return sync.OnceValue(func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.holders, holder)
		s.signal()
		return nil
	}), nil
}

// Create implements [stint.Writer]. Of several keys in b the first that is there
// decides. The caps of c do not bind it. A session of that id that is there without
// a key is [stint.Exists].
func (s *Store) Create(_ context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
	if err := s.lock("create"); err != nil {
		return stint.Lease{}, err
	}
	defer s.mu.Unlock()
	at, id := now(), b.Session.ID
	for _, k := range b.Keys {
		if old, taken := s.taken(k, at); taken && old.Digest == k.Digest {
			ref, err := stint.ParseID(old.Ref)
			return stint.Lease{Session: ref}, err
		} else if taken {
			return stint.Lease{}, takenBy("create", stint.ID{}, old)
		}
	}
	if s.sessions[id] != nil {
		return stint.Lease{}, refuse(stint.Exists, "create", id, "use the session that is there, or a new id", "there is such a session")
	}
	r := &record{short: s.shortest(id), sent: map[string]stint.Message{}}
	if err := s.commit("create", id, r, &b); err != nil {
		return stint.Lease{}, err
	}
	s.sessions[id] = r
	s.signal()
	if c.Holder == "" {
		return stint.Lease{Session: id}, nil
	}
	return s.take(r, c, at), nil
}

// Append implements [stint.Writer]; done is called before it returns. A key that is
// there refuses b whatever its digest, and so does a message that is not in the
// inbox.
func (s *Store) Append(_ context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	done(s.append(l, &b))
}

func (s *Store) append(l stint.Lease, b *stint.Batch) error {
	if err := s.lock("append"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r := s.sessions[l.Session]
	if r == nil {
		return notFound("append", l.Session)
	}
	if !r.holds(l) {
		return refuse(stint.Fenced, "append", l.Session, "write nothing more to this session: another may hold it now",
			"the lease of epoch %d is over; the session is at epoch %d", l.Epoch, r.epoch)
	}
	for _, k := range b.Keys {
		if old, taken := s.taken(k, now()); taken {
			return takenBy("append", l.Session, old)
		}
	}
	if err := s.commit("append", l.Session, r, b); err != nil {
		return err
	}
	if b.Release {
		r.lease = stint.Lease{}
		s.signal()
	}
	return nil
}

// taken returns who has k, if anybody has and may keep it.
func (s *Store) taken(k stint.Key, at time.Time) (stint.Key, bool) {
	old, ok := s.keys[[2]string{k.Scope, k.Name}]
	return old, ok && (old.Expires.IsZero() || at.Before(old.Expires))
}

func takenBy(op string, id stint.ID, old stint.Key) error {
	return refuse(stint.Conflict, op, id, "look at what has the key; something else needs another key",
		"the %s key %q is taken by %s", old.Scope, old.Name, old.Ref)
}

// commit makes b part of r. It checks first and changes after: all or nothing.
func (s *Store) commit(op string, id stint.ID, r *record, b *stint.Batch) error {
	if id.IsZero() || b.Session.ID != id || len(b.Entries) == 0 && b.Session.Head != r.session.Head {
		return stint.Invalid.Errorf(op, "the batch is not one of session %s", id)
	}
	for i, e := range b.Entries {
		if want := r.session.Head + stint.Seq(i) + 1; e.Seq != want || e.Session != id {
			return refuse(stint.Conflict, op, id, "read the journal again and decide anew", "entry %d cannot follow entry %d", e.Seq, want-1)
		}
	}
	for _, m := range b.Taken {
		if !slices.ContainsFunc(r.inbox, func(in stint.Message) bool { return in.ID == m }) {
			return refuse(stint.Conflict, op, id, "read the inbox again: a message is taken once", "message %q is not in the inbox", m)
		}
	}
	for i := range b.Sends {
		if err := nameless(op, &b.Sends[i]); err != nil {
			return err
		}
	}
	f := s.family(b.Session.Family)
	meters, err := f.metered(b.Meters)
	if err != nil {
		return err
	}
	r.session, r.entries, f.meters = b.Session, append(r.entries, b.Entries...), meters
	s.feed.add(r, b.Entries)
	r.inbox = slices.DeleteFunc(r.inbox, func(m stint.Message) bool { return slices.Contains(b.Taken, m.ID) })
	for _, k := range b.Keys {
		s.keys[[2]string{k.Scope, k.Name}] = k
	}
	for ref, body := range b.Blobs {
		f.blobs[ref.Sum] = body
	}
	for _, m := range b.Sends {
		_ = s.send(m.To, m) // it is news: who does not accept it does without
	}
	return nil
}

// Claim implements [stint.Writer]. Pending sessions and those that a message woke
// come first, oldest first, then those whose time has come, earliest first.
func (s *Store) Claim(_ context.Context, c stint.Claim) ([]stint.Lease, error) {
	if err := s.lock("claim"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	at := now()
	if !c.Session.IsZero() {
		r := s.sessions[c.Session]
		if r == nil {
			return nil, notFound("claim", c.Session)
		}
		if why := s.obstacle(r, &c, at); why != "" {
			return nil, refuse(stint.Conflict, "claim", c.Session, "`stint show "+c.Session.String()+"` tells what would move it", "%s", why)
		}
		if s.full(r, &c, at) {
			return nil, refuse(stint.Limit, "claim", c.Session, "try again when one of them has ended or waits", "as many sessions run as may, of agent %q or of all", r.session.Agent.Name)
		}
		return []stint.Lease{s.take(r, c, at)}, nil
	}
	var ready []*record // most are not
	for _, r := range s.sessions {
		if from, ok := r.ready(); ok && !from.After(at) {
			ready = append(ready, r)
		}
	}
	slices.SortFunc(ready, inTurn)
	var got []stint.Lease
	for _, r := range ready {
		if len(got) < max(c.Max, 1) && s.obstacle(r, &c, at) == "" && !s.full(r, &c, at) {
			got = append(got, s.take(r, c, at))
		}
	}
	return got, nil
}

func inTurn(a, b *record) int {
	x, _ := a.ready()
	y, _ := b.ready()
	return cmp.Or(x.Compare(y), bytes.Compare(a.session.ID[:], b.session.ID[:]))
}

// ready is [stint.Session.Ready] with the inbox in view. A message that came before
// the session ended and is no longer accepted wakes nobody.
func (r *record) ready() (time.Time, bool) {
	for _, m := range r.inbox {
		if r.session.Accepts(m.Kind) == nil && r.session.WokenBy(m.Kind) {
			return time.Time{}, true
		}
	}
	return r.session.Ready()
}

// obstacle says why c cannot have r, "" if it can.
func (s *Store) obstacle(r *record, c *stint.Claim, at time.Time) string {
	agent, wait := r.session.Agent, r.session.Wait
	until, ready := r.ready()
	switch {
	case s.live(r, at):
		return "it is held by " + r.lease.Holder
	case !ready && wait != nil:
		return fmt.Sprintf("it waits for %s: %s", wait.For, wait.What)
	case !ready, until.After(at) && wait == nil:
		return fmt.Sprintf("it has ended: %s", r.session.Status)
	case until.After(at):
		return fmt.Sprintf("it waits for %s until %s: %s", wait.For, until.Format(time.RFC3339), wait.What)
	case c.Runtimes != nil && !slices.Contains(c.Runtimes, agent.Runtime):
		return fmt.Sprintf("it needs a runner that can drive %q", agent.Runtime)
	}
	return ""
}

// full reports whether as many sessions run as may, of the agent of r or of all.
func (s *Store) full(r *record, c *stint.Claim, at time.Time) bool {
	return s.reached(c, r.session.Agent.Name, at) || s.reached(c, "", at)
}

// reached reports whether the cap of an agent, or of all agents under "", is reached.
func (s *Store) reached(c *stint.Claim, agent string, at time.Time) bool {
	most, capped := c.Caps[agent]
	for _, r := range s.sessions {
		if capped && s.live(r, at) && (agent == "" || r.session.Agent.Name == agent) {
			most--
		}
	}
	return capped && most <= 0
}

// live reports whether somebody holds r.
func (s *Store) live(r *record, at time.Time) bool {
	return !r.lease.Session.IsZero() && at.Before(r.lease.Expires) && s.holders[r.lease.Holder]
}

// holds reports whether l is the lease of r that was granted last, and is not given back.
func (r *record) holds(l stint.Lease) bool {
	return !r.lease.Session.IsZero() && r.lease.Epoch == l.Epoch
}

// take gives r to c.
func (s *Store) take(r *record, c stint.Claim, at time.Time) stint.Lease {
	prior := stint.Expired
	if r.lease.Session.IsZero() {
		prior = stint.Released
	} else if !s.holders[r.lease.Holder] {
		prior = stint.Died
	}
	r.epoch++
	r.lease = stint.Lease{Session: r.session.ID, Holder: c.Holder, Epoch: r.epoch, Expires: at.Add(c.TTL), Claimed: at, Prior: prior}
	return r.lease
}

// Renew implements [stint.Writer]. A lease that expired is revived if nobody took
// the session meanwhile.
func (s *Store) Renew(_ context.Context, ttl time.Duration, held []stint.Lease) (lost []stint.ID, err error) {
	if err := s.lock("renew"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, l := range held {
		if r := s.sessions[l.Session]; r != nil && r.holds(l) {
			r.lease.Expires, r.lease.Now, r.lease.NowAt = now().Add(ttl), l.Now, l.NowAt
		} else {
			lost = append(lost, l.Session)
		}
	}
	return lost, nil
}
