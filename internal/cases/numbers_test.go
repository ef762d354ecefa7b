package cases_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/journal"
)

// figures are numbers that a reader with 64-bit floats would change.
func figures() []string {
	return []string{
		"9007199254740993", "-9007199254740993", "2512292042121000001", digits40, "-" + digits40,
		"0.1000000000000000055511151231257827021181583404541015625", "1e400", "-1E-400", "-0.0", "1.50", "1E2",
	}
}

// TestE02NumbersInGo: digits are kept as they were written wherever a number goes:
// through a step's input and result, the state, a message, and the exported
// journal; also when a loop is begun again (earendil-works/pi#8943,
// google/adk-python#3592).
func TestE02NumbersInGo(t *testing.T) {
	list := "[" + strings.Join(figures(), ",") + "]"
	onStores(t, func(t *testing.T, p *place) {
		attempts := 0
		a := goAgent(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if l.State() == nil {
				return stint.Next{State: l.Inbox()[0].Body}, nil
			}
			attempts++
			for i, effect := range []stint.Effect{stint.Read, stint.Once} {
				got, err := do(ctx, l, fmt.Sprintf("echo%d", i), effect, string(l.State()), func() string { return string(l.State()) })
				if err != nil {
					return stint.Next{}, err
				}
				if got != list {
					return stint.Next{}, fmt.Errorf("attempt %d: the step gave %s", attempts, got)
				}
			}
			if attempts == 1 {
				return stint.Next{}, stint.Retry(0, errors.New("again"))
			}
			return stint.Next{End: &stint.End{Result: l.State()}}, nil
		})
		a.Retry.Attempts = 2
		a.Retry.Initial = 1
		s := p.run(a, list)
		p.ends(s, stint.Completed)
		exact(t, p, s, list)
	})
}

// TestE02NumbersInExec: the same with a program that hands on what it was given,
// byte for byte.
func TestE02NumbersInExec(t *testing.T) {
	list := "[" + strings.Join(figures(), ",") + "]"
	onFile(t, func(t *testing.T, p *place) {
		s := p.run(pythonWith(t, func(s *exec.Spec) {
			s.Keep, s.Command = exec.KeepLoop, []string{"python3", "echo.py"}
		}), list)
		p.ends(s, stint.Completed)
		exact(t, p, s, list)
	})
}

// exact checks the places that a number went through.
func exact(t *testing.T, p *place, s stint.Session, list string) {
	t.Helper()
	p.reload()
	if got := p.state(s.ID); got != list {
		t.Errorf("the state is %s", got)
	}
	es := p.entries(s.ID)
	places := map[string]int{}
	for _, e := range es {
		switch {
		case string(e.Body) == list:
			places[string(e.Kind)]++
		case strings.Contains(string(e.Data), `"args":`+list):
			places["args"]++
		}
	}
	for _, kind := range []stint.Kind{stint.SessionCreated, stint.StepRequested, stint.StepCompleted, stint.LoopCompleted, stint.SessionEnded} {
		if places[string(kind)] == 0 {
			t.Errorf("no %s has the numbers as they were\n%s", kind, p.journal(s.ID))
		}
	}
	// created, input of both steps, both results, the state, the end
	if got := strings.Count(p.export(s.ID), list); got < 7 {
		t.Errorf("the export has the numbers as they were in %d places, want 7", got)
	}
}

