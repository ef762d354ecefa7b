package past

import (
	"context"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// States reads the entries that a session's states lie in, for [journal.ReadState].
func States(ctx context.Context, src Source, id, family stint.ID) journal.Source {
	return func(seq stint.Seq) (ref journal.StateRef, body []byte, err error) {
		es, err := src.Entries(ctx, stint.Range{Session: id, After: seq - 1, Until: seq, Limit: 1})
		if err != nil {
			return ref, nil, err
		}
		if len(es) != 1 {
			return ref, nil, stint.Corrupt.Errorf("state", "entry %d of session %s is missing", seq, id)
		}
		if ref, err = journal.StateOf(&es[0]); err != nil {
			return ref, nil, err
		}
		body, err = Body(ctx, src, family, &es[0])
		return ref, body, err
	}
}

// Body returns the body of e, also where it lies outside the journal.
func Body(ctx context.Context, src Source, family stint.ID, e *stint.Entry) ([]byte, error) {
	if e.Blob.IsZero() {
		return e.Body, nil
	}
	return src.Blob(ctx, family, e.Blob)
}

// Walk reads one state after the other. It remembers the newest, on which most that
// follow stand, so that each costs one delta and not a chain of them.
type Walk struct {
	from  journal.Source
	cp    stint.Checkpoint
	state []byte
}

// NewWalk returns a Walk over the states of a session, read as src reads them.
func NewWalk(src journal.Source) *Walk { return &Walk{from: src} }

// At returns the state of cp; the errors are those of [journal.ReadState].
func (w *Walk) At(cp stint.Checkpoint) ([]byte, error) {
	if cp.Seq != 0 && cp.Seq == w.cp.Seq {
		return w.state, nil
	}
	state, err := journal.ReadState(cp, func(seq stint.Seq) (journal.StateRef, []byte, error) {
		if seq == w.cp.Seq && seq != 0 {
			return journal.StateRef{Enc: journal.Full, Rank: w.cp.Rank, Weight: w.cp.Weight, Size: w.cp.Size, Sum: w.cp.Sum}, w.state, nil
		}
		return w.from(seq)
	})
	if err != nil {
		return nil, err
	}
	if cp.Seq != 0 {
		w.cp, w.state = cp, state
	}
	return state, nil
}

// Compare returns what differs between two states, or any two JSON values; nil is none.
func Compare(old, new []byte) journal.StateChange {
	c := journal.StateChange{Before: int64(len(old)), After: int64(len(new)), Changes: []journal.KeyChange{}}
	c.Compare(old, new)
	return c
}
