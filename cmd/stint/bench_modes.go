package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/bench"
	"github.com/stint-dev/stint/store/sqlite"
)

// benchChild is the hidden command that stint bench starts its own program with.
const benchChild = "child"

// benchSelf says how to start a child.
func benchSelf() (bench.Self, error) {
	path, err := os.Executable()
	if err != nil {
		return bench.Self{}, &stint.Error{Code: stint.Unavailable, Op: "bench", Err: err, Hint: "call stint by its full path"}
	}
	return bench.Self{Path: path, Args: []string{"bench", benchChild}}, nil
}

// benchSay tells how far a measurement is.
func (a *app) benchSay(format string, args ...any) { a.notef("bench: "+format+"\n", args...) }

func (a *app) benchChildCommand() *cobra.Command {
	return &cobra.Command{
		Use: benchChild + " SITE", Hidden: true, Short: "Be the process that stint bench measures",
		Args: exactly(1, "what stint bench gives it"),
		RunE: func(cmd *cobra.Command, args []string) error { return bench.Child(cmd.Context(), args[0], a.in, a.out) },
	}
}

func (a *app) benchLatencyCommand() *cobra.Command {
	var d time.Duration
	cmd := &cobra.Command{
		Use: "latency", Short: "One durable step of one session, beside one durable commit of one row",
		Long: `Measure what one durable step takes when nothing else runs: from its call until it
is durable, each step begun when the one before is durable. A row of 1 KiB committed
to a plain database in the same folder is the measure; rows, idempotent steps and
once steps take turns, so that all of them see the same disk.`,
		Example: "  stint bench latency --for 10s --json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d <= 0 {
				return misused(cmd, "--for is above zero")
			}
			return a.benchLatency(cmd, d)
		},
	}
	cmd.Flags().DurationVar(&d, "for", 5*time.Second, "how long to measure, in all")
	return cmd
}

func (a *app) benchLatency(cmd *cobra.Command, d time.Duration) error {
	var l bench.Latency
	err := a.benchFolder(func(dir, path string) error {
		return withStore(cmd.Context(), path, func(st *sqlite.Store) (err error) {
			l, err = bench.MeasureLatency(cmd.Context(), st, dir, d)
			return err
		})
	})
	if err != nil || a.json {
		return a.benchJSON(err, l)
	}
	a.printf("%-16s %9s %9s %8s\n", "", "p50 µs", "p99 µs", "p50/raw")
	a.printf("%-16s %9.0f %9.0f %8.2f\n", "raw commit", l.RawP50us, l.RawP99us, 1.0)
	a.printf("%-16s %9.0f %9.0f %8.2f\n", "idempotent step", l.IdempotentP50us, l.IdempotentP99us, l.IdempotentPerRaw)
	a.printf("%-16s %9.0f %9.0f %8.2f\n", "once step", l.OnceP50us, l.OnceP99us, l.OncePerRaw)
	return nil
}

// benchJSON prints v, unless measuring it failed.
func (a *app) benchJSON(err error, v any) error {
	if err != nil {
		return err
	}
	return a.printJSON(v)
}

func (a *app) benchRecoverCommand() *cobra.Command {
	var n, loops int
	cmd := &cobra.Command{
		Use: "recover", Short: "How long sessions are down when their runner is killed",
		Long: `Let a process drive sessions until all of them are inside a step, kill it as a power
cut would, and start another. The time is from the start of that process until all
sessions are inside their step again. In the end the steps go on, and all sessions
complete.`,
		Example: "  stint bench recover -n 1000\n  stint bench recover -n 10000 --json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 || loops < 0 {
				return misused(cmd, "-n is above zero, --loops not below")
			}
			return a.benchRecover(cmd, n, loops)
		},
	}
	cmd.Flags().IntVarP(&n, "n", "n", 1000, "sessions in flight")
	cmd.Flags().IntVar(&loops, "loops", 10, "loops that each has completed")
	return cmd
}

