package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
)

// psOptions are the flags of stint ps.
type psOptions struct {
	query  view.Query
	labels []string
	since  string
	status []string
	after  string
	output string
	sort   string
	quiet  bool
	watch  time.Duration
}

// psEnded is how many ended sessions -a shows on a terminal.
const psEnded = 50

func (a *app) psCommand() *cobra.Command {
	var o psOptions
	cmd := &cobra.Command{
		Use: "ps", Short: "List sessions: what each is doing, and which need you",
		Long: `List the open sessions: those that need a person first, then interrupted, running,
waiting and pending ones. FOR is how long a session has had its status.

On a terminal they stand in groups. Elsewhere each is one row of a plain table, whole,
with times in UTC; -q, -o name and --json are for programs.`,
		Example: "  stint ps\n  stint ps -a --since yesterday\n  stint ps --bad\n  stint ps -w\n  stint stop $(stint ps -q --agent triage --status running)",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.ps(cmd.Context(), cmd, &o) },
	}
	f := cmd.Flags()
	f.BoolVarP(&o.query.All, "all", "a", false, "ended ones too")
	f.BoolVar(&o.query.Bad, "bad", false, "those that ended other than completed, or wait for doubt, budget or health")
	f.StringVar(&o.query.Filter.Agent, "agent", "", "only those of this agent")
	f.StringSliceVar(&o.status, "status", nil, "only those with this status; repeatable: pending running waiting completed failed stopped canceled")
	f.StringArrayVarP(&o.labels, "label", "l", nil, "only those with this label, key=value; repeatable")
	f.StringVar(&o.since, "since", "", "only those created since: 90m, 7d, 06:00, yesterday, 2026-11-28")
	f.IntVarP(&o.query.Limit, "limit", "n", 0, "at most so many, newest first (default: all open ones, and 50 ended ones with -a on a terminal)")
	f.StringVar(&o.after, "after", "", "only those older than this id: the cursor of a list that was cut short")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print ids only")
	f.StringVarP(&o.output, "output", "o", "", "wide, json, jsonl or name")
	f.DurationVarP(&o.watch, "watch", "w", 0, "print it again and again, every 2s or as given: -w=5s")
	f.Lookup("watch").NoOptDefVal = "2s"
	f.StringVar(&o.sort, "sort", "", "wait, cost, age or name (default: what needs you first)")
	return cmd
}

func (a *app) ps(ctx context.Context, cmd *cobra.Command, o *psOptions) error {
	if err := a.psFlags(cmd, o); err != nil {
		return err
	}
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	if o.watch <= 0 {
		return a.psOnce(ctx, s, o)
	}
	tick := time.NewTicker(max(o.watch, 100*time.Millisecond))
	defer tick.Stop()
	for {
		if a.style().TTY && o.output == "" {
			a.printf("\x1b[H\x1b[2J") // home, and clear: the text of a format is our own
		}
		if err := a.psOnce(ctx, s, o); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return exitError(exitInterrupted)
		}
	}
}

// psFlags reads the flags that need more than their type.
func (a *app) psFlags(cmd *cobra.Command, o *psOptions) error {
	if a.json && o.output == "" {
		o.output = "json"
	}
	if o.watch > 0 && o.output == "json" {
		o.output = "jsonl"
	}
	switch o.output {
	case "", "wide", "json", "jsonl", "name":
	default:
		return misused(cmd, "--output is wide, json, jsonl or name, not %q", o.output)
	}
	switch view.Order(o.sort) {
	case view.ByUrgency, view.ByWait, view.ByCost, view.ByAge, view.ByName:
	default:
		return misused(cmd, "--sort is wait, cost, age or name, not %q", o.sort)
	}
	if o.query.Limit < 0 || o.watch < 0 {
		return misused(cmd, "--limit and --watch are not below zero")
	}
	for _, l := range o.labels {
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" {
			return misused(cmd, "--label %q is not key=value", l)
		}
		if o.query.Filter.Labels == nil {
			o.query.Filter.Labels = map[string]string{}
		}
		o.query.Filter.Labels[k] = v
	}
	all := []stint.Status{stint.Pending, stint.Running, stint.Waiting, stint.Completed, stint.Failed, stint.Stopped, stint.Canceled}
	for _, s := range o.status {
		if !slices.Contains(all, stint.Status(s)) {
			return misused(cmd, "%q is no status; there are %s", s, strings.Trim(fmt.Sprint(all), "[]"))
		}
		o.query.Statuses = append(o.query.Statuses, stint.Status(s))
	}
	var err error
	if o.since != "" {
		if o.query.Filter.Since, err = parseWhen(o.since, time.Now()); err != nil {
			return err
		}
	}
	if o.after != "" {
		o.query.After, err = stint.ParseID(o.after)
	}
	return err
}

// psOnce prints the list as it is now.
func (a *app) psOnce(ctx context.Context, s *site, o *psOptions) error {
	now, st, q := time.Now(), a.style(), o.query
	if st.TTY && q.All && o.output != "json" && o.output != "jsonl" {
		q.Ended = psEnded
	}
	rows, cursor, err := view.Sessions(ctx, s.store, q)
	if err != nil {
		return err
	}
	people := !o.quiet && (o.output == "" || o.output == "wide")
	if by := view.Order(o.sort); by != view.ByUrgency || o.after == "" && q.Limit == 0 || people {
		view.Sort(rows, by, st.TTY && people)
	}
	switch {
	case o.quiet:
		for i := range rows {
			a.printf("%s\n", rows[i].Session.ID)
		}
	case o.output == "name":
		for i := range rows {
			a.printf("%s\n", term.Line(rows[i].Session.Name))
		}
	case o.output == "json", o.output == "jsonl" && o.watch > 0:
		return view.WriteJSON(a.out, view.NewList(rows, cursor, now))
	case o.output == "jsonl":
		for i := range rows {
			if err := view.WriteJSON(a.out, view.NewSession(&rows[i], now)); err != nil {
				return err
			}
		}
	default:
		outcomes, err := view.Outcomes(ctx, s.store, rows)
		if err != nil {
			return err
		}
		return view.WriteList(a.out, st, rows, view.ListOptions{Wide: o.output == "wide", More: !cursor.IsZero(), Outcomes: outcomes}, now)
	}
	return nil
}

// parseWhen reads a time as people give it: how long ago, a time of day, a day, or
// RFC 3339. A time of day that is still to come is yesterday's.
func parseWhen(s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(strings.TrimPrefix(s, "-")); err == nil {
		return now.Add(-d), nil
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSuffix(s, "d"), "-")); err == nil && strings.HasSuffix(s, "d") && n >= 0 && n < 100_000 {
		return now.AddDate(0, 0, -n), nil
	}
	y, m, d := now.Date()
	midnight := time.Date(y, m, d, 0, 0, 0, 0, now.Location())
	switch s {
	case "now":
		return now, nil
	case "today":
		return midnight, nil
	case "yesterday":
		return midnight.AddDate(0, 0, -1), nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		t = time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
		if t.After(now) {
			t = t.AddDate(0, 0, -1)
		}
		return t, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	err := stint.Invalid.Errorf("time", "%q is no time", s)
	err.Hint = "write 90m or 7d for so long ago, 06:00, yesterday, 2026-11-28, \"2026-11-28 06:00\" or 2026-11-28T06:00:00Z"
	return time.Time{}, err
}
