package cases_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// manySteps is an agent of one loop of 200 steps; before is called before each.
func manySteps(before func(i int)) engine.Agent {
	return goAgent(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		for i := range 200 {
			before(i)
			if _, err := do(ctx, l, "count", stint.Read, "", func() string { return fmt.Sprint(i) }); err != nil {
				return stint.Next{}, err
			}
		}
		return stint.Next{End: &stint.End{}}, nil
	})
}

// inOrder reads the journal of 200 steps n times, each time from a store that was
// opened for it: the order is that of seq, and always the same.
func inOrder(t *testing.T, p *place, id stint.ID, n int) {
	t.Helper()
	var first []stint.Entry
	for i := range n {
		p.reload()
		es := p.entries(id)
		for k, e := range es {
			if e.Seq != stint.Seq(k+1) {
				t.Fatalf("reload %d has entry %d in place %d", i, e.Seq, k+1)
			}
		}
		counts := p.results(id, "count")
		for k, c := range counts {
			if c != fmt.Sprint(k) {
				t.Fatalf("reload %d has the result %s in place %d", i, c, k)
			}
		}
		if len(counts) != 200 {
			t.Fatalf("reload %d has %d steps", i, len(counts))
		}
		if first == nil {
			first = es
		}
		if !slices.EqualFunc(es, first, func(a, b stint.Entry) bool { return a.Hash == b.Hash && bytes.Equal(a.Body, b.Body) }) {
			t.Fatalf("reload %d differs from the first", i)
		}
	}
}

// TestE05EqualTimes: the order of entries is that of their seq. Entries that were
// made at one instant are neither reordered nor taken for stale
// (Icinga/icinga-notifications#61, google/adk-python#3717).
func TestE05EqualTimes(t *testing.T) {
	inTime(t, func(t *testing.T, p *place) {
		s := p.run(manySteps(func(int) {}), "")
		p.ends(s, stint.Completed)
		times := map[time.Time]int{}
		for _, e := range p.entries(s.ID) {
			times[e.At]++
		}
		if len(times) != 1 {
			t.Fatalf("the entries have %d times: the clock did not stand still", len(times))
		}
		inOrder(t, p, s.ID, 20)
	})
}

// TestE05ClockGoesBack runs TestMovedClock in a build whose clock can be moved.
func TestE05ClockGoesBack(t *testing.T) {
	t.Parallel()
	inClocked(t, "TestMovedClock")
}