func (a *app) benchRecover(cmd *cobra.Command, n, loops int) error {
	self, err := benchSelf()
	if err != nil {
		return err
	}
	var r bench.Recovery
	err = a.benchFolder(func(_, path string) error {
		r, err = bench.MeasureRecovery(cmd.Context(), self, path, n, loops, a.benchSay)
		return err
	})
	if err != nil || a.json {
		return a.benchJSON(err, r)
	}
	a.printf("%d sessions in flight after %.1f s, then kill -9\n", r.Sessions, r.FillS)
	a.printf("  ready         %7.0f ms after the exec of the next process\n", r.ReadyMS)
	a.printf("  all running   %7.0f ms, %.0f ms of processor time\n", r.AllMS, r.CPUMS)
	a.printf("  run again     %7d steps that had a durable result\n", r.StepsAgain)
	a.printf("  rss           %7.1f MiB\n", r.RSSMB)
	return nil
}

func (a *app) benchWaitersCommand() *cobra.Command {
	var n int
	var d time.Duration
	cmd := &cobra.Command{
		Use: "waiters", Short: "What sessions cost that wait for a message",
		Long: `Let a process serve a store until -n sessions wait for a message, and look at its
memory and its processor time once it had nothing to do for a while; the same for a
process that is started after that, and for one with an empty store.`,
		Example: "  stint bench waiters -n 10000",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 || d <= 0 {
				return misused(cmd, "-n and --for are above zero")
			}
			return a.benchWaiters(cmd, n, d)
		},
	}
	cmd.Flags().IntVarP(&n, "n", "n", 10_000, "sessions that wait")
	cmd.Flags().DurationVar(&d, "for", 5*time.Second, "how long to look at each process")
	return cmd
}

func (a *app) benchActiveCommand() *cobra.Command {
	var n int
	cmd := &cobra.Command{
		Use: "active", Short: "What sessions cost that wait for an answer of their model",
		Long: `Run -n sessions of a language model agent until each waits for its model, and look at
the memory that they keep alive: the heap after a collection, and stacks.`,
		Example: "  stint bench active -n 1000",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 {
				return misused(cmd, "-n is above zero")
			}
			var m bench.Active
			err := a.benchFolder(func(_, path string) error {
				return withStore(cmd.Context(), path, func(st *sqlite.Store) (err error) {
					m, err = bench.MeasureActive(cmd.Context(), st, n)
					return err
				})
			})
			if err != nil || a.json {
				return a.benchJSON(err, m)
			}
			a.printf("%d sessions wait for their model: %.1f KiB each, %.1f of them what it was told; %.1f goroutines each\n", m.Sessions, m.KiBEach, m.Transcript, m.Goroutines)
			return nil
		},
	}
	cmd.Flags().IntVarP(&n, "n", "n", 1000, "sessions that are active")
	return cmd
}

// benchSettle is how long a process that ran sessions may tidy up: a store empties
// its log when it was idle for ten seconds.
const benchSettle = 12 * time.Second

func (a *app) benchWaiters(cmd *cobra.Command, n int, d time.Duration) error {
	self, err := benchSelf()
	if err != nil {
		return err
	}
	var w bench.Waiters
	err = a.benchFolder(func(dir, path string) error {
		w, err = bench.MeasureWaiters(cmd.Context(), self, bench.WaitersOptions{Dir: dir, Path: path, Sessions: n, Settle: benchSettle, For: d, Say: a.benchSay})
		return err
	})
	if err != nil || a.json {
		return a.benchJSON(err, w)
	}
	a.printf("%d sessions wait after %.1f s, %.0f bytes each\n", w.Sessions, w.FillS, w.BytesPerSession)
	a.printf("%-24s %9s %9s %7s\n", "", "rss MiB", "over", "cpu %")
	a.printf("%-24s %9.1f %9s %7.2f\n", "empty store", w.EmptyMB, "", w.EmptyCPUPct)
	a.printf("%-24s %9.1f %+9.1f %7.2f\n", "after running them", w.RSSMB, w.OverMB, w.IdleCPUPct)
	a.printf("%-24s %9.1f %+9.1f %7.2f\n", "started later", w.AfterMB, w.AfterOverMB, w.AfterCPUPct)
	return nil
}

