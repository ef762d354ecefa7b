package past_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// A walk gives the states that a reader of single ones gets, and reads few entries more
// than there are states.
func TestWalk(t *testing.T) {
	type stored struct {
		ref  journal.StateRef
		body []byte
	}
	kept := map[stint.Seq]stored{}
	read := 0
	src := func(seq stint.Seq) (journal.StateRef, []byte, error) {
		read++
		s, ok := kept[seq]
		if !ok {
			return s.ref, nil, stint.Corrupt.Errorf("state", "entry %d is not there", seq)
		}
		return s.ref, s.body, nil
	}
	const n = 300
	filler := bytes.Repeat([]byte("0123456789abcdef "), 4000)
	var all []stint.Checkpoint
	var states [][]byte
	cp, old := stint.Checkpoint{}, []byte(nil)
	for i := range n {
		state := fmt.Appendf(nil, `{"n":%d,"filler":"%x"}`, i, append(filler[:len(filler)-i:len(filler)-i], byte(i)))
		ref, body, err := journal.WriteState(cp, old, state, src)
		if err != nil {
			t.Fatal(err)
		}
		seq := stint.Seq(10 * (i + 1))
		kept[seq] = stored{ref, body}
		cp = stint.Checkpoint{Seq: seq, Rank: ref.Rank, Weight: ref.Weight, Size: ref.Size, Sum: sha256.Sum256(state)}
		all, states, old = append(all, cp), append(states, state), state
	}
	read = 0
	w := past.NewWalk(src)
	for i, cp := range all {
		got, err := w.At(cp)
		if err != nil || !bytes.Equal(got, states[i]) {
			t.Fatalf("state %d: %d bytes, %v", i, len(got), err)
		}
	}
	if read > 2*n {
		t.Errorf("%d entries were read for %d states", read, n)
	}
	if got, err := w.At(stint.Checkpoint{}); got != nil || err != nil {
		t.Errorf("no state is %q, %v", got, err)
	}
	if got, err := w.At(all[7]); err != nil || !bytes.Equal(got, states[7]) {
		t.Errorf("back again: %d bytes, %v", len(got), err)
	}
}
