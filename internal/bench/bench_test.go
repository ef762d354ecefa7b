package bench_test

import (
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/bench"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/store/storetest"
)

func TestWorkload(t *testing.T) {
	for _, effect := range []stint.Effect{stint.Idempotent, stint.Once} {
		st := mem.New()
		row, err := bench.Run(t.Context(), st, bench.Workload{Concurrency: 4, Sessions: 10, Loops: 5, Effect: effect, Grow: 100})
		if err != nil {
			t.Fatal(err)
		}
		if row.Steps != 150 || row.Sessions != 10 || row.StepsPerS <= 0 || row.StepP50us <= 0 {
			t.Errorf("%+v", row)
		}
		rows, err := st.Sessions(t.Context(), stint.Filter{})
		if err != nil || len(rows) != 10 {
			t.Fatalf("%d sessions, %v", len(rows), err)
		}
		for _, r := range rows {
			if s := r.Session; s.Status != stint.Completed || s.Totals.Loops != 5 || s.Checkpoint.Size < 500 {
				t.Errorf("%s: %+v, state of %d bytes", s.Status, s.Totals, s.Checkpoint.Size)
			}
		}
		storetest.Check(t, st)
	}
}