func (a *app) benchColdCommand() *cobra.Command {
	var n int
	cmd := &cobra.Command{
		Use: "cold", Short: "From the start of a process to its first session",
		Long: `Start a process again and again, each on a new store or on the one that --store
names, and measure from its start until it serves the store, and until a first
session of one loop has ended.`,
		Example: "  stint bench cold\n  stint bench cold --store sqlite:many.db -n 5",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 {
				return misused(cmd, "-n is above zero")
			}
			return a.benchCold(cmd, n)
		},
	}
	cmd.Flags().IntVarP(&n, "n", "n", 20, "processes to start, one after the other")
	return cmd
}

func (a *app) benchCold(cmd *cobra.Command, n int) error {
	self, err := benchSelf()
	if err != nil {
		return err
	}
	var c bench.Cold
	err = a.benchFolder(func(dir, path string) error {
		if a.storeFlag == "" {
			path = ""
		}
		c, err = bench.MeasureCold(cmd.Context(), self, dir, path, n)
		return err
	})
	if err != nil || a.json {
		return a.benchJSON(err, c)
	}
	a.printf("%-16s %9s %9s\n", "", "p50 ms", "max ms")
	a.printf("%-16s %9.1f %9.1f\n", "ready", c.ReadyP50ms, c.ReadyMaxMS)
	a.printf("%-16s %9.1f %9.1f\n", "first session", c.FirstP50ms, c.FirstMaxMS)
	a.printf("%d starts, a store of %d bytes, rss %.1f MiB\n", c.Runs, c.StoreBytes, c.RSSMB)
	return nil
}

func (a *app) benchGrowthCommand() *cobra.Command {
	var loops string
	var grow int
	cmd := &cobra.Command{
		Use: "growth", Short: "How the store grows with the length of a session",
		Long: `Run sessions of each length, and of twice that, on new stores, and measure what they
take on the disk after a checkpoint. The payload is what was handed in: the results,
and what each loop adds to the state. No two bodies are equal.`,
		Example: "  stint bench growth\n  stint bench growth --loops 200,2000 --grow 1024 --json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lengths, err := numbers("--loops", loops)
			if err != nil {
				return err
			}
			if grow < 0 {
				return misused(cmd, "--grow is not below zero")
			}
			if a.storeFlag != "" {
				return misused(cmd, "stint bench growth measures new stores only; TMPDIR says where")
			}
			return a.benchGrowth(cmd, lengths, grow)
		},
	}
	cmd.Flags().StringVar(&loops, "loops", "20,200,2000", "loops a session, a list")
	cmd.Flags().IntVar(&grow, "grow", 0, "bytes by which the state grows each loop")
	return cmd
}

// benchTotal is how many loops of each length are run, so that pages which are not
// full do not count.
const benchTotal = 1000

func (a *app) benchGrowth(cmd *cobra.Command, lengths []int, grow int) error {
	var rows []bench.Growth
	err := a.benchFolder(func(dir, _ string) (err error) {
		rows, err = bench.MeasureGrowth(cmd.Context(), dir, lengths, benchTotal, grow, a.benchSay)
		return err
	})
	if err != nil || a.json {
		return a.benchJSON(err, rows)
	}
	a.printf("%7s %9s %14s %11s %14s %15s %13s\n", "loops", "sessions", "bytes/session", "bytes/step", "payload", "stored/payload", "twice as long")
	for _, g := range rows {
		a.printf("%7d %9d %14.0f %11.0f %14.0f %15.2f %12.2fx\n", g.Loops, g.Sessions, g.BytesPerSession, g.BytesPerStep, g.Payload, g.Ratio, g.DoubleRatio)
	}
	return nil
}

func (a *app) benchReportCommand() *cobra.Command {
	return &cobra.Command{
		Use: "report", Hidden: true, Short: "Sum up what scripts/bench.sh recorded",
		Long: `Read JSON lines of measurements from standard input and print medians, and which
targets they meet or miss; with --json each target as a line of JSON.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			return bench.Report(a.in, a.out, a.json)
		},
	}
}
