package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
)

// showOptions are the flags of stint show.
type showOptions struct {
	all   bool
	lines int
	field string
	state string
}

func (a *app) showCommand() *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use: "show SESSION", Short: "Show a session: what it does, its loops, what to do next",
		Long: `Show one session on a page: how it stands, its limits, the checkpoint that is safe,
its newest loops, steps in doubt, and the commands that make sense now. SESSION/LINE
shows a line that the session left.

--field prints one member of the JSON, --state the state at the end of a loop, byte
for byte.`,
		Example: "  stint show triage-1129\n  stint show x81d/0\n  stint show x81d --field waiting.for\n  stint show x81d --state > state.json\n  stint show x81d --state 3",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 2 && cmd.Flags().Changed("state") {
				return nil
			}
			return misused(cmd, "%s takes one session", cmd.CommandPath())
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.lines < 0 {
				return misused(cmd, "--lines is not below zero")
			}
			if len(args) == 2 { // --state 3: the flag's value is optional, so it stands apart
				if o.state != newestState {
					return misused(cmd, "give --state one loop")
				}
				o.state = args[1]
			}
			return a.show(cmd.Context(), cmd, args[0], &o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "all loops, not the newest ten")
	f.IntVar(&o.lines, "lines", 0, "the newest so many entries of the log below")
	f.StringVar(&o.field, "field", "", "print one member of the JSON: status, limits.cost.max, loops.0.headline")
	f.StringVar(&o.state, "state", "", "print the state at the end of a loop (default: the newest), and nothing else")
	f.Lookup("state").NoOptDefVal = newestState
	return cmd
}

// newestState is what --state without a loop means.
const newestState = "newest"

func (a *app) show(ctx context.Context, cmd *cobra.Command, address string, o *showOptions) error {
	loop := -1
	if o.state != "" && o.state != newestState {
		var err error
		if loop, err = strconv.Atoi(o.state); err != nil || loop < 0 {
			return misused(cmd, "--state takes the number of a loop, not %q", o.state)
		}
	}
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	now := time.Now()
	row, place, err := view.Find(ctx, s.store, address, now)
	if err != nil {
		return err
	}
	if o.state != "" {
		if loop < 0 {
			loop = place.Loop
		}
		return a.showState(ctx, s, &row, place.Line, loop)
	}
	v, err := view.NewShow(ctx, s.store, &row, view.ShowOptions{Line: place.Line, All: o.all}, now)
	switch {
	case err != nil:
		return err
	case o.field != "":
		text, err := view.Field(v, o.field)
		if err != nil {
			return err
		}
		a.printf("%s\n", term.Escape(text))
		return nil
	case a.json:
		return view.WriteJSON(a.out, v)
	}
	st := a.style()
	if err := view.WriteShow(a.out, st, &row, &v, now); err != nil || o.lines <= 0 {
		return err
	}
	a.printf("\n")
	q := view.LogQuery{Line: place.Line}
	return view.NewLog(s.store, row, st, now, view.LogOptions{Query: q, Tail: o.lines}).Write(ctx, a.out, now)
}

// showState prints a state as it is; on a terminal what that could act on is
// escaped, which in JSON means the same.
func (a *app) showState(ctx context.Context, s *site, row *stint.Row, line, loop int) error {
	state, _, err := view.State(ctx, s.store, row, line, loop)
	if err != nil {
		return err
	}
	if a.style().TTY {
		a.printf("%s\n", term.Escape(string(state)))
		return nil
	}
	_, err = a.out.Write(state)
	return err
}
