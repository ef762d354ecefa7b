package sqlite_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/sqlite"
	"github.com/stint-dev/stint/store/storetest"
)

// stored is what a test put into a store.
type stored struct {
	entries map[stint.ID][]stint.Entry
	bodies  map[stint.BlobRef][]byte
}

// fillStore makes sessions with large and small entries and with bodies outside.
func fillStore(t *testing.T, path string, checkpoint bool) stored {
	t.Helper()
	s := open(t, path)
	hold(t, s, "me")
	all := stored{map[stint.ID][]stint.Entry{}, map[stint.BlobRef][]byte{}}
	for i := range 20 {
		c := begin(t, s, "me")
		key, err := s.FamilyKey(t.Context(), c.s.Family)
		ok(t, err)
		for j := range 12 {
			body := bytes.Repeat([]byte{byte(i), byte(j)}, 10+j*80)
			ok(t, c.write(s, said(string(body))))
		}
		body := bytes.Repeat([]byte{byte(i)}, 5000*(i+1))
		ref := journal.BlobID(key, body)
		b, err := c.next(journal.Draft{Kind: stint.OutputWritten, Data: journal.Output{Stream: "log"}, Blob: ref})
		ok(t, err)
		b.Blobs = map[stint.BlobRef][]byte{ref: body}
		all.bodies[ref] = body
		ok(t, put(t.Context(), s, c.lease, b))
		es, err := s.Entries(t.Context(), stint.Range{Session: c.s.ID})
		ok(t, err)
		all.entries[c.s.ID] = es
	}
	if checkpoint {
		ok(t, s.Close())
		return all
	}
	// A copy of the files of a running store is one after a power cut.
	for _, suffix := range []string{"", "-wal", ".keys"} {
		b, err := os.ReadFile(path + suffix)
		ok(t, err)
		ok(t, os.WriteFile(path+".copy"+suffix, b, 0o600))
	}
	ok(t, s.Close())
	for _, suffix := range []string{"", "-wal", ".keys"} {
		ok(t, os.Rename(path+".copy"+suffix, path+suffix))
	}
	return all
}

// scanned is what a scan finds at path.
func scanned(t *testing.T, path string) (stored, sqlite.Lost) {
	t.Helper()
	all := stored{map[stint.ID][]stint.Entry{}, map[stint.BlobRef][]byte{}}
	lost, err := sqlite.Scan(t.Context(), path, sqlite.Found{
		Entry: func(e stint.Entry) error {
			all.entries[e.Session] = append(all.entries[e.Session], e)
			return nil
		},
		Body: func(_ stint.ID, ref stint.BlobRef, body []byte) error {
			all.bodies[ref] = body
			return nil
		},
	})
	ok(t, err)
	return all, lost
}

// sound fails the test unless what was found is some of what was stored: of each
// session a beginning, and nothing invented.
func sound(t *testing.T, found, want stored) (entries int) {
	t.Helper()
	for id, es := range found.entries {
		var fold stint.Session
		for i := range es {
			if i >= len(want.entries[id]) || es[i].Hash != want.entries[id][i].Hash {
				t.Fatalf("entry %d of session %s was never written", es[i].Seq, id)
			}
			ok(t, journal.Verify(&es[i], fold.HeadHash))
			var err error
			fold, err = journal.Apply(fold, es[i])
			ok(t, err)
			entries++
		}
	}
	for ref, b := range found.bodies {
		if !bytes.Equal(b, want.bodies[ref]) {
			t.Fatalf("body %s is not what was stored", ref.Sum)
		}
	}
	return entries
}

func TestScanWhole(t *testing.T) {
	for _, checkpoint := range []bool{true, false} {
		path := dbPath(t)
		want := fillStore(t, path, checkpoint)
		found, lost := scanned(t, path)
		equal(t, "entries", sound(t, found, want), 20*15)
		equal(t, "bodies", len(found.bodies), 20)
		equal(t, "lost", lost.Pages+lost.Rows+lost.Entries+lost.Bodies+len(lost.Gaps), 0)
		equal(t, "a broken WAL", lost.WAL, false)
	}
}

