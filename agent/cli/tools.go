package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stint-dev/stint"
)

// What the result of a call says that no CLI told the outcome of.
const (
	markNot         = "not_happened" // a person or a rule said so
	markInterrupted = "interrupted"  // it may be done again freely
	markUnknown     = "unknown"      // the engine's
)

// mark is such a result.
type mark struct {
	Stint string `json:"stint"`
}

// tools journals calls that the CLI makes by itself: one by itself, those that began
// before the first of them ended as a group.
func (t *turn) tools(ctx context.Context, calls []*call) error {
	t.step++
	steps := make([]stint.Step, len(calls))
	begun := make([]bool, len(calls))
	for i, c := range calls {
		begun[i] = t.begun(member(i, calls))
		steps[i] = stint.Step{Name: c.Name, Kind: stint.Tool, Effect: c.Effect, Input: c.Input, Timeout: t.spec.timeout()}
	}
	await := func(step context.Context, i int, _ string) (stint.Result, error) {
		return t.await(step, calls[i], begun[i])
	}
	results := make([]stint.Result, 1)
	var err error
	if len(calls) == 1 {
		results[0], err = t.loop.Do(ctx, steps[0], func(step context.Context, key string) (stint.Result, error) { return await(step, 0, key) })
	} else {
		results, err = t.loop.DoAll(ctx, steps, await)
	}
	if err != nil {
		return err
	}
	for i, c := range calls {
		t.recall(c, results[i].Data, t.done == nil || t.done[[2]int{t.step, member(i, calls)}])
	}
	return nil
}

// member is the number of the i-th call in its group; 0 where it is by itself.
func member(i int, calls []*call) int {
	if len(calls) == 1 {
		return 0
	}
	return i + 1
}

// begun reports whether the journal had the intent of a call when this attempt began. A
// loop that cannot tell it of a call tells it of the whole step.
func (t *turn) begun(sub int) bool {
	if l, ok := t.loop.(looker); ok {
		yes, _ := l.Begun(t.step, sub)
		return yes
	}
	return t.ses.At.Step >= t.step
}

// await waits for the end of a call. begun says that an earlier attempt began it. It may
// run on any goroutine.
func (t *turn) await(step context.Context, c *call, begun bool) (stint.Result, error) {
	if c.done == nil {
		return missed(c, begun)
	}
	t.log.Progress(c.Name + " " + string(c.Input))
	select {
	case <-c.done:
	case <-step.Done():
		t.process.end()
		select {
		case <-c.done: // perhaps it ended all the same
		default:
			return stint.Result{}, stopped(step, c.Name)
		}
	}
	if c.lost {
		if step.Err() != nil {
			return stint.Result{}, stopped(step, c.Name)
		}
		return stint.Result{}, fmt.Errorf("the CLI did not tell how %s ended", c.Name)
	}
	data, err := stint.Marshal(c.out)
	return stint.Result{Data: data}, err
}

// missed is asked for the result of a call that an earlier process began. Which tools
// ran then stint cannot do again; the CLI is told instead. A once call whose intent
// the journal has comes here only after the word that it did not take place; one
// without is in doubt, since the CLI told of it only when it had begun.
func missed(c *call, begun bool) (stint.Result, error) {
	m := mark{markInterrupted}
	if c.Effect == stint.Once {
		if !begun {
			return stint.Result{}, errors.New("stint ended as the CLI began it")
		}
		m.Stint = markNot
	}
	data, err := stint.Marshal(m)
	return stint.Result{Data: data}, err
}

// recall notes what the CLI does not know of a call that an earlier process began.
func (t *turn) recall(c *call, data json.RawMessage, told bool) {
	if c.done != nil {
		return
	}
	var m mark
	_ = json.Unmarshal(data, &m)
	input, cut := bound(string(c.Input), 500)
	if cut > 0 {
		input += "…"
	}
	what := strings.TrimSpace("Your call of " + c.Name + " " + input)
	switch {
	case m.Stint == markNot:
		t.notes = append(t.notes, what+" did not take place.")
	case m.Stint == markInterrupted:
		t.notes = append(t.notes, what+" was interrupted.")
	case m.Stint == markUnknown:
		t.notes = append(t.notes, "Nobody knows whether this took place: "+what+".")
	case !told && c.Effect == stint.Once:
		result, cut := bound(string(data), 4000)
		if cut > 0 {
			result += "…"
		}
		if result == "null" || result == "" {
			result = "not told"
		}
		t.notes = append(t.notes, what+" did take place; do not repeat it. Its result: "+result)
	}
}

// interrupted is the prompt that resumes a CLI.
func (t *turn) interrupted() string {
	lines := append([]string{"You were interrupted. Look at what you did last before you go on."}, t.notes...)
	if t.answers == 0 { // it may not have read it
		lines = append(lines, "This is what you were asked:", t.prompt)
	}
	return strings.Join(lines, "\n")
}
