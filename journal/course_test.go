package journal_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"pgregory.net/rapid"
)

// lifeKinds are the kinds that a reader selects for Course.
func lifeKinds() []stint.Kind {
	return []stint.Kind{stint.SessionCreated, stint.LineStarted, stint.LoopStarted, stint.LoopCompleted, stint.LoopFailed, stint.SessionEnded}
}

func only(es []stint.Entry, kinds []stint.Kind) []stint.Entry {
	return slices.DeleteFunc(slices.Clone(es), func(e stint.Entry) bool { return !slices.Contains(kinds, e.Kind) })
}

// TestCourseOfAnyJournal compares the course of random journals with what their
// entries and sessions say.
func TestCourseOfAnyJournal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := simulate(t, rapid.IntRange(2, 80).Draw(t, "entries"))
		loops, err := journal.Course(c.es, -1)
		if err != nil {
			t.Fatal(err)
		}
		if few, err := journal.Course(only(c.es, lifeKinds()), -1); err != nil || !reflect.DeepEqual(few, loops) {
			t.Fatalf("of the selected kinds: %v, %v", few, err)
		}
		if same, err := journal.Course(c.es, c.s.At.Line); err != nil || !reflect.DeepEqual(same, loops) {
			t.Fatalf("by its number: %v, %v", same, err)
		}
		left := checkpoints(t, c)
		for i, l := range loops {
			checkLoop(t, c, i, l)
			if l.Completed() && l.Checkpoint != left[l.Number] {
				t.Fatalf("loop %d has checkpoint %+v, the session had %+v", l.Number, l.Checkpoint, left[l.Number])
			}
		}
		n := len(loops)
		if n != c.s.At.Loop || n > 0 && (loops[n-1].Open && !c.s.At.Open || loops[n-1].Completed() == c.s.At.Open) {
			t.Fatalf("%d loops, the session is at %+v", n, c.s.At)
		}
		for loop := 0; loop <= c.s.Checkpoint.Loop; loop++ {
			cp, err := journal.CheckpointAt(c.es, loop)
			if err != nil || cp != left[loop] {
				t.Fatalf("the checkpoint of loop %d: %+v, %v", loop, cp, err)
			}
		}
		// What a line left behind is as it was when the line was left.
		for i, e := range c.es {
			if e.Kind != stint.LineStarted {
				continue
			}
			then, err := journal.Course(c.es[:i], -1)
			now, err2 := journal.Course(c.es, e.Pos.Line-1)
			if err != nil || err2 != nil || !slices.EqualFunc(then, now, sameLoop) {
				t.Fatalf("line %d was\n%+v %v\nand is\n%+v %v", e.Pos.Line-1, then, err, now, err2)
			}
		}
	})
}

// sameLoop compares but for the end that leaving the line puts to an open loop.
func sameLoop(a, b journal.Loop) bool {
	if a.Open {
		a.Open, a.End, a.Ended = b.Open, b.End, b.Ended
	}
	return a == b
}

func checkLoop(t *rapid.T, c *chain, i int, l journal.Loop) {
	start := c.es[l.Start-1]
	if l.Number != i+1 || start.Kind != stint.LoopStarted || start.Pos.Loop != l.Number || start.Pos.Line != l.Line || !start.At.Equal(l.Began) {
		t.Fatalf("loop %d begins with %+v: %+v", i+1, start, l)
	}
	if start.Pos.Attempt != 1 || l.Attempts < 1 {
		t.Fatalf("loop %d: %+v", i+1, l)
	}
	if l.Open != (l.End == 0) {
		t.Fatalf("loop %d: %+v", i+1, l)
	}
	if !l.Completed() {
		return
	}
	end := c.es[l.End-1]
	d, err := journal.Decode[journal.LoopCompleted](&end)
	if err != nil || end.Kind != stint.LoopCompleted || end.Pos.Loop != l.Number || end.Pos.Line != l.Line || d.Headline != l.Headline || d.Rollup != l.Rollup || end.Pos.Attempt != l.Attempts {
		t.Fatalf("loop %d ends with %+v: %+v (%v)", i+1, end, l, err)
	}
}

// checkpoints is what the session had at the end of each loop, or at the newest
// line that began there.
func checkpoints(t *rapid.T, c *chain) map[int]stint.Checkpoint {
	out := map[int]stint.Checkpoint{0: {}}
	var s stint.Session
	for _, e := range c.es {
		var err error
		if s, err = journal.Apply(s, e); err != nil {
			t.Fatal(err)
		}
		if e.Kind == stint.LoopCompleted || e.Kind == stint.LineStarted {
			out[s.Checkpoint.Loop] = s.Checkpoint
		}
	}
	return out
}

