package past

import (
	"context"
	"encoding/json"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// lookbackPage is how many entries are read at a time, from the newest back: what an
// agent looks for is seldom old.
const lookbackPage = 500

// Outcome returns the result of the step at exactly this position of an earlier loop of s,
// whatever its attempt. The loops before a branch are those of the session that it branched
// off. [stint.NotFound] if no step up to the head of s, or up to where it branched off,
// ended well there, or if the session that had it is not in the store any more.
func Outcome(ctx context.Context, src Source, s *stint.Session, at stint.Position) (json.RawMessage, error) {
	id, head, from := s.ID, s.Head, s.Parent
	for from.Branch && at.Loop <= from.Loop {
		id, head = from.Session, from.Seq
		first, err := src.Entries(ctx, stint.Range{Session: id, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(first) == 0 {
			return nil, noOutcome(id)
		}
		created, err := journal.Decode[journal.Created](&first[0])
		if err != nil {
			return nil, err
		}
		from = created.Parent
	}
	kinds := []stint.Kind{stint.StepCompleted, stint.StepResolved}
	for until := head; until > 0; {
		es, err := src.Entries(ctx, stint.Range{Session: id, Until: until, Kinds: kinds, Last: true, Limit: lookbackPage})
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
					return json.RawMessage(Unknown), nil
				}
			}
			return Body(ctx, src, s.Family, e)
		}
		if len(es) < lookbackPage {
			break
		}
		until = es[0].Seq - 1
	}
	return nil, noOutcome(id)
}

func noOutcome(id stint.ID) error {
	return &stint.Error{Code: stint.NotFound, Op: "outcome", Session: id,
		Err: stint.NotFound, Hint: "no step ended well at this position; positions are those of the journal, line and loop included"}
}
