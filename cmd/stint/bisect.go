package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint/internal/compare"
	"github.com/stint-dev/stint/internal/view"
)

func (a *app) bisectCommand() *cobra.Command {
	var changed, monotone bool
	cmd := &cobra.Command{
		Use: "bisect SESSION POINTER[=VALUE]", Short: "Find the loop in which a value of the state came to be",
		Long: `Find the first loop at whose end the state has a value at a JSON pointer (RFC 6901):
any value, or the one behind =, which is JSON or else a text. With --changed it is the
first loop that left another value there than the loop before.

All states are looked at in their order, since values come and go. With
--assume-monotone a value is taken to stay once it is there, and the loop is sought by
halves.`,
		Example: "  stint bisect x81d /customer/id=42\n  stint bisect x81d /error\n  stint bisect x81d /plan --changed\n  stint bisect x81d/0 /status=done --assume-monotone",
		Args:    exactly(2, "a session and a JSON pointer"), ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			want, err := compare.ParseWant(args[1])
			if err != nil {
				return err
			}
			if want.Changed, want.Monotone = changed, monotone; changed && want.Value != nil {
				return misused(cmd, "--changed looks for any other value; leave =VALUE out")
			}
			return a.bisect(cmd.Context(), args[0], want)
		},
	}
	cmd.Flags().BoolVar(&changed, "changed", false, "the first loop that left another value than the loop before")
	cmd.Flags().BoolVar(&monotone, "assume-monotone", false, "a value stays once it is there: look at few states")
	return cmd
}

func (a *app) bisect(ctx context.Context, address string, want compare.Want) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	row, place, err := view.Find(ctx, s.store, address, time.Now())
	if err != nil {
		return err
	}
	f, err := compare.Bisect(ctx, s.store, compare.Of{Row: &row, Line: place.Line}, want)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(f)
	}
	return f.Write(a.out)
}
