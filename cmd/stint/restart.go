package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

// restartOptions are the flags of stint restart.
type restartOptions struct {
	order
	from    int
	inDoubt string
	dryRun  bool
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
step in doubt has to be settled first: with stint resolve, or, going back, by what
--in-doubt says of those that are left behind:

  ask   do not go back while there is one
  skip  the new line does not do it: the step gets a marker as its result
  redo  the new line does it again when it comes to it, under another key`,
		Example: "  stint restart x81d --run\n  stint restart x81d --from 3 --dry-run\n  stint restart x81d --from 3 --in-doubt skip\n  stint restart x81d --from 3 --say \"leave the migrations alone\" --run",
		Args:    exactly(1, "one session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("from") {
				if o.from < 0 {
					return misused(cmd, "--from is a loop: 0 for the very beginning, or higher")
				}
				o.command.From = &o.from
			}
			switch choice := journal.DoubtChoice(o.inDoubt); choice {
			case journal.AskDoubt, journal.SkipDoubt, journal.RedoDoubt:
				o.command.InDoubt = choice
			case "":
				if cmd.Flags().Changed("in-doubt") {
					return misused(cmd, "--in-doubt is ask, skip or redo")
				}
			default:
				return misused(cmd, "--in-doubt is ask, skip or redo, not %q", o.inDoubt)
			}
			if o.inDoubt != "" && o.command.From == nil {
				return misused(cmd, "--in-doubt goes with --from: on the same line a step in doubt is settled by stint resolve")
			}
			return a.restart(cmd.Context(), args[0], o)
		},
	}
	controlFlags(cmd, &o.order, runHere)
	cmd.Flags().IntVar(&o.from, "from", 0, "keep loops 1 to N and begin loop N+1 again (default: the newest checkpoint)")
	cmd.Flags().StringVar(&o.inDoubt, "in-doubt", "", "with --from, what becomes of steps in doubt that are left behind: ask (default), skip or redo")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "print the plan and change nothing; exit 5 if it would be refused")
	cmd.Flags().StringVar(&o.command.Say, "say", "", "a message for the first loop after the restart")
	return cmd
}

func (a *app) restart(ctx context.Context, address string, o restartOptions) error {
	s, err := a.reachFor(ctx, o.run)
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
	desk := a.desk(s)
	plan, refused, err := desk.PlanRestart(ctx, &row, a.said(o.order))
	if err != nil {
		return err
	}
	if o.dryRun {
		return a.printPlan(&row, &plan, refused, o)
	}
	if refused != nil && !row.Live {
		return refused
	}
	if !a.json {
		a.printf("%s", planText(&row, &plan, o.command.InDoubt))
	}
	if err := desk.Restart(ctx, &row, &plan, a.said(o.order)); err != nil {
		return err
	}
	return a.given(ctx, s, &row, o.order)
}

// printPlan prints what the restart would do, and refuses as it would.
func (a *app) printPlan(row *stint.Row, plan *journal.Plan, refused error, o restartOptions) error {
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
		a.printf("%sNothing was changed. ", planText(row, plan, o.command.InDoubt))
		if refused == nil {
			a.printf("To do it: stint restart %s --from %d%s\n", row.Short, plan.From, o.choice())
		} else {
			a.printf("To do it: stint restart %s --from %d --in-doubt skip | redo\n", row.Short, plan.From)
		}
	}
	return refused
}

// choice is the flag that says what becomes of steps in doubt, where it was given.
func (o *restartOptions) choice() string {
	if o.command.InDoubt == "" {
		return ""
	}
	return " --in-doubt " + string(o.command.InDoubt)
}
