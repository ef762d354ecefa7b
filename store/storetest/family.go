package storetest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

func familyProperties() []property {
	return []property{
		{name: "a family's key is 32 bytes, the same each time, and no other family's", holds: familyKeys},
		{name: "of many that ask for a new key all get the same", holds: familyKeyRace},
		{name: "a body that came with a batch is read back", holds: blobPlain},
		{name: "a body that came with the first batch is read back", holds: blobCreate},
		{name: "bodies of every size to 5 MiB are read back", holds: blobSizes},
		{name: "one body may come again, from any session of the family", holds: blobAgain},
		{name: "a body of another family, or that never came, is not found", holds: blobAbsent},
		{name: "a body that has not the size of its name is corrupt", holds: blobCorrupt},
		{name: "entries do not load bodies that lie outside the journal", holds: blobNotLoaded},
		{name: "reservations fill a limit and no more", holds: meterLimit},
		{name: "what is spent counts, what is settled is free again", holds: meterSettle},
		{name: "a negative limit is none, and use may pass it", holds: meterNone},
		{name: "metrics and families do not count for each other", holds: meterApart},
		{name: "meters of a create count", holds: meterCreate},
		{name: "several meters of a batch count one after the other", holds: meterSeveral},
		{name: "reservations at the same time do not pass the limit", holds: meterRace},
	}
}

// name returns what body is called in the family.
func (k *kit) name(family stint.ID, body []byte) stint.BlobRef {
	k.Helper()
	key, err := k.store.FamilyKey(k.ctx(), family)
	k.ok(err)
	return journal.BlobID(key, body)
}

// blob is the batch that gives body to c.
func (k *kit) blob(c *course, body []byte) (stint.Batch, stint.BlobRef) {
	k.Helper()
	ref := k.name(c.s.Family, body)
	b := k.follow(c, journal.Draft{Kind: stint.OutputWritten, Data: journal.Output{Stream: "log"}, Blob: ref})
	b.Blobs = map[stint.BlobRef][]byte{ref: body}
	return b, ref
}

// put writes body with an entry of c.
func (k *kit) put(c *course, body []byte) stint.BlobRef {
	k.Helper()
	b, ref := k.blob(c, body)
	k.ok(k.append(c.lease, b))
	c.s = b.Session
	return ref
}

// holdsBody fails the property unless ref is read back as body.
func (k *kit) holdsBody(family stint.ID, ref stint.BlobRef, body []byte) {
	k.Helper()
	got, err := k.store.Blob(k.ctx(), family, ref)
	k.ok(err)
	if !bytes.Equal(got, body) {
		k.Errorf("a body of %d bytes came back as %d others", len(body), len(got))
	}
}

func familyKeys(k *kit) {
	seen := map[string]bool{}
	for range 3 {
		family := newID()
		first, err := k.store.FamilyKey(k.ctx(), family)
		k.ok(err)
		equal(k, "length", len(first), 32)
		kept := bytes.Clone(first)
		clear(first) // the caller's copy
		again, err := k.store.FamilyKey(k.ctx(), family)
		k.ok(err)
		if !bytes.Equal(kept, again) {
			k.Errorf("the key was %x and is %x", kept, again)
		}
		seen[string(kept)] = true
	}
	equal(k, "different keys", len(seen), 3)
	equal(k, "keys of zeros", seen[string(make([]byte, 32))], false)
}

func familyKeyRace(k *kit) {
	family := newID()
	keys := make([]string, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			key, err := k.store.FamilyKey(k.ctx(), family)
			if err != nil {
				k.Errorf("caller %d: %v", i, err)
			}
			keys[i] = string(key)
		})
	}
	wg.Wait()
	for _, key := range keys {
		equal(k, "a key", fmt.Sprintf("%x", key), fmt.Sprintf("%x", keys[0]))
	}
}

func blobPlain(k *kit) {
	c := k.claimed(k.runner("r"))
	body := []byte("a\x00b\xff<>&")
	ref := k.put(c, body)
	k.holdsBody(c.s.Family, ref, body)
	two := k.follow(c, said("x"))
	two.Blobs = map[stint.BlobRef][]byte{}
	for _, s := range []string{"one", "two", "three"} {
		two.Blobs[k.name(c.s.Family, []byte(s))] = []byte(s)
	}
	k.ok(k.append(c.lease, two))
	for ref, body := range two.Blobs {
		k.holdsBody(c.s.Family, ref, body)
	}
}

