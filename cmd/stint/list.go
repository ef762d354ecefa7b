package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/view"
)

// group makes cmd a command that does nothing itself: it explains those below it.
func group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args)
		}
		return cmd.Help()
	}
	cmd.AddCommand(below...)
	return cmd
}

// maxCount is how much of a history is printed at most.
const maxCount = 1000

// counting gives cmd the flag -n, and run its value.
func counting(cmd *cobra.Command, run func(ctx context.Context, args []string, n int) error) *cobra.Command {
	n := 0
	cmd.Flags().IntVarP(&n, "count", "n", 20, "how many")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if n < 1 || n > maxCount {
			return usage(fmt.Errorf("--count is from 1 to %d, not %d", maxCount, n))
		}
		return run(cmd.Context(), args, n)
	}
	return cmd
}

// table is a list as it is printed: doc as JSON; else a table, or what none says.
type table struct {
	doc   any
	none  string
	heads []string
	rows  [][]string
}

func (a *app) printTable(t table) error {
	switch {
	case a.json:
		return a.printJSON(t.doc)
	case len(t.rows) == 0:
		a.printf("%s\n", t.none)
		return nil
	}
	return view.WriteTable(a.out, a.style(), t.heads, t.rows)
}

// session is a session that a line of a ledger names; the zero row if it names none, or
// one that was deleted.
func (s *site) session(ctx context.Context, id stint.ID) (stint.Row, error) {
	if id.IsZero() {
		return stint.Row{}, nil
	}
	row, err := s.store.Session(ctx, id)
	if err != nil && stint.CodeOf(err) == stint.NotFound {
		return stint.Row{}, nil
	}
	return row, err
}
