package config_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
)

func env(state string) config.Env {
	return config.Env{
		State: json.RawMessage(state), Loop: 3,
		Totals: stint.Totals{Loops: 4, Steps: 9, Errors: 1, Attempts: 5, Restarts: 2, Running: 90 * time.Minute,
			Usage: stint.Usage{Input: 100, Output: 20, Cost: 1_500_000_000}},
		Session: stint.Session{ID: stint.ID{1}, Name: "nightly", Agent: stint.AgentRef{Name: "triage"}, Trigger: stint.Trigger{Kind: "schedule"},
			At: stint.Place{Line: 1, Attempt: 2}, Labels: map[string]string{"team": "platform"}},
	}
}

func TestEval(t *testing.T) {
	for _, c := range []struct {
		src, state string
		want       bool
	}{
		{"state.remaining == 0", `{"remaining":0}`, true},
		{"state.remaining == 0", `{"remaining":0.0}`, true},
		{"state.remaining == 0", `{"remaining":2}`, false},
		{"state.remaining == 0", `{}`, false},
		{"state.remaining == 0", ``, false},
		{"state.remaining == 0", `null`, false},
		{"(state.remaining ?? 1) > 0", ``, true},
		{"state.done == true", `{}`, false},
		{"state.done", `{"done":true}`, true},
		{"state.done", `{}`, false},
		{"state.done", `{"done":null}`, false},
		{"not state.done", `{"done":false}`, true},
		{"state == 5", `5`, true},
		{"len(state) == 2", `[1,2]`, true},
		{"all(state.items, .ok)", `{"items":[{"ok":true},{"ok":true}]}`, true},
		{"any(state.items, any(.tags, # == 'x'))", `{"items":[{"tags":["a"]},{"tags":["x"]}]}`, true},
		{"count(state.items, # > 1) == 2 and sum(state.items) == 6", `{"items":[1,2,3]}`, true},
		{"map(filter(state.items, # > 1), # * 2) == [4, 6]", `{"items":[1,2,3]}`, true},
		{"reduce(state.items, #acc + #, 0) == 6", `{"items":[1,2,3]}`, true},
		{"sortBy(state.items, .n)[0].n == 1", `{"items":[{"n":2},{"n":1}]}`, true},
		{"let n = state.n; n > 1 && n < 3", `{"n":2}`, true},
		{"state.name matches '^a+$'", `{"name":"aaa"}`, true},
		{"loop == 3 && totals.loops == 4 && totals.steps == 9 && totals.errors == 1 && totals.attempts == 5 && totals.restarts == 2", ``, true},
		{"totals.running > duration('1h') && totals.running < duration('2h')", ``, true},
		{"totals.tokens == 120 && totals.cost == 1.5", ``, true},
		{"session.name == 'nightly' && session.agent == 'triage' && session.trigger == 'schedule' && session.line == 1 && session.attempt == 2", ``, true},
		{"session.labels.team == 'platform' && session.labels.other == '' && len(session.id) == 26", ``, true},
		{`$env["state"].n == 1`, `{"n":1}`, true},

		// Digits are kept. 9007199254740993 is the first whole number that a float cannot hold.
		{"state.n == 9007199254740993", `{"n":9007199254740993}`, true},
		{"state.n == 9007199254740992", `{"n":9007199254740993}`, false},
		{"state.n == 9223372036854775807", `{"n":9223372036854775807}`, true},
		{"state.n == -9223372036854775807", `{"n":-9223372036854775807}`, true},
		{"state.a == state.b", `{"a":12345678901234567890,"b":12345678901234567890}`, true},
		{"state.a == state.b", `{"a":12345678901234567890,"b":12345678901234567891}`, false},
		{"state.n == '12345678901234567890'", `{"n":12345678901234567890}`, true},
		{"state.n == 0", `{"n":12345678901234567890}`, false},
		{"state.n == 1000 && state.m < 1", `{"n":1e3,"m":2.5e-1}`, true},
		{"state.n == '1e400'", `{"n":1e400}`, true},
		{"state.list[0] == 9007199254740993", `{"list":[9007199254740993]}`, true},
	} {
		t.Run(c.src, func(t *testing.T) {
			cond, err := config.CompileDone(c.src)
			if err != nil {
				t.Fatal(err)
			}
			got, err := cond.Eval(env(c.state))
			if err != nil || got != c.want {
				t.Errorf("over %s: got %v, %v", c.state, got, err)
			}
		})
	}
}

