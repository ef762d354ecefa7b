package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// TestABadNextIsAFailedAttempt is every shape that a loop can return and that cannot be
// recorded. Nothing of the loop's end may be, or the next loop would begin.
func TestABadNextIsAFailedAttempt(t *testing.T) {
	large := json.RawMessage(`"` + strings.Repeat("x", 32<<20) + `"`)
	end := func(e stint.End) stint.Next { return stint.Next{End: &e} }
	wait := func(w stint.Wait) stint.Next { return stint.Next{Wait: &w} }
	for name, c := range map[string]struct {
		next stint.Next
		want []string // in the reason
	}{
		"a state that is cut off":         {stint.Next{State: json.RawMessage(`{"a":`)}, []string{"Next.State", "not one JSON value"}},
		"a state that is empty":           {stint.Next{State: json.RawMessage{}}, []string{"Next.State", "empty"}},
		"a state with a name twice":       {stint.Next{State: json.RawMessage(`{"a":1,"a":2}`)}, []string{"Next.State", "twice"}},
		"a state too large":               {stint.Next{State: large}, []string{"Next.State", "33554434 bytes", "at most 33554432"}},
		"a state too large beside an end": {stint.Next{State: large, End: &stint.End{}}, []string{"Next.State", "33554432"}},
		"an outcome that is none":         {end(stint.End{Outcome: "done"}), []string{"Next.End.Outcome", `"done"`, "completed"}},
		"an outcome that is no end":       {end(stint.End{Outcome: stint.Waiting}), []string{"Next.End.Outcome", `"waiting"`}},
		"a person's outcome":              {end(stint.End{Outcome: stint.Canceled}), []string{"Next.End.Outcome", `"canceled"`}},
		"a long outcome":                  {end(stint.End{Outcome: stint.Status(strings.Repeat("\xff", 100_000))}), []string{"Next.End.Outcome"}},
		"a result that is cut off":        {end(stint.End{Result: json.RawMessage(`{"a":`)}), []string{"Next.End.Result", "not one JSON value"}},
		"a result of text":                {end(stint.End{Result: json.RawMessage(`all good`)}), []string{"Next.End.Result"}},
		"a result with half a surrogate":  {end(stint.End{Result: json.RawMessage(`"\ud800"`)}), []string{"Next.End.Result"}},
		"a result too large":              {end(stint.End{Result: large}), []string{"Next.End.Result", "33554434 bytes", "at most 33554432"}},
		"a wait for nothing known":        {wait(stint.Wait{For: "godot"}), []string{"Next.Wait.For", `"godot"`, `"message"`}},
		"a wait for a doubt":              {wait(stint.Wait{For: stint.ForDoubt}), []string{"Next.Wait.For", `"doubt"`}},
		"a wait for no time":              {wait(stint.Wait{For: stint.ForTime}), []string{"Next.Wait.Until"}},
		"a retry at no time":              {wait(stint.Wait{For: stint.ForRetry}), []string{"Next.Wait.Until"}},
		"a wait for no approval":          {wait(stint.Wait{For: stint.ForApproval}), []string{"Next.Wait.Approval"}},
		"a long approval":                 {wait(stint.Wait{For: stint.ForApproval, Approval: strings.Repeat("a", 100_000)}), []string{"Next.Wait.Approval", "at most 200"}},
		"a wait beyond the years":         {wait(stint.Wait{Until: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}), []string{"Next.Wait.Until", "10000"}},
		"woken by what is not known":      {wait(stint.Wait{For: stint.ForMessage, Wakes: []stint.MessageKind{"shout"}}), []string{"Next.Wait.Wakes", `"shout"`}},
		"woken by control":                {wait(stint.Wait{For: stint.ForMessage, Wakes: []stint.MessageKind{stint.Pause}}), []string{"Next.Wait.Wakes", `"pause"`}},
		"woken by too many":               {wait(stint.Wait{For: stint.ForMessage, Wakes: make([]stint.MessageKind, 20_000)}), []string{"Next.Wait.Wakes", "20000"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				calls, effects := 0, 0
				a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
					calls++
					_, err := step(ctx, l, "pay", stint.Once, func() (string, error) { effects++; return "paid", nil })
					if err != nil {
						return stint.Next{}, err
					}
					return c.next, nil
				})
				a.Retry = engine.Retry{Attempts: -1} // the brake alone ends it
				n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(n.Engine, a, "")
				s := r.settles(id, stint.Failed)
				n.stop()
				if calls != 5 || effects != 1 || s.Totals.Loops != 0 || s.Checkpoint.Seq != 0 || !strings.HasPrefix(s.Reason, "recovery: 5 failed attempts") {
					t.Errorf("%d calls, %d effects, %d loops: %.300s", calls, effects, s.Totals.Loops, s.Reason)
				}
				for _, want := range c.want {
					if !strings.Contains(s.Reason, want) {
						t.Errorf("%s is not in the reason: %.300s", want, s.Reason)
					}
				}
				for _, e := range r.entries(id) {
					if e.Kind == stint.LoopCompleted {
						t.Errorf("loop.completed was recorded\n%s", r.journal(id))
					}
				}
				r.verifies(id)
			})
		})
	}
}

