package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

// restartOptions are the flags of stint restart.
type restartOptions struct {
	order
	from   int
	dryRun bool
}

func (a *app) restartCommand() *cobra.Command {
	o := restartOptions{order: order{kind: stint.Restart}}
	cmd := &cobra.Command{
		Use: "restart SESSION", Short: "Begin a session again, from its newest or an earlier loop",
		Long: `Begin a session again. Without --from it goes on from its newest checkpoint, on the
same line: the loop that was open begins again with its finished steps answered from
the journal, and nothing is done twice.

With --from N it goes back to the end of loop N, on a new line: loops after N stay
readable on the line that is left, and what they did outside cannot be undone.
--dry-run prints what would happen and changes nothing. The exit status is 5 if a
step in doubt has to be settled first.`,
		Example: "  stint restart x81d --run\n  stint restart x81d --from 3 --dry-run\n  stint restart x81d --from 3 --say \"leave the migrations alone\" --run",
		Args:    exactly(1, "one session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("from") {
				if o.from < 0 {
					return misused(cmd, "--from is a loop: 0 for the very beginning, or higher")
				}
				o.command.From = &o.from
			}
			return a.restart(cmd.Context(), args[0], o)
		},
	}
	controlFlags(cmd, &o.order, runHere)
	cmd.Flags().IntVar(&o.from, "from", 0, "keep loops 1 to N and begin loop N+1 again (default: the newest checkpoint)")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "print the plan and change nothing; exit 5 if it would be refused")
	cmd.Flags().StringVar(&o.command.Say, "say", "", "a message for the first loop after the restart")
	return cmd
}

func (a *app) restart(ctx context.Context, address string, o restartOptions) error {
	s, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	row, _, err := view.Find(ctx, s.store, address, time.Now())
	if err != nil {
		return err
	}
	if o.command.From == nil && !o.dryRun {
		return a.give(ctx, s, &row, o.order)
	}
	from := row.Session.Checkpoint.Loop
	if o.command.From != nil {
		from = *o.command.From
	}
	plan, err := a.plan(ctx, s, &row.Session, from)
	if err != nil {
		return err
	}
	if o.dryRun {
		return a.printPlan(ctx, s, &row, &plan, o)
	}
	if !row.Live { // a session that runs is past the plan before it can take it
		o.command.Head, o.command.Plan = row.Session.Head, plan.Hash
	}
	if !a.json {
		a.printf("%s", planText(&row, &plan))
	}
	return a.give(ctx, s, &row, o.order)
}

// printPlan prints what the restart would do, and refuses as it would.
func (a *app) printPlan(ctx context.Context, s *site, row *stint.Row, plan *journal.Plan, o restartOptions) error {
	if o.command.From == nil {
		plan.Leaves.Loops = 0 // it stays on its line
	}
	switch {
	case a.json:
		doc := struct {
			Schema string `json:"schema"`
			*journal.Plan
		}{"stint.plan/1", plan}
		if err := a.printJSON(doc); err != nil {
			return err
		}
	case o.command.From == nil:
		a.printf("%s", goOnText(row, plan))
	default:
		a.printf("%sNothing was changed. To do it: stint restart %s --from %d\n", planText(row, plan), row.Short, plan.From)
	}
	return a.futile(ctx, s, row, o.order)
}

// plan works out what going back to the end of a loop means.
func (a *app) plan(ctx context.Context, s *site, ses *stint.Session, from int) (journal.Plan, error) {
	es, err := allEntries(ctx, s.store, ses.ID)
	if err != nil {
		return journal.Plan{}, err
	}
	src := engine.Source(ctx, s.store, ses.ID, ses.Family)
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
