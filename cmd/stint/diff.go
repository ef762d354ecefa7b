package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/compare"
	"github.com/stint-dev/stint/internal/view"
)

func (a *app) diffCommand() *cobra.Command {
	var parts compare.Parts
	cmd := &cobra.Command{
		Use: "diff SESSION LOOP LOOP | diff SESSION SESSION", Short: "Show how two loops, or two sessions, differ",
		Long: `Show how two loops of a session differ, or two sessions loop by loop: the state at
their ends, the steps with what they were given and what they gave, what a model said,
and what it cost. Without a flag all of that is compared.

A session may be SESSION/LINE, a line that it left, and SESSION:LOOP, so that loops of
two sessions can be compared.`,
		Example: "  stint diff x81d 3 4\n  stint diff triage-1129 triage-1130 --calls\n  stint diff x81d/0 x81d/1\n  stint diff x81d:3 y22e:3 --state",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 || len(args) == 3 {
				return nil
			}
			return misused(cmd, "%s takes a session and two loops, or two sessions", cmd.CommandPath())
		},
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			loops := []int{0, 0}
			addresses := args
			if len(args) == 3 {
				addresses = []string{args[0], args[0]}
				for i, arg := range args[1:] {
					n, err := strconv.Atoi(arg)
					if err != nil || n < 1 {
						return misused(cmd, "%q is no loop: give two numbers from 1 on", arg)
					}
					loops[i] = n
				}
			}
			if parts == (compare.Parts{}) {
				parts = compare.Parts{State: true, Calls: true, Text: true, Cost: true}
			}
			return a.diff(cmd.Context(), addresses, loops, parts)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&parts.State, "state", false, "compare the state at the end of the loops")
	f.BoolVar(&parts.Calls, "calls", false, "compare the steps")
	f.BoolVar(&parts.Text, "text", false, "compare what a model said, or without one the headlines")
	f.BoolVar(&parts.Cost, "cost", false, "compare what was used")
	return cmd
}

func (a *app) diff(ctx context.Context, addresses []string, loops []int, parts compare.Parts) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	sides := make([]compare.Of, len(addresses))
	for i, address := range addresses {
		row, place, err := view.Find(ctx, s.store, address, time.Now())
		if err != nil {
			return err
		}
		sides[i] = compare.Of{Row: &row, Line: place.Line, Loop: max(place.Loop, 0), Quoted: s.quoted(ctx, &row.Session)}
		switch {
		case loops[i] > 0 && place.Loop >= 0:
			e := stint.Invalid.Errorf("diff", "%s names a loop, and two more are given", address)
			e.Hint = "stint diff " + row.Short + " " + strconv.Itoa(loops[0]) + " " + strconv.Itoa(loops[1])
			return e
		case loops[i] > 0:
			sides[i].Loop = loops[i]
		}
	}
	d, err := compare.New(ctx, s.store, sides[0], sides[1], parts)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(d)
	}
	return d.Write(a.out, a.style())
}
