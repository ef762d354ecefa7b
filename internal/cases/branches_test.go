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
	"github.com/stint-dev/stint/engine"
)

// TestE04ParallelBranches: two branches of one loop that write one object are
// merged where their keys differ and a conflict that names key and writers where
// they do not. Nothing that a branch wrote is ever silently lost
// (agno-agi/agno#9832).
func TestE04ParallelBranches(t *testing.T) {
	t.Parallel()
	for _, c := range branchCases(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onFile(t, func(t *testing.T, p *place) {
				list := make([]any, 0, len(c.branches))
				for i, b := range c.branches {
					list = append(list, map[string]any{"by": fmt.Sprintf("branch %c", 'a'+i), "how": b.how, "value": json.RawMessage(b.value)})
				}
				branches, err := json.Marshal(list)
				if err != nil {
					t.Fatal(err)
				}
				s := p.run(python(t, "branches", c.from, string(branches)), "")
				if c.conflict == "" {
					p.ends(s, stint.Completed)
				} else {
					p.ends(s, stint.Failed, `writer "branch a"`, `writer "branch b"`, "both write "+c.conflict+" in one loop")
				}
				p.reload()
				if got := p.state(s.ID); got != c.want {
					t.Errorf("the state is %s, want %s", got, c.want)
				}
				if got := p.results(s.ID, "branch"); len(got) != len(c.branches) {
					t.Errorf("the journal has the results %q", got)
				}
			})
		})
	}
}

type branchCase struct {
	name, from string
	branches   []branch
	conflict   string // the path it names; empty: they are merged
	want       string // the state after
}

// branch is what one branch writes, and how.
type branch struct{ how, value string }

func branchCases(t *testing.T) []branchCase {
	t.Helper()
	all := []branchCase{{name: "keys differ", want: `{"counters":{"shared":0,"a":1,"b":2}}`}, {name: "E04", conflict: "/counters/shared"}}
	d := deltas(t, "E04")[0]
	from := compact(t, d.From)
	for _, b := range d.Branches {
		all[1].branches = append(all[1].branches, branch{"patch", compact(t, b)})
		own := strings.Replace(compact(t, b), `"shared":0,`, "", 1)
		all[0].branches = append(all[0].branches, branch{"patch", own})
	}
	a, b := all[0].branches[0], all[0].branches[1]
	all = append(all,
		branchCase{name: "equal value", branches: []branch{a, a}, conflict: "/counters/a"},
		branchCase{name: "one replaces everything", branches: []branch{a, {"replace", all[1].branches[1].value}}, conflict: "/counters/a"},
		branchCase{name: "everything was replaced", branches: []branch{{"replace", all[1].branches[0].value}, b}, conflict: "/counters/b"},
		branchCase{name: "one deletes what the other fills", branches: []branch{a, {"patch", `{"counters":null}`}}, conflict: "/counters/a"},
		branchCase{name: "one fills what the other deleted", branches: []branch{{"patch", `{"counters":null}`}, b}, conflict: "/counters/b"},
	)
	for i := range all {
		all[i].from = from
		if all[i].conflict != "" {
			all[i].want = from // the loop's changes count as a whole or not at all
		}
	}
	return all
}

