package cases_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// delta is a case of testdata/state-deltas.json.
type delta struct {
	Case     string            `json:"case"`
	Writes   []json.RawMessage `json:"writes"`
	Expect   json.RawMessage   `json:"expect"`
	From     json.RawMessage   `json:"parallel_from"`
	Branches []json.RawMessage `json:"branches"`
}

// deltas returns the cases of a name.
func deltas(t *testing.T, name string) []delta {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "state-deltas.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all, out []delta
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if d.Case == name {
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		t.Fatalf("there is no case %s", name)
	}
	return out
}

// writing is some writes to a state, one a loop, and what is left of them.
type writing struct {
	name    string
	writes  []string
	replace string // the state after, where each write is the whole new state
	patch   string // the state after, where each write is a merge patch; empty: one of them is none
}

// writings are the cases of E03 and our own, with the documented outcome of each:
// what Go returns and what exec replaces is the new state; an exec patch merges
// objects, deletes by null and replaces all else, arrays too (RFC 7396).
func writings(t *testing.T) []writing {
	t.Helper()
	all := []writing{
		{name: "E03 null", replace: `{"k":null}`, patch: `{}`},
		{name: "E03 nested", replace: `{"ticket":{"summary":"disk"}}`, patch: `{"ticket":{"summary":"disk","assignee":"ada"}}`},
		beside([]writing{
			{"nested null", []string{`{"ticket":{"summary":"disk","assignee":"ada"}}`, `{"ticket":{"assignee":null}}`}, `{"ticket":{"assignee":null}}`, `{"ticket":{"summary":"disk"}}`},
			{"array", []string{`{"a":[1,2,{"b":1}]}`, `{"a":[{"c":null}]}`}, `{"a":[{"c":null}]}`, `{"a":[{"c":null}]}`},
			{"null in an array", []string{`{"a":1}`, `{"a":[1,null]}`}, `{"a":[1,null]}`, `{"a":[1,null]}`},
			{"object over scalar", []string{`{"a":1}`, `{"a":{"b":null,"c":2}}`}, `{"a":{"b":null,"c":2}}`, `{"a":{"c":2}}`},
			{"null of nothing", []string{`{"a":1}`, `{"b":null}`}, `{"b":null}`, `{"a":1}`},
			{"emptied", []string{`{"a":1,"b":2}`, `{}`}, `{}`, `{"a":1,"b":2}`},
		}),
		{"null as a whole", []string{`{"a":1}`, `null`}, `null`, ``},
		{"list as a whole", []string{`[1]`, `[2,3]`}, `[2,3]`, ``},
	}
	for i, d := range deltas(t, "E03") {
		for _, w := range d.Writes {
			all[i].writes = append(all[i].writes, compact(t, w))
		}
		if d.Expect[0] == '{' && compact(t, d.Expect) != all[i].replace {
			t.Fatalf("%s expects %s", all[i].name, d.Expect)
		}
	}
	return all
}

// beside makes one writing of several, each in a member of its own: a program need
// not be started for each of them.
func beside(all []writing) writing {
	out := writing{name: "ours", writes: []string{"", ""}}
	for _, w := range all {
		for i, part := range []string{w.writes[0], w.writes[1], w.replace, w.patch} {
			to := []*string{&out.writes[0], &out.writes[1], &out.replace, &out.patch}[i]
			*to += fmt.Sprintf(`,%q:%s`, w.name, part)
		}
	}
	for _, s := range []*string{&out.writes[0], &out.writes[1], &out.replace, &out.patch} {
		*s = "{" + (*s)[1:] + "}"
	}
	return out
}

// goWriter writes one of writes a loop. What it sees of the state is the result of
// a step, so that the journal has it as the loop had it.
func goWriter(writes []string) engine.Agent {
	return goAgent(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		saw, err := do(ctx, l, "saw", stint.Read, "", func() string {
			if l.State() == nil {
				return `"nothing"`
			}
			return string(l.State())
		})
		n := l.Session().At.Loop
		if n > len(writes) {
			return stint.Next{End: &stint.End{Result: json.RawMessage(saw)}}, err
		}
		return stint.Next{State: json.RawMessage(writes[n-1])}, err
	})
}

// TestE03NullDeleteNestedReplace: one rule for null, deletion and nested values,
// the same on every store, live, after a reload and after a restart
// (google/adk-python#6728).
func TestE03NullDeleteNestedReplace(t *testing.T) {
	t.Parallel()
	for _, w := range writings(t) {
		list := "[" + strings.Join(w.writes, ",") + "]"
		for _, form := range []struct {
			name, want string
			agent      func(t *testing.T) engine.Agent
		}{
			{"go", w.replace, func(*testing.T) engine.Agent { return goWriter(w.writes) }},
			{"exec replace", w.replace, func(t *testing.T) engine.Agent { return python(t, "writer", "replace", list) }},
			{"exec patch", w.patch, func(t *testing.T) engine.Agent { return python(t, "writer", "patch", list) }},
		} {
			if form.want == "" {
				continue
			}
			t.Run(w.name+"/"+form.name, func(t *testing.T) {
				on := onStores
				if form.name != "go" {
					t.Parallel()
					on = onFile
				}
				on(t, func(t *testing.T, p *place) { written(t, p, form.agent(t), len(w.writes), form.want) })
			})
		}
	}
}

// written runs a writer and compares what its loops saw with what is stored.
func written(t *testing.T, p *place, a engine.Agent, writes int, want string) {
	s := p.run(a, "")
	p.ends(s, stint.Completed)
	live := p.results(s.ID, "saw")
	if len(live) != writes+1 || live[writes] != want {
		t.Errorf("the loops saw %q, at last want %s", live, want)
	}
	p.reload()
	if got := p.state(s.ID); got != want {
		t.Errorf("after a reload the state is %s, want %s", got, want)
	}
	for i, state := range p.states(s.ID)[:writes] {
		if state != live[i+1] {
			t.Errorf("after loop %d the store has %s, loop %d saw %s", i+1, state, i+2, live[i+1])
		}
	}
	// What was cleared does not come back when a loop is begun again from the past.
	from := 1
	p.send(s.ID, stint.Restart, journal.Command{From: &from})
	s = p.goOn(a, s.ID)
	p.ends(s, stint.Completed)
	if again := p.results(s.ID, "saw"); again[len(again)-1] != want || p.state(s.ID) != want {
		t.Errorf("after a restart the last loop saw %s, the store has %s; want %s", again[len(again)-1], p.state(s.ID), want)
	}
}
