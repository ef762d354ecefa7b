package journal_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"pgregory.net/rapid"
)

func planOf(t failer, c *chain, from int) journal.Plan {
	t.Helper()
	cp, err := journal.CheckpointAt(c.es, from)
	if err != nil {
		t.Fatalf("%v", err)
	}
	p, err := journal.MakePlan(c.s, c.es, from, c.state(c.s.Checkpoint), c.state(cp))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

// TestPlanOfAnyJournal checks plans of random journals against a plain reading.
func TestPlanOfAnyJournal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := simulate(t, rapid.IntRange(2, 80).Draw(t, "entries"))
		from := rapid.IntRange(0, c.s.Checkpoint.Loop).Draw(t, "from")
		p := planOf(t, c, from)
		loops, err := journal.Course(c.es, -1)
		if err != nil {
			t.Fatal(err)
		}
		if p.Session != c.s.ID || p.From != from || p.Head != c.s.Head || p.Keeps.Loops != from ||
			p.Leaves.Line != c.s.At.Line || p.Leaves.Loops != len(loops)-from || p.State.Before != c.s.Checkpoint.Size || p.Hash.IsZero() {
			t.Fatalf("%s", toJSON(t, p))
		}
		got := map[stint.Position]bool{}
		for _, st := range slices.Concat(p.Outside, p.InDoubt) {
			at := st.Pos
			at.Attempt = 0
			if got[at] || st.Key != journal.Key(c.s.ID, st.Pos) || st.Effect == stint.Read || st.Note == "" {
				t.Fatalf("%+v", st)
			}
			got[at] = true
		}
		// Each effect that took place in a loop left behind is there, and no other.
		want := map[stint.Position]bool{}
		for _, e := range c.es {
			n := e.Pos.Loop
			if e.Kind != stint.StepCompleted || n <= from || n > len(loops) || loops[n-1].Line != e.Pos.Line {
				continue
			}
			d, err := journal.Decode[journal.StepDone](&e)
			if err != nil {
				t.Fatal(err)
			}
			if d.Effect == stint.Read || d.Kind == stint.Model {
				continue
			}
			at := e.Pos
			at.Attempt = 0
			want[at] = true
		}
		for at := range want {
			if !got[at] {
				t.Fatalf("the effect at %+v is not in the plan: %s", at, toJSON(t, p))
			}
		}
		for _, st := range p.Outside {
			at := st.Pos
			at.Attempt = 0
			if want[at] != (st.Outcome == "completed") {
				t.Fatalf("%+v is in the plan as completed=%v", st, want[at])
			}
		}
		if again := planOf(t, c, from); !reflect.DeepEqual(again, p) {
			t.Fatalf("the same plan twice:\n%s\n%s", toJSON(t, p), toJSON(t, again))
		}
		var back journal.Plan
		if err := json.Unmarshal(toJSON(t, p), &back); err != nil || back.Hash != p.Hash || len(back.Outside) != len(p.Outside) {
			t.Fatalf("the plan does not survive JSON: %v", err)
		}
	})
}

// TestPlanEffects has one step of each kind after the checkpoint.
func TestPlanEffects(t *testing.T) {
	for _, tt := range []struct {
		name    string
		deeds   []deed
		outside string // outcome; empty: not listed
		doubt   string
		note    string
	}{
		{"read", []deed{gets(stint.Read)}, "", "", ""},
		{"read that failed", []deed{fails(stint.Read, false)}, "", "", ""},
		{"once", []deed{asks(stint.Once), gets(stint.Once)}, "completed", "", "cannot be undone; the new line does it again"},
		{"idempotent", []deed{gets(stint.Idempotent)}, "completed", "", "cannot be undone; the new line sends a new key"},
		{"once without outcome", []deed{asks(stint.Once)}, "", "requested", "may have taken effect"},
		{"once that happened", []deed{asks(stint.Once), says(journal.Happened)}, "happened", "", "cannot be undone"},
		{"once that did not", []deed{asks(stint.Once), says(journal.NotHappened)}, "", "", ""},
		{"once, nobody knows", []deed{asks(stint.Once), says(journal.Unknown)}, "", "unknown", "may have taken effect"},
		{"once with a definite error", []deed{asks(stint.Once), fails(stint.Once, true)}, "failed", "", "failed with a known outcome"},
		{"idempotent without outcome", []deed{asks(stint.Idempotent)}, "", "requested", "a new key"},
		{"idempotent with any error", []deed{fails(stint.Idempotent, false)}, "", "failed", "a new key"},
		{"idempotent, at last", []deed{fails(stint.Idempotent, false), gets(stint.Idempotent)}, "completed", "", "a new key"},
		{"idempotent model", []deed{does(stint.StepCompleted, 1, journal.StepDone{StepRequested: answer(stint.Idempotent)})}, "", "", ""},
		{"once model", []deed{does(stint.StepRequested, 1, answer(stint.Once)), does(stint.StepCompleted, 1, journal.StepDone{StepRequested: answer(stint.Once)})}, "", "", ""},
		{"once model in doubt", []deed{does(stint.StepRequested, 1, answer(stint.Once))}, "", "requested", "may have"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := begun(t)
			c.loop()
			c.must(journal.Draft{Kind: stint.StepCompleted, Pos: c.at(1, 0), Data: journal.StepDone{StepRequested: charge(stint.Idempotent)}})
			c.complete([]byte(`{"n":1}`)) // what came before the checkpoint is no matter
			c.loop()
			for _, do := range tt.deeds {
				do(c)
			}
			p := planOf(t, c, 1)
			list, want, other := p.Outside, tt.outside, p.InDoubt
			if tt.doubt != "" {
				list, want, other = p.InDoubt, tt.doubt, p.Outside
			}
			if len(other) > 0 || want == "" && len(list) > 0 {
				t.Fatalf("%s", toJSON(t, p))
			}
			if want == "" {
				return
			}
			if len(list) != 1 || list[0].Outcome != want || !strings.Contains(list[0].Note, tt.note) || list[0].Seq != c.s.Head {
				t.Fatalf("%s", toJSON(t, p))
			}
		})
	}
}

