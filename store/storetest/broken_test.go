package storetest_test

import (
	"context"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/store/mem"
)

// broken is a sound store, some of whose methods a mutant replaced. Hold and what
// is not listed are the store's own.
type broken struct {
	*mem.Store
	create   func(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error)
	claim    func(ctx context.Context, c stint.Claim) ([]stint.Lease, error)
	append   func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error))
	renew    func(ctx context.Context, ttl time.Duration, held []stint.Lease) ([]stint.ID, error)
	session  func(ctx context.Context, id stint.ID) (stint.Row, error)
	sessions func(ctx context.Context, f stint.Filter) ([]stint.Row, error)
	entries  func(ctx context.Context, r stint.Range) ([]stint.Entry, error)
	inbox    func(ctx context.Context, id stint.ID) ([]stint.Message, error)
	keys     func(ctx context.Context, like stint.Key, limit int) ([]stint.Key, error)
	send     func(ctx context.Context, id stint.ID, m stint.Message) error
	blob     func(ctx context.Context, family stint.ID, ref stint.BlobRef) ([]byte, error)
	key      func(ctx context.Context, family stint.ID) ([]byte, error)
	changed  func(ctx context.Context) <-chan struct{}
	unread   func(ctx context.Context, holder string) ([]stint.ID, error)
	feed     func(ctx context.Context, after string, limit int) ([]stint.Entry, []string, error)
	hold     func(ctx context.Context, holder string) (func() error, error)
	close    func() error
}

// newBroken returns a store of which nothing is broken yet.
func newBroken() *broken {
	m := mem.New()
	return &broken{
		Store: m, create: m.Create, claim: m.Claim, append: m.Append, renew: m.Renew,
		session: m.Session, sessions: m.Sessions, entries: m.Entries, inbox: m.Inbox, keys: m.Keys, send: m.Send,
		blob: m.Blob, key: m.FamilyKey, changed: m.Changed, unread: m.Unread, feed: m.Feed, hold: m.Hold, close: m.Close,
	}
}

func (s *broken) Create(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
	return s.create(ctx, b, c)
}

func (s *broken) Claim(ctx context.Context, c stint.Claim) ([]stint.Lease, error) {
	return s.claim(ctx, c)
}

func (s *broken) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	s.append(ctx, l, b, done)
}

func (s *broken) Renew(ctx context.Context, ttl time.Duration, held []stint.Lease) ([]stint.ID, error) {
	return s.renew(ctx, ttl, held)
}

func (s *broken) Session(ctx context.Context, id stint.ID) (stint.Row, error) {
	return s.session(ctx, id)
}

func (s *broken) Sessions(ctx context.Context, f stint.Filter) ([]stint.Row, error) {
	return s.sessions(ctx, f)
}

func (s *broken) Entries(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
	return s.entries(ctx, r)
}

func (s *broken) Inbox(ctx context.Context, id stint.ID) ([]stint.Message, error) {
	return s.inbox(ctx, id)
}

func (s *broken) Keys(ctx context.Context, like stint.Key, limit int) ([]stint.Key, error) {
	return s.keys(ctx, like, limit)
}

func (s *broken) Send(ctx context.Context, id stint.ID, m stint.Message) error {
	return s.send(ctx, id, m)
}

func (s *broken) Blob(ctx context.Context, family stint.ID, ref stint.BlobRef) ([]byte, error) {
	return s.blob(ctx, family, ref)
}

func (s *broken) FamilyKey(ctx context.Context, family stint.ID) ([]byte, error) {
	return s.key(ctx, family)
}

func (s *broken) Changed(ctx context.Context) <-chan struct{} { return s.changed(ctx) }

func (s *broken) Unread(ctx context.Context, holder string) ([]stint.ID, error) {
	return s.unread(ctx, holder)
}

func (s *broken) Feed(ctx context.Context, after string, limit int) ([]stint.Entry, []string, error) {
	return s.feed(ctx, after, limit)
}

func (s *broken) Hold(ctx context.Context, holder string) (func() error, error) {
	return s.hold(ctx, holder)
}

func (s *broken) Close() error { return s.close() }

// epoch is the epoch of the lease that holds id now.
func (s *broken) epoch(ctx context.Context, id stint.ID) int64 {
	row, err := s.Store.Session(ctx, id)
	if err != nil {
		return 0
	}
	return row.Lease.Epoch
}

// appended is what becomes of b in the sound store.
func (s *broken) appended(ctx context.Context, l stint.Lease, b stint.Batch) (err error) {
	s.Store.Append(ctx, l, b, func(e error) { err = e })
	return err
}
