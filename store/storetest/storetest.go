// Package storetest is the contract of a store as tests: whatever passes Run can
// stand under an engine. The names of the subtests read as the contract, the code
// of each says exactly what is meant.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) stint.Store { return mem.New() })
//	}
//
// After every property the suite checks all sessions in the store with [Check].
//
// # Time
//
// Properties that depend on time run in a testing/synctest bubble: the store has
// to take its time from the time package, and to start its goroutines in open.
// Every call has a deadline of half a minute, so a store that answers nothing fails
// and does not hang.
//
// # Holders
//
// A store that can tell a dead process from a slow one has the method
//
//	Hold(ctx context.Context, holder string) (release func() error, err error)
//
// It says that the process named holder lives until release is called. The suite
// then expects that the leases of a holder that let go, or that never called Hold,
// are taken by the next claim at once, and holds every holder that it claims for.
// A lease of a store without Hold ends by expiry only.
package storetest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// Run checks that what open returns keeps the contract of [stint.Store], and of
// [stint.Watcher] where it implements that. open returns a new, empty store each
// time; the suite closes it, and open may close it once more in a Cleanup. The
// properties run one after the other.
func Run(t *testing.T, open func(t *testing.T) stint.Store) {
	t.Helper()
	for _, subject := range subjects() {
		t.Run(subject.name, func(t *testing.T) {
			for _, p := range subject.properties {
				t.Run(p.name, func(t *testing.T) {
					if !p.timed {
						p.holds(newKit(t, open))
						return
					}
					synctest.Test(t, func(t *testing.T) { p.holds(newKit(t, open)) })
				})
			}
		})
	}
}

// A property is one sentence of the contract.
type property struct {
	name  string
	holds func(k *kit)
	timed bool // in a bubble, where waiting takes no time
}

type subject struct {
	name       string
	properties []property
}

func subjects() []subject {
	return []subject{
		{"Create", createProperties()},
		{"Claim", claimProperties()},
		{"Lease", leaseProperties()},
		{"Append", appendProperties()},
		{"Send", sendProperties()},
		{"News", newsProperties()},
		{"Ledger", ledgerProperties()},
		{"Watch", watchProperties()},
		{"Feed", feedProperties()},
		{"Sessions", sessionsProperties()},
		{"Entries", entriesProperties()},
		{"Family", familyProperties()},
		{"Race", raceProperties()},
	}
}

// patience is how long one call may take.
const patience = 30 * time.Second

// Check fails t unless every session in s is what its journal says: the entries
// have every seq from 1 to the head, their hashes make a chain, folding them from
// nothing gives the session that the store shows, the bodies that they name are
// there and are what they are named for, and short ids are unique suffixes. Nobody
// may write to s meanwhile.
func Check(t testing.TB, s stint.Store) {
	t.Helper()
	// A Cleanup may call this, when t.Context is over already.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*patience)
	defer cancel()
	shorts, seen := map[string]stint.ID{}, map[stint.ID]bool{}
	for page := (stint.Filter{Limit: 100}); ; {
		rows, err := s.Sessions(ctx, page)
		if err != nil {
			t.Errorf("check: sessions: %v", err)
			return
		}
		if len(rows) == 0 {
			return
		}
		for i := range rows {
			row := &rows[i]
			id := row.Session.ID
			if seen[id] {
				t.Errorf("check: session %s comes twice when the sessions are listed in pages", id)
				return
			}
			if other, ok := shorts[row.Short]; ok || len(row.Short) < 4 || !strings.HasSuffix(id.String(), row.Short) {
				t.Errorf("check: session %s has the short id %q; it must be a suffix of 4 characters or more that no other has (%s)", id, row.Short, other)
			}
			seen[id], shorts[row.Short], page.After = true, id, id
			checkJournal(ctx, t, s, row)
		}
	}
}

// entriesPage is how many entries are read at once.
const entriesPage = 500

func checkJournal(ctx context.Context, t testing.TB, s stint.Store, row *stint.Row) {
	t.Helper()
	id := row.Session.ID
	var fold stint.Session
	for {
		page, err := s.Entries(ctx, stint.Range{Session: id, After: fold.Head, Limit: entriesPage})
		if err != nil {
			t.Errorf("check: entries of %s: %v", id, err)
			return
		}
		for i := range page {
			e := &page[i]
			if e.Seq != fold.Head+1 {
				t.Errorf("check: session %s has entry %d after entry %d", id, e.Seq, fold.Head)
				return
			}
			if err := journal.Verify(e, fold.HeadHash); err != nil {
				t.Errorf("check: session %s: the chain: %v", id, err)
			}
			if fold, err = journal.Apply(fold, *e); err != nil {
				t.Errorf("check: session %s: the fold: %v", id, err)
				return
			}
			if !e.Blob.IsZero() && !e.Erased {
				checkBody(ctx, t, s, fold.Family, e)
			}
		}
		if len(page) < entriesPage {
			break // a store that left some out does not come to its head
		}
	}
	if row.Session.Status == stint.Running {
		t.Errorf("check: session %s is stored as running", id)
	}
	if want, got := text(fold), text(row.Session); want != got {
		t.Errorf("check: session %s is not the fold of its journal\n the store has %s\nthe fold gives %s", id, got, want)
	}
}

func checkBody(ctx context.Context, t testing.TB, s stint.Store, family stint.ID, e *stint.Entry) {
	t.Helper()
	key, err := s.FamilyKey(ctx, family)
	if err != nil {
		t.Errorf("check: key of family %s: %v", family, err)
		return
	}
	body, err := s.Blob(ctx, family, e.Blob)
	if err != nil {
		t.Errorf("check: body of entry %d of %s: %v", e.Seq, e.Session, err)
		return
	}
	if journal.BlobID(key, body) != e.Blob {
		t.Errorf("check: the body of entry %d of %s is not what it is named for", e.Seq, e.Session)
	}
}

// text is v as JSON. Two sessions are equal if their texts are: a store may keep
// the empty map for the missing one.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
