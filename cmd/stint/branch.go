package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/client"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/view"
)

// branchOptions are the flags of stint branch.
type branchOptions struct {
	backOptions
	name   string
	count  int
	labels []string
	dedupe string
	limits control.Limits
}

func (a *app) branchCommand() *cobra.Command {
	var o branchOptions
	cmd := &cobra.Command{
		Use: "branch SESSION", Short: "Begin another session behind a loop of this one",
		Long: `Begin a session that goes on from the end of a loop of another one, with a copy of the
state there and a journal, limits and keys of its own. The session that it comes from
goes on, or stays, as it is. --set, --edit, --agent, --model and --say change what the
branch begins with; -n makes several alike, to compare what becomes of them.

What the loops after the checkpoint did outside stays done, and the branch does it again
when it comes to it: --dry-run lists it. stint replay --live-model makes a branch that
calls no tool, and gets what the session's tools gave.`,
		Example: "  stint branch x81d --from 3 --dry-run\n  stint branch x81d --from 3 --say \"try it without the cache\" --run\n  stint branch x81d --from 3 --set model=small -n 3\n  stint branch x81d --from 3 --model openai/gpt-5.6 --run\n  stint diff x81d BRANCH",
		Args:    exactly(1, "one session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, "from"); err != nil {
				return err
			}
			switch {
			case o.count < 1 || o.count > 100:
				return misused(cmd, "-n is 1 to 100 branches")
			case o.count > 1 && o.run:
				return misused(cmd, "--run runs one branch here: leave it out, or -n")
			}
			return a.branch(cmd.Context(), args[0], &o)
		},
	}
	controlFlags(cmd, &o.order, runHere)
	o.flags(cmd, "from", "go on behind loop `N` (default: the newest completed one)")
	f := cmd.Flags()
	f.StringVar(&o.command.Say, "say", "", "a message for the first loop of the branch")
	f.StringVar(&o.name, "name", "", "of the branch (default: the session's name and the loop)")
	f.IntVarP(&o.count, "n", "n", 1, "how many")
	f.StringArrayVarP(&o.labels, "label", "l", nil, "a label `KEY=VALUE` beside those of the session; repeatable")
	f.StringVar(&o.dedupe, "dedupe", "", "a key: the same again finds the branch that the first one made")
	limitFlags(f, &o.limits)
	return cmd
}

func (a *app) branch(ctx context.Context, address string, o *branchOptions) error {
	s, row, _, err := a.atSession(ctx, address, o.run)
	if err != nil {
		return err
	}
	defer s.store.Close()
	if err := o.apply(ctx, a, s, &row); err != nil {
		return err
	}
	desk := a.desk(s)
	plan, refused, err := desk.PlanBranch(ctx, &row, &o.command, a.actor())
	if err != nil {
		return err
	}
	if o.dryRun {
		return a.printPlan(ctx, s, &row, &plan, refused, &o.backOptions)
	}
	if refused != nil && !waits(refused) {
		return refused
	}
	b, err := o.branch(a, &row.Session)
	if err != nil {
		return err
	}
	if !a.json {
		a.printf("%s", planText(&row, &plan, &o.backOptions))
	}
	made := make([]stint.Row, 0, o.count)
	var asked error
	name, key := b.Name, b.Dedupe
	for i := range o.count {
		if o.count > 1 {
			b.Name, b.Dedupe = numbered(name, &row.Session, plan.From, i+1), ""
			if key != "" {
				b.Dedupe = key + "/" + strconv.Itoa(i+1)
			}
		}
		c, err := desk.Branch(ctx, &row, &plan, b)
		if waits(err) && i < o.count-1 {
			asked = exitError(a.fail(err))
			continue
		}
		if err != nil {
			return err
		}
		one, err := s.store.Session(ctx, c.ID)
		if err != nil {
			return err
		}
		made = append(made, one)
	}
	if asked != nil {
		return asked
	}
	return a.branched(ctx, s, made, o)
}

// numbered is the name of one of several branches.
func numbered(name string, s *stint.Session, loop, n int) string {
	if name == "" {
		name = s.Name + "." + strconv.Itoa(loop)
	}
	suffix := "-" + strconv.Itoa(n)
	return name[:min(len(name), 100-len(suffix))] + suffix
}

