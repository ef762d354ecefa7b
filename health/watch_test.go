package health_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/health"
)

// steps makes calls, each gap after the one before it: the i-th of them by f, whose At is
// filled in here.
func steps(n int, gap time.Duration, f func(i int) health.Call) []health.Call {
	calls := make([]health.Call, n)
	at := time.Date(2026, 11, 29, 16, 9, 45, 0, time.UTC)
	for i := range calls {
		calls[i] = f(i)
		calls[i].At = at
		at = at.Add(gap)
	}
	return calls
}

// later makes calls as much later.
func later(d time.Duration, calls []health.Call) []health.Call {
	for i := range calls {
		calls[i].At = calls[i].At.Add(d)
	}
	return calls
}

func ok(tool, args, result string, a ...any) health.Call {
	return health.Call{Tool: tool, Args: args, Result: fmt.Sprintf(result, a...)}
}

func failed(tool, args, result string, a ...any) health.Call {
	c := ok(tool, args, result, a...)
	c.Failed = true
	return c
}

// see returns what a watch says, as "call: rule n" with "pause" behind a pause; calls
// count from 1.
func see(t *testing.T, calls []health.Call, r health.Rules) []string {
	t.Helper()
	var w health.Watch
	said := []string{}
	for i, c := range calls {
		for _, f := range shows(&w, c, r) {
			s := fmt.Sprintf("%d: %s %d", i+1, f.Rule, f.N)
			if f.Pause {
				s += " pause"
			}
			said = append(said, s)
			if !strings.Contains(f.What, c.Tool) || !strings.Contains(f.What, fmt.Sprint(f.N)) || strings.Contains(f.What, "\n") {
				t.Errorf("call %d: %q does not name %s and %d in one line", i+1, f.What, c.Tool, f.N)
			}
		}
	}
	return said
}

const (
	quickly = 2 * time.Second
	slowly  = time.Minute
)

type at = []string

type scenario struct {
	name  string
	calls []health.Call
	want  at
}

func check(t *testing.T, all []scenario) {
	t.Helper()
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			if got := see(t, c.calls, health.Rules{}); !slices.Equal(got, c.want) {
				t.Errorf("said %q, want %q", got, c.want)
			}
		})
	}
}

// Eight agents that get nowhere and five that work.
func TestScenarios(t *testing.T) {
	check(t, []scenario{
		// Loops.
		{"the same ls six times", steps(6, quickly, func(int) health.Call {
			return ok("ls", `{"path":"."}`, "a.go\nb.go")
		}), at{"3: N01 3", "5: N01 5 pause", "6: N04 6"}},
		{"a file that is too large is read again and again", steps(5, quickly, func(i int) health.Call {
			return failed("read", fmt.Sprintf(`{"path":"big.log","offset":%d}`, i*2000), "big.log has %d tokens, more than 25000", 31_000+i)
		}), at{"3: N02 3"}},
		{"a shell that fails five times", steps(5, quickly, func(i int) health.Call {
			return failed("bash", fmt.Sprintf(`{"cmd":"./deploy --try=%d"}`, i), "exit status 127: ./deploy: not found (pid %d)", 4100+i)
		}), at{"3: N02 3"}},
		{"the same failing command", steps(6, quickly, func(int) health.Call {
			return failed("bash", `{"cmd":"make"}`, "exit status 2")
		}), at{"3: N01 3", "3: N02 3", "5: N01 5 pause", "6: N02 6 pause", "6: N04 6"}},
		{"ping-pong of two", steps(10, quickly, func(i int) health.Call {
			return [...]health.Call{ok("read", "a", "x"), ok("grep", "b", "y")}[i%2]
		}), at{"6: N03 3", "10: N03 5 pause"}},
		{"a circle of four", steps(20, quickly, func(i int) health.Call {
			return ok("click", fmt.Sprint(i%4), "page %d", i%4)
		}), at{"12: N03 3", "20: N03 5 pause"}},
		{"one call among others", steps(12, quickly, func(i int) health.Call {
			if i%3 == 2 {
				return ok("think", fmt.Sprint(i), "done")
			}
			return ok("status", "", "open")
		}), at{"8: N04 6"}},
		{"the same, but for the time", steps(5, quickly, func(i int) health.Call {
			return ok("bash", "curl -i localhost:8080", "HTTP/1.1 200\nDate: Sun, 29 Nov 2026 16:09:%02d GMT\nX-Request: 6f1c%04d-aaaa-4bbb-8ccc-0123456789ab\nok in %dms", i, i, i)
		}), at{"3: N01 3", "5: N01 5 pause"}},

		// Work.
		{"a batch of twenty files", steps(20, quickly, func(i int) health.Call {
			return ok("edit", fmt.Sprintf(`{"path":"%d.go","new":"x"}`, i), "ok")
		}), at{}},
		{"edit and test, and the same test fails", steps(20, quickly, func(i int) health.Call {
			if i%2 == 0 {
				return ok("edit", fmt.Sprintf(`{"path":"a.go","new":"try %d"}`, i), "ok")
			}
			return failed("test", "", "--- FAIL: TestA (0.%02ds)", i)
		}), at{}},
		{"paced polling", steps(19, slowly, func(int) health.Call {
			return ok("bash", "gh run view 12", "in_progress")
		}), at{}},
		{"a poll that changes", steps(20, quickly, func(i int) health.Call {
			return ok("bash", "tail -1 build.log", "%d of 90 done", i)
		}), at{}},
		{"two retries, then success", steps(3, quickly, func(i int) health.Call {
			if i < 2 {
				return failed("fetch", "https://a.example", "503 Service Unavailable")
			}
			return ok("fetch", "https://a.example", "hello")
		}), at{}},
	})
}

