package journal_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"pgregory.net/rapid"
)

// allKinds lists every kind of entry, and one that is none.
func allKinds() []stint.Kind {
	return []stint.Kind{
		stint.SessionCreated, stint.SessionWaiting, stint.SessionResumed, stint.SessionReleased, stint.SessionEnded, stint.LineStarted,
		stint.LoopStarted, stint.LoopCompleted, stint.LoopFailed, stint.StepRequested, stint.StepCompleted, stint.StepFailed,
		stint.StepResolved, stint.MessageTaken, stint.MessageRefused, stint.LimitChanged, stint.OutputWritten, stint.LeaseLost, stint.ApprovalRequested, stint.ApprovalDecided, "session.forgotten",
	}
}

// places are sessions in each condition that an entry can meet.
func places(t failer) []stint.Session {
	c := begun(t)
	out := []stint.Session{{ID: c.s.ID}, c.s}
	keep := func() { out = append(out, c.s) }
	c.loop()
	keep()
	does(stint.StepRequested, 1, charge(stint.Once))(c)
	keep()
	c.must(journal.Draft{Kind: stint.SessionWaiting, Pos: c.at(0, 0), Data: journal.Waiting{For: stint.ForDoubt}})
	keep()
	does(stint.StepResolved, 1, journal.StepResolved{Verdict: journal.Happened})(c)
	c.must(journal.Draft{Kind: stint.SessionResumed, Data: journal.Resumed{}})
	c.loop()
	c.complete([]byte(`{"n":1}`))
	keep()
	c.must(journal.Draft{Kind: stint.SessionEnded, Data: journal.Ended{Outcome: stint.Completed}})
	keep()
	return out
}

// FuzzApply gives Apply any bytes as the data of each kind, in each place, and an
// entry of each kind after it. Nothing may panic, and what is refused changes nothing.
func FuzzApply(f *testing.F) {
	for i := range allKinds() {
		f.Add(byte(i), byte(i), []byte(`{}`))
	}
	for _, seed := range []string{
		``, `null`, `[]`, `{"for":"message","until":"2026-01-05T06:00:00Z"}`, `{"from":1,"checkpoint":{"seq":3,"loop":1},"park":true}`,
		`{"from":-1}`, `{"outcome":"completed"}`, `{"outcome":"waiting"}`, `{"prior":"expired"}`, `{"kind":"prompt"}`, `{"error":"x","usage":{"cost":"1.5"}}`, `{"usage":{"cost":"9e99"}}`, `{"state":{"enc":"same"}}`,
		`{"state":{"enc":"delta","rank":-1,"base":-9}}`, `{"limits":{"wall_ns":-1}}`, `{"agent":{"pin":"zz"}}`, `{"family":"0"}`, "{\"why\":\"\xff\"}",
	} {
		for i := range allKinds() {
			f.Add(byte(i), byte(3), []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, kind, then byte, data []byte) {
		kinds := allKinds()
		for _, s := range places(t) {
			for _, pos := range []stint.Position{{Loop: s.At.Loop, Attempt: s.At.Attempt, Step: 1}, {Loop: s.Checkpoint.Loop + 1, Attempt: s.At.Attempt + 1}, {}} {
				s1, ok := step(t, s, kinds[int(kind)%len(kinds)], pos, data)
				if !ok {
					continue
				}
				s2, _ := step(t, s1, kinds[int(then)%len(kinds)], pos, []byte(`{}`))
				_, _ = step(t, s2, stint.LoopStarted, stint.Position{Loop: s2.Checkpoint.Loop + 1, Attempt: 1}, []byte(`{}`))
			}
		}
	})
}

func step(t *testing.T, s stint.Session, kind stint.Kind, pos stint.Position, data []byte) (stint.Session, bool) {
	t.Helper()
	pos.Line = s.At.Line
	if kind == stint.LineStarted {
		pos.Line++
	}
	e := stint.Entry{Version: journal.Version, Session: s.ID, Seq: s.Head + 1, Pos: pos, Kind: kind, At: base(), Data: data, Epoch: s.Epoch}
	out, err := journal.Apply(s, e)
	if err == nil {
		if out.Head != e.Seq {
			t.Fatalf("Apply took %s and the head is %d", kind, out.Head)
		}
		return out, true
	}
	if code := stint.CodeOf(err); code != stint.Invalid && code != stint.Corrupt {
		t.Fatalf("%s is refused as %v", kind, err)
	}
	if !reflect.DeepEqual(out, s) {
		t.Fatalf("%s is refused and changes the session", kind)
	}
	return s, false
}

// FuzzSum moves bytes between neighbouring fields of variable length: two entries
// that are not the same must not have the same hash.
func FuzzSum(f *testing.F) {
	f.Add([]byte("step.completedagent{}body"), uint16(14), uint16(19), uint16(21), uint16(13), uint16(19), uint16(21), byte(0))
	f.Add([]byte("\x01\x02\x03\x04"), uint16(1), uint16(2), uint16(3), uint16(1), uint16(2), uint16(2), byte(1))
	f.Add(bytes.Repeat([]byte{0x80}, 300), uint16(0), uint16(0), uint16(128), uint16(0), uint16(0), uint16(129), byte(2))
	f.Add(bytes.Repeat([]byte{1}, 80), uint16(0), uint16(0), uint16(40), uint16(0), uint16(0), uint16(7), byte(3))
	f.Fuzz(func(t *testing.T, all []byte, a1, a2, a3, b1, b2, b3 uint16, blobs byte) {
		x := split(all, a1, a2, a3, blobs&1 != 0)
		y := split(all, b1, b2, b3, blobs&2 != 0)
		same := reflect.DeepEqual(x, y)
		if got := journal.Sum(&x, stint.Hash{}) == journal.Sum(&y, stint.Hash{}); got != same {
			t.Fatalf("equal: %v, equal hashes: %v\n%+v\n%+v", same, got, x, y)
		}
	})
}

// split cuts all into kind, actor, data and body, and where there is to be a blob
// takes its reference from the end of the body.
func split(all []byte, i, j, k uint16, blob bool) stint.Entry {
	cut := func(at uint16) []byte {
		n := min(int(at), len(all))
		head := all[:n]
		all = all[n:]
		return head
	}
	e := stint.Entry{Version: 1, Seq: 1, At: base()}
	e.Kind, e.Actor = stint.Kind(cut(i)), stint.Actor(cut(j))
	e.Data, e.Body = bytes.Clone(cut(k)), bytes.Clone(all)
	if e.Data == nil {
		e.Data = []byte{}
	}
	if n := len(e.Body); blob && n > 33 {
		e.Blob.Sum, e.Blob.Size = stint.Hash(e.Body[n-33:n-1]), int64(e.Body[n-1])
		e.Body = e.Body[:n-33]
	}
	if e.Body == nil {
		e.Body = []byte{}
	}
	return e
}

// FuzzVerifier damages sound journals, each in one place, under the fuzzer's eye.
func FuzzVerifier(f *testing.F) {
	f.Add([]byte("the bytes that rapid draws from"))
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		c := simulate(t, rapid.IntRange(3, 30).Draw(t, "entries"))
		damage := rapid.SampledFrom([]func(*rapid.T, []stint.Entry) []stint.Entry{flipBit, swap, swapPlaces, remove, removeAndClose, repeat}).Draw(t, "damage")
		if _, err := verifyAll(damage(t, bytesOf(c))); stint.CodeOf(err) != stint.Corrupt {
			t.Fatalf("the damage went unseen: %v", err)
		}
	}))
}

