package main

import (
	"github.com/spf13/cobra"

	"github.com/stint-dev/stint/internal/bench"
	"github.com/stint-dev/stint/store/sqlite"
)

func (a *app) benchBranchCommand() *cobra.Command {
	var loops, n int
	cmd := &cobra.Command{
		Use: "branch", Short: "What a branch of a long session takes, and going back in it",
		Long: `Make a session of many loops, then branches of it at the loop in its middle, and take it
back there. A time is until what was done is durable; bytes are those by which the store
grew, after a checkpoint.`,
		Example: "  stint bench branch\n  stint bench branch --loops 20000 -n 100 --json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if loops < 2 || n < 2 {
				return misused(cmd, "--loops and -n are two or more")
			}
			var b bench.Branches
			err := a.benchFolder(func(_, path string) error {
				return withStore(cmd.Context(), path, func(st *sqlite.Store) error {
					var err error
					b, err = bench.MeasureBranches(cmd.Context(), st, loops, n, a.benchSay)
					return err
				})
			})
			if err != nil || a.json {
				return a.benchJSON(err, b)
			}
			a.printf("a session of %d loops, %.0f KB; at loop %d its state has %d bytes\n", b.Loops, b.Parent/1000, b.From, b.StateBytes)
			a.printf("%d branches: p50 %.2f ms, p95 %.2f ms (a small commit: %.2f ms), %.0f bytes each, of the second half %.0f\n", b.Branches, b.P50ms, b.P95ms, b.CommitMS, b.Bytes, b.Later)
			a.printf("rollback: p50 %.2f ms, %.0f bytes each\n", b.RollbackMS, b.RollBytes)
			return nil
		},
	}
	cmd.Flags().IntVar(&loops, "loops", 2000, "of the session")
	cmd.Flags().IntVarP(&n, "n", "n", 1000, "branches")
	return cmd
}
