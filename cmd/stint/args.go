package main

import (
	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/view"
)

// noArgs refuses arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return misused(cmd, "%s takes no arguments, not %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// exactly refuses any other number of arguments; what names them.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return misused(cmd, "%s takes %s", cmd.CommandPath(), what)
		}
		return nil
	}
}

// atMost refuses more arguments.
func atMost(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return misused(cmd, "%s takes %s, or none for all", cmd.CommandPath(), what)
		}
		return nil
	}
}

// atLeast refuses fewer arguments.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return misused(cmd, "%s takes %s", cmd.CommandPath(), what)
		}
		return nil
	}
}

func misused(cmd *cobra.Command, format string, args ...any) error {
	err := stint.Invalid.Errorf("", format, args...)
	err.Hint = cmd.CommandPath() + " --help shows examples"
	return err
}

// printJSON writes v as one line of JSON that is safe to look at.
func (a *app) printJSON(v any) error { return view.WriteJSON(a.out, v) }