// TestANextAtItsBounds is what just passes, with words that are cut and not refused.
func TestANextAtItsBounds(t *testing.T) {
	full := json.RawMessage(`"` + strings.Repeat("x", 32<<20-2) + `"`)
	lines := strings.Repeat("caf\xe9\n", 2000)
	pos := stint.Position{Loop: 9, Step: 9}
	for name, c := range map[string]struct {
		next stint.Next
		want stint.Status
	}{
		"the largest state":         {stint.Next{State: full, End: &stint.End{}}, stint.Completed},
		"the largest result":        {stint.Next{End: &stint.End{Result: full}}, stint.Completed},
		"words of an end":           {stint.Next{Headline: lines, End: &stint.End{Outcome: stint.Stopped, Reason: lines}}, stint.Stopped},
		"words of a wait":           {stint.Next{Wait: &stint.Wait{What: lines, Who: lines}}, stint.Waiting},
		"what only the engine says": {stint.Next{Wait: &stint.Wait{Step: pos, Since: time.Unix(1, 0)}}, stint.Waiting},
		"a bad wait beside an end":  {stint.Next{Wait: &stint.Wait{For: "godot"}, End: &stint.End{}}, stint.Completed},
		"a time that has passed":    {stint.Next{Wait: &stint.Wait{For: stint.ForTime, Until: time.Unix(1, 0)}, State: json.RawMessage("1")}, stint.Completed},
		"a wait for an approval":    {stint.Next{Wait: &stint.Wait{For: stint.ForApproval, Approval: "ap", Wakes: []stint.MessageKind{stint.Decision}}}, stint.Waiting},
		"a result of JSON for null": {stint.Next{End: &stint.End{Outcome: stint.Failed, Result: json.RawMessage("null")}}, stint.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				a := agent("a", func(_ context.Context, l stint.Loop) (stint.Next, error) {
					if l.Session().At.Loop > 1 {
						return stint.Next{End: &stint.End{}}, nil
					}
					return c.next, nil
				})
				n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(n.Engine, a, "")
				s := r.settles(id, c.want)
				n.stop()
				if len(s.Reason) > 1010 || strings.Contains(s.Reason, "\n") || s.Totals.Errors != 0 {
					t.Errorf("%d errors, and the reason %q", s.Totals.Errors, s.Reason)
				}
				if w := s.Wait; w != nil && (w.Step != stint.Position{} || len(w.What) > 1010 || w.Since.Year() < 2000) {
					t.Errorf("it waits with %+v", w)
				}
				r.verifies(id)
			})
		})
	}
}
