package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint/internal/bench"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/store/sqlite"
)

func (a *app) benchListCommand() *cobra.Command {
	var n, requests int
	cmd := &cobra.Command{
		Use: "list", Short: "How long lists, filters and searches take over HTTP",
		Long: `Fill a store with sessions, serve it on this machine, and ask for lists of them: pages
of 50, one request after the other, from the first page on. A time is from the request
until all of its answer was read.`,
		Example: "  stint bench list -n 100000\n  stint bench list -n 10000 --requests 50 --json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 || requests < 1 {
				return misused(cmd, "-n and --requests are above zero")
			}
			return a.benchList(cmd, n, requests)
		},
	}
	cmd.Flags().IntVarP(&n, "n", "n", 100_000, "sessions")
	cmd.Flags().IntVar(&requests, "requests", 200, "requests of each kind")
	return cmd
}

func (a *app) benchList(cmd *cobra.Command, n, requests int) error {
	var l bench.Lists
	err := a.benchFolder(func(_, path string) error {
		return withStore(cmd.Context(), path, func(st *sqlite.Store) error {
			begun := time.Now()
			if err := bench.FillLists(cmd.Context(), st, n); err != nil {
				return err
			}
			filled := time.Since(begun).Seconds()
			var err error
			l, err = bench.MeasureLists(cmd.Context(), st, requests, a.benchSay)
			l.Sessions, l.FillS = n, filled
			return err
		})
	})
	if err != nil || a.json {
		return a.benchJSON(err, l)
	}
	a.printf("%d sessions, there after %.1f s\n%-26s %6s %9s %9s %9s %9s\n", l.Sessions, l.FillS, "", "items", "KB", "p50 ms", "p95 ms", "max ms")
	for _, q := range l.Queries {
		a.printf("%s %6d %9.1f %9.1f %9.1f %9.1f\n", term.Pad(q.Name, 26, false), q.Items, float64(q.MaxBytes)/1000, q.P50ms, q.P95ms, q.MaxMS)
	}
	return nil
}
