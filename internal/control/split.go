package control

import (
	"context"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/policy"
)

// others are the answers that branches go on with, checked as the decision itself is: of one
// question there is one decision, and what the session refuses later cannot be said again.
func (d *Desk) others(ctx context.Context, v *Decision, row *stint.Row, asked *view.Approval) ([]journal.Decision, error) {
	if len(v.Others) == 0 {
		return nil, nil
	}
	switch {
	case len(v.Others) > engine.MaxAnswers:
		return nil, stint.Invalid.Errorf("", "one decision makes at most %d branches, and these are %d", engine.MaxAnswers, len(v.Others))
	case asked.About == "order":
		e := stint.Invalid.Errorf("", "%s is about an order, which is carried out or not", asked.Short)
		e.Hint = "approve it or deny it; stint branch " + row.Short + "  makes a branch"
		return nil, e
	case asked.Quorum > 1:
		e := stint.Conflict.Errorf("", "%s wants %d people to agree, and branches are one person's", asked.Short, asked.Quorum)
		e.Hint = "decide it, and then: stint branch " + row.Short
		return nil, e
	}
	if err := d.spawns(ctx, row); err != nil {
		return nil, err
	}
	if err := d.MayBranch(ctx, row, v.From); err != nil {
		return nil, err
	}
	var all []journal.Decision
	for _, text := range v.Others {
		one := journal.Decision{State: stint.ApprovalApproved}
		if asked.Answer != nil {
			var err error
			if one.Answer, err = d.answer(&Decision{State: one.State, Answer: text, Text: v.Text}, asked); err != nil {
				return nil, err
			}
		} else if word := strings.Trim(text, `"`); word == "no" {
			one.State = stint.ApprovalDenied
		} else if word != "yes" {
			return nil, stint.Invalid.Errorf("", "%s asks for a yes or a no, and %q is none of them", asked.Short, text)
		}
		if one.State == v.State {
			one.Note = v.Note
		}
		all = append(all, one)
	}
	return all, nil
}

// spawns refuses a session whose open loop has begun another one: only it hears of its end.
func (d *Desk) spawns(ctx context.Context, row *stint.Row) error {
	es, err := d.Store.Entries(ctx, stint.Range{Session: row.Session.ID, After: row.Session.At.LoopSeq - 1, Kinds: []stint.Kind{stint.StepRequested}})
	if err != nil {
		return err
	}
	for i := range es {
		s, err := journal.Decode[journal.StepRequested](&es[i])
		if err != nil {
			return err
		}
		if s.Child && es[i].Pos.Loop == row.Session.At.Loop {
			e := stint.Conflict.Errorf("", "loop %d of %s (%s) has begun a session, whose end only this one hears", row.Session.At.Loop, row.Session.Name, row.Short)
			e.Hint = "decide without a branch, and then: stint branch " + row.Short + "  goes on from the loop before"
			return e
		}
	}
	return nil
}

// MayBranch refuses a branch by who is not among those whom a policy has decide about one.
// It is [stint.Denied], since an answer to one question does not wait for one to another.
func (d *Desk) MayBranch(ctx context.Context, row *stint.Row, by stint.Actor) error {
	c := journal.Command{From: &row.Session.Checkpoint.Loop}
	q, err := d.may(ctx, row, policy.Branch, &c, by)
	if err != nil || q == nil {
		return err
	}
	e := stint.Denied.Errorf("branch", "%s (%s) cannot be branched unless %s", row.Session.Name, row.Short, asked(row, q).By.String())
	e.Session, e.Hint = row.Session.ID, "decide without a branch, and then: stint branch "+row.Short+"  asks them"
	return e
}