func blobCreate(k *kit) {
	id, body := newID(), []byte("the first input")
	ref := k.name(id, body)
	b := k.begin(withID(id), func(_ *stint.ID, _ *journal.Created, d *journal.Draft) { d.Blob = ref })
	b.Blobs = map[stint.BlobRef][]byte{ref: body}
	_, err := k.store.Create(k.ctx(), b, stint.Claim{})
	k.ok(err)
	k.holdsBody(id, ref, body)
}

func blobSizes(k *kit) {
	c := k.claimed(k.runner("r"))
	random := make([]byte, 5<<20)
	_, _ = rand.Read(random) // it never fails, see crypto/rand
	for _, n := range []int{0, 1, journal.InlineBytes, journal.InlineBytes + 1, 64<<10 - 1, 64 << 10, 1 << 20, 5 << 20} {
		for _, body := range [][]byte{random[:n], make([]byte, n), bytes.Repeat([]byte("ab c "), n/5)} {
			k.holdsBody(c.s.Family, k.put(c, body), body)
		}
	}
}

func blobAgain(k *kit) {
	a := k.claimed(k.runner("r"))
	b := k.claimed("r", inFamily(a.s.Family))
	body := bytes.Repeat([]byte("again "), 1000)
	for _, c := range []*course{a, b, a, b} {
		ref := k.put(c, body)
		k.holdsBody(a.s.Family, ref, body)
	}
	// Another family has the same bytes under another name.
	other := k.claimed("r")
	ref := k.put(other, body)
	k.holdsBody(other.s.Family, ref, body)
	if ref == k.name(a.s.Family, body) {
		k.Errorf("two families name one body alike")
	}
}

func blobAbsent(k *kit) {
	c, other := k.claimed(k.runner("r")), k.claimed("r")
	body := []byte("secret")
	ref := k.put(c, body)
	k.put(other, []byte("something else"))
	for _, family := range []stint.ID{other.s.Family, newID()} {
		_, err := k.store.Blob(k.ctx(), family, ref)
		k.refused(err, stint.NotFound)
	}
	_, err := k.store.Blob(k.ctx(), c.s.Family, k.name(c.s.Family, []byte("never")))
	k.refused(err, stint.NotFound)
}

func blobCorrupt(k *kit) {
	c := k.claimed(k.runner("r"))
	ref := k.put(c, []byte("four"))
	ref.Size = 5
	_, err := k.store.Blob(k.ctx(), c.s.Family, ref)
	k.refused(err, stint.Corrupt)
}

func blobNotLoaded(k *kit) {
	c := k.claimed(k.runner("r"))
	ref := k.put(c, []byte("outside"))
	es := k.entries(stint.Range{Session: c.id(), Last: true, Limit: 1})
	if len(es) != 1 || es[0].Blob != ref || len(es[0].Body) != 0 {
		k.Errorf("the entry is %v, want one that names %v and has no body", es, ref)
	}
}

// use appends an entry to c with meters.
func (k *kit) use(c *course, ms ...stint.Meter) error {
	k.Helper()
	b := k.follow(c, said("x"))
	b.Meters = ms
	err := k.append(c.lease, b)
	if err == nil {
		c.s = b.Session
	}
	return err
}

func reserve(metric string, limit, n int64) stint.Meter {
	return stint.Meter{Metric: metric, Limit: limit, Reserve: n}
}

func meterLimit(k *kit) {
	c := k.claimed(k.runner("r"))
	err := k.use(c, reserve("tokens", 100, 101))
	k.refused(err, stint.Limit, "tokens")
	var named *stint.Error
	if !errors.As(err, &named) || named.Metric != "tokens" {
		k.Errorf("the error %v names no metric", err)
	}
	k.ok(k.use(c, reserve("tokens", 100, 40)))
	k.refused(k.use(c, reserve("tokens", 100, 61)), stint.Limit, "tokens")
	k.ok(k.use(c, reserve("tokens", 100, 60)))
	k.refused(k.use(c, reserve("tokens", 100, 1)), stint.Limit, "tokens")
	k.unchanged(c)
	k.ok(k.use(c, reserve("tokens", 101, 1))) // the limit was raised
	k.refused(k.use(c, reserve("none", 0, 1)), stint.Limit, "none")
}