// With pages overwritten, bits flipped, and the end cut off, what is found is
// still the truth.
func TestScanDamaged(t *testing.T) {
	path := dbPath(t)
	want := fillStore(t, path, true)
	whole, err := os.ReadFile(path)
	ok(t, err)
	rnd := rand.New(rand.NewPCG(3, 4))
	found := 0
	const times = 60
	for i := range times {
		b := bytes.Clone(whole)
		for range 1 + rnd.IntN(4) {
			page := b[rnd.IntN(len(b)/4096)*4096:][:4096]
			if i == 0 {
				page = b[:4096] // the header and the schema
			}
			switch rnd.IntN(3) {
			case 0:
				clear(page)
			case 1:
				for j := range page {
					page[j] = byte(rnd.IntN(256))
				}
			case 2:
				page[rnd.IntN(200)] ^= byte(1 << rnd.IntN(8))
			}
		}
		if i%5 == 1 {
			b = b[:rnd.IntN(len(b))]
		}
		ok(t, os.WriteFile(path, b, 0o600))
		got, _ := scanned(t, path)
		damaged(t, &got, want)
		found += sound(t, got, want)
	}
	if found < times*20*15/2 {
		t.Errorf("%d of %d entries were found", found, times*20*15)
	}
}

// damaged drops what a flipped bit made of an entry or a body: telling is the
// business of whoever verifies the chain. All before it must be sound.
func damaged(t *testing.T, got *stored, want stored) {
	t.Helper()
	for id, es := range got.entries {
		var prev stint.Hash
		for i := range es {
			if journal.Verify(&es[i], prev) != nil {
				got.entries[id] = es[:i]
				break
			}
			prev = es[i].Hash
		}
	}
	for ref, b := range got.bodies {
		if !bytes.Equal(b, want.bodies[ref]) {
			delete(got.bodies, ref)
		}
	}
}

// A WAL with a broken frame gives what was committed before it.
func TestScanBrokenWAL(t *testing.T) {
	path := dbPath(t)
	want := fillStore(t, path, false)
	b, err := os.ReadFile(path + "-wal")
	ok(t, err)
	b[len(b)*3/4] ^= 1
	ok(t, os.WriteFile(path+"-wal", b, 0o600))
	found, lost := scanned(t, path)
	n := sound(t, found, want)
	equal(t, "a broken WAL", lost.WAL, true)
	if n < 100 || n >= 300 {
		t.Errorf("%d entries were found", n)
	}
}

// What is found can be brought into a new store, with the keys of the old one.
func TestSalvage(t *testing.T) {
	path, to := dbPath(t), dbPath(t)
	want := fillStore(t, path, true)
	ok(t, os.Truncate(path, 4096*50))
	found, _ := scanned(t, path)
	adopted, err := sqlite.AdoptKeys(t.Context(), path, to)
	ok(t, err)
	equal(t, "the keys are taken over", adopted, true)
	_, err = sqlite.AdoptKeys(t.Context(), path, to)
	refused(t, err, stint.Exists)
	s := open(t, to)
	sessions := 0
	for _, es := range found.entries {
		fold, err := journal.Fold(stint.Session{}, es)
		ok(t, err)
		b := stint.Batch{Session: fold, Entries: es, Blobs: map[stint.BlobRef][]byte{}}
		whole := true
		for _, e := range es {
			if !e.Blob.IsZero() {
				body, there := found.bodies[e.Blob]
				b.Blobs[e.Blob] = body
				whole = whole && there
			}
		}
		if whole {
			_, err = s.Create(t.Context(), b, stint.Claim{})
			ok(t, err)
			sessions++
		}
	}
	if sessions < 3 {
		t.Errorf("%d sessions were saved of %d", sessions, len(want.entries))
	}
	storetest.Check(t, s) // the bodies have the names that the old keys gave them
}

func FuzzScan(f *testing.F) {
	path := dbPath(f)
	s, err := sqlite.Open(f.Context(), sqlite.Options{Path: path})
	ok(f, err)
	_, err = s.Create(f.Context(), first(f, "seed"), stint.Claim{})
	ok(f, err)
	ok(f, s.Close())
	seed, err := os.ReadFile(path)
	ok(f, err)
	f.Add(seed[:4096], []byte{}, 0)
	f.Add(seed[4096:], []byte("\x37\x7f\x06\x82"), 8)
	f.Fuzz(func(t *testing.T, db, wal []byte, at int) {
		b := bytes.Clone(seed)
		if at >= 0 && at < len(b) {
			copy(b[at:], db)
		}
		path := dbPath(t)
		ok(t, os.WriteFile(path, b, 0o600))
		ok(t, os.WriteFile(path+"-wal", wal, 0o600))
		_, err := sqlite.Scan(t.Context(), path, sqlite.Found{
			Entry: func(stint.Entry) error { return nil }, Body: func(stint.ID, stint.BlobRef, []byte) error { return nil },
			Family: func(stint.ID, int64, int64) error { return nil },
		})
		if err != nil {
			refused(t, err, stint.Invalid, "nothing of a store")
		}
	})
}
