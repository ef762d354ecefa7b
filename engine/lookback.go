package engine

import (
	"context"
	"encoding/json"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// lookbackPage is how many entries are read at a time, from the newest back: what an
// agent looks for is seldom old.
const lookbackPage = 500

// Outcome returns the result of the step at exactly this position of an earlier loop,
// whatever its attempt; [stint.NotFound] if no step of this session ended well there. It
// is for agents that want back what they do not carry in their state.
func (l *loop) Outcome(ctx context.Context, at stint.Position) (json.RawMessage, error) {
	kinds := []stint.Kind{stint.StepCompleted, stint.StepResolved}
	for until := l.start.Head; until > 0; {
		es, err := l.d.e.store.Entries(ctx, stint.Range{Session: l.start.ID, Until: until, Kinds: kinds, Last: true, Limit: lookbackPage})
		if err != nil {
			return nil, err
		}
		for i := len(es) - 1; i >= 0; i-- {
			e := &es[i]
			if p := e.Pos; p.Line != at.Line || p.Loop != at.Loop || p.Step != at.Step || p.Sub != at.Sub {
				continue
			}
			if e.Kind == stint.StepResolved {
				d, err := journal.Decode[journal.StepResolved](e)
				if err != nil {
					return nil, err
				}
				switch d.Verdict {
				case journal.NotHappened:
					continue
				case journal.Unknown:
					return json.RawMessage(unknownResult), nil
				}
			}
			if !e.Blob.IsZero() {
				return l.d.e.store.Blob(ctx, l.start.Family, e.Blob)
			}
			return e.Body, nil
		}
		if len(es) < lookbackPage {
			break
		}
		until = es[0].Seq - 1
	}
	return nil, &stint.Error{Code: stint.NotFound, Op: "outcome", Session: l.start.ID,
		Err: stint.NotFound, Hint: "no step ended well at this position; positions are those of the journal, line and loop included"}
}
