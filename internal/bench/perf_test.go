package bench_test

import (
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/bench"
	"github.com/stint-dev/stint/store/mem"
)

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
