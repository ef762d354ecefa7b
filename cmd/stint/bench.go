package main

import (
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
	grow        int
	cpuProfile  string
}

func (a *app) benchCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a store with the session workload",
		Long: `Run the session workload and measure it: sessions of some loops, each one model
step of 1 KiB and two tool steps of 256 bytes, the state persisted between loops,
every step durable. A step's latency is from its call until it is durable.

Without --store it uses a new store in a temporary folder, on the disk that TMPDIR
lies on. With --store the sessions stay there, and stint verify can check them.`,
		Example: `  stint bench
  stint bench --concurrency 1,64,256 --json
  stint bench --effect once --sessions 100
  stint bench --store sqlite:/var/lib/stint/bench.db --loops 2000 --sessions 4 --grow 1024`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.bench(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.concurrency, "concurrency", "1,64,256", "sessions at once, a list")
	f.IntVar(&o.sessions, "sessions", 0, "sessions in all, instead of --for")
	f.IntVar(&o.loops, "loops", 20, "loops a session")
	f.DurationVar(&o.duration, "for", 5*time.Second, "how long each row runs")
	f.StringVar(&o.effect, "effect", "idempotent", "of the tool steps: read, idempotent, once")
	f.IntVar(&o.grow, "grow", 0, "bytes by which the state grows each loop")
	f.StringVar(&o.cpuProfile, "cpuprofile", "", "write a CPU profile to this file")
	return cmd
}

func (a *app) bench(cmd *cobra.Command, o benchOptions) error {
	levels, err := numbers(o.concurrency)
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
	stop, err := profile(o.cpuProfile)
	if err != nil {
		return err
	}
	defer stop()
	rows := make([]bench.Row, 0, len(levels))
	if !a.json {
		a.printf("%11s %10s %12s %11s %11s %12s %14s %8s\n", "concurrency", "sessions", "steps/s", "p50 µs", "p99 µs", "cpu µs/step", "bytes/session", "rss MiB")
	}
	for _, c := range levels {
		row, err := a.benchRow(cmd, o, c)
		if err != nil {
			return err
		}
		rows = append(rows, row)
		if !a.json {
			a.printf("%11d %10d %12.0f %11.0f %11.0f %12.1f %14.0f %8.1f\n", row.Concurrency, row.Sessions, row.StepsPerS, row.StepP50us, row.StepP99us, row.CPUusPerStep, row.BytesPerSession, row.RSSMB)
		}
	}
	if a.json {
		return a.printJSON(rows)
	}
	return nil
}

// benchRow measures one concurrency, on a store of its own unless one is named.
func (a *app) benchRow(cmd *cobra.Command, o benchOptions, concurrency int) (row bench.Row, err error) {
	path := ""
	if a.storeFlag != "" || a.getenv("STINT_STORE") != "" {
		if path, err = a.storePath(nil); err != nil {
			return row, err
		}
	} else {
		dir, err := os.MkdirTemp("", "stint-bench-")
		if err != nil {
			return row, &stint.Error{Code: stint.Unavailable, Op: "bench", Err: err, Hint: "set TMPDIR to a folder on a local disk"}
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, "stint.db")
	}
	st, err := sqlite.Open(cmd.Context(), sqlite.Options{Path: path})
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	w := bench.Workload{Concurrency: concurrency, Sessions: o.sessions, Loops: o.loops, Effect: stint.Effect(o.effect), Grow: o.grow, Unique: o.sessions > 0}
	if o.sessions == 0 {
		w.For = o.duration
	}
	return bench.Run(cmd.Context(), st, w)
}

func numbers(list string) ([]int, error) {
	var out []int
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 || n > 100_000 {
			e := stint.Invalid.Errorf("bench", "--concurrency: %q is not a number from 1 to 100000", s)
			e.Hint = "write a list like 1,64,256"
			return nil, e
		}
		out = append(out, n)
	}
	return out, nil
}