// Who waits may repeat himself, and what else the rules allow for.
func TestAllowances(t *testing.T) {
	check(t, []scenario{
		{"polling for ever", steps(40, slowly, func(int) health.Call {
			return ok("bash", "gh run view 12", "in_progress")
		}), at{"20: N01 20", "40: N01 40 pause"}},
		{"a check that fails until it does not", steps(20, slowly, func(int) health.Call {
			return failed("bash", "gh pr checks", "exit status 8")
		}), at{"20: N01 20", "20: N02 20"}},
		{"sleep and check", steps(39, quickly, func(i int) health.Call {
			c := ok("sleep", "60", "slept")
			if c.Poll = true; i%2 == 1 {
				c = ok("check", "", "pending")
			}
			return c
		}), at{}},
		{"a tool that is marked", steps(20, quickly, func(int) health.Call {
			return health.Call{Tool: "wait_for", Args: "build", Result: "not yet", Poll: true}
		}), at{"20: N01 20"}},
		{"slow, but with other arguments each time", steps(6, slowly, func(i int) health.Call {
			return failed("gmail", fmt.Sprint("page", i), "401 Unauthorized")
		}), at{"3: N02 3", "6: N02 6 pause"}},
		{"slow, then quick", append(steps(4, slowly, func(int) health.Call { return ok("ls", "", "a") }),
			steps(4, quickly, func(int) health.Call { return ok("ls", "", "a") })...), at{"6: N01 3", "8: N01 5 pause"}},
		{"searches that find nothing", steps(8, quickly, func(i int) health.Call {
			return failed("grep", fmt.Sprint("word", i), "")
		}), at{}},
		{"tickets that are closed", steps(8, quickly, func(i int) health.Call {
			return ok("close", fmt.Sprintf(`{"id":"6f1c000%d-aaaa-4bbb-8ccc-0123456789ab"}`, i), "closed")
		}), at{}},
		{"the members in another order", steps(3, quickly, func(i int) health.Call {
			return ok("get", [...]string{`{"a":1,"b":2}`, `{"b": 2, "a": 1}`, ` {"a":1,"b":2}`}[i], `{"n":1}`)
		}), at{"3: N01 3"}},
		{"the same text, once as an error", steps(3, quickly, func(i int) health.Call {
			c := ok("ls", "", "a")
			c.Failed = i == 1
			return c
		}), at{}},
		{"three tools alike", steps(3, quickly, func(i int) health.Call {
			return failed(fmt.Sprint("tool", i), "", "no such host")
		}), at{}},
		{"a pause between", append(steps(3, quickly, func(int) health.Call { return failed("ls", "", "no") }),
			later(5*time.Minute, steps(3, quickly, func(int) health.Call { return failed("ls", "", "no") }))...),
			at{"3: N01 3", "3: N02 3", "6: N01 3", "6: N02 3"}},
	})
}

