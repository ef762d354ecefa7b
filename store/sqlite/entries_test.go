package sqlite_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/store/sqlite"
)

// kinds are some of the kinds of entries: those that the index has, those that it
// has not, and one that no table knows by heart.
func kinds() []stint.Kind {
	return []stint.Kind{stint.SessionCreated, stint.LineStarted, stint.LoopCompleted, stint.LoopStarted, stint.StepCompleted, stint.OutputWritten, "some.other"}
}

// script fills sessions with n entries of all kinds, in batches that interleave.
func script(t *testing.T, s *sqlite.Store, n int) [][]stint.Entry {
	t.Helper()
	hold(t, s, "me")
	all := make([][]stint.Entry, 3)
	folds, leases := make([]stint.Session, len(all)), make([]stint.Lease, len(all))
	for i := range n {
		for j := range all {
			f := &folds[j]
			f.Status = stint.Pending
			if i == 0 {
				f.ID = newID()
				f.Family = f.ID
			}
			var es []stint.Entry
			for range 1 + (i*j)%3 {
				f.Head++
				es = append(es, stint.Entry{
					Version: 1, Session: f.ID, Seq: f.Head, Epoch: 1, Kind: kinds()[(int(f.Head)*7+i)%len(kinds())], At: time.UnixMicro(int64(i)).UTC(),
					Actor: stint.Actor(fmt.Sprint("human:", i%5)), Data: []byte(fmt.Sprintf(`{"i":%d}`, i)), Hash: stint.Hash{byte(i), byte(j)},
				})
			}
			b := stint.Batch{Session: *f, Entries: es}
			if i == 0 {
				l, err := s.Create(t.Context(), b, stint.Claim{Holder: "me", TTL: time.Hour})
				ok(t, err)
				leases[j] = l
			} else {
				ok(t, put(t.Context(), s, leases[j], b))
			}
			all[j] = append(all[j], es...)
		}
	}
	return all
}

// Whatever the range, the entries are those that a plain search would select.
func TestEntriesRanges(t *testing.T) {
	s := open(t, dbPath(t))
	all := script(t, s, 150)
	rapid.Check(t, func(t *rapid.T) {
		es := rapid.SampledFrom(all).Draw(t, "session")
		r := stint.Range{
			Session: es[0].Session, After: stint.Seq(rapid.IntRange(0, len(es)+3).Draw(t, "after")),
			Until: stint.Seq(rapid.IntRange(0, len(es)+3).Draw(t, "until")), Last: rapid.Bool().Draw(t, "last"),
			Limit: rapid.IntRange(0, 90).Draw(t, "limit"),
		}
		if rapid.Bool().Draw(t, "some kinds") {
			r.Kinds = rapid.SliceOfN(rapid.SampledFrom(append(kinds(), "never.written")), 0, 4).Draw(t, "kinds")
		}
		var want []stint.Entry
		for _, e := range es {
			if e.Seq > r.After && (r.Until == 0 || e.Seq <= r.Until) && (r.Kinds == nil || slices.Contains(r.Kinds, e.Kind)) {
				want = append(want, e)
			}
		}
		if n := min(len(want), cmp.Or(r.Limit, 10_000)); r.Last {
			want = want[len(want)-n:]
		} else {
			want = want[:n]
		}
		got, err := s.Entries(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v selects\n%v\nwant\n%v", r, seqs(got), seqs(want))
		}
	})
}

func seqs(es []stint.Entry) (all []stint.Seq) {
	for _, e := range es {
		all = append(all, e.Seq)
	}
	return all
}

// A page that was torn out of the journal is noticed, not skipped.
func TestEntriesMissing(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	es := script(t, s, 100)[1]
	ok(t, s.Close())
	raw(t, path, "DELETE FROM journal WHERE seq = 40")
	s = open(t, path)
	_, err := s.Entries(t.Context(), stint.Range{Session: es[0].Session, After: 45})
	ok(t, err)
	_, err = s.Entries(t.Context(), stint.Range{Session: es[0].Session, After: 35})
	refused(t, err, stint.Corrupt, "entry 41", "salvage")
}
