package control

import (
	"context"
	"fmt"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/policy"
)

// Brancher makes branches of sessions.
type Brancher interface {
	// Branch is as [engine.Engine.Branch].
	Branch(ctx context.Context, parent stint.ID, b engine.Branch) (engine.Created, error)
}

// State returns the state that a session would go on with behind a loop, nil for its newest
// completed one, once set, an RFC 7396 patch, is merged into it. set may be nil.
func (d *Desk) State(ctx context.Context, ses *stint.Session, from *int, set []byte) ([]byte, error) {
	cp := ses.Checkpoint
	if from != nil {
		es, err := allEntries(ctx, d.Store, ses.ID)
		if err != nil {
			return nil, err
		}
		if cp, err = journal.CheckpointAt(es, *from); err != nil {
			return nil, err
		}
	}
	state, err := journal.ReadState(cp, engine.Source(ctx, d.Store, ses.ID, ses.Family))
	if err != nil || set == nil {
		return state, err
	}
	merged, err := jsonx.Merge(state, set)
	if err != nil {
		return nil, &stint.Error{Code: stint.Invalid, Op: "state", Session: ses.ID, Err: err, Hint: "give members of the state and their values as JSON"}
	}
	return merged, nil
}

// Plan works out what going back to the end of a loop, or branching off there, means, with
// what the command changes. It reads the whole journal.
func (d *Desk) Plan(ctx context.Context, ses *stint.Session, from int, c *journal.Command) (journal.Plan, error) {
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
	then := []byte(c.State)
	if then == nil {
		if then, err = journal.ReadState(cp, src); err != nil {
			return journal.Plan{}, err
		}
	}
	plan, err := journal.MakePlan(*ses, es, from, now, then)
	if err != nil || c.Agent == nil {
		return plan, err
	}
	pinned, err := engine.Pinned(ctx, d.Store, ses)
	if err == nil {
		plan.Changes(pinned, c.Config)
	}
	return plan, err
}

// PlanRestart is the plan of a restart or a rollback, and why it would be refused as the
// session stands. Where the command says no loop, and changes nothing that needs a new line,
// it stays on its line, from its newest checkpoint.
func (d *Desk) PlanRestart(ctx context.Context, row *stint.Row, o Order) (plan journal.Plan, refused, err error) {
	from := row.Session.Checkpoint.Loop
	if o.Command.From != nil {
		from = *o.Command.From
	}
	if plan, err = d.Plan(ctx, &row.Session, from, &o.Command); err != nil {
		return plan, nil, err
	}
	if o.Command.From == nil {
		plan.Leaves.Loops = 0 // it stays on its line
	}
	if err := d.undecided(row, &plan, o.Command, leftBehind); err != nil {
		return plan, err, nil
	}
	ask, err := d.may(ctx, row, policy.Verb(o.Kind), &o.Command, o.From)
	if err != nil {
		return plan, err, nil
	}
	if refused = d.Futile(ctx, row, o); refused == nil && ask != nil {
		refused = asked(row, ask)
	}
	return plan, refused, nil
}

// Restart gives an order of kind [stint.Restart] or [stint.Rollback] for which
// [Desk.PlanRestart] made the plan, which may be nil where the command names no loop. Steps
// in doubt that would be left behind without a choice are [stint.Conflict], and so is a
// session that went on since. An [Asked] says that the order is recorded, and done once those
// agree whom a policy names.
func (d *Desk) Restart(ctx context.Context, row *stint.Row, plan *journal.Plan, o Order) error {
	ask, err := d.may(ctx, row, policy.Verb(o.Kind), &o.Command, o.From)
	if err != nil {
		return err
	}
	if plan != nil && o.Command.From != nil && !row.Live { // a session that runs is past the plan before it can take it
		if err := d.undecided(row, plan, o.Command, leftBehind); err != nil {
			return err
		}
		o.Command.Head, o.Command.Plan = row.Session.Head, plan.Hash
	}
	o.Command.Ask = ask
	return d.Give(ctx, row, o)
}

// PlanBranch is the plan of a branch, and why it would be refused.
func (d *Desk) PlanBranch(ctx context.Context, row *stint.Row, c *journal.Command, by stint.Actor) (plan journal.Plan, refused, err error) {
	from := row.Session.Checkpoint.Loop
	if c.From == nil {
		c.From = &from
	}
	if plan, err = d.Plan(ctx, &row.Session, *c.From, c); err != nil {
		return plan, nil, err
	}
	plan = plan.OfBranch()
	ask, refused := d.may(ctx, row, policy.Branch, c, by)
	if refused == nil && !row.Live {
		refused = d.undecided(row, &plan, *c, behindBranch)
	}
	if refused == nil && ask != nil {
		refused = asked(row, ask)
	}
	return plan, refused, nil
}

// Branch makes the branch for which [Desk.PlanBranch] made the plan. [Asked] is as with
// [Desk.Restart].
func (d *Desk) Branch(ctx context.Context, row *stint.Row, plan *journal.Plan, b engine.Branch) (engine.Created, error) {
	c := journal.Command{From: &plan.From, InDoubt: b.InDoubt, Say: b.Say, State: b.State, Reason: b.Reason}
	if b.Agent != nil {
		c.Agent = &stint.AgentRef{Name: b.Agent.Name}
	}
	ask, err := d.may(ctx, row, policy.Branch, &c, b.Actor)
	if err != nil {
		return engine.Created{}, err
	}
	if !row.Live {
		if err := d.undecided(row, plan, c, behindBranch); err != nil {
			return engine.Created{}, err
		}
	}
	if ask != nil {
		c.Name, c.Labels, c.Limits, c.Key = b.Name, b.Labels, b.Limits, b.Dedupe
		if b.Agent != nil {
			ref, config, err := engine.Pin(*b.Agent)
			if err != nil {
				return engine.Created{}, err
			}
			c.Agent, c.Config = &ref, config
		}
		c.Ask = ask
		o := Order{Kind: stint.BranchOff, From: b.Actor, Command: c}
		if !row.Live {
			o.Command.Head, o.Command.Plan = row.Session.Head, plan.Hash
		}
		return engine.Created{}, d.Give(ctx, row, o)
	}
	b.From = &plan.From
	return d.Brancher.Branch(ctx, row.Session.ID, b)
}

// What is wrong with leaving steps in doubt as they are.
const (
	leftBehind   = "going back leaves that behind"
	behindBranch = "the branch would come to that again"
)

// undecided refuses to pass steps in doubt over without a choice.
func (d *Desk) undecided(row *stint.Row, plan *journal.Plan, c journal.Command, but string) error {
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
	err := stint.Conflict.Errorf("restart", "%s %s", what, but)
	err.Hint = fmt.Sprintf("choose --in-doubt skip (it is not done again) or redo (it is)\n  or say what became of it: stint resolve %s:%s --happened | --not | --unknown", row.Short, at)
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