func answer(effect stint.Effect) journal.StepRequested {
	return journal.StepRequested{Name: "answer", Kind: stint.Model, Effect: effect}
}

// TestPlanLines leaves loops that took place on an earlier line, and does not
// list again what an earlier restart left.
func TestPlanLines(t *testing.T) {
	c := begun(t)
	act := func() {
		c.loop()
		asks(stint.Once)(c)
		gets(stint.Once)(c)
		c.complete(nil)
	}
	act()
	act()
	act()
	fresh(2, nil)(c) // leaves loop 3 of line 0
	act()
	p := planOf(t, c, 1)
	var got []string
	for _, st := range p.Outside {
		got = append(got, fmt.Sprintf("%d/%s", st.Pos.Line, st.Pos))
	}
	if want := []string{"0/2.1", "1/3.1"}; !slices.Equal(got, want) {
		t.Fatalf("the plan lists %v, want %v", got, want)
	}
	if p.Leaves != (journal.Leaves{Line: 1, Loops: 2}) {
		t.Fatalf("%+v", p.Leaves)
	}
}

func TestPlanState(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, tt := range []struct {
		name, now, then string
		want            string
	}{
		{"equal", `{"a":1}`, `{"a":1}`, ``},
		{"white space", `{"a": 1}`, ` {"a":1} `, ``},
		{"order of members", `{"a":1,"b":2}`, `{"b":2,"a":1}`, ``},
		{"an escape", `{"a":"\u0041"}`, `{"a":"A"}`, ``},
		{"a value", `{"a":1,"b":2}`, `{"a":1,"b":3}`, `/b 2>3`},
		{"a number's digits", `{"a":10000000000000000001}`, `{"a":10000000000000000002}`, `/a 10000000000000000001>10000000000000000002`},
		{"gone", `{"a":1,"b":2}`, `{"a":1}`, `/b 2>`},
		{"back", `{}`, `{"b":null}`, `/b >null`},
		{"another type", `{"a":{"b":1}}`, `{"a":[1]}`, `/a {"b":1}>[1]`},
		{"nested", `{"a":{"b":{"c":1}}}`, `{"a":{"b":{"c":2}}}`, `/a/b/c 1>2`},
		{"a list", `{"l":[1,2,3]}`, `{"l":[1,9]}`, `/l/1 2>9 /l/2 3>`},
		{"a longer list", `{"l":[1]}`, `{"l":[1,2]}`, `/l/1 >2`},
		{"64 bytes are shown", `"` + long[:62] + `"`, `"` + long[:63] + `"`, ` "` + long[:62] + `">(65)`},
		{"on both sides", `"` + long[:63] + `"`, `"` + long[:62] + `"`, ` (65)>"` + long[:62] + `"`},
		{"pointer escapes", `{"a/b":1,"c~d":1,"":1}`, `{"a/b":2,"c~d":2,"":2}`, `/ 1>2 /a~1b 1>2 /c~0d 1>2`},
		{"long values by size", `{"a":"` + long + `"}`, `{"a":"y"}`, `/a (102)>"y"`},
		{"the whole", `1`, `"x"`, ` 1>"x"`},
		{"no JSON", `{`, `{}`, ` (1)>(2)`},
		{"no JSON, the same", `{`, `{`, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := begun(t)
			c.loop()
			c.complete([]byte(tt.then))
			c.loop()
			c.complete([]byte(tt.now))
			p := planOf(t, c, 1)
			if got := describe(p.State); got != tt.want || p.State.More != 0 || p.State.Unknown {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			if p.State.Before != int64(len(tt.now)) || p.State.After != int64(len(tt.then)) {
				t.Fatalf("%d bytes before, %d after", p.State.Before, p.State.After)
			}
		})
	}
}

