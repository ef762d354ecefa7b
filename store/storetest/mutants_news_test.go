package storetest_test

import (
	"context"
	"slices"

	"github.com/stint-dev/stint"
)

func newsMutants() []mutant {
	onSends := func(change func(m *stint.Message)) func(s *broken) {
		return func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				b.Sends = slices.Clone(b.Sends)
				for i := range b.Sends {
					change(&b.Sends[i])
				}
				s.Store.Append(ctx, l, b, done)
			}
		}
	}
	// apart sends what a batch brings by itself, as change says.
	apart := func(change func(s *broken, ctx context.Context, b *stint.Batch, err error) error) func(s *broken) {
		return func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				sends := b.Sends
				b.Sends = nil
				err := s.appended(ctx, l, b)
				b.Sends = sends
				done(change(s, ctx, &b, err))
			}
		}
	}
	return []mutant{
		{"what a batch sends is lost", "News/a message of a batch lies in the other's inbox byte for byte, with the store's time",
			apart(func(_ *broken, _ context.Context, _ *stint.Batch, err error) error { return err })},
		{"what a batch sends loses its arguments", "News/a message of a batch lies in the other's inbox byte for byte, with the store's time",
			onSends(func(m *stint.Message) { m.Data = nil })},
		{"what a create sends is lost", "News/a message of a create does too", func(s *broken) {
			s.create = func(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
				b.Sends = nil
				return s.Store.Create(ctx, b, c)
			}
		}},
		{"a refused batch sends all the same", "News/a batch that is refused sends nothing", apart(func(s *broken, ctx context.Context, b *stint.Batch, err error) error {
			for _, m := range b.Sends {
				_ = s.Store.Send(ctx, m.To, m)
			}
			return err
		})},
		{"what a batch sends has a new id each time", "News/one id is one message, whichever way it came", func(s *broken) {
			n := 0
			onSends(func(m *stint.Message) {
				n++
				m.ID += string(rune('a' + n))
			})(s)
		}},
		{"the second content under an id refuses the batch", "News/a message of other content under a known id is dropped, and the batch stands",
			apart(func(s *broken, ctx context.Context, b *stint.Batch, err error) error {
				for _, m := range b.Sends {
					if e := s.Store.Send(ctx, m.To, m); err == nil {
						err = e
					}
				}
				return err
			})},
		{"a receiver that has ended refuses the batch", "News/a session that has ended, and one that is not there, get nothing, and the batch stands",
			apart(func(s *broken, ctx context.Context, b *stint.Batch, err error) error {
				for _, m := range b.Sends {
					if e := s.Store.Send(ctx, m.To, m); err == nil {
						err = e
					}
				}
				return err
			})},
		{"a message without an id gets one", "News/a message without an id refuses the batch", onSends(func(m *stint.Message) { m.ID += "?" })},
		{"what a batch sends wakes whoever waits", "News/it wakes a waiting session that names its kind, and no other", onSends(func(m *stint.Message) { m.Kind = stint.Resume })},
		{"what a batch sends goes to its own session", "News/rows and Unread count it", func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				b.Sends = slices.Clone(b.Sends)
				for i := range b.Sends {
					b.Sends[i].To = l.Session
				}
				s.Store.Append(ctx, l, b, done)
			}
		}},
		{"nobody is told of what a batch sends", "News/Changed tells of it", apart(func(_ *broken, _ context.Context, _ *stint.Batch, err error) error { return err })},
	}
}