// branch is what the flags ask for.
func (o *branchOptions) branch(a *app, parent *stint.Session) (engine.Branch, error) {
	c := &o.command
	b := engine.Branch{Name: o.name, State: c.State, Say: c.Say, Reason: c.Reason, Actor: a.actor(), InDoubt: c.InDoubt, Dedupe: o.dedupe}
	if c.Agent != nil {
		b.Agent = &engine.Agent{Name: c.Agent.Name, Runtime: c.Agent.Runtime, Config: c.Config}
	}
	own, err := labelsOf(o.labels)
	if err != nil {
		return b, err
	}
	if own != nil {
		if b.Labels, err = control.Labels(own, parent.Labels); err != nil {
			return b, err
		}
	}
	lim := parent.Limits
	if o.pinned != nil {
		if err := a.defaultMoney(o.pinned, &lim); err != nil {
			return b, err
		}
	}
	if err := o.limits.Apply(&lim, time.Now()); err != nil {
		return b, usage(fmt.Errorf("--%w", err))
	}
	b.Limits = &lim
	if o.pinned != nil {
		return b, a.countsMoney(o.pinned, &lim)
	}
	return b, nil
}

// branched says what was made, and runs it if that is asked for.
func (a *app) branched(ctx context.Context, s *site, made []stint.Row, o *branchOptions) error {
	if o.run {
		return a.runThere(ctx, s, &made[0], a.json)
	}
	if a.json {
		return a.printJSON(view.NewList(made, stint.ID{}, time.Now()))
	}
	for i := range made {
		row := &made[i]
		a.printf("%s (%s) is recorded: %s\n  %s\n  stint show %s · stint logs -f %s\n", row.Session.Name, row.Short, view.StatusWord(row), s.runs(row), row.Short, row.Short)
	}
	return nil
}

// Branch implements [control.Brancher].
func (t settler) Branch(ctx context.Context, parent stint.ID, b engine.Branch) (engine.Created, error) {
	w := t.site.wire(nil)
	defer w.close()
	e, err := t.app.engine(ctx, t.site, w)
	if err != nil {
		return engine.Created{}, err
	}
	defer e.Close()
	return e.Branch(ctx, parent, b)
}

// farBrancher makes branches at a server.
type farBrancher struct{ *client.Client }

// Branch implements [control.Brancher].
func (f farBrancher) Branch(ctx context.Context, parent stint.ID, b engine.Branch) (engine.Created, error) {
	q := client.Branch{From: b.From, Name: b.Name, State: b.State, Say: b.Say, Reason: b.Reason, Labels: b.Labels, InDoubt: string(b.InDoubt), Key: b.Dedupe}
	if q.Key == "" {
		q.Key = ident.New().String() // so that it can be repeated when an answer is lost
	}
	if b.Limits != nil {
		q.Limits = farLimits(b.Limits)
	}
	made, err := f.Client.Branch(ctx, parent, q)
	return engine.Created{ID: made.ID, Found: made.Found}, err
}

// farLimits says limits in whole, those that there are not too.
func farLimits(l *stint.Limits) client.Limits {
	value := func(zero bool, text string) string {
		if zero {
			return "none"
		}
		return text
	}
	out := client.Limits{
		Wall: value(l.Wall == 0, l.Wall.String()), Idle: value(l.Idle == 0, l.Idle.String()), Deadline: value(l.Deadline.IsZero(), l.Deadline.Format(time.RFC3339Nano)),
		Loops: value(l.Loops == 0, strconv.Itoa(l.Loops)), Steps: value(l.Steps == 0, strconv.Itoa(l.Steps)),
		Tokens: value(l.Tokens == 0, strconv.FormatInt(l.Tokens, 10)), Cost: value(l.Cost == 0, l.Cost.String()),
		Tools: value(l.ToolCalls == 0, strconv.Itoa(l.ToolCalls)), Children: value(l.Children == 0, strconv.Itoa(l.Children)), OnLimit: "wait",
	}
	if l.Stop {
		out.OnLimit = "stop"
	}
	return out
}