// What goes on and on is told of again, but by one rule and one count.
func TestGoesOn(t *testing.T) {
	check(t, []scenario{
		{"two in turn", steps(14, quickly, func(i int) health.Call {
			return ok("read", fmt.Sprint(i%2), "x")
		}), at{"6: N03 3", "10: N03 5 pause"}},
		{"errors", steps(24, quickly, func(i int) health.Call {
			return failed("bash", fmt.Sprint(i), "no")
		}), at{"3: N02 3", "6: N02 6 pause", "12: N02 12 pause", "18: N02 18 pause", "24: N02 24 pause"}},
		{"one call", steps(24, quickly, func(int) health.Call { return ok("ls", "", "a") }), at{
			"3: N01 3", "5: N01 5 pause", "6: N04 6", "8: N04 8 pause", "10: N01 10 pause", "15: N01 15 pause",
			"18: N04 10 pause", "20: N01 20 pause",
		}},
		{"one call among others, then another", steps(16, quickly, func(i int) health.Call {
			if i%8%3 == 2 {
				return ok("think", fmt.Sprint(i), "done")
			}
			return ok("status", fmt.Sprint(i/8), "open")
		}), at{"8: N04 6", "16: N04 6"}},
		{"let go on, and on", steps(15, quickly, func(i int) health.Call { return ok("ls", "", "a") }),
			at{"3: N01 3", "5: N01 5 pause", "6: N04 6", "8: N04 8 pause", "10: N01 10 pause", "15: N01 15 pause"}},
	})
}

func TestRulesChange(t *testing.T) {
	ls := steps(12, quickly, func(int) health.Call { return failed("ls", "", "no") })
	only := func(r string) string { // all other rules off
		for _, name := range []string{"N01", "N02", "N03", "N04"} {
			if !strings.Contains(r, name) {
				r = strings.TrimSuffix(r, "}") + `,"` + name + `":{"off":true}}`
			}
		}
		return strings.Replace(r, "{,", "{", 1)
	}
	for rules, want := range map[string][]string{
		`{}`:                             {},
		`{"N01":{"warn":2}}`:             {"2: N01 2", "5: N01 5 pause", "10: N01 10 pause"},
		`{"N01":{"warn":7}}`:             {"7: N01 7 pause"},
		`{"N01":{"pause":2}}`:            {"2: N01 2 pause", "4: N01 4 pause", "6: N01 6 pause", "8: N01 8 pause", "10: N01 10 pause", "12: N01 12 pause"},
		`{"N02":{"warn":-1,"pause":12}}`: {"12: N02 12 pause"},
		`{"N02":{"pause":-1}}`:           {"3: N02 3"},
		`{"N04":{"warn":2,"pause":-1}}`:  {"2: N04 2"},
		`{"N04":{"warn":-1,"pause":10}}`: {"10: N04 10 pause"},
	} {
		var r health.Rules
		if err := json.Unmarshal([]byte(only(rules)), &r); err != nil {
			t.Fatal(err)
		}
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", rules, err)
		}
		if got := see(t, ls, r); !slices.Equal(got, want) {
			t.Errorf("%s: said %q, want %q", rules, got, want)
		}
	}
	if b, err := json.Marshal(health.Rules{}); err != nil || string(b) != "{}" {
		t.Errorf("no rules are %s, %v", b, err)
	}
	for _, rules := range []string{`{"N01":{"warn":1}}`, `{"N02":{"warn":9,"pause":8}}`, `{"N04":{"pause":11}}`, `{"paced":{"pause":1}}`} {
		var r health.Rules
		if err := json.Unmarshal([]byte(rules), &r); err != nil {
			t.Fatal(err)
		}
		var e *stint.Error
		if err := r.Validate(); !errors.As(err, &e) || e.Code != stint.Invalid || e.Hint == "" {
			t.Errorf("%s: %v", rules, err)
		}
	}
	// Figures that come down are noticed at the next call.
	var w health.Watch
	for i, c := range ls[:4] {
		r := health.Rules{N01: health.Rule{Warn: 9, Pause: -1}, N02: health.Rule{Off: true}}
		if i == 3 {
			r.N01.Warn = 2
		}
		if f := shows(&w, c, r); len(f) != i/3 {
			t.Errorf("call %d: %v", i+1, f)
		}
	}
}

