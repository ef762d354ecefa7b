package storetest_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/storetest"
)

// recorder is a test that may fail without failing the test that looks on.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// sample fills s with two sessions, one of which has a body outside its journal.
func sample(t *testing.T, s stint.Store) {
	t.Helper()
	for range 2 {
		var salt [16]byte
		_, _ = rand.Read(salt[:])
		id := stint.ID(uuid.Must(uuid.NewV7()))
		session, first, err := journal.Begin(id, journal.Created{Family: id, Name: "x"}, journal.Draft{At: time.Now(), Salt: salt})
		if err != nil {
			t.Fatal(err)
		}
		key, err := s.FamilyKey(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		body := []byte("a body")
		ref := journal.BlobID(key, body)
		session, second, err := journal.Next(session, journal.Draft{Kind: stint.MessageTaken, At: time.Now(), Data: journal.Taken{ID: "m"}, Blob: ref, Salt: salt})
		if err != nil {
			t.Fatal(err)
		}
		b := stint.Batch{Session: session, Entries: []stint.Entry{first, second}, Blobs: map[stint.BlobRef][]byte{ref: body}}
		if _, err := s.Create(t.Context(), b, stint.Claim{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCheck(t *testing.T) {
	rows := func(change func(r *stint.Row)) func(s *broken) {
		return func(s *broken) {
			s.sessions = func(ctx context.Context, f stint.Filter) ([]stint.Row, error) {
				rows, err := s.Store.Sessions(ctx, f)
				for i := range rows {
					change(&rows[i])
				}
				return rows, err
			}
		}
	}
	entries := func(change func(es []stint.Entry) []stint.Entry) func(s *broken) {
		return func(s *broken) {
			s.entries = func(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
				es, err := s.Store.Entries(ctx, r)
				if len(es) == 0 {
					return es, err
				}
				return change(slices.Clone(es)), err
			}
		}
	}
	for _, c := range []struct {
		name   string
		want   string // in the error; empty: there is none
		damage func(s *broken)
	}{
		{"a sound store", "", func(*broken) {}},
		{"another name", "not the fold", rows(func(r *stint.Row) { r.Session.Name = "y" })},
		{"another head", "not the fold", rows(func(r *stint.Row) { r.Session.Head++ })},
		{"stored as running", "stored as running", rows(func(r *stint.Row) { r.Session.Status = stint.Running })},
		{"a short id that is none", "short id", rows(func(r *stint.Row) { r.Short = "zzzz" })},
		{"a short id that is too short", "short id", rows(func(r *stint.Row) { r.Short = r.Short[len(r.Short)-3:] })},
		{"no entries", "not the fold", entries(func([]stint.Entry) []stint.Entry { return nil })},
		{"a gap", "has entry 2 after entry 0", entries(func(es []stint.Entry) []stint.Entry { return es[1:] })},
		{"an entry lost at the end", "not the fold", func(s *broken) {
			s.entries = func(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
				r.Until = 1
				return s.Store.Entries(ctx, r)
			}
		}},
		{"an entry of the same bytes with another hash", "the chain", entries(func(es []stint.Entry) []stint.Entry { es[1].Hash[0]++; return es })},
		{"an entry with other bytes", "the chain", entries(func(es []stint.Entry) []stint.Entry { es[1].Actor = "human:eve"; return es })},
		{"an entry that may not follow", "the fold", entries(func(es []stint.Entry) []stint.Entry { es[1].Kind = stint.LoopCompleted; return es })},
		{"a body that is not there", "not_found", func(s *broken) {
			s.blob = func(context.Context, stint.ID, stint.BlobRef) ([]byte, error) { return nil, stint.NotFound }
		}},
		{"another body", "not what it is named for", func(s *broken) {
			s.blob = func(context.Context, stint.ID, stint.BlobRef) ([]byte, error) { return []byte("other!"), nil }
		}},
		{"a page without an end", "comes twice", func(s *broken) {
			s.sessions = func(ctx context.Context, f stint.Filter) ([]stint.Row, error) {
				return s.Store.Sessions(ctx, stint.Filter{Limit: f.Limit})
			}
		}},
		{"a store that fails", "unavailable", func(s *broken) {
			s.entries = func(context.Context, stint.Range) ([]stint.Entry, error) { return nil, stint.Unavailable }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newBroken()
			sample(t, s)
			c.damage(s)
			r := &recorder{TB: t}
			storetest.Check(r, s)
			got := strings.Join(r.errors, "\n")
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("the check says %q, want %q", got, c.want)
			}
		})
	}
}
