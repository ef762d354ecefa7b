package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/stint-dev/stint"
)

// StepsPerLoop is one model step and two tool steps.
const StepsPerLoop = 3

// Workload says what to run. Concurrency and Loops are at least 1.
type Workload struct {
	Concurrency int
	Sessions    int           // in all, or
	For         time.Duration // as many as fit; the ones under way at its end are finished, not counted
	Warm        time.Duration // before For, at the same load; not counted
	Loops       int
	Effect      stint.Effect // of the tool steps
	Grow        int          // bytes by which the state grows each loop; 0: a counter
	LLM         bool         // a language model that plays a script, with tools, instead of code that does the steps
	Unique      bool         // bodies that no other step has, so that no compression folds them
}

// play is a workload with what its steps give. Its methods may be called from any
// goroutine.
type play struct {
	Workload
	content []byte // of each model step; nil: a new one for each
	tool    json.RawMessage
}

func newPlay(w Workload) *play {
	s := &play{Workload: w}
	if !w.Unique {
		s.content, s.tool = text(contentBytes), toolResult()
	}
	return s
}

// contentBytes makes the result of a model step about 1 KiB.
const contentBytes = 960

func (s *play) modelResult(loop int) json.RawMessage {
	content := s.content
	if content == nil {
		content = text(contentBytes)
	}
	b := make([]byte, 0, 1024)
	b = append(b, `{"role":"assistant","loop":`...)
	b = strconv.AppendInt(b, int64(loop), 10)
	b = append(b, `,"content":"`...)
	b = append(b, content...)
	return append(b, `","tool":"search"}`...)
}

func (s *play) toolResult() json.RawMessage {
	if s.tool != nil {
		return s.tool
	}
	return toolResult()
}

func toolResult() json.RawMessage { return fmt.Appendf(nil, `"%s"`, text(254)) }

// steps does the steps of loop n; begun is called as each begins.
func (s *play) steps(ctx context.Context, l stint.Loop, n int, begun func(step int)) error {
	if err := step(ctx, l, 1, modelStep(), s.modelResult(n), begun); err != nil {
		return err
	}
	for i := range 2 {
		if err := step(ctx, l, 2+i, stint.Step{Name: "tool", Kind: stint.Tool, Effect: s.Effect}, s.toolResult(), begun); err != nil {
			return err
		}
	}
	return nil
}

func modelStep() stint.Step {
	return stint.Step{Name: "model", Kind: stint.Model, Effect: stint.Read}
}

func step(ctx context.Context, l stint.Loop, n int, s stint.Step, result json.RawMessage, begun func(step int)) error {
	begun(n)
	_, err := l.Do(ctx, s, func(context.Context, string) (stint.Result, error) { return stint.Result{Data: result}, nil })
	return err
}

// next is how loop n ends.
func (s *play) next(old json.RawMessage, n int) stint.Next {
	next := stint.Next{State: s.state(old, n)}
	if n >= s.Loops {
		next.End = &stint.End{}
	}
	return next
}

// state is a counter, or a transcript that grows at its end.
func (s *play) state(old json.RawMessage, n int) json.RawMessage {
	if s.Grow == 0 {
		return fmt.Appendf(nil, `{"loop":%d}`, n)
	}
	if len(old) == 0 {
		old = json.RawMessage(`{"log":[]}`)
	}
	out := slices.Clone(old[:len(old)-2])
	if n > 1 {
		out = append(out, ',')
	}
	out = append(out, '"')
	out = append(out, text(max(0, s.Grow-3))...)
	return append(out, `"]}`...)
}

// payload is how many bytes a session hands to stint that were not there before:
// results, and what each loop adds to the state.
func (s *play) payload() int64 {
	var n int64
	for loop := 1; loop <= s.Loops; loop++ {
		n += int64(len(s.modelResult(loop)) + 2*len(s.toolResult()))
		if s.Grow == 0 {
			n += int64(len(s.state(nil, loop)))
		}
	}
	return n + int64(s.Grow)*int64(s.Loops)
}

// text is n bytes of JSON-safe text that nothing else has and that does not compress
// to nothing.
func text(n int) []byte {
	const abc = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ."
	src := rand.NewPCG(rand.Uint64(), rand.Uint64())
	b := make([]byte, n)
	for i := 0; i < n; {
		for v, k := src.Uint64(), 0; k < 10 && i < n; k, i = k+1, i+1 {
			b[i] = abc[v&63]
			v >>= 6
		}
	}
	return b
}
