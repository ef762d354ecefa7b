package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/control"
)

// limitOptions are the flags of stint limit; empty ones leave a limit as it is.
type limitOptions struct {
	order
	limits control.Limits
}

func (a *app) limitCommand() *cobra.Command {
	o := limitOptions{order: order{kind: stint.SetLimit}}
	cmd := &cobra.Command{
		Use: "limit SESSION", Short: "Change the limits of a session",
		Long: `Change limits of a session. One that waits for a used-up limit goes on where it
stands once the limit is raised. A value is a new limit, +VALUE adds to the old one,
and none removes it.`,
		Example:           "  stint limit x81d --loops +20\n  stint limit x81d --cost +2.50 --run\n  stint limit x81d --wall 2h --reason \"large repository\"\n  stint limit x81d --deadline none",
		Args:              exactly(1, "one session"),
		ValidArgsFunction: one(a.completeSessions),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.limit(cmd.Context(), args[0], o) },
	}
	limitFlags(cmd.Flags(), &o.limits)
	controlFlags(cmd, &o.order, runHere)
	return cmd
}

// limitFlags are those that change limits.
func limitFlags(f *pflag.FlagSet, l *control.Limits) {
	f.StringVar(&l.Wall, "wall", "", "limit of running time, like 1h30m")
	f.StringVar(&l.Idle, "idle", "", "limit of running time without a sign of life")
	f.StringVar(&l.Deadline, "deadline", "", "stop at this time, or this long from now, whatever it does or waits for")
	f.StringVar(&l.Loops, "loops", "", "limit of loops")
	f.StringVar(&l.Steps, "steps", "", "limit of steps")
	f.StringVar(&l.Tokens, "tokens", "", "limit of tokens of models, as the agent reports them")
	f.StringVar(&l.Cost, "cost", "", "limit of US dollars, like 2.50, or none")
	f.StringVar(&l.Tools, "tool-calls", "", "limit of calls of tools")
	f.StringVar(&l.Children, "children", "", "limit of sessions spawned below it, at every level")
	f.StringVar(&l.OnLimit, "on-limit", "", "what a used-up limit does: wait (for a person) or stop")
}

func (a *app) limit(ctx context.Context, address string, o limitOptions) error {
	s, row, _, err := a.atSession(ctx, address, o.run)
	if err != nil {
		return err
	}
	defer s.store.Close()
	lim := row.Session.Limits
	if err := o.limits.Apply(&lim, time.Now()); err != nil {
		return usage(fmt.Errorf("--%w", err))
	}
	if lim == row.Session.Limits {
		return usage(fmt.Errorf("no limit changes; give --wall, --idle, --deadline, --loops, --steps, --tokens, --cost, --tool-calls, --children or --on-limit"))
	}
	o.command.Limits = &lim
	return a.give(ctx, s, &row, o.order)
}
