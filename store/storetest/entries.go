package storetest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

func entriesProperties() []property {
	return []property{
		{name: "ranges select by seq, kind and number", holds: entriesRanges},
		{name: "without a limit a reader gets 10,000", holds: entriesDefault},
		{name: "bytes come back as they were written", holds: entriesBytes},
		{name: "every member of an entry comes back", holds: entriesMembers},
		{name: "seq orders, also when the clock goes back", holds: entriesClock},
		{name: "times are kept to the microsecond", holds: entriesTimes},
	}
}

// seqs writes the seqs of es.
func seqs(es []stint.Entry) string {
	var b strings.Builder
	for _, e := range es {
		fmt.Fprintf(&b, "%d ", e.Seq)
	}
	return strings.TrimSpace(b.String())
}

func entriesRanges(k *kit) {
	c, neighbour := k.claimed(k.runner("r")), k.claimed("r")
	k.write(neighbour, said("x"))
	// 1 created, 2 loop started, 3 to 6 output, 7 waiting, 8 resumed, 9 loop started, 10 output
	k.write(c, said("3"), said("4"))
	k.write(c, said("5"), said("6"), waits(stint.Wait{For: stint.ForOperator}))
	k.write(c, resumes(), said("10"))
	output := []stint.Kind{stint.OutputWritten}
	for _, q := range []struct {
		r    stint.Range
		want string
	}{
		{stint.Range{}, "1 2 3 4 5 6 7 8 9 10"},
		{stint.Range{After: 3}, "4 5 6 7 8 9 10"},
		{stint.Range{Until: 3}, "1 2 3"},
		{stint.Range{After: 3, Until: 5}, "4 5"},
		{stint.Range{After: 5, Until: 5}, ""},
		{stint.Range{After: 10}, ""},
		{stint.Range{After: 8, Until: 100}, "9 10"},
		{stint.Range{Limit: 2}, "1 2"},
		{stint.Range{After: 2, Limit: 3}, "3 4 5"},
		{stint.Range{Last: true, Limit: 2}, "9 10"},
		{stint.Range{Last: true, Limit: 2, Until: 6}, "5 6"},
		{stint.Range{Last: true, After: 7, Limit: 20}, "8 9 10"},
		{stint.Range{Last: true}, "1 2 3 4 5 6 7 8 9 10"},
		{stint.Range{Kinds: output}, "3 4 5 6 10"},
		{stint.Range{Kinds: []stint.Kind{stint.SessionResumed, stint.SessionWaiting, stint.SessionEnded}}, "7 8"},
		{stint.Range{Kinds: []stint.Kind{stint.SessionEnded}}, ""},
		{stint.Range{Kinds: output, After: 3, Limit: 2}, "4 5"},
		{stint.Range{Kinds: output, Last: true, Limit: 2}, "6 10"},
		{stint.Range{Kinds: output, Last: true, Limit: 2, Until: 6, After: 2}, "5 6"},
	} {
		q.r.Session = c.id()
		if got := seqs(k.entries(q.r)); got != q.want {
			k.Errorf("the entries of %s are %q, want %q", text(q.r), got, q.want)
		}
	}
}

func entriesDefault(k *kit) {
	const most = 10_000
	c := k.claimed(k.runner("r"))
	for c.s.Head < most+5 {
		ds := make([]journal.Draft, 1_000)
		for i := range ds {
			ds[i] = said("x")
		}
		k.write(c, ds...)
	}
	oldest := k.entries(stint.Range{Session: c.id()})
	newest := k.entries(stint.Range{Session: c.id(), Last: true})
	if len(oldest) != most || len(newest) != most {
		k.Fatalf("%d and %d entries, want %d", len(oldest), len(newest), most)
	}
	equal(k, "first of the oldest", oldest[0].Seq, 1)
	equal(k, "last of the newest", newest[most-1].Seq, c.s.Head)
	equal(k, "entries, where more are asked for", len(k.entries(stint.Range{Session: c.id(), Limit: 2 * most})), int(c.s.Head))
}

// awkward are the bytes that a store is most likely to change.
func awkward() [][]byte {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	return [][]byte{
		nil, {}, {0}, []byte("a\x00b\x00"), []byte("\xff\xfe\x80"), every,
		[]byte(`{"a":1,"a":2, "n":12345678901234567890123, "f":1e400, "h":"<>&"}`),
		[]byte("\"\\u0000\\ud800\""), []byte("\ufeffbom"), []byte("  space \r\n\t"),
		[]byte("x'); DROP TABLE entries; --"), []byte("null"), []byte("e\u0301 \u00e9"),
		bytes.Repeat([]byte{0xc3}, journal.InlineBytes),
	}
}