func describe(s journal.StateChange) string {
	var out []string
	side := func(v json.RawMessage, size int) string {
		if v == nil && size > 0 {
			return fmt.Sprintf("(%d)", size)
		}
		if len(v) != size {
			return "wrong size"
		}
		return string(v)
	}
	for _, ch := range s.Changes {
		out = append(out, fmt.Sprintf("%s %s>%s", ch.Path, side(ch.Old, ch.OldSize), side(ch.New, ch.NewSize)))
	}
	return strings.Join(out, " ")
}

// TestPlanBounds keeps a plan short, however much a state changed.
func TestPlanBounds(t *testing.T) {
	c := begun(t)
	c.loop()
	c.complete([]byte(`[]`))
	c.loop()
	c.complete(fmt.Appendf(nil, "[%s0]", strings.Repeat("0,", 349)))
	p := planOf(t, c, 1)
	if len(p.State.Changes) != 100 || p.State.More != 250 {
		t.Fatalf("%d changes and %d more", len(p.State.Changes), p.State.More)
	}
	deep := func(v string) []byte {
		return []byte(strings.Repeat(`{"a":`, 5000) + v + strings.Repeat(`}`, 5000))
	}
	c.loop()
	c.complete(deep("1"))
	c.loop()
	c.complete(deep("2"))
	p = planOf(t, c, 3)
	if len(p.State.Changes) != 1 || p.State.Changes[0].Path != strings.Repeat("/a", 100) {
		t.Fatalf("%s", toJSON(t, p.State))
	}
}

// TestPlanWithoutState plans around a newest state that cannot be read, which is
// when a plan is needed most.
func TestPlanWithoutState(t *testing.T) {
	c := begun(t)
	p, err := journal.MakePlan(c.s, c.es, 0, nil, nil)
	if err != nil || p.State.Unknown || p.State.Before != 0 || p.State.After != 0 {
		t.Fatalf("of a session without state: %s, %v", toJSON(t, p), err)
	}
	if string(toJSON(t, p.Outside)) != "[]" || string(toJSON(t, p.State.Changes)) != "[]" {
		t.Fatalf("an empty list is not written as one: %s", toJSON(t, p))
	}
	c.loop()
	c.complete([]byte(`{"n":1}`))
	c.loop()
	c.complete([]byte(`{"n":2}`))
	p, err = journal.MakePlan(c.s, c.es, 1, nil, []byte(`{"n":1}`))
	if err != nil || !p.State.Unknown || p.State.Before != 7 || len(p.State.Changes) != 0 {
		t.Fatalf("%s, %v", toJSON(t, p), err)
	}
}

// TestPlanHash is another for everything that makes another plan.
func TestPlanHash(t *testing.T) {
	c := begun(t)
	for i := range 3 {
		c.loop()
		asks(stint.Once)(c)
		gets(stint.Once)(c)
		c.complete(fmt.Appendf(nil, `{"n":%d}`, i))
	}
	seen := map[stint.Hash]string{}
	note := func(what string, p journal.Plan) {
		if was, ok := seen[p.Hash]; ok {
			t.Fatalf("%s has the hash of %s", what, was)
		}
		seen[p.Hash] = what
	}
	for from := range 4 {
		note(fmt.Sprint("from ", from), planOf(t, c, from))
	}
	p, err := journal.MakePlan(c.s, c.es, 1, c.state(c.s.Checkpoint), []byte(`{"n":9}`))
	if err != nil {
		t.Fatal(err)
	}
	note("another state to go on from", p)
	c.must(journal.Draft{Kind: stint.SessionReleased, Data: journal.Released{Why: "drain"}})
	note("another head", planOf(t, c, 1))
	if got := fmt.Sprintf("%.16s", planOf(t, c, 1).Hash); got != "d12b2f0ff18676b0" {
		t.Errorf("the plan's hash is now %s: one that was shown by an older program is refused", got)
	}
}

func TestPlanRefuses(t *testing.T) {
	c := begun(t)
	c.loop()
	c.complete([]byte(`{}`))
	c.loop()
	other := c.s
	other.ID = testID(9)
	older, err := journal.Fold(stint.Session{}, c.es[:2])
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		s    stint.Session
		es   []stint.Entry
		from int
		want stint.Code
	}{
		{"good", c.s, c.es, 1, ""},
		{"another session", other, c.es, 1, stint.Invalid},
		{"an older session", older, c.es, 1, stint.Invalid},
		{"no entries", c.s, nil, 1, stint.Invalid},
		{"an open loop", c.s, c.es, 2, stint.NotFound},
		{"before the beginning", c.s, c.es, -1, stint.NotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := journal.MakePlan(tt.s, tt.es, tt.from, []byte(`{}`), []byte(`{}`))
			wantCode(t, err, tt.want)
			if err != nil && !p.Hash.IsZero() {
				t.Fatal("a refused plan has a hash")
			}
		})
	}
}
