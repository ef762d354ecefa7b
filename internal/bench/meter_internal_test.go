package bench

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A quantile of the histogram is that of the values themselves, but for the width
// of a class.
func TestHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := rapid.SliceOfN(rapid.Int64Range(0, int64(time.Hour)), 1, 200).Draw(t, "ns")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		var h histogram
		for _, v := range vs {
			h.add(time.Duration(v))
		}
		slices.Sort(vs)
		want := float64(vs[int(q*float64(len(vs)-1))]) / 1e3
		if got := h.us(q); math.Abs(got-want) > want*.016+1e-9 {
			t.Fatalf("the %.3f-quantile of %v ns is %v µs, not %v", q, vs, got, want)
		}
		h.reset()
		if got := h.us(q); got != 0 {
			t.Fatalf("nothing has a quantile: %v", got)
		}
	})
}

func TestHistogramEnds(t *testing.T) {
	for _, d := range []time.Duration{-1, 0, 63, 64, 127, 128, math.MaxInt64} {
		i := class(max(0, d))
		if i < 0 || i >= len(histogram{}.n) {
			t.Errorf("%d falls into class %d", d, i)
		}
	}
}