// TestE02NumbersInTypes: a Go type that cannot hold a recorded number says so; the
// number is not rounded, and stays in the journal as it is.
func TestE02NumbersInTypes(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		for figure, read := range map[string]func(context.Context, stint.Loop) error{
			"1e400":                readAs[float64],
			digits40:               readAs[int64],
			"18446744073709551616": readAs[uint64],
			"-1":                   readAs[uint8],
		} {
			a := goAgent(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
				if l.Session().At.Attempt == 1 {
					_, err := do(ctx, l, "count", stint.Read, "", func() string { return figure })
					return stint.Next{}, errors.Join(err, errors.New("begin again with another type"))
				}
				err := read(ctx, l)
				if !errors.Is(err, stint.Invalid) {
					return stint.Next{}, fmt.Errorf("%s was taken: %w", figure, err)
				}
				return stint.Next{End: &stint.End{}}, nil
			})
			a.Retry.Attempts, a.Retry.Initial = 2, 1
			s := p.run(a, "")
			p.ends(s, stint.Completed)
			if got := p.results(s.ID, "count"); len(got) != 1 || got[0] != figure {
				t.Errorf("the journal has %q", got)
			}
		}
	})
}

// readAs takes the step's recorded result as a T.
func readAs[T any](ctx context.Context, l stint.Loop) error {
	_, err := stint.Do(ctx, l, stint.Step{Name: "count", Effect: stint.Read}, func(context.Context, string) (T, error) {
		var none T
		return none, stint.Fail(errors.New("it ran again"))
	})
	return err
}

// TestE02FiniteNumbers: 1e400 is JSON and is kept as text, and where a number must
// fit into 64-bit floating point, it is an explicit error.
func TestE02FiniteNumbers(t *testing.T) {
	for _, figure := range figures() {
		if err := jsonx.Check([]byte(figure), jsonx.Limits{}); err != nil {
			t.Errorf("%s is refused: %v", figure, err)
		}
		err := jsonx.Check([]byte(figure), jsonx.Limits{FiniteNumbers: true})
		if (err != nil) != (figure == "1e400") {
			t.Errorf("with finite numbers %s gives %v", figure, err)
		}
	}
}

// TestE02NumbersInPython: integers are exact at any size. What a Python float
// cannot hold is in raw_state as it was, and written back it is an error that names
// the place.
func TestE02NumbersInPython(t *testing.T) {
	onFile(t, func(t *testing.T, p *place) {
		a, state := python(t, "figures"), `{"big":`+digits40+`,"odd":9007199254740993,"huge":1e400}`
		s := p.run(a, "")
		p.ends(s, stint.Waiting, "a state")
		from := 0
		p.send(s.ID, stint.Restart, journal.Command{From: &from, State: json.RawMessage(state)})
		s = p.goOn(a, s.ID)
		p.ends(s, stint.Completed)
		es := p.entries(s.ID)
		var said struct{ Raw, Error string }
		if err := json.Unmarshal(es[len(es)-1].Body, &said); err != nil {
			t.Fatal(err)
		}
		if said.Raw != state || said.Error != "replace: $.huge: JSON cannot hold inf" {
			t.Errorf("the program says %+v", said)
		}
		p.reload()
		if got := p.state(s.ID); got != `{"big":1234567890123456789012345678901234567891,"odd":9007199254740994,"huge":1e400}` {
			t.Errorf("the state is %s", got)
		}
		if got := p.results(s.ID, "add"); len(got) != 1 || got[0] != `[1234567890123456789012345678901234567891,9007199254740994]` {
			t.Errorf("the step gave %s", got)
		}
	})
}

// TestE02NumbersInAny: what Do gives an agent has the digits of the journal, also
// where the Go type does not say what a number is.
func TestE02NumbersInAny(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		a := goAgent(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			got, err := stint.Do(ctx, l, stint.Step{Name: "row", Effect: stint.Read}, func(context.Context, string) (map[string]any, error) {
				return map[string]any{"id": int64(9007199254740993)}, nil
			})
			if err != nil {
				return stint.Next{}, err
			}
			b, err := stint.Marshal(got)
			return stint.Next{State: b, End: &stint.End{}}, err
		})
		s := p.run(a, "")
		if r, st := p.results(s.ID, "row")[0], p.state(s.ID); r != `{"id":9007199254740993}` || st != r {
			t.Errorf("the journal has %s, the agent got %s", r, st)
		}
	})
}
