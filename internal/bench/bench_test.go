package bench_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/bench"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/store/sqlite"
	"github.com/stint-dev/stint/store/storetest"
)

// asChild makes this program the process that is measured.
const asChild = "bench-child"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == asChild {
		if err := bench.Child(context.Background(), os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Bool("update", false, "write testdata anew")
	os.Exit(m.Run())
}

func self(t *testing.T) bench.Self {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return bench.Self{Path: path, Args: []string{asChild}}
}

func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// sessions returns all of them, which must be sound.
func sessions(t *testing.T, st stint.Store, n int, status stint.Status) []stint.Row {
	t.Helper()
	rows, err := st.Sessions(t.Context(), stint.Filter{})
	if err != nil || len(rows) != n {
		t.Fatalf("%d sessions, not %d; %v", len(rows), n, err)
	}
	for _, r := range rows {
		if r.Session.Status != status {
			t.Errorf("%s is %s: %s", r.Session.ID, r.Session.Status, r.Session.Reason)
		}
	}
	storetest.Check(t, st)
	return rows
}

func TestWorkload(t *testing.T) {
	for _, effect := range []stint.Effect{stint.Idempotent, stint.Once} {
		st := mem.New()
		row, err := bench.Run(t.Context(), st, bench.Workload{Concurrency: 4, Sessions: 10, Loops: 5, Effect: effect, Grow: 100})
		if err != nil {
			t.Fatal(err)
		}
		if row.Steps != 150 || row.Sessions != 10 || row.StepsPerS <= 0 || row.StepP50us <= 0 || row.StepP99us < row.StepP50us || row.Effect != string(effect) {
			t.Errorf("%+v", row)
		}
		for _, r := range sessions(t, st, 10, stint.Completed) {
			if s := r.Session; s.Totals.Loops != 5 || s.Totals.Steps != 15 || s.Checkpoint.Size < 500 {
				t.Errorf("%+v, state of %d bytes", s.Totals, s.Checkpoint.Size)
			}
		}
	}
}

// What runs before the measured time or after it is left in the store, and not counted.
func TestWorkloadFor(t *testing.T) {
	for warm := 50 * time.Millisecond; ; warm *= 4 {
		st := open(t, filepath.Join(t.TempDir(), "stint.db"))
		row, err := bench.Run(t.Context(), st, bench.Workload{Concurrency: 3, Warm: warm, For: 4 * warm, Loops: 2, Effect: stint.Idempotent})
		if err != nil {
			t.Fatal(err)
		}
		rows := sessions(t, st, row.Sessions, stint.Completed)
		var steps int64
		for _, r := range rows {
			steps += int64(r.Session.Totals.Steps)
		}
		if (row.Steps <= 0 || row.Steps >= steps) && warm < 5*time.Second { // this machine did nothing in one of the two times
			continue
		}
		if row.Steps <= 0 || row.Steps >= steps {
			t.Errorf("%d steps of %d are counted", row.Steps, steps)
		}
		if row.Seconds < (4*warm).Seconds() || row.StepP50us <= 0 {
			t.Errorf("%+v", row)
		}
		return
	}
}

func TestBytesPerSession(t *testing.T) {
	st := open(t, filepath.Join(t.TempDir(), "stint.db"))
	for range 2 { // the second time beside the sessions of the first
		row, err := bench.Run(t.Context(), st, bench.Workload{Concurrency: 4, Sessions: 40, Loops: 5, Effect: stint.Idempotent, Unique: true})
		if err != nil {
			t.Fatal(err)
		}
		const handed = 5 * (1024 + 2*256)
		if row.BytesPerSession < handed || row.BytesPerSession > 3*handed {
			t.Errorf("%.0f bytes a session for about %d handed in", row.BytesPerSession, handed)
		}
	}
}

func TestWorkloadEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	_, err := bench.Run(ctx, mem.New(), bench.Workload{Concurrency: 4, For: time.Hour, Loops: 20, Effect: stint.Idempotent})
	if !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled run ends with %v", err)
	}
}

// refusing is a store that stops taking entries.
type refusing struct {
	stint.Store
	left chan struct{}
}

func (r refusing) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	select {
	case <-r.left:
		r.Store.Append(ctx, l, b, done)
	default:
		done(stint.Fenced.Errorf("append", "no more"))
	}
}

func TestWorkloadFails(t *testing.T) {
	left := make(chan struct{}, 30)
	for range cap(left) {
		left <- struct{}{}
	}
	_, err := bench.Run(t.Context(), refusing{mem.New(), left}, bench.Workload{Concurrency: 2, For: time.Hour, Loops: 20, Effect: stint.Idempotent})
	if err == nil {
		t.Error("sessions that do not end well are no error")
	}
}

func TestLatency(t *testing.T) {
	dir := t.TempDir()
	st := open(t, filepath.Join(dir, "stint.db"))
	l, err := bench.MeasureLatency(t.Context(), st, dir, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if l.RawP50us <= 0 || l.IdempotentP50us <= 0 || l.OnceP50us <= 0 || l.RawP99us < l.RawP50us {
		t.Errorf("%+v", l)
	}
	if got := l.OnceP50us / l.RawP50us; got != l.OncePerRaw {
		t.Errorf("the ratio is %v, not %v", got, l.OncePerRaw)
	}
	sessions(t, st, 4, stint.Completed) // two rounds of two
}

func TestGrowth(t *testing.T) {
	for _, grow := range []int{0, 200} {
		rows, err := bench.MeasureGrowth(t.Context(), t.TempDir(), []int{10, 40}, 240, grow, t.Logf)
		if err != nil || len(rows) != 2 {
			t.Fatal(rows, err)
		}
		for i, r := range rows {
			if want := 240 / []int{10, 40}[i]; r.Sessions != want || r.Grow != grow {
				t.Errorf("%+v", r)
			}
			handed := float64(r.Loops * (1536 + grow))
			if r.Payload < handed*.98 || r.Payload > handed*1.02 {
				t.Errorf("%d loops hand in %.0f bytes, not about %.0f", r.Loops, r.Payload, handed)
			}
			if r.Ratio <= 1 || r.Ratio > 3 || r.DoubleRatio < 1.8 || r.DoubleRatio > 2.2 {
				t.Errorf("%d loops: stored/handed in %.2f, twice as long takes %.2f", r.Loops, r.Ratio, r.DoubleRatio)
			}
		}
	}
}

// BenchmarkEngine is the cost of a step without a disk: journal and engine alone.
func BenchmarkEngine(b *testing.B) {
	for b.Loop() {
		row, err := bench.Run(b.Context(), mem.New(), bench.Workload{Concurrency: 64, For: time.Second, Loops: 20, Effect: stint.Idempotent})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(row.CPUusPerStep, "cpu-us/step")
		b.ReportMetric(row.StepsPerS, "steps/s")
	}
}
