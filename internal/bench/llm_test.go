package bench_test

import (
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/bench"
	"github.com/stint-dev/stint/store/mem"
)

// TestLLM: sessions of a scripted model do as many loops and steps as were asked for.
func TestLLM(t *testing.T) {
	st := mem.New()
	defer st.Close()
	row, err := bench.Run(t.Context(), st, bench.Workload{Concurrency: 2, Sessions: 4, Loops: 5, Effect: stint.Idempotent, LLM: true})
	if err != nil {
		t.Fatal(err)
	}
	if row.Sessions != 4 || row.Steps != 4*(5+2*4) || row.LoopsPerS <= 0 {
		t.Errorf("%+v", row)
	}
	rows, err := st.Sessions(t.Context(), stint.Filter{})
	if err != nil || len(rows) != 4 || rows[0].Session.Totals.Loops != 5 {
		t.Errorf("%d sessions, %v", len(rows), err)
	}
}

// TestActive: all sessions are asked about while they wait for their model, and none goes
// on after it.
func TestActive(t *testing.T) {
	st := mem.New()
	defer st.Close()
	a, err := bench.MeasureActive(t.Context(), st, 8)
	if err != nil || a.Sessions != 8 || a.KiBEach <= 0 || a.Goroutines < 1 {
		t.Errorf("%+v, %v", a, err)
	}
}
