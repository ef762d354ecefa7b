package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// MaxAnswers is how many branches one decision can make, each with an answer of its own.
const MaxAnswers = 10

// split makes the branches that a decision about the question a asks for: each goes on from
// there as if its own answer had been given. They are found again where this is cut short
// before it is recorded. why says that they cannot be made.
func (d *driver) split(s *stint.Session, m *stint.Message, c *journal.Decision, a *stint.Approval) (made []stint.ID, why string, err error) {
	switch {
	case len(c.Branches) == 0:
		return nil, "", nil
	case a.Quorum > 1:
		return nil, "where several people have to agree one of them makes no branches", nil
	case len(c.Branches) > MaxAnswers:
		return nil, fmt.Sprintf("%d branches are too many; %d can be made at a time", len(c.Branches), MaxAnswers), nil
	}
	for i := range c.Branches {
		other := &c.Branches[i]
		v, why, err := d.vote(a, &stint.Message{From: m.From, Body: other.Answer}, &journal.Decision{State: other.State, Roles: c.Roles})
		if err != nil || why != "" {
			return nil, why, err
		}
		if other.State != stint.ApprovalApproved && other.State != stint.ApprovalDenied {
			return nil, fmt.Sprintf("%q is no decision: approved or denied", other.State), nil
		}
		id, err := d.e.answered(d.io, s, a, i+1, answer{by: m.From, state: other.State, note: other.Note, body: v.body})
		switch {
		case stint.CodeOf(err) == stint.Unavailable:
			return nil, "", err
		case err != nil:
			return nil, plain(err), nil
		}
		made = append(made, id)
	}
	return made, "", nil
}

// answer is what is said to a question.
type answer struct {
	by    stint.Actor
	state stint.ApprovalState
	note  string
	body  []byte
}

// answered makes the n-th branch of s at the question a of its open loop. It has what the
// loop recorded up to there, so that nothing of it is done again, and its own answer.
func (e *Engine) answered(ctx context.Context, s *stint.Session, a *stint.Approval, n int, say answer) (stint.ID, error) {
	id := ident.ApprovalID(s.ID, a.Seq)
	b := Branch{Name: numbered(s, a, n), Reason: fmt.Sprintf("%s to %s", say.state, a.Text), Actor: say.by, Dedupe: fmt.Sprintf("approval/%s/%d", id, n)}
	skipped, err := e.inherited(ctx, s, s.Checkpoint.Loop)
	if err != nil {
		return stint.ID{}, err
	}
	batch, err := e.offspring(ctx, s, s.Checkpoint.Loop, &b, skipped)
	if err != nil {
		return stint.ID{}, err
	}
	if s.At.Loop == 1 && (!s.Parent.Branch || s.At.Line > 0) { // else its loop took it as a message
		if err := e.heard(ctx, s, 0, &b, &batch); err != nil {
			return stint.ID{}, err
		}
	}
	if err := e.retell(ctx, s, a, say, &batch); err != nil {
		return stint.ID{}, err
	}
	l, err := e.store.Create(ctx, batch, stint.Claim{})
	if err == nil {
		e.poke()
	}
	return l.Session, err
}

// numbered is the name of the n-th branch at a question.
func numbered(s *stint.Session, a *stint.Approval, n int) string {
	suffix := fmt.Sprintf(".%s-%d", strings.ReplaceAll(a.Step.String(), ".", "-"), n)
	return clip(s.Name, 100-len(suffix)) + suffix
}

// retell adds to a branch what the open loop of s has recorded, as entries of its own, and
// what is said to the question a.
func (e *Engine) retell(ctx context.Context, s *stint.Session, a *stint.Approval, say answer, to *stint.Batch) error {
	at := stint.Position{Loop: s.At.Loop, Attempt: 1}
	began := false
	seqs := map[stint.Seq]stint.Seq{} // of questions: here, by what they are there
	for after := s.At.LoopSeq - 1; ; {
		es, err := e.store.Entries(ctx, stint.Range{Session: s.ID, After: after, Limit: 1000})
		if err != nil {
			return err
		}
		for i := range es {
			from := &es[i]
			if from.Pos.Loop != at.Loop || from.Kind == stint.LoopStarted && began {
				continue
			}
			d, err := copied(from, seqs)
			if err != nil {
				return err
			}
			if d == nil {
				continue
			}
			body, err := past.Body(ctx, e.store, s.Family, from)
			if err != nil {
				return err
			}
			began = began || from.Kind == stint.LoopStarted
			pos := at
			pos.Step, pos.Sub = from.Pos.Step, from.Pos.Sub
			if err := e.follow(ctx, to, journal.Draft{Kind: from.Kind, Pos: pos, At: faultpoint.Now(), Actor: from.Actor, Data: d}, body); err != nil {
				return err
			}
			if from.Kind == stint.ApprovalRequested {
				seqs[from.Seq] = to.Session.Head
			}
		}
		if len(es) < 1000 {
			break
		}
		after = es[len(es)-1].Seq
	}
	pos := at
	pos.Step, pos.Sub = a.Step.Step, a.Step.Sub
	decided := journal.ApprovalDecided{Approval: seqs[a.Seq], State: say.state, Note: clip(firstLine(say.note), maxQuestion)}
	if err := e.follow(ctx, to, journal.Draft{Kind: stint.ApprovalDecided, Pos: pos, At: faultpoint.Now(), Actor: say.by, Cause: decided.Approval, Data: decided}, say.body); err != nil {
		return err
	}
	return e.follow(ctx, to, journal.Draft{Kind: stint.SessionReleased, Pos: at, At: faultpoint.Now(), Data: journal.Released{Why: "branch"}}, nil)
}

// copied is the data of an entry of an open loop as a branch has it; nil: it does not have it.
// seqs has the questions that the branch has.
func copied(e *stint.Entry, seqs map[stint.Seq]stint.Seq) (any, error) {
	switch e.Kind {
	case stint.LoopStarted:
		return journal.LoopStarted{Why: "branch"}, nil
	case stint.MessageTaken:
		d, err := journal.Decode[journal.Taken](e)
		if err != nil || !d.Kind.Input() && d.Kind != stint.Interrupt {
			return nil, err
		}
		return d, nil
	case stint.StepRequested:
		d, err := journal.Decode[journal.StepRequested](e)
		if err == nil && d.Child {
			err = stint.Conflict.Errorf("branch", "the loop has begun the session of step %s %s, whose end only this session hears", e.Pos, d.Name)
		}
		d.Reserve = stint.Usage{}
		return d, err
	case stint.StepCompleted, stint.StepFailed:
		d, err := journal.Decode[journal.StepDone](e)
		d.Copied, d.Reserve = true, stint.Usage{}
		return d, err
	case stint.StepResolved:
		return asIs[journal.StepResolved](e)
	case stint.ApprovalRequested:
		if e.Pos.Step == 0 {
			return nil, nil // it is about an order to that session
		}
		return asIs[journal.ApprovalRequested](e)
	case stint.ApprovalChanged:
		d, err := journal.Decode[journal.ApprovalChanged](e)
		there := seqs[d.Approval]
		if d.Approval = there; err != nil || there == 0 {
			return nil, err
		}
		return d, nil
	case stint.ApprovalDecided:
		d, err := journal.Decode[journal.ApprovalDecided](e)
		there := seqs[d.Approval]
		if d.Approval = there; err != nil || there == 0 {
			return nil, err
		}
		d.Branches = nil // they are that session's
		return d, nil
	}
	return nil, nil
}

// asIs is the data of an entry.
func asIs[T any](e *stint.Entry) (any, error) {
	d, err := journal.Decode[T](e)
	return d, err
}
