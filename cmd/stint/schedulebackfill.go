package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint/internal/api"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/internal/view"
)

// backfillOptions are the flags of stint schedule backfill.
type backfillOptions struct {
	from, to, reason string
	run              bool
}

func (a *app) scheduleBackfillCommand() *cobra.Command {
	var o backfillOptions
	cmd := &cobra.Command{
		Use: "backfill NAME --from TIME", Short: "Begin the sessions of times of the past that had none",
		Long: `Show which times of a schedule between --from and --to led to no session, and with
--run begin those sessions: each knows the time that it is for. A time is made good
once, however often this is asked. At most 100 times are taken at once.`,
		Example: "  stint schedule backfill nightly --from 2026-11-20\n  stint schedule backfill nightly --from 2026-11-20 --to 2026-11-25 --run -m \"outage\"",
		Args:    exactly(1, "one schedule"), ValidArgsFunction: a.completeSchedules,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.from == "" {
				return misused(cmd, "%s needs --from TIME", cmd.CommandPath())
			}
			return a.scheduleBackfill(cmd.Context(), &o, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.from, "from", "", "the first time: RFC 3339, or a date or \"2026-11-28 06:00\" here")
	f.StringVar(&o.to, "to", "", "the last time (default: now)")
	f.StringVarP(&o.reason, "message", "m", "", "why")
	f.BoolVar(&o.run, "run", false, "begin the sessions; without it they are only shown")
	return cmd
}

func (a *app) scheduleBackfill(ctx context.Context, o *backfillOptions, name string) error {
	now := time.Now().UTC().Truncate(time.Second)
	from, err := parseInZone(o.from, time.Local)
	if err != nil {
		return usage(fmt.Errorf("--from %q: a time like 2026-11-28T06:00:00Z, a date, or \"2026-11-28 06:00\" here", o.from))
	}
	to := now
	if o.to != "" {
		if to, err = parseInZone(o.to, time.Local); err != nil {
			return usage(fmt.Errorf("--to %q: a time like 2026-11-28T06:00:00Z, a date, or \"2026-11-28 06:00\" here", o.to))
		}
	}
	s, err := a.reach(ctx, o.run)
	if err != nil {
		return err
	}
	defer s.store.Close()
	it, err := a.schedule(ctx, s, name)
	if err != nil {
		return err
	}
	times, err := it.Timing.Times()
	if err != nil {
		return err
	}
	plan, err := trigger.PlanBackfill(ctx, s.store, name, times, from, to, now)
	if err != nil {
		return err
	}
	doc := api.NewBackfill(name, from, to, !o.run, plan)
	if o.run && doc.Runs > 0 {
		c := trigger.Command{Verb: trigger.Backfill, Schedule: name, Reason: o.reason, From: from, To: to}
		if _, err := a.order(ctx, s, c, ownScheduler); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(doc)
	}
	rows := make([][]string, 0, len(plan))
	for _, p := range plan {
		does := "begins a session"
		if !p.Runs {
			does = "nothing: it ran"
		}
		was := string(p.Was)
		if was == "" {
			was = "nothing is known"
		}
		rows = append(rows, []string{p.Due.Local().Format(time.DateTime), was, does})
	}
	if len(rows) > 0 {
		if err := view.WriteTable(a.out, a.style(), []string{"DUE", "SO FAR", "BACKFILL"}, rows); err != nil {
			return err
		}
	}
	switch {
	case o.run && doc.Runs > 0:
		a.printf("%s begun: stint schedule history %s\n", counted(doc.Runs, "session"), name)
		return a.noteUnserved(ctx, s, waitsForServer)
	case doc.Runs > 0:
		a.printf("With --run, %s would begin.\n", counted(doc.Runs, "session"))
	default:
		a.printf("There is nothing to make good.\n")
	}
	return nil
}
