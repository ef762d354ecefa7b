package cases_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

const digits40 = "1234567890123456789012345678901234567890"

// value is a Go value and what becomes of it: how it is written, or where the error
// says that it cannot be.
type value struct {
	name   string
	value  any
	want   string   // JSON
	refuse []string // or what the error says
}

func values(t *testing.T) []value {
	t.Helper()
	huge, ok := new(big.Int).SetString(digits40, 10)
	if !ok {
		t.Fatal("no number")
	}
	type node struct {
		Name string `json:"name"`
		Next any    `json:"next"`
	}
	loop := &node{Name: "a"}
	loop.Next = &node{Name: "b", Next: loop}
	self := map[string]any{}
	self["self"] = self
	deep := func(v any) any { return map[string]any{"jobs": []any{1, 2, 3, map[string]any{"done": v}}} }
	return []value{
		{name: "date", value: time.Date(2026, 3, 1, 9, 30, 0, 5e8, time.FixedZone("CET", 3600)), want: `"2026-03-01T09:30:00.5+01:00"`},
		{name: "bytes", value: []byte("\x00\xff"), want: `"AP8="`},
		{name: "40 digits", value: huge, want: digits40},
		{name: "40 digits as text", value: json.Number(digits40), want: digits40},
		{name: "2^53+1", value: int64(9007199254740993), want: `9007199254740993`},
		{name: "set", value: map[string]struct{}{"b": {}, "a": {}}, want: `{"a":{},"b":{}}`},
		{name: "markup", value: "<a & b>", want: `"<a & b>"`},
		{name: "function", value: deep(func() {}), refuse: []string{"$.jobs[3].done: JSON cannot hold a func()"}},
		{name: "channel", value: deep(make(chan int)), refuse: []string{"$.jobs[3].done: JSON cannot hold a chan int"}},
		{name: "not a number", value: deep(math.NaN()), refuse: []string{"$.jobs[3].done: JSON cannot hold NaN"}},
		{name: "infinite", value: deep([]float64{0, math.Inf(-1)}), refuse: []string{"$.jobs[3].done[1]: JSON cannot hold -Inf"}},
		{name: "complex", value: deep(complex(1, 2)), refuse: []string{"$.jobs[3].done: JSON cannot hold a complex128"}},
		{name: "year 20000", value: deep(time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)), refuse: []string{"$.jobs[3].done: ", "year outside of range"}},
		{name: "cyclic map", value: self, refuse: []string{"$.self"}},
		{name: "cyclic pointers", value: map[string]any{"list": loop}, refuse: []string{"$.list"}},
	}
}

// TestE07TypesThatJSONDoesNotHaveInGo: each value has a documented encoding or is
// an error at the write that names the path to it, and what was stored before stays
// as it was (langchain-ai/langgraph#8388, MervinPraison/PraisonAI#5002).
func TestE07TypesThatJSONDoesNotHaveInGo(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, p *place) {
		for _, v := range values(t) {
			t.Run(v.name, func(t *testing.T) {
				p.t = t
				b, err := stint.Marshal(v.value)
				if string(b) != v.want {
					t.Errorf("it is written as %s, want %s", b, v.want)
				}
				v.checkError(t, err)
				v.asResult(t, p)
				v.asState(t, p)
			})
		}
		p.t = t
	})
}

func (v value) checkError(t *testing.T, err error) {
	t.Helper()
	if (err != nil) != (v.refuse != nil) || err != nil && !errors.Is(err, stint.Invalid) {
		t.Fatalf("the error is %v", err)
	}
	for _, want := range v.refuse {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %.300v, want in it %q", err, want)
		}
	}
}

// second is an agent whose first loop leaves a checkpoint, and whose second does
// fn.
func second(fn func(ctx context.Context, l stint.Loop) (json.RawMessage, error)) engine.Agent {
	return goAgent(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		if l.State() == nil {
			return stint.Next{State: json.RawMessage(`{"n":1}`)}, nil
		}
		state, err := fn(ctx, l)
		return stint.Next{State: state, End: &stint.End{}}, err
	})
}

// asResult has a step return the value.
func (v value) asResult(t *testing.T, p *place) {
	t.Helper()
	var got any
	var stepErr error
	a := second(func(ctx context.Context, l stint.Loop) (json.RawMessage, error) {
		got, stepErr = v.do(ctx, l)
		return nil, stepErr
	})
	s := p.run(a, "")
	if v.refuse == nil {
		p.ends(s, stint.Completed)
		if r := p.results(s.ID, "make"); len(r) != 1 || r[0] != v.want {
			t.Errorf("the journal has %q, want %s", r, v.want)
		}
		if !same(got, v.value) {
			t.Errorf("the loop got %v, want %v", got, v.value)
		}
	} else {
		v.checkError(t, stepErr)
		p.ends(s, stint.Failed, v.refuse[0])
		v.leavesCheckpoint(t, p, s)
	}
}

// do is stint.Do with the value's own type, as a program would write it.
func (v value) do(ctx context.Context, l stint.Loop) (any, error) {
	step := stint.Step{Name: "make"}
	switch x := v.value.(type) {
	case time.Time:
		return stint.Do(ctx, l, step, func(context.Context, string) (time.Time, error) { return x, nil })
	case []byte:
		return stint.Do(ctx, l, step, func(context.Context, string) ([]byte, error) { return x, nil })
	case *big.Int:
		return stint.Do(ctx, l, step, func(context.Context, string) (*big.Int, error) { return x, nil })
	case json.Number:
		return stint.Do(ctx, l, step, func(context.Context, string) (json.Number, error) { return x, nil })
	case int64:
		return stint.Do(ctx, l, step, func(context.Context, string) (int64, error) { return x, nil })
	case map[string]struct{}:
		return stint.Do(ctx, l, step, func(context.Context, string) (map[string]struct{}, error) { return x, nil })
	}
	return stint.Do(ctx, l, step, func(context.Context, string) (any, error) { return v.value, nil })
}

