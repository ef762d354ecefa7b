package control

import (
	"context"
	"fmt"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/journal"
)

// Plan works out what going back to the end of a loop means. It reads the whole journal.
func (d *Desk) Plan(ctx context.Context, ses *stint.Session, from int) (journal.Plan, error) {
	es, err := allEntries(ctx, d.Store, ses.ID)
	if err != nil {
		return journal.Plan{}, err
	}
	src := engine.Source(ctx, d.Store, ses.ID, ses.Family)
	now, err := journal.ReadState(ses.Checkpoint, src)
	if err != nil {
		return journal.Plan{}, err
	}
	cp, err := journal.CheckpointAt(es, from)
	if err != nil {
		return journal.Plan{}, err
	}
	then, err := journal.ReadState(cp, src)
	if err != nil {
		return journal.Plan{}, err
	}
	return journal.MakePlan(*ses, es, from, now, then)
}

// PlanRestart is the plan of a restart, and why it would be refused as the session
// stands. Where the command says no loop it stays on its line, from its newest checkpoint.
func (d *Desk) PlanRestart(ctx context.Context, row *stint.Row, o Order) (plan journal.Plan, refused, err error) {
	from := row.Session.Checkpoint.Loop
	if o.Command.From != nil {
		from = *o.Command.From
	}
	if plan, err = d.Plan(ctx, &row.Session, from); err != nil {
		return plan, nil, err
	}
	if o.Command.From == nil {
		plan.Leaves.Loops = 0 // it stays on its line
	}
	if err := d.undecided(row, &plan, o.Command); err != nil {
		return plan, err, nil
	}
	return plan, d.Futile(ctx, row, o), nil
}

// Restart gives an order of kind [stint.Restart] for which [Desk.PlanRestart] made the
// plan, which may be nil where the command names no loop. Steps in doubt that would be left
// behind without a choice are [stint.Conflict], and so is a session that went on since.
func (d *Desk) Restart(ctx context.Context, row *stint.Row, plan *journal.Plan, o Order) error {
	if plan != nil && o.Command.From != nil && !row.Live { // a session that runs is past the plan before it can take it
		if err := d.undecided(row, plan, o.Command); err != nil {
			return err
		}
		o.Command.Head, o.Command.Plan = row.Session.Head, plan.Hash
	}
	return d.Give(ctx, row, o)
}

// undecided refuses to leave steps in doubt behind without a choice.
func (d *Desk) undecided(row *stint.Row, plan *journal.Plan, c journal.Command) error {
	steps := plan.Undecided()
	if c.From == nil || len(steps) == 0 || c.InDoubt == journal.SkipDoubt || c.InDoubt == journal.RedoDoubt {
		return nil
	}
	at := stint.Position{Loop: steps[0].Pos.Loop, Step: steps[0].Pos.Step, Sub: steps[0].Pos.Sub}
	what := fmt.Sprintf("step %s %s is in doubt, and", at, term.Line(steps[0].Name))
	switch n := len(steps) - 1; n {
	case 0:
	case 1:
		what = fmt.Sprintf("step %s %s and 1 other are in doubt, and", at, term.Line(steps[0].Name))
	default:
		what = fmt.Sprintf("step %s %s and %d others are in doubt, and", at, term.Line(steps[0].Name), n)
	}
	err := stint.Conflict.Errorf("restart", "%s going back leaves that behind", what)
	err.Hint = fmt.Sprintf("choose --in-doubt skip (the new line does not do it) or redo (it does it again)\n  or say what became of it: stint resolve %s:%s --happened | --not | --unknown", row.Short, at)
	if row.Session.Status != stint.Waiting || row.Session.Wait.For != stint.ForDoubt {
		err.Hint, _, _ = strings.Cut(err.Hint, "\n")
	}
	return err
}

// allEntries reads a whole journal.
func allEntries(ctx context.Context, r stint.Reader, id stint.ID) ([]stint.Entry, error) {
	const page = 5000
	var all []stint.Entry
	for after := stint.Seq(0); ; after = all[len(all)-1].Seq {
		es, err := r.Entries(ctx, stint.Range{Session: id, After: after, Limit: page})
		if err != nil {
			return nil, err
		}
		all = append(all, es...)
		if len(es) < page {
			return all, nil
		}
	}
}