func meterSettle(k *kit) {
	c := k.claimed(k.runner("r"))
	k.ok(k.use(c, reserve("tokens", 100, 80)))
	k.ok(k.use(c, stint.Meter{Metric: "tokens", Limit: 100, Reserve: -80, Spend: 30}))
	k.refused(k.use(c, reserve("tokens", 100, 71)), stint.Limit, "tokens")
	k.ok(k.use(c, reserve("tokens", 100, 70)))
	// More was spent than was reserved: the fact is written down, the next is refused.
	k.ok(k.use(c, stint.Meter{Metric: "tokens", Limit: 100, Reserve: -70, Spend: 500}))
	k.refused(k.use(c, reserve("tokens", 100, 1)), stint.Limit, "tokens")
	k.ok(k.use(c, stint.Meter{Metric: "tokens", Limit: 100, Spend: 5}))
	k.refused(k.use(c, reserve("tokens", 535, 1)), stint.Limit, "tokens")
	k.ok(k.use(c, reserve("tokens", 536, 1)))
}

func meterNone(k *kit) {
	c := k.claimed(k.runner("r"))
	k.ok(k.use(c, reserve("tokens", -1, 1<<40)))
	k.ok(k.use(c, reserve("tokens", -1, 1<<40)))
	k.refused(k.use(c, reserve("tokens", 1<<41, 1)), stint.Limit, "tokens")
	k.ok(k.use(c, reserve("tokens", 1<<41+1, 1)))
}

func meterApart(k *kit) {
	a := k.claimed(k.runner("r"))
	child, other := k.claimed("r", inFamily(a.s.Family)), k.claimed("r")
	k.ok(k.use(a, reserve("tokens", 100, 100)))
	k.ok(k.use(a, reserve("cost", 100, 100)))
	k.ok(k.use(other, reserve("tokens", 100, 100)))
	k.refused(k.use(child, reserve("tokens", 100, 1)), stint.Limit, "tokens")
	k.unchanged(child)
}

func meterCreate(k *kit) {
	parent := k.claimed(k.runner("r"))
	spawn := func() error {
		b := k.begin(inFamily(parent.s.Family))
		b.Meters = []stint.Meter{reserve("children", 2, 1)}
		_, err := k.store.Create(k.ctx(), b, stint.Claim{})
		if err != nil {
			k.absent(b.Session.ID)
		}
		return err
	}
	k.ok(spawn())
	k.ok(spawn())
	k.refused(spawn(), stint.Limit, "children")
	k.ok(k.use(parent, stint.Meter{Metric: "children", Limit: 2, Reserve: -1}))
	k.ok(spawn())
}

func meterSeveral(k *kit) {
	c := k.claimed(k.runner("r"))
	k.refused(k.use(c, reserve("tokens", 100, 60), reserve("tokens", 100, 60)), stint.Limit, "tokens")
	k.ok(k.use(c, reserve("tokens", 100, 60), stint.Meter{Metric: "tokens", Reserve: -60, Spend: 10}, reserve("tokens", 100, 90)))
	k.refused(k.use(c, reserve("tokens", 100, 1)), stint.Limit, "tokens")
	k.unchanged(c)
}

func meterRace(k *kit) {
	first := k.claimed(k.runner("r"))
	var granted atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		c := k.claimed("r", inFamily(first.s.Family))
		wg.Go(func() {
			for range 4 {
				switch err := k.use(c, reserve("tokens", 100, 7)); {
				case err == nil:
					granted.Add(7)
				case stint.CodeOf(err) != stint.Limit:
					k.Errorf("reserve: %v", err)
				}
			}
		})
	}
	wg.Wait()
	equal(k, "tokens that were granted of 100, in parts of 7", granted.Load(), 98)
}