// A watch that has been JSON says what one says that has not.
func TestWatchAsJSON(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var kept, moved health.Watch
		at := time.Unix(rapid.Int64Range(0, 1<<33).Draw(rt, "start"), 0)
		var r health.Rules
		if rapid.Bool().Draw(rt, "other rules") {
			figure := rapid.IntRange(-1, 10)
			for _, rule := range []*health.Rule{&r.N01, &r.N02, &r.N03, &r.N04, &r.Paced} {
				*rule = health.Rule{Off: rapid.IntRange(0, 4).Draw(rt, "off") == 0, Warn: figure.Draw(rt, "warn"), Pause: figure.Draw(rt, "pause")}
			}
		}
		if r.Validate() != nil { // nobody gets to see calls under such rules
			r = health.Rules{}
		}
		few := rapid.IntRange(1, 3).Draw(rt, "calls there are")
		for range rapid.IntRange(1, 60).Draw(rt, "calls") {
			n := rapid.IntRange(1, few).Draw(rt, "call")
			c := health.Call{
				Tool: "t", Args: fmt.Sprint(n), Result: "r" + fmt.Sprint(n), Failed: n == 1,
				Poll: rapid.IntRange(0, 30).Draw(rt, "poll") == 0,
			}
			at = at.Add(time.Duration(rapid.IntRange(-1000, 31000).Draw(rt, "gap")) * time.Millisecond)
			if c.At = at; rapid.IntRange(0, 9).Draw(rt, "no time") == 0 {
				c.At = time.Time{}
			}
			a, b := shows(&kept, c, r), shows(&moved, c, r)
			if !reflect.DeepEqual(a, b) {
				rt.Fatalf("said %v, and as JSON %v", a, b)
			}
			raw, err := json.Marshal(moved)
			if err != nil || len(raw) > 2048 {
				rt.Fatalf("%d bytes, %v", len(raw), err)
			}
			moved = health.Watch{}
			if err := json.Unmarshal(raw, &moved); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

func TestWatchRefuses(t *testing.T) {
	var w health.Watch
	shows(&w, ok("a", "b", "c"), health.Rules{})
	before := w
	for _, s := range []string{
		`[]`, `{"unpaced":-1}`, `{"circles":[{"n":-1}]}`, `{"errors":{"fast":{"paused":-3}}}`,
		`{"args":"` + strings.Repeat("a", 17) + `"}`, `{"ring":[` + strings.Repeat(`{"sum":"a"},`, 24) + `{"sum":"a"}]}`,
	} {
		var e *stint.Error
		if err := json.Unmarshal([]byte(s), &w); !errors.As(err, &e) || e.Code != stint.Invalid || e.Hint == "" {
			t.Errorf("%s: %v", s, err)
		}
		if !reflect.DeepEqual(w, before) {
			t.Errorf("%s changed the watch", s)
		}
	}
}

// A copy of a watch goes its own way.
func TestWatchCopies(t *testing.T) {
	var w health.Watch
	for range 30 {
		shows(&w, ok("a", "b", "c"), health.Rules{})
	}
	other := w
	text := func(w health.Watch) string {
		b, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	before := text(w)
	shows(&other, ok("x", "y", "z"), health.Rules{})
	if text(w) != before {
		t.Error("a call of the copy changed the watch")
	}
	before = text(other)
	shows(&w, ok("a", "b", "c"), health.Rules{})
	if text(other) != before {
		t.Error("a call of the watch changed the copy")
	}
}

func BenchmarkSee(b *testing.B) {
	for _, size := range []int{200, 16 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var w health.Watch
			c := ok("bash", `{"cmd":"go test ./..."}`, "%s", strings.Repeat("2026-11-29 ok example.com/a 0.014s\n", size/35+1)[:size])
			b.SetBytes(int64(size))
			m, err := health.NewMonitor(health.Rules{})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				m.See(&w, c)
			}
		})
	}
}

// shows shows a call to a session under rules that are sound.
func shows(w *health.Watch, c health.Call, r health.Rules) []health.Finding {
	m, err := health.NewMonitor(r)
	if err != nil {
		panic(err)
	}
	return m.See(w, c)
}
