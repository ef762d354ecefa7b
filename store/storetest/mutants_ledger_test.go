package storetest_test

import (
	"context"
	"slices"

	"github.com/stint-dev/stint"
)

func ledgerMutants() []mutant {
	onKeys := func(change func(like *stint.Key, limit *int)) func(s *broken) {
		return func(s *broken) {
			s.keys = func(ctx context.Context, like stint.Key, limit int) ([]stint.Key, error) {
				change(&like, &limit)
				return s.Store.Keys(ctx, like, limit)
			}
		}
	}
	onSend := func(change func(m *stint.Message)) func(s *broken) {
		return func(s *broken) {
			s.send = func(ctx context.Context, id stint.ID, m stint.Message) error {
				m.Keys = slices.Clone(m.Keys)
				change(&m)
				return s.Store.Send(ctx, id, m)
			}
		}
	}
	return []mutant{
		{"the ledger's cursor is not looked at", "Ledger/lines of a source come newest first, page by page", onKeys(func(like *stint.Key, _ *int) {
			if like.Source != "" {
				like.At, like.Name = stint.Key{}.At, ""
			}
		})},
		{"the ledger's bound is not looked at", "Ledger/lines of a source come newest first, page by page", onKeys(func(_ *stint.Key, limit *int) { *limit = 1 })},
		{"all sources are one", "Ledger/lines of a source come newest first, page by page", func(s *broken) {
			s.create = func(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
				b.Keys = slices.Clone(b.Keys)
				for i := range b.Keys {
					b.Keys[i].Source = "h"
				}
				return s.Store.Create(ctx, b, c)
			}
		}},
		{"the keys of a message are not kept", "Ledger/a message whose key is there with the same digest has come", onSend(func(m *stint.Message) { m.Keys = nil })},
		{"the digests of a message's keys are not compared", "Ledger/a message whose key is there with another digest is a conflict", onSend(func(m *stint.Message) {
			for i := range m.Keys {
				m.Keys[i].Digest = stint.Hash{}
			}
		})},
		{"a line loses its body", "Ledger/a line is what was written, byte for byte", func(s *broken) {
			s.keys = func(ctx context.Context, like stint.Key, limit int) ([]stint.Key, error) {
				got, err := s.Store.Keys(ctx, like, limit)
				for i := range got {
					got[i].Body = nil
				}
				return got, err
			}
		}},
		{"the system journal is listed like any session", "Ledger/the system journal is listed only where it is asked for", func(s *broken) {
			s.sessions = func(ctx context.Context, f stint.Filter) ([]stint.Row, error) {
				rows, err := s.Store.Sessions(ctx, f)
				if f.Trigger == "" && err == nil {
					var more []stint.Row
					f.Trigger = "system"
					more, err = s.Store.Sessions(ctx, f)
					rows = append(rows, more...)
				}
				return rows, err
			}
		}},
	}
}