func same(a, b any) bool {
	switch b := b.(type) {
	case time.Time:
		a, ok := a.(time.Time)
		return ok && a.Equal(b)
	case *big.Int:
		a, ok := a.(*big.Int)
		return ok && a.Cmp(b) == 0
	}
	return reflect.DeepEqual(a, b)
}

// asState has a loop return the value as its state.
func (v value) asState(t *testing.T, p *place) {
	t.Helper()
	s := p.run(second(func(context.Context, stint.Loop) (json.RawMessage, error) { return stint.Marshal(v.value) }), "")
	if v.refuse == nil {
		p.ends(s, stint.Completed)
		p.reload()
		if got := p.state(s.ID); got != v.want {
			t.Errorf("the state is %s, want %s", got, v.want)
		}
		return
	}
	p.ends(s, stint.Failed, v.refuse[0])
	v.leavesCheckpoint(t, p, s)
}

// leavesCheckpoint checks that the loop before is as it was: what it left is
// there, and an agent that was mended goes on from it.
func (v value) leavesCheckpoint(t *testing.T, p *place, s stint.Session) {
	t.Helper()
	p.reload()
	if got := p.state(s.ID); got != `{"n":1}` || s.Checkpoint.Loop != 1 {
		t.Errorf("the state of loop %d is %s", s.Checkpoint.Loop, got)
	}
	one := 1
	p.send(s.ID, stint.Restart, journal.Command{From: &one, Reason: "mended"})
	mended := second(func(_ context.Context, l stint.Loop) (json.RawMessage, error) {
		return json.RawMessage(strings.Replace(string(l.State()), "1", "2", 1)), nil
	})
	mended.Runtime = s.Agent.Runtime
	s = p.goOn(mended, s.ID)
	p.ends(s, stint.Completed)
	if got := p.state(s.ID); got != `{"n":2}` {
		t.Errorf("after the restart the state is %s", got)
	}
}

// TestE07TypesThatJSONDoesNotHaveInPython: the SDK refuses at the write what it
// cannot keep, by the path to it, and an agent may catch that and go on. What was
// written before it in the same loop stays.
func TestE07TypesThatJSONDoesNotHaveInPython(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, p *place) {
		s := p.run(python(t, "unusual", "caught"), "")
		p.ends(s, stint.Completed)
		var said map[string]string
		for _, e := range p.entries(s.ID) {
			if e.Kind == stint.SessionEnded {
				if err := json.Unmarshal(e.Body, &said); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := map[string]string{
			"date":     "TypeError: WHAT: $.jobs[3].done: JSON cannot hold a date; write value.isoformat()",
			"bytes":    "TypeError: WHAT: $.jobs[3].done: JSON cannot hold a bytes; write it as text, or as base64",
			"set":      "TypeError: WHAT: $.jobs[3].done: JSON cannot hold a set; write sorted(value) or list(value)",
			"function": "TypeError: WHAT: $.jobs[3].done: JSON cannot hold a function; was it meant to be called?",
			"decimal":  "TypeError: WHAT: $.jobs[3].done: JSON cannot hold a Decimal; write str(value)",
			"nan":      "ValueError: WHAT: $.jobs[3].done: JSON cannot hold nan",
			"cyclic":   "ValueError: WHAT: $.jobs[3].done.self: the value contains itself",
			"key":      "TypeError: WHAT: $.jobs[3].done[3]: a name in a JSON object is a string, not a int; write str(key)",
			"half":     "ValueError: WHAT: $.jobs[3].done: half of a surrogate pair at character 1; JSON in UTF-8 cannot hold it",
		}
		for name, text := range want {
			kind, text, _ := strings.Cut(text, ": ")
			for how, what := range map[string]string{"patch": "patch", "replace": "replace", "input": "input of step make"} {
				if got := said[how+" "+name]; got != kind+": "+strings.Replace(text, "WHAT", what, 1) {
					t.Errorf("%s of a %s says %q", how, name, got)
				}
			}
			if got := said["result "+name]; got != "StepError: "+strings.Replace(text, "WHAT", "result of step make", 1) {
				t.Errorf("a %s as a result says %q", name, got)
			}
		}
		if len(said) != 4*len(want) {
			t.Errorf("%d writes were refused, want %d", len(said), 4*len(want))
		}
		p.reload()
		if got := p.state(s.ID); got != `{"n":1,"before":true,"huge":`+digits40+`,"tuple":[1,2],"text":"2026-03-01"}` {
			t.Errorf("the state is %s", got)
		}
		if got := p.results(s.ID, "keep"); len(got) != 1 || got[0] != `[`+digits40+`,-`+digits40+`]` {
			t.Errorf("the step gave %s", got)
		}
	})
}

// TestE07NotCaughtInPython: a write that is refused fails the loop with the path as
// its reason, and the checkpoint before is intact.
func TestE07NotCaughtInPython(t *testing.T) {
	t.Parallel()
	for how, text := range map[string]string{
		"patch":  "TypeError: patch: $.jobs[3].done: JSON cannot hold a set",
		"result": "result of step make: $.jobs[3].done: JSON cannot hold a set",
	} {
		t.Run(how, func(t *testing.T) {
			onFile(t, func(t *testing.T, p *place) {
				s := p.run(python(t, "unusual", how), "")
				p.ends(s, stint.Failed, text)
				value{}.leavesCheckpoint(t, p, s)
			})
		})
	}
}
