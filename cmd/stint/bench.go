package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/bench"
	"github.com/stint-dev/stint/store/sqlite"
)

// benchOptions are the flags of stint bench.
type benchOptions struct {
	concurrency string
	sessions    int
	loops       int
	duration    time.Duration
	effect      string
	agent       string
	grow        int
	cpuProfile  string
}

// benchWarm is how long a row runs before it is measured.
const benchWarm = time.Second

func (a *app) benchCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a store with the session workload",
		Long: `Run the session workload and measure it: sessions of some loops, each one model
step of 1 KiB and two tool steps of 256 bytes, the state persisted between loops,
every step durable. A step's latency is from its call until it is durable.

Each row runs a second to warm up, then for as long as --for says; with --sessions
it runs that many and measures all of them. bytes/session is what the database grew
by, after a checkpoint.

Without --store it uses a new store in a temporary folder, on the disk that TMPDIR
lies on; STINT_STORE and stint.yaml do not count. With --store the sessions stay
there, and stint verify can check them.`,
		Example: `  stint bench
  stint bench --concurrency 1,64,256 --json
  stint bench --effect once --sessions 100
  stint bench --store sqlite:/var/lib/stint/bench.db --loops 2000 --sessions 4 --grow 1024
  stint bench --agent llm --concurrency 64
  stint bench recover -n 1000          how long sessions are down after kill -9
  stint bench waiters -n 10000         what sessions cost that wait for a message
  stint bench active -n 1000           what they cost that wait for their model
  stint bench list -n 100000           how long lists and searches take over HTTP`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.bench(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.concurrency, "concurrency", "1,64,256", "sessions at once, a list")
	f.IntVar(&o.sessions, "sessions", 0, "sessions in all, instead of --for")
	f.IntVar(&o.loops, "loops", 20, "loops a session")
	f.DurationVar(&o.duration, "for", 5*time.Second, "how long each row is measured")
	f.StringVar(&o.effect, "effect", "idempotent", "of the tool steps: read, idempotent, once")
	f.StringVar(&o.agent, "agent", "code", "what does the steps: code, or llm (a language model that plays a script in this process)")
	f.IntVar(&o.grow, "grow", 0, "bytes by which the state grows each loop")
	f.StringVar(&o.cpuProfile, "cpuprofile", "", "write a CPU profile to this file")
	cmd.AddCommand(a.benchLatencyCommand(), a.benchRecoverCommand(), a.benchWaitersCommand(), a.benchActiveCommand(), a.benchColdCommand(), a.benchGrowthCommand(), a.benchListCommand(), a.benchBranchCommand(), a.benchHooksCommand(),
		a.benchReportCommand(), a.benchChildCommand())
	return cmd
}

func (a *app) bench(cmd *cobra.Command, o benchOptions) error {
	levels, err := numbers("--concurrency", o.concurrency)
	if err != nil {
		return err
	}
	switch stint.Effect(o.effect) {
	case stint.Read, stint.Idempotent, stint.Once:
	default:
		return misused(cmd, "--effect is read, idempotent or once, not %q", o.effect)
	}
	if o.loops < 1 || o.sessions < 0 || o.grow < 0 || o.duration <= 0 {
		return misused(cmd, "--loops and --for are above zero, --sessions and --grow not below")
	}
	if o.agent != "code" && o.agent != "llm" {
		return misused(cmd, "--agent is code or llm, not %q", o.agent)
	}
	stop, err := profile(o.cpuProfile)
	if err != nil {
		return err
	}
	defer stop()
	rows := make([]bench.Row, 0, len(levels))
	if !a.json {
		a.printf("%11s %10s %12s %10s %11s %11s %12s %14s %8s\n", "concurrency", "sessions", "steps/s", "loops/s", "p50 µs", "p99 µs", "cpu µs/step", "bytes/session", "rss MiB")
	}
	for _, c := range levels {
		row, err := a.benchRow(cmd, o, c)
		if err != nil {
			return err
		}
		rows = append(rows, row)
		if !a.json {
			a.printf("%11d %10d %12.0f %10.0f %11.0f %11.0f %12.1f %14.0f %8.1f\n", row.Concurrency, row.Sessions, row.StepsPerS, row.LoopsPerS, row.StepP50us, row.StepP99us, row.CPUusPerStep, row.BytesPerSession, row.RSSMB)
		}
	}
	if a.json {
		return a.printJSON(rows)
	}
	return nil
}

// benchRow measures one concurrency, on a store of its own unless one is named.
func (a *app) benchRow(cmd *cobra.Command, o benchOptions, concurrency int) (row bench.Row, err error) {
	w := bench.Workload{Concurrency: concurrency, Sessions: o.sessions, Loops: o.loops, Effect: stint.Effect(o.effect), Grow: o.grow, LLM: o.agent == "llm", Unique: o.sessions > 0}
	if o.sessions == 0 {
		w.For, w.Warm = o.duration, benchWarm
	}
	err = a.benchFolder(func(_, path string) error {
		return withStore(cmd.Context(), path, func(st *sqlite.Store) error {
			row, err = bench.Run(cmd.Context(), st, w)
			return err
		})
	})
	return row, err
}

// benchFolder calls fn with a temporary folder that is then removed, and with the
// path of the store to measure: the one that --store names, or a new one in the
// folder. What STINT_STORE and stint.yaml name is somebody's real store.
func (a *app) benchFolder(fn func(dir, path string) error) error {
	dir, err := os.MkdirTemp("", "stint-bench-")
	if err != nil {
		return &stint.Error{Code: stint.Unavailable, Op: "bench", Err: err, Hint: "set TMPDIR to a folder on a local disk"}
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "stint.db")
	if a.storeFlag != "" {
		if path, err = a.storePath(nil); err != nil {
			return err
		}
		if path, err = filepath.Abs(path); err != nil {
			return &stint.Error{Code: stint.Invalid, Op: "bench", Err: err}
		}
	}
	return fn(dir, path)
}

func withStore(ctx context.Context, path string, fn func(*sqlite.Store) error) (err error) {
	st, err := sqlite.Open(ctx, sqlite.Options{Path: path})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	return fn(st)
}

// numbers reads a list of numbers that a flag was given.
func numbers(flag, list string) ([]int, error) {
	var out []int
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 || n > 100_000 {
			e := stint.Invalid.Errorf("bench", "%s: %q is not a number from 1 to 100000", flag, s)
			e.Hint = "write a list of whole numbers, like 1,64,256"
			return nil, e
		}
		out = append(out, n)
	}
	return out, nil
}