func TestCompileDoneRefuses(t *testing.T) {
	for src, want := range map[string]string{
		"":                                      "line 1, column 1: the condition is empty",
		" \n":                                   "the condition is empty",
		"stat.x == 1":                           "line 1, column 1: unknown name stat",
		"loop == 1 &&\n  lop == 2":              "line 2, column 3: unknown name lop",
		"totals.lops == 1":                      "line 1, column 8: unknown field lops",
		"session.labels == totals.a":            "unknown field a",
		`$env["lop"] == 1`:                      "unknown name lop",
		"loop":                                  "expected true or false, found int",
		"'x'":                                   "expected true or false, found string",
		"state.n = 1":                           "column 9",
		"state.n ==":                            "unexpected token EOF",
		"loop == 'x'":                           "mismatched types",
		"now() > now()":                         "now cannot be used",
		"fromJSON('1') == 1":                    "fromJSON cannot be used",
		"len(uniq(state)) > 0":                  "uniq cannot be used",
		"repeat('x', 9) == ''":                  "repeat cannot be used",
		"replace('x', 'x', '') == ''":           "replace cannot be used",
		"state.n == 99999999999999999999":       "does not fit 64 bits",
		"\x00tick()":                            "column 1",
		"session.name matches '('":              "regexp",
		"loop == 1" + strings.Repeat(" ", 5000): "longer than 4,096 bytes",
		"[" + strings.Repeat("1,", 1000) + "1] == state": "nodes",
		strings.Repeat("(", 4000):                        "unexpected token",
	} {
		_, err := config.CompileDone(src)
		var e *stint.Error
		if !errors.As(err, &e) || e.Code != stint.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q in it", clip(src), err, want)
		}
	}
}

func clip(s string) string { return s[:min(len(s), 60)] }

func TestEvalRefuses(t *testing.T) {
	long := func(item string, n int) string { return `{"list":[` + strings.Repeat(item+",", n-1) + item + "]}" }
	for _, c := range []struct {
		name, src, state string
		code             stint.Code
		want             string
	}{
		{"missing", "state.n > 0", `{}`, stint.Invalid, "column 9 of the condition: invalid operation: <nil> > int"},
		{"below missing", "state.a.b == 1", `{}`, stint.Invalid, "cannot fetch b"},
		{"not an object", "state.n == 1", `[1]`, stint.Invalid, ""},
		{"other type", "state.n > 0", `{"n":"5"}`, stint.Invalid, "string > int"},
		{"a number too large", "state.n > 0", `{"n":12345678901234567890}`, stint.Invalid, "string > int"},
		{"not a boolean", "state.n", `{"n":1}`, stint.Invalid, "gave a number, not true or false"},
		{"a text", "state.n", `{"n":"true"}`, stint.Invalid, "gave a text"},
		{"a list", "state", `[]`, stint.Invalid, "gave a list"},
		{"an object", "state", `{}`, stint.Invalid, "gave an object"},
		{"not JSON", "state.n == 1", `{`, stint.Invalid, "the state is not JSON"},
		{"two values", "state.n == 1", `{} {}`, stint.Invalid, "more than one value"},
		{"by zero", "state.n % 0 == 1", `{"n":1}`, stint.Invalid, "divide by zero"},
		{"out of range", "state.list[5] == 1", `{"list":[]}`, stint.Invalid, "out of range"},
		{"many values", "all(state.list, all(state.list, all(state.list, true)))", long("1", 200), stint.Limit, "looks at too much"},
		{"much made", "all(1..1000, len(1..10000) > 0)", ``, stint.Limit, "memory budget"},
		{"ranges", "all(1..999, all(1..999, all(1..999, true)))", ``, stint.Limit, ""}, // of memory, or of time on a slow machine
		{"long", "all(state.list, toJSON(state) != '')", long(`"0123456789"`, 20_000), stint.Limit, "looks at too much"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cond, err := config.CompileDone(c.src)
			if err != nil {
				t.Fatal(err)
			}
			got, err := cond.Eval(env(c.state))
			var e *stint.Error
			if got || !errors.As(err, &e) || e.Code != c.code || e.Hint == "" || e.Session != (stint.ID{1}) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v, want %s and %q in it", got, err, c.code, c.want)
			}
		})
	}
}

// A state that the condition does not mention is not read.
func TestEvalWithoutState(t *testing.T) {
	cond, err := config.CompileDone("loop > 2")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := cond.Eval(env("{")); !got || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestZeroCondition(t *testing.T) {
	if got, err := (config.Condition{}).Eval(env(`{"n":1}`)); got || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestEvalConcurrently(t *testing.T) {
	cond, err := config.CompileDone("all(state.list, # < 5) && loop == 3")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 100 {
				want, state := i%2 == 0, `{"list":[1,2,9]}`
				if want {
					state = `{"list":[1,2,3]}`
				}
				if got, err := cond.Eval(env(state)); got != want || err != nil {
					t.Errorf("got %v, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzDone(f *testing.F) {
	f.Add("state.remaining == 0", `{"remaining":0}`)
	f.Add("all(state.items, .n > 1) || totals.cost > 2.5", `{"items":[{"n":1}]}`)
	f.Add("let x = state.a ?? 1; x == 1", ``)
	f.Add("1..100000 == state", `null`)
	f.Fuzz(func(t *testing.T, src, state string) {
		cond, err := config.CompileDone(src)
		if err != nil {
			if stint.CodeOf(err) != stint.Invalid {
				t.Fatal(err)
			}
			return
		}
		if got, err := cond.Eval(env(state)); err != nil && (got || stint.CodeOf(err) == stint.Internal) {
			t.Fatal(got, err)
		}
	})
}
