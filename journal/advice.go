package journal

import (
	"crypto/sha256"
	"fmt"

	"github.com/stint-dev/stint"
)

// advise returns the loop to go back to, and what came after it, in a line: the newest
// checkpoint before the loops at the end of the line that failed, or that came to nothing.
// Why is empty where the newest loop came to something.
//
// A loop came to nothing where it left the state as it was and did nothing that reaches the
// outside, and one of a model where its calls and their results were those of the loop
// before. Loops before one that came to something are no reason to go back further: it may
// rest on them.
func (c *course) advise(es []stint.Entry) (from int, why string, err error) {
	calls, err := c.calls(es)
	if err != nil {
		return 0, "", err
	}
	i, failed := len(c.loops), ""
	if i > 0 && !c.loops[i-1].Completed() {
		i--
		if l := &c.loops[i]; l.Error != "" {
			failed = fmt.Sprintf("loop %d failed: %s", l.Number, l.Error)
		}
	}
	idle := i
	for idle > 0 && c.idle(idle-1, calls) {
		idle--
	}
	from, why = c.first+idle, failed
	switch n := i - idle; {
	case n == 1:
		why = fmt.Sprintf("loop %d came to nothing", from+1)
	case n > 1:
		why = fmt.Sprintf("loops %d to %d came to nothing", from+1, from+n)
	}
	if failed != "" && why != failed {
		why += ", and " + failed
	}
	return from, why, nil
}

// idle reports whether the loop at i, which completed, came to nothing.
func (c *course) idle(i int, calls map[int]stint.Hash) bool {
	l, before := &c.loops[i], c.base
	if i > 0 {
		before = c.loops[i-1].Checkpoint
	}
	if l.Effects == 0 && l.Checkpoint.Sum == before.Sum && l.Checkpoint.Size == before.Size {
		return true
	}
	own, called := calls[l.Number]
	return l.Models > 0 && called && own == calls[l.Number-1]
}

// calls has a hash for each loop that called anything but a model: of what it called and
// what came of it, in order.
func (c *course) calls(es []stint.Entry) (map[int]stint.Hash, error) {
	lines, sums := linesOf(c.loops), map[int]stint.Hash{}
	for i := range es {
		e := &es[i]
		line, ok := lines[e.Pos.Loop]
		if e.Kind != stint.StepCompleted && e.Kind != stint.StepFailed || !ok || line != e.Pos.Line {
			continue
		}
		d, err := Decode[StepDone](e)
		if err != nil {
			return nil, err
		}
		if d.Kind != stint.Model {
			before := sums[e.Pos.Loop]
			sums[e.Pos.Loop] = sha256.Sum256(fmt.Appendf(nil, "%s %q %s %s %q %s %x", before, d.Name, d.Input, e.Kind, d.Error, e.Blob.Sum, sha256.Sum256(e.Body)))
		}
	}
	return sums, nil
}