func TestCourseRefuses(t *testing.T) {
	c := begun(t)
	c.loop()
	c.complete([]byte(`{"n":1}`))
	c.loop()
	c.complete([]byte(`{"n":2}`))
	c.loop()
	for _, tt := range []struct {
		name string
		do   func() error
		code stint.Code
		text string
	}{
		{"no entries", func() error { _, err := journal.Course(nil, -1); return err }, stint.Invalid, "do not begin with session.created"},
		{"from the middle", func() error { _, err := journal.Course(c.es[1:], -1); return err }, stint.Invalid, "do not begin with session.created"},
		{"no such line", func() error { _, err := journal.Course(c.es, 1); return err }, stint.NotFound, "lines 0 to 0 exist"},
		{"no line at all", func() error { _, err := journal.Course(c.es, -2); return err }, stint.NotFound, "lines 0 to 0 exist"},
		{"a loop that is open", func() error { _, err := journal.CheckpointAt(c.es, 3); return err }, stint.NotFound, "loops 1 to 2 are completed"},
		{"a loop that is not there", func() error { _, err := journal.CheckpointAt(c.es, 9); return err }, stint.NotFound, "loops 1 to 2 are completed"},
		{"one loop", func() error { _, err := journal.CheckpointAt(c.es[:4], 2); return err }, stint.NotFound, "loop 1 is completed"},
		{"no loop", func() error { _, err := journal.CheckpointAt(c.es[:2], 1); return err }, stint.NotFound, "none is completed yet"},
		{"before the beginning", func() error { _, err := journal.CheckpointAt(c.es, -1); return err }, stint.NotFound, "or 0 for the beginning"},
		{"a missing loop.started", func() error { _, err := journal.Course(slices.Delete(slices.Clone(c.es), 1, 2), -1); return err }, stint.Corrupt, "entry 3"},
		{"a missing loop.completed", func() error { _, err := journal.Course(slices.Delete(slices.Clone(c.es), 2, 3), -1); return err }, stint.Corrupt, "entry 4"},
		{"a loop left out", func() error { _, err := journal.Course(slices.Delete(slices.Clone(c.es), 1, 3), -1); return err }, stint.Corrupt, "entry 4"},
		{"bad data", func() error {
			es := slices.Clone(c.es)
			es[2].Data = []byte(`[]`)
			_, err := journal.Course(es, -1)
			return err
		}, stint.Corrupt, "entry 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.do()
			wantCode(t, err, tt.code)
			whole := err.Error()
			var e *stint.Error
			if errors.As(err, &e) {
				whole += " " + e.Hint
			}
			if !strings.Contains(whole, tt.text) {
				t.Fatalf("the error is %q, want %q in it", whole, tt.text)
			}
		})
	}
}

// TestLineFromNowhere keeps a loop that its line does not have.
func TestLineFromNowhere(t *testing.T) {
	c := begun(t)
	c.loop()
	fresh(0, nil)(c)
	c.es[2].Data = []byte(`{"from":3,"checkpoint":{}}`)
	_, err := journal.Course(c.es, -1)
	wantCode(t, err, stint.Corrupt)
	loops, err := journal.Course(c.es, 0)
	if err != nil || len(loops) != 1 || loops[0].End != 3 {
		t.Fatalf("the line that it left: %+v, %v", loops, err)
	}
}

// TestLineWithState goes back to a checkpoint with another state than it had: from
// then on that is the loop's checkpoint, on the new line and on no other.
func TestLineWithState(t *testing.T) {
	for _, from := range []int{0, 1, 2} {
		t.Run(fmt.Sprint(from), func(t *testing.T) {
			c := begun(t)
			for i := range 3 {
				c.loop()
				c.complete(fmt.Appendf(nil, `{"n":%d,"of":"a state that is long enough for a delta"}`, i))
			}
			before, err := journal.Course(c.es, -1)
			if err != nil {
				t.Fatal(err)
			}
			cp, err := journal.CheckpointAt(c.es, from)
			if err != nil {
				t.Fatal(err)
			}
			state := []byte(`{"n":"another","of":"a state that is long enough for a delta"}`)
			ref, body, err := journal.WriteState(cp, c.state(cp), state, c.source)
			if err != nil {
				t.Fatal(err)
			}
			e := c.must(journal.Draft{Kind: stint.LineStarted, Data: journal.LineStarted{From: from, Checkpoint: cp, State: ref}, Body: body})
			got, err := journal.CheckpointAt(c.es, from)
			if err != nil || got.Seq != e.Seq || got.Loop != from || !got.At.Equal(e.At) || got.Sum != ref.Sum {
				t.Fatalf("the checkpoint is %+v, %v", got, err)
			}
			if text := c.state(got); string(text) != string(state) {
				t.Fatalf("its state is %s", text)
			}
			for loop := range from {
				if got, err := journal.CheckpointAt(c.es, loop); err != nil || loop > 0 && got != before[loop-1].Checkpoint || loop == 0 && got.Seq != 0 {
					t.Fatalf("loop %d before it has checkpoint %+v, %v", loop, got, err)
				}
			}
			old, err := journal.Course(c.es, 0)
			if err != nil || !slices.Equal(old, before) {
				t.Fatalf("the old line is now %+v, %v", old, err)
			}
			if _, err := c.v.Result(); err != nil {
				t.Fatal(err)
			}
			p, err := journal.MakePlan(c.s, c.es, from, state, state)
			if err != nil || p.Leaves.Loops != 0 || p.Keeps.Loops != from || p.State.Before != p.State.After {
				t.Fatalf("a plan of the new line: %s, %v", toJSON(t, p), err)
			}
		})
	}
}
