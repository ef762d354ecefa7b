package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint/internal/view"
)

func (a *app) treeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "tree SESSION", Short: "Show a session with its children and branches",
		Long: `Show a session with all that it spawned and all that branched off it, at every level:
how each stands, its loops, and what it used. The last line sums them up.`,
		Example:           "  stint tree triage-1129\n  stint tree x81d --json",
		Args:              exactly(1, "one session"),
		ValidArgsFunction: one(a.completeSessions),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.tree(cmd.Context(), args[0]) },
	}
}

func (a *app) tree(ctx context.Context, address string) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	now := time.Now()
	row, _, err := view.Find(ctx, s.store, address, now)
	if err != nil {
		return err
	}
	t, err := view.NewTree(ctx, s.store, &row, now)
	switch {
	case err != nil:
		return err
	case a.json:
		return view.WriteJSON(a.out, t)
	}
	return t.Write(a.out, a.style(), now)
}
