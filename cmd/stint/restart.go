package main

import (
	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
)

func (a *app) restartCommand() *cobra.Command {
	o := backOptions{order: order{kind: stint.Restart}}
	cmd := &cobra.Command{
		Use: "restart SESSION", Short: "Begin a session again, from its newest or an earlier loop",
		Long: `Begin a session again. Without --from it goes on from its newest checkpoint, on the
same line: the loop that was open begins again with its finished steps answered from
the journal, and nothing is done twice.

With --from N it goes back to the end of loop N, on a new line: loops after N stay
readable on the line that is left, and what they did outside cannot be undone. So it
does with --set, --edit, --agent or --model, which change the state or the agent it goes
on with.
--dry-run prints what would happen and changes nothing. The exit status is 5 if a
step in doubt has to be settled first: with stint resolve, or, going back, by what
--in-doubt says of those that are left behind:

  ask   do not go back while there is one
  skip  the new line does not do it: the step gets a marker as its result
  redo  the new line does it again when it comes to it, under another key`,
		Example: "  stint restart x81d --run\n  stint restart x81d --from 3 --dry-run\n  stint restart x81d --from 3 --in-doubt skip\n  stint restart x81d --from 3 --say \"leave the migrations alone\" --run\n" +
			"  stint restart x81d --set retries=0 --set target.branch=main\n  stint restart x81d --from 3 --agent triage --dry-run",
		Args: exactly(1, "one session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, "from"); err != nil {
				return err
			}
			if o.inDoubt != "" && o.command.From == nil {
				return misused(cmd, "--in-doubt goes with --from: on the same line a step in doubt is settled by stint resolve")
			}
			return a.goBack(cmd.Context(), args[0], o)
		},
	}
	controlFlags(cmd, &o.order, runHere)
	o.flags(cmd, "from", "keep loops 1 to `N` and begin loop N+1 again (default: the newest checkpoint)")
	cmd.Flags().StringVar(&o.command.Say, "say", "", "a message for the first loop after the restart")
	return cmd
}