// TestE04GroupInGo: in Go the members of a group have no shared object to write.
// Each has a result of its own, recorded under its own position, and the loop makes
// the new state of all of them; also when it begins again between two of them.
func TestE04GroupInGo(t *testing.T) {
	t.Parallel()
	d := deltas(t, "E04")[0]
	want := `{"counters":{"a":1,"b":2,"shared":0}}`
	onStores(t, func(t *testing.T, p *place) {
		attempts := 0
		a := goAgent(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if l.State() == nil {
				return stint.Next{State: d.From}, nil
			}
			attempts++
			steps := []stint.Step{{Name: "branch", Effect: stint.Read}, {Name: "branch", Effect: stint.Read}}
			second := make(chan struct{})
			results, err := l.DoAll(ctx, steps, func(_ context.Context, i int, _ string) (stint.Result, error) {
				switch {
				case i == 1:
					close(second)
				case attempts == 1: // the first answer comes last, and it is an error
					<-second
					return stint.Result{}, stint.Retry(0, errors.New("connection reset"))
				}
				return stint.Result{Data: d.Branches[i]}, nil
			})
			if err != nil {
				return stint.Next{}, err
			}
			state, err := mergeCounters(l.State(), results)
			return stint.Next{State: state, End: &stint.End{Result: state}}, err
		})
		a.Retry = engine.Retry{Attempts: 2, Initial: 1}
		s := p.run(a, "")
		p.ends(s, stint.Completed)
		if attempts != 2 {
			t.Errorf("%d attempts", attempts)
		}
		p.reload()
		if got := p.state(s.ID); got != want {
			t.Errorf("the state is %s, want %s", got, want)
		}
		if got := p.results(s.ID, "branch"); len(got) != 2 {
			t.Errorf("the journal has the results %q", got)
		}
	})
}

// mergeCounters adds the counters of each branch's result to those of the state.
func mergeCounters(state json.RawMessage, results []stint.Result) (json.RawMessage, error) {
	var out struct {
		Counters map[string]int `json:"counters"`
	}
	for _, b := range append([]stint.Result{{Data: state}}, results...) {
		if err := json.Unmarshal(b.Data, &out); err != nil { // adds to the map
			return nil, err
		}
	}
	return stint.Marshal(out)
}

// TestE04WithoutTheSDK: the same rule for a program that writes the protocol
// itself.
func TestE04WithoutTheSDK(t *testing.T) {
	t.Parallel()
	script := func(second string) func(s *exec.Spec) {
		return func(s *exec.Spec) {
			s.Keep = exec.KeepLoop
			s.Command = []string{"sh", "-c", `read -r loop
echo '{"type":"state","patch":{"counters":{"a":1}},"by":"branch a"}'
echo '` + second + `'
echo '{"type":"end","outcome":"complete"}'`}
		}
	}
	onFile(t, func(t *testing.T, p *place) {
		s := p.run(pythonWith(t, script(`{"type":"state","patch":{"counters":{"b":2}},"by":"branch b"}`)), "")
		p.ends(s, stint.Completed)
		if got := p.state(s.ID); got != `{"counters":{"a":1,"b":2}}` {
			t.Errorf("the state is %s", got)
		}
		s = p.run(pythonWith(t, script(`{"type":"state","patch":{"counters":{"a":1}},"by":"branch b"}`)), "")
		p.ends(s, stint.Failed, `writer "branch a" and writer "branch b" both write /counters/a in one loop`)
		if got := p.state(s.ID); got != "" {
			t.Errorf("the state is %s", got)
		}
	})
}

// TestE04NothingIsLostInAStep: what a step's function writes into the state would be
// missing when the loop is begun again and the function does not run. So it cannot
// write there, is told so, and the state is the same with and without a crash.
func TestE04NothingIsLostInAStep(t *testing.T) {
	for _, c := range []struct{ how, where, state string }{
		{"patch", "step", ""}, {"replace", "step", ""}, {"patch", "group", ""}, {"patch", "after", `{"n":1}`},
	} {
		t.Run(c.how+" "+c.where, func(t *testing.T) {
			t.Parallel()
			onFile(t, func(t *testing.T, p *place) {
				a := python(t, "instep", c.how, c.where)
				a.Retry = engine.Retry{Attempts: 2, Initial: 1}
				s := p.run(a, "")
				p.ends(s, stint.Completed)
				if said := p.results(s.ID, "count"); len(said) != 1 || !strings.Contains(said[0], "would be lost") || s.At.Attempt != 2 {
					t.Errorf("in attempt %d the step says %q", s.At.Attempt, said)
				}
				if got := p.state(s.ID); got != c.state {
					t.Errorf("the state is %s, want %s", got, c.state)
				}
			})
		})
	}
}
