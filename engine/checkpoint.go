package engine

import (
	"context"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// checkpointAt finds the checkpoint of a loop on the current line.
func (e *Engine) checkpointAt(ctx context.Context, s *stint.Session, loop int) (stint.Checkpoint, error) {
	if loop == s.Checkpoint.Loop {
		return s.Checkpoint, nil
	}
	end, err := e.endOf(ctx, s, loop)
	if err != nil {
		return stint.Checkpoint{}, err
	}
	return e.left(ctx, end)
}

// endOf finds the entry at which a loop of the current line is kept: the one that completed
// it, or that began a line or the session behind it. It takes as long for a long session as
// for a short one, but for the logarithm.
func (e *Engine) endOf(ctx context.Context, s *stint.Session, loop int) (*stint.Entry, error) {
	begins, err := e.entriesOf(ctx, s.ID, stint.SessionCreated, stint.LineStarted)
	if err != nil {
		return nil, err
	}
	if loop > s.Checkpoint.Loop || s.Parent.Branch && loop < s.Parent.Loop || loop < 0 {
		all, err := e.entriesOf(ctx, s.ID, stint.SessionCreated, stint.LineStarted, stint.LoopStarted, stint.LoopCompleted)
		if err == nil {
			_, err = journal.CheckpointAt(all, loop) // which says what there is
		}
		return nil, err
	}
	until := s.Head
	for i := len(begins) - 1; i >= 0; i-- {
		cp, err := journal.CheckpointOf(&begins[i])
		if err != nil || cp.Loop == loop {
			return &begins[i], err
		}
		if cp.Loop < loop {
			return e.completedIn(ctx, s.ID, begins[i].Seq, until, loop)
		}
		until = begins[i].Seq - 1
	}
	return nil, stint.Corrupt.Errorf("checkpoint", "no line of %s has loop %d", s.ID, loop)
}

// completedIn finds the end of a loop that was completed between two entries of one line,
// where later loops have later entries.
func (e *Engine) completedIn(ctx context.Context, id stint.ID, after, until stint.Seq, loop int) (*stint.Entry, error) {
	for low, high := after, until; low < high; { // it is behind low, and not behind high
		middle := low + (high-low)/2
		es, err := e.store.Entries(ctx, stint.Range{Session: id, After: middle, Until: high, Kinds: []stint.Kind{stint.LoopCompleted}, Limit: 1})
		switch {
		case err != nil:
			return nil, err
		case len(es) == 0 || es[0].Pos.Loop > loop:
			high = middle
		case es[0].Pos.Loop < loop:
			low = es[0].Seq
		default:
			return &es[0], nil
		}
	}
	return nil, stint.Corrupt.Errorf("checkpoint", "session %s completed no loop %d between entries %d and %d", id, loop, after, until)
}

// left is the checkpoint that the end of a loop left. Where the loop left the state as it
// was, that is the one before it.
func (e *Engine) left(ctx context.Context, end *stint.Entry) (stint.Checkpoint, error) {
	for at := end; ; {
		cp, err := journal.CheckpointOf(at)
		if err != nil || cp.Seq != 0 || at.Kind != stint.LoopCompleted {
			if at != end {
				cp.Loop, cp.At = end.Pos.Loop, end.At
			}
			return cp, err
		}
		es, err := e.store.Entries(ctx, stint.Range{Session: end.Session, Until: at.Seq - 1, Last: true, Limit: 1,
			Kinds: []stint.Kind{stint.LoopCompleted, stint.LineStarted, stint.SessionCreated}})
		if err != nil {
			return cp, err
		}
		if len(es) == 0 {
			return cp, stint.Corrupt.Errorf("checkpoint", "the journal of %s has no first entry", end.Session)
		}
		at = &es[0]
	}
}

// entriesOf reads all entries of some kinds.
func (e *Engine) entriesOf(ctx context.Context, id stint.ID, kinds ...stint.Kind) ([]stint.Entry, error) {
	const page = 10_000
	var all []stint.Entry
	for after := stint.Seq(0); ; after = all[len(all)-1].Seq {
		es, err := e.store.Entries(ctx, stint.Range{Session: id, After: after, Limit: page, Kinds: kinds})
		if err != nil {
			return nil, err
		}
		if all = append(all, es...); len(es) < page {
			return all, nil
		}
	}
}
