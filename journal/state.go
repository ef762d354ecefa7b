package journal

import (
	"crypto/sha256"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/delta"
)

// Encoding says how a state lies in the body of its entry.
type Encoding string

// The encodings.
const (
	Full  Encoding = "full"  // the body is the state
	Delta Encoding = "delta" // the body turns the state of entry Base into this one
	Same  Encoding = "same"  // no body: the state before, as it was
)

// StateRef is how the state of a checkpoint is stored.
type StateRef struct {
	Enc    Encoding   `json:"enc"`
	Base   stint.Seq  `json:"base,omitempty"`
	Rank   int        `json:"rank,omitempty"`
	Weight int64      `json:"weight,omitempty"`
	Size   int64      `json:"size"`
	Sum    stint.Hash `json:"sum,omitzero"`
}

// StateOf is how a state lies in the body of e; the zero StateRef for an entry that carries
// none, or whose body was erased. Data that cannot be read is [stint.Corrupt].
func StateOf(e *stint.Entry) (StateRef, error) {
	switch {
	case e.Erased:
		return StateRef{}, nil
	case e.Kind == stint.LoopCompleted:
		d, err := Decode[LoopCompleted](e)
		return d.State, err
	case e.Kind == stint.LineStarted:
		d, err := Decode[LineStarted](e)
		return d.State, err
	case e.Kind == stint.SessionCreated:
		d, err := Decode[Created](e)
		return d.State, err
	}
	return StateRef{}, nil
}

// CheckpointOf is the checkpoint that e leaves: of a session that begins, of a line, or of a
// loop that ended. One of a loop that left the state as it was has no Seq: it is the one
// before. It is zero for other entries.
func CheckpointOf(e *stint.Entry) (stint.Checkpoint, error) {
	switch e.Kind {
	case stint.SessionCreated:
		d, err := Decode[Created](e)
		return d.checkpoint(e), err
	case stint.LineStarted:
		d, err := Decode[LineStarted](e)
		return d.checkpoint(e), err
	case stint.LoopCompleted:
		d, err := Decode[LoopCompleted](e)
		return d.checkpoint(e, stint.Checkpoint{}), err
	}
	return stint.Checkpoint{}, nil
}

// checkpoint is what a session begins with: nothing, unless it is a branch.
func (d *Created) checkpoint(e *stint.Entry) (cp stint.Checkpoint) {
	if !d.Parent.Branch {
		return cp
	}
	if d.State.Enc != "" {
		cp = d.State.checkpoint(cp, e.Seq)
	}
	cp.Loop, cp.At = d.Parent.Loop, e.At
	return cp
}

// checkpoint is what a line begins with: that of the loop it keeps, or a state of its own.
func (d *LineStarted) checkpoint(e *stint.Entry) stint.Checkpoint {
	cp := d.Checkpoint
	if d.State.Enc != "" {
		cp = d.State.checkpoint(cp, e.Seq)
		cp.At = e.At
	}
	cp.Loop = d.From
	return cp
}

// checkpoint is what a loop leaves behind the checkpoint before it.
func (d *LoopCompleted) checkpoint(e *stint.Entry, before stint.Checkpoint) stint.Checkpoint {
	cp := d.State.checkpoint(before, e.Seq)
	cp.Loop, cp.At = e.Pos.Loop, e.At
	return cp
}

// checkpoint is what r makes of the checkpoint before, when entry seq carries it.
func (r StateRef) checkpoint(before stint.Checkpoint, seq stint.Seq) stint.Checkpoint {
	if r.Enc == Same {
		return before
	}
	return stint.Checkpoint{Seq: seq, Rank: r.Rank, Weight: r.Weight, Size: r.Size, Sum: r.Sum}
}

// linkBase is how many deltas stand side by side on each level of a chain.
const linkBase = 64

// standsOn is the rank that the checkpoint of this rank is a delta against; a
// checkpoint of rank 0 is a full snapshot.
//
// Most are against the one before. Each 64th skips back to the 64th before it,
// each 4,096th to the 4,096th before it, so a chain is at most 63 links a level
// long and a state is read in time that does not grow with the session, while
// every level stores what changed only once: growth stays linear. (A full snapshot
// every 64 links, the obvious rule, is quadratic for a state that grows.)
func standsOn(rank int) int {
	if rank <= 0 {
		return 0
	}
	step := 1
	for rank%(step*linkBase) == 0 {
		step *= linkBase
	}
	return rank - step
}