func entriesBytes(k *kit) {
	c := k.claimed(k.runner("r"))
	var ds []journal.Draft
	for _, b := range awkward() {
		ds = append(ds, journal.Draft{Kind: stint.OutputWritten, Data: journal.Output{Stream: "<a>&\u2028\x00" + string(b[:min(len(b), 99)])}, Body: b})
	}
	b := k.follow(c, ds...)
	k.ok(k.append(c.lease, b))
	es := k.entries(stint.Range{Session: c.id(), After: 1})
	if len(es) != len(b.Entries) {
		k.Fatalf("%d entries, want %d", len(es), len(b.Entries))
	}
	for i, want := range b.Entries {
		if !bytes.Equal(es[i].Data, want.Data) {
			k.Errorf("the data of entry %d came back as %q, want %q", want.Seq, es[i].Data, want.Data)
		}
		if !bytes.Equal(es[i].Body, want.Body) {
			k.Errorf("the body of entry %d came back as %q, want %q", want.Seq, es[i].Body, want.Body)
		}
	}
}

func entriesMembers(k *kit) {
	c := k.claimed(k.runner("r"))
	k.write(c, said("x"))
	body := []byte("a body")
	ref := k.name(c.s.Family, body)
	b := k.follow(c,
		journal.Draft{Kind: stint.StepCompleted, Actor: "human:ada", Cause: 2, Data: journal.StepDone{MS: 7}, Body: []byte("inline")},
		journal.Draft{Kind: stint.StepFailed, Actor: stint.ByPolicy, Data: journal.StepDone{Error: "no"}, Blob: ref})
	b.Blobs = map[stint.BlobRef][]byte{ref: body}
	k.ok(k.append(c.lease, b))
	c.s = b.Session
	// Positions with all members; the journal's rules are not the store's.
	pos := stint.Position{Line: 0, Loop: 1, Attempt: 1, Step: 1 << 20, Sub: 77}
	_, e, err := journal.Next(c.s, journal.Draft{Kind: stint.StepCompleted, Pos: pos, Epoch: c.lease.Epoch, At: clock(0), Data: journal.StepDone{}, Salt: salt()})
	k.ok(err)
	s, err := journal.Apply(c.s, e)
	k.ok(err)
	k.ok(k.append(c.lease, stint.Batch{Session: s, Entries: []stint.Entry{e}}))
	want := append(b.Entries, e)
	got := k.entries(stint.Range{Session: c.id(), After: 3})
	if len(got) != len(want) {
		k.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for i := range want {
		equal(k, "the header", text(got[i]), text(want[i]))
		equal(k, "the salt", got[i].Salt, want[i].Salt)
		equal(k, "the data", string(got[i].Data), string(want[i].Data))
		equal(k, "the body", string(got[i].Body), string(want[i].Body))
	}
}

func entriesClock(k *kit) {
	c := k.claimed(k.runner("r"))
	for i := range 4 {
		d, e := said("a"), said("b")
		d.At, e.At = clock(-time.Duration(i)*time.Hour), clock(-time.Duration(i)*time.Hour-time.Minute)
		k.write(c, d, e)
	}
	k.unchanged(c)
	equal(k, "entries", seqs(k.entries(stint.Range{Session: c.id()})), "1 2 3 4 5 6 7 8 9 10")
	equal(k, "newest entries", seqs(k.entries(stint.Range{Session: c.id(), Last: true, Limit: 3})), "8 9 10")
}

func entriesTimes(k *kit) {
	c := k.claimed(k.runner("r"))
	for _, at := range []time.Time{
		time.Date(2026, 3, 29, 2, 30, 0, 123456789, time.FixedZone("somewhere", 2*3600+1800)),
		time.Date(2026, 3, 29, 2, 30, 0, 999999999, time.UTC),
		time.Date(1999, 12, 31, 23, 59, 59, 1000, time.UTC),
		time.Date(2262, 4, 12, 0, 0, 0, 0, time.UTC),
	} {
		d := said("x")
		d.At = at
		k.write(c, d)
		es := k.entries(stint.Range{Session: c.id(), Last: true, Limit: 1})
		if want := at.UTC().Truncate(time.Microsecond); len(es) != 1 || es[0].At != want {
			k.Errorf("the time %v came back as %v, want %v", at, es, want)
		}
		row := k.row(c.id())
		equal(k, "the session's Updated", row.Session.Updated, at.UTC().Truncate(time.Microsecond))
	}
	k.unchanged(c)
}
