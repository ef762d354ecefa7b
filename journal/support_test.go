package journal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// base is when every test begins.
func base() time.Time { return time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC) }

// testID is a session id with nothing regular in it but its last byte.
func testID(n byte) stint.ID {
	sum := sha256.Sum256([]byte("session"))
	id := stint.ID(sum[:16])
	id[15] = n
	return id
}

func saltOf(seq stint.Seq) [16]byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "salt %d", seq))
	return [16]byte(sum[:16])
}

// familyKey names the blobs of the tests.
func familyKey() []byte { return bytes.Repeat([]byte{7}, 32) }

// failer is what helpers need of *testing.T and *rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// chain is a journal that a test writes: each entry goes through Next, is folded
// a second time through Apply, and is shown to a Verifier.
type chain struct {
	t     failer
	s     stint.Session
	es    []stint.Entry
	v     journal.Verifier
	blobs map[stint.BlobRef][]byte
	now   time.Time
	epoch int64
}

func newChain(t failer) *chain {
	return &chain{t: t, now: base(), epoch: 1, blobs: map[stint.BlobRef][]byte{}, s: stint.Session{ID: testID(1)}}
}

// begun returns a chain that has its first entry.
func begun(t failer) *chain {
	c := newChain(t)
	c.must(journal.Draft{Kind: stint.SessionCreated, Data: createdData()})
	return c
}

func createdData() journal.Created {
	return journal.Created{
		Family: testID(1), Name: "nightly", Agent: stint.AgentRef{Name: "triage", Runtime: "exec", Pin: stint.Hash{1, 2, 3}},
		Trigger: stint.Trigger{Kind: "prompt"},
	}
}

// add makes the next entry, a second after the one before.
func (c *chain) add(d journal.Draft) (stint.Entry, error) {
	c.t.Helper()
	c.now = c.now.Add(time.Second)
	return c.addNow(d)
}

// addNow is add at the time it is.
func (c *chain) addNow(d journal.Draft) (stint.Entry, error) {
	c.t.Helper()
	d.At, d.Epoch, d.Salt = c.now, c.epoch, saltOf(c.s.Head+1)
	if len(d.Body) > journal.InlineBytes {
		d.Blob = journal.BlobID(familyKey(), d.Body)
		c.blobs[d.Blob] = d.Body
		d.Body = nil
	}
	before := c.s
	s, e, err := journal.Next(before, d)
	if !reflect.DeepEqual(c.s, before) {
		c.t.Fatalf("Next changed the session it was given")
	}
	if err != nil {
		if !reflect.DeepEqual(s, before) {
			c.t.Fatalf("Next refused %s and returned another session", d.Kind)
		}
		return e, err
	}
	folded, err := journal.Apply(before, e)
	if err != nil {
		c.t.Fatalf("Apply refuses what Next made: %v", err)
	}
	if !reflect.DeepEqual(folded, s) {
		c.t.Fatalf("Apply and Next disagree on %s:\n%s\n%s", d.Kind, toJSON(c.t, folded), toJSON(c.t, s))
	}
	_ = c.v.Add(e)
	c.s, c.es = s, append(c.es, e)
	return e, nil
}

// must is add for an entry that is legal.
func (c *chain) must(d journal.Draft) stint.Entry {
	c.t.Helper()
	e, err := c.add(d)
	if err != nil {
		c.t.Fatalf("%v", err)
	}
	return e
}

// place is the position of the next attempt's beginning, or of a step in it.
func (c *chain) at(step, sub int) stint.Position {
	return stint.Position{Loop: c.s.At.Loop, Attempt: c.s.At.Attempt, Step: step, Sub: sub}
}

// loop begins the next loop or attempt. Where one is under way, its runner is
// gone, and this is another.
func (c *chain) loop() stint.Entry {
	c.t.Helper()
	if !c.s.At.Since.IsZero() {
		c.epoch++
	}
	return c.must(journal.Draft{Kind: stint.LoopStarted, Pos: c.next(), Data: journal.LoopStarted{Why: "next"}})
}

// next is the position at which a runner would begin.
func (c *chain) next() stint.Position {
	at := c.s.At
	switch {
	case !at.Open:
		return stint.Position{Loop: c.s.Checkpoint.Loop + 1, Attempt: 1}
	case at.Parked:
		return stint.Position{Loop: at.Loop, Attempt: at.Attempt}
	}
	return stint.Position{Loop: at.Loop, Attempt: at.Attempt + 1}
}

// complete ends the loop with a state; nil keeps the one there is.
func (c *chain) complete(state []byte) stint.Entry {
	c.t.Helper()
	ref, body := c.encode(state)
	return c.must(journal.Draft{Kind: stint.LoopCompleted, Pos: c.at(0, 0), Data: journal.LoopCompleted{MS: 5, State: ref}, Body: body})
}

func (c *chain) encode(state []byte) (journal.StateRef, []byte) {
	c.t.Helper()
	if state == nil {
		return journal.StateRef{Enc: journal.Same, Size: c.s.Checkpoint.Size}, nil
	}
	ref, body, err := journal.WriteState(c.s.Checkpoint, c.state(c.s.Checkpoint), state, c.source)
	if err != nil {
		c.t.Fatalf("WriteState: %v", err)
	}
	return ref, body
}

// state reads the state of cp.
func (c *chain) state(cp stint.Checkpoint) []byte {
	c.t.Helper()
	b, err := journal.ReadState(cp, c.source)
	if err != nil {
		c.t.Fatalf("ReadState: %v", err)
	}
	return b
}

// source is a journal.Source over the chain.
func (c *chain) source(seq stint.Seq) (journal.StateRef, []byte, error) {
	if seq < 1 || int(seq) > len(c.es) {
		return journal.StateRef{}, nil, stint.NotFound.Errorf("entry", "there is no entry %d", seq)
	}
	e := &c.es[seq-1]
	body := e.Body
	if !e.Blob.IsZero() {
		body = c.blobs[e.Blob]
	}
	ref, err := journal.StateOf(e)
	return ref, body, err
}

func toJSON(t failer, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return b
}

// refold folds the whole journal again and compares.
func (c *chain) refold() {
	c.t.Helper()
	s, err := journal.Fold(stint.Session{}, c.es)
	if err != nil {
		c.t.Fatalf("Fold: %v", err)
	}
	if !reflect.DeepEqual(s, c.s) {
		c.t.Fatalf("the fold is not the session:\n%s\n%s", toJSON(c.t, s), toJSON(c.t, c.s))
	}
	var back stint.Session
	if err := json.Unmarshal(toJSON(c.t, c.s), &back); err != nil {
		c.t.Fatalf("%v", err)
	}
	if !reflect.DeepEqual(back, c.s) {
		c.t.Fatalf("the session does not survive JSON:\n%s\n%s", toJSON(c.t, back), toJSON(c.t, c.s))
	}
}

// verifyAll shows es to a fresh Verifier.
func verifyAll(es []stint.Entry) (stint.Session, error) {
	var v journal.Verifier
	for _, e := range es {
		if v.Add(e) != nil {
			break
		}
	}
	return v.Result()
}

func wantCode(t *testing.T, err error, want stint.Code) {
	t.Helper()
	if got := stint.CodeOf(err); got != want {
		t.Fatalf("the error is %v (%q), want %q", err, got, want)
	}
}