// Source reads the state reference and the body of the entry seq.
type Source func(seq stint.Seq) (StateRef, []byte, error)

// ReadState returns the state of cp: nil if there is none yet. The error is the
// source's, or [stint.Corrupt] where the bytes do not have the checkpoint's sum.
func ReadState(cp stint.Checkpoint, src Source) ([]byte, error) {
	if cp.Seq == 0 {
		return nil, nil
	}
	state, _, err := readChain(cp.Seq, -1, src)
	if err != nil {
		return nil, err
	}
	if sha256.Sum256(state) != cp.Sum {
		return nil, badState(cp.Seq, "its bytes do not have the checkpoint's sum")
	}
	return state, nil
}

// link is one entry of a chain.
type link struct {
	ref  StateRef
	body []byte
	seq  stint.Seq
}

// readChain returns the state that entry seq carries or, for a rank that is not
// negative, the state of that rank further back in its chain.
func readChain(seq stint.Seq, rank int, src Source) ([]byte, link, error) {
	var chain []link
	for next, last := seq, 0; ; {
		ref, body, err := src(next)
		if err != nil {
			return nil, link{}, err
		}
		if ref.Enc != Full && ref.Enc != Delta || ref.Rank < 0 || next != seq && ref.Rank >= last || ref.Enc == Delta && (ref.Base >= next || ref.Base < 1) {
			return nil, link{}, badState(seq, "its chain does not lead back to a snapshot")
		}
		if rank < 0 || ref.Rank <= rank {
			chain = append(chain, link{ref, body, next})
		}
		if ref.Enc == Full {
			break
		}
		next, last = ref.Base, ref.Rank
	}
	if len(chain) == 0 || rank >= 0 && chain[0].ref.Rank != rank {
		return nil, link{}, badState(seq, "a link of its chain is missing")
	}
	state := chain[len(chain)-1].body
	for i := len(chain) - 2; i >= 0; i-- {
		var err error
		if state, err = delta.Apply(state, chain[i].body); err != nil {
			return nil, link{}, badState(chain[i].seq, err.Error())
		}
	}
	return state, chain[0], nil
}

func badState(seq stint.Seq, why string) error {
	err := stint.Corrupt.Errorf("state", "the state of entry %d cannot be read: %s", seq, why)
	err.Hint = "an earlier checkpoint may be sound: stint restart SESSION --from LOOP --dry-run"
	return err
}

// WriteState encodes the state that follows checkpoint cp, whose bytes are old. It
// returns the reference for loop.completed and the body. src is read only for the
// one checkpoint in 64 that skips back.
func WriteState(cp stint.Checkpoint, old, state []byte, src Source) (StateRef, []byte, error) {
	sum := stint.Hash(sha256.Sum256(state))
	if cp.Seq != 0 && sum == cp.Sum {
		return StateRef{Enc: Same, Size: cp.Size}, nil, nil
	}
	ref := StateRef{Enc: Full, Size: int64(len(state)), Sum: sum}
	if cp.Seq == 0 {
		return ref, state, nil
	}
	if cp.Rank < 0 {
		return ref, nil, badState(cp.Seq, "its rank is below zero")
	}
	rank := cp.Rank + 1
	base, weight := cp.Seq, cp.Weight
	if to := standsOn(rank); to != cp.Rank {
		b, at, err := readChain(cp.Seq, to, src)
		if err != nil {
			return ref, nil, err
		}
		if sha256.Sum256(b) != at.ref.Sum {
			return ref, nil, badState(at.seq, "its bytes do not have its sum")
		}
		old, base, weight = b, at.seq, at.ref.Weight
	}
	d := delta.Make(old, state)
	if weight += int64(len(d)); weight > int64(len(state)) {
		return ref, state, nil
	}
	ref.Enc, ref.Base, ref.Rank, ref.Weight = Delta, base, rank, weight
	return ref, d, nil
}
