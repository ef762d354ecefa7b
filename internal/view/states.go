package view

import (
	"errors"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// states reads every state of a journal once, in order. What a delta stands on has
// been read before it; as long as it is remembered, a state costs one delta and
// not a chain of them.
type states struct {
	c    *checker
	kept []keptState // newest last
	size int64       // bytes in kept
}

type keptState struct {
	seq   stint.Seq
	ref   journal.StateRef
	state []byte
}

// maxKept bounds what is remembered. The state before is always kept: most deltas
// stand on it.
const maxKept = 64 << 20

// check reads the state that e carries, if it carries one.
func (s *states) check(e *stint.Entry) error {
	ref, err := journal.StateOf(e)
	if err != nil || ref.Enc == "" || ref.Enc == journal.Same {
		return nil // bad data is the journal's problem
	}
	b := bodies{s.c.src, s.c.row.Session.Family}
	cp := stint.Checkpoint{Seq: e.Seq, Rank: ref.Rank, Weight: ref.Weight, Size: ref.Size, Sum: ref.Sum}
	state, err := journal.ReadState(cp, func(seq stint.Seq) (journal.StateRef, []byte, error) {
		if seq == e.Seq {
			body, err := b.of(s.c.ctx, e)
			return ref, body, err
		}
		if k := s.find(seq); k != nil {
			return k.ref, k.state, nil
		}
		return b.state(s.c.ctx, e.Session, seq)
	})
	if err == nil {
		s.keep(e.Seq, ref, state)
		if int64(len(state)) != ref.Size {
			err = stint.Corrupt.Errorf("state", "it has %d bytes, its entry says %d", len(state), ref.Size)
		}
	}
	var coded *stint.Error
	if err != nil && !errors.As(err, &coded) {
		return err
	}
	return s.c.stateError(e.Seq, err)
}

func (s *states) find(seq stint.Seq) *keptState {
	for i := len(s.kept) - 1; i >= 0; i-- {
		if s.kept[i].seq == seq {
			return &s.kept[i]
		}
	}
	return nil
}

// keep remembers a state as if it were a snapshot, and forgets others: first those
// whose rank says that only the one after them stands on them.
func (s *states) keep(seq stint.Seq, ref journal.StateRef, state []byte) {
	ref.Enc, ref.Base = journal.Full, 0
	s.kept = append(s.kept, keptState{seq, ref, state})
	s.size += int64(len(state))
	for pass := range 2 {
		for i := 0; i < len(s.kept)-1; {
			k := &s.kept[i]
			if anchor := k.ref.Rank%64 == 0; anchor && (pass == 0 || s.size <= maxKept) {
				i++
				continue
			}
			s.size -= int64(len(k.state))
			s.kept = append(s.kept[:i], s.kept[i+1:]...)
		}
	}
}