func bytesOf(c *chain) []stint.Entry { return append([]stint.Entry(nil), c.es...) }

// FuzzForged chains entries of any kind, place and data anew, as somebody would who
// can write to the store. The Verifier may accept only what Fold accepts, with the
// same session, and must not panic.
func FuzzForged(f *testing.F) {
	f.Add([]byte{6, 1, 1, 0, 0, 9, 1, 1, 1, 0, 10, 1, 1, 1, 0, 7, 1, 1, 0, 3, 4, 0, 0, 0, 6}, []byte(`{}`))
	f.Add([]byte{6, 1, 1, 0, 0, 1, 1, 1, 0, 2, 6, 1, 1, 0, 0, 5, 0, 0, 0, 1, 2, 0, 0, 0, 0}, []byte(`{"from":0}`))
	f.Fuzz(func(t *testing.T, deeds, data []byte) {
		kinds := allKinds()
		known := []string{`{}`, string(data), `{"for":"message"}`, `{"state":{"enc":"same"}}`, `{"state":{"enc":"full"}}`, `{"effect":"once"}`, `{"outcome":"failed"}`, `{"verdict":"happened"}`}
		c := begun(t)
		es := c.es
		var v journal.Verifier
		s, prev := stint.Session{}, stint.Hash{}
		for i := -1; i < 0 || len(deeds) >= 5; i++ {
			e := es[0]
			if i >= 0 {
				d := deeds[:5]
				deeds = deeds[5:]
				e = stint.Entry{
					Version: journal.Version, Session: c.s.ID, Seq: s.Head + 1, Kind: kinds[int(d[0])%len(kinds)], At: base(), Epoch: 1,
					Pos:  stint.Position{Line: s.At.Line + int(d[1]>>6), Loop: int(d[1] & 63), Attempt: int(d[2]), Step: int(d[3]), Sub: int(d[4] >> 4)},
					Data: []byte(known[int(d[4]&15)%len(known)]),
				}
				e.Hash = journal.Sum(&e, prev)
			}
			folded, err := journal.Apply(s, e)
			if verr := v.Add(e); verr != nil {
				if stint.CodeOf(verr) != stint.Corrupt {
					t.Fatalf("%v", verr)
				}
				return
			}
			if err != nil {
				t.Fatalf("the Verifier takes what Apply refuses: %v", err)
			}
			s, prev = folded, e.Hash
			if got, err := v.Result(); err != nil || !reflect.DeepEqual(got, s) {
				t.Fatalf("the Verifier has another session: %v", err)
			}
		}
	})
}
