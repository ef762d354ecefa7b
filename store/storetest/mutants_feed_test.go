package storetest_test

import (
	"context"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/store/mem"
)

// onFeed makes a mutant that changes what a read of the feed gives.
func onFeed(change func(after string, limit int, es []stint.Entry, next []string, err error) ([]stint.Entry, []string, error)) func(s *broken) {
	return func(s *broken) {
		s.feed = func(ctx context.Context, after string, limit int) ([]stint.Entry, []string, error) {
			es, next, err := s.Store.Feed(ctx, after, limit)
			return change(after, limit, es, next, err)
		}
	}
}

// anew makes a mutant that begins at the beginning instead of refusing.
func anew(refused stint.Code) func(s *broken) {
	return func(s *broken) {
		s.feed = func(ctx context.Context, after string, limit int) ([]stint.Entry, []string, error) {
			es, next, err := s.Store.Feed(ctx, after, limit)
			if stint.CodeOf(err) == refused {
				return s.Store.Feed(ctx, "", limit)
			}
			return es, next, err
		}
	}
}

func feedMutants() []mutant {
	return []mutant{
		{"the feed is sorted by session", "Feed/the feed has the entries of all sessions in the order of their commits",
			onFeed(func(_ string, _ int, es []stint.Entry, next []string, err error) ([]stint.Entry, []string, error) {
				slices.SortStableFunc(es, func(a, b stint.Entry) int { return strings.Compare(a.Session.String(), b.Session.String()) })
				return es, next, err
			})},
		{"the feed has no bodies", "Feed/entries of the feed are as those of their sessions",
			onFeed(func(_ string, _ int, es []stint.Entry, next []string, err error) ([]stint.Entry, []string, error) {
				for i := range es {
					es[i].Body = nil
				}
				return es, next, err
			})},
		{"a full step loses an entry", "Feed/the feed goes on behind any cursor, in steps of any size",
			onFeed(func(_ string, limit int, es []stint.Entry, next []string, err error) ([]stint.Entry, []string, error) {
				if len(es) > 1 && len(es) == limit {
					es, next = es[1:], next[1:]
				}
				return es, next, err
			})},
		{"the end is the beginning", "Feed/a limit of 0 gives the end, behind which only what is new comes", func(s *broken) {
			_, start, _ := s.Store.Feed(context.Background(), "", 0)
			s.feed = func(ctx context.Context, after string, limit int) ([]stint.Entry, []string, error) {
				if limit == 0 {
					return nil, start, nil
				}
				return s.Store.Feed(ctx, after, limit)
			}
		}},
		{"entries of the system journal alone end the feed", "Feed/the system journal is not in the feed",
			onFeed(func(after string, _ int, es []stint.Entry, next []string, err error) ([]stint.Entry, []string, error) {
				if len(es) == 0 && err == nil {
					next = []string{after}
				}
				return es, next, err
			})},
		{"the system journal is in the feed", "Feed/the system journal is not in the feed", func(s *broken) {
			s.create = func(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
				b.Session.Trigger.Kind = "prompt"
				return s.Store.Create(ctx, b, c)
			}
		}},
		{"cursors of other stores are the beginning", "Feed/the cursor of another store is a conflict", anew(stint.Conflict)},
		{"what is no cursor is the beginning", "Feed/what no store gives as a cursor is invalid", anew(stint.Invalid)},
		{"cursors are long", "Feed/cursors are short text, and the later is the greater",
			onFeed(func(_ string, _ int, es []stint.Entry, next []string, err error) ([]stint.Entry, []string, error) {
				for i := range next {
					next[i] += strings.Repeat("0", 64)
				}
				return es, next, err
			})},
		{"what is refused is in the feed", "Feed/what was refused is not in the feed", func(s *broken) {
			ghosts := mem.New() // has each batch as if nothing had been refused
			s.create = func(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
				_, _ = ghosts.Create(ctx, b, c)
				return s.Store.Create(ctx, b, c)
			}
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				sound := l
				sound.Epoch = 1
				ghosts.Append(ctx, sound, b, func(error) {})
				s.Store.Append(ctx, l, b, done)
			}
			s.feed = ghosts.Feed
		}},
	}
}
