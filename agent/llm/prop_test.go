package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/health"
	"github.com/stint-dev/stint/model/script"
	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/builtin"
)

// outside is what the tools of a random session do: the counts of effects by key, and what
// they gave.
type outside struct {
	effects map[string]int
	gave    map[string]json.RawMessage
}

func (o *outside) act(c tool.Call, out tool.Output) tool.Output {
	o.effects[c.Key]++
	o.gave[c.Key], _ = stint.Marshal(out)
	return out
}

func (o *outside) tools(t testing.TB) *tool.Set {
	one := func(name string, e stint.Effect, fn func(c tool.Call) (tool.Output, error)) tool.Tool {
		tt := does(name, e, nil)
		tt.Caller = tool.CallerFunc(func(_ context.Context, c tool.Call) (tool.Output, error) { return fn(c) })
		return tt
	}
	text := func(format string) func(c tool.Call) (tool.Output, error) {
		return func(c tool.Call) (tool.Output, error) {
			return o.act(c, tool.Output{Text: fmt.Sprintf(format, c.Args)}), nil
		}
	}
	single := one("single", stint.Once, text("single %s"))
	single.Parallel = false
	gate := one("gate", stint.Once, text("gate %s"))
	gate.Approve = tool.Always
	page := one("page", stint.Read, text("page %s"))
	page.Taints = true
	return toolset(t, single, gate, page, one("once", stint.Once, text("once %s")), one("idem", stint.Idempotent, text("idem %s")),
		one("big", stint.Read, text("big %s "+strings.Repeat("☃", 600))),
		one("odd", stint.Read, text("\x00\xff\xed\xa0\x80 %s")),
		one("bad", stint.Once, func(c tool.Call) (tool.Output, error) { return o.act(c, tool.Errorf("bad %s", c.Args)), nil }),
		one("lost", stint.Once, func(c tool.Call) (tool.Output, error) {
			o.act(c, tool.Output{Text: "lost"})
			return tool.Output{}, stint.Definite(errors.New("lost"))
		}),
		one("nap", stint.Read, func(tool.Call) (tool.Output, error) {
			return tool.Output{Text: "slept", Wait: &stint.Wait{For: stint.ForTime, Until: time.Unix(1, 0)}}, nil
		}),
		one("over", stint.Read, func(tool.Call) (tool.Output, error) {
			return tool.Output{Text: "over", Result: json.RawMessage(`{"n":9007199254740993}`)}, nil
		}),
		builtin.Ask())
}

// drawCall draws a call as a script writes it.
func drawCall(t *rapid.T) string {
	name := rapid.SampledFrom([]string{"once", "once", "single", "gate", "page", "idem", "big", "odd", "bad", "lost", "nap", "over", "nosuch", "ask", "read_result"}).Draw(t, "tool")
	args := fmt.Sprintf(`"input":{"n":%d}`, rapid.IntRange(0, 3).Draw(t, "n"))
	if name == "ask" {
		args = `"input":{"question":"Well?"}`
	}
	if name == "read_result" {
		args = `"input":{"call":"call_1"}`
	}
	switch rapid.IntRange(0, 5).Draw(t, "args") {
	case 0:
		bad, err := json.Marshal(rapid.SampledFrom([]string{`{"n":`, ``, `[]`, `{"n":1e400}`, `{"n":1,"n":2}`, `{"text":"\ud800"}`, strings.Repeat("[", 20_000)}).Draw(t, "bad"))
		if err != nil {
			t.Fatal(err)
		}
		args = `"args":` + string(bad)
	}
	id := rapid.SampledFrom([]string{"", "", "call_1", "same", "bad id"}).Draw(t, "id")
	return fmt.Sprintf(`{"id":%q,"name":%q,%s}`, id, name, args)
}

// drawScript draws what a model says.
func drawScript(t *rapid.T) string {
	var steps []string
	for range rapid.IntRange(1, 8).Draw(t, "steps") {
		var members []string
		stops := []string{"end", "end", "length", "pause", "other", "refusal", "sequence", "window"}
		if n := rapid.IntRange(-2, 4).Draw(t, "calls"); n > 0 {
			var calls []string
			for range n {
				calls = append(calls, drawCall(t))
			}
			members = append(members, `"tools":[`+strings.Join(calls, ",")+`]`)
			stops = []string{"tools", "tools", "tools", "tools", "tools", "length", "end", "pause", "refusal"}
		}
		if rapid.Bool().Draw(t, "says") || len(members) == 0 {
			members = append(members, fmt.Sprintf(`"text":%q`, rapid.SampledFrom([]string{"Good.", "  ", "☃ and more", strings.Repeat("long ", 200)}).Draw(t, "text")))
		}
		members = append(members, fmt.Sprintf(`"stop":%q`, rapid.SampledFrom(stops).Draw(t, "stop")))
		switch rapid.IntRange(0, 9).Draw(t, "error") {
		case 0:
			members = append(members, `"error":{"kind":"cut","times":2}`)
		case 1:
			members = append(members, `"error":{"kind":"rate","after":"1s","times":1}`)
		case 2:
			members = append(members, `"error":{"kind":"too_long"}`)
		}
		steps = append(steps, "{"+strings.Join(members, ",")+"}")
	}
	return `{"steps":[` + strings.Join(steps, ",") + `]}`
}

// life is one random session, which can be lived several times.
type life struct {
	script  string
	spec    llm.Spec
	prompts []string
	judge   bool
}

func drawLife(t *rapid.T) life {
	l := life{script: drawScript(t)}
	l.spec.Interactive = rapid.Bool().Draw(t, "interactive")
	l.spec.TrustAll = rapid.Bool().Draw(t, "trust")
	l.judge = rapid.IntRange(0, 3).Draw(t, "judge") == 0
	l.spec.Context = llm.Context{Window: rapid.SampledFrom([]int64{600, 2000, 0}).Draw(t, "window"), Excerpt: 512}
	if off := (health.Rule{Off: true}); strings.Contains(l.script, `"lost"`) {
		// An error whose record is lost becomes a person's word: another result, which the
		// rules of health count otherwise.
		l.spec.Health = health.Rules{N01: off, N02: off, N03: off, N04: off}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "prompts") {
		l.prompts = append(l.prompts, fmt.Sprintf("Prompt %d.", i))
	}
	return l
}

// live lives it, with a death at a record.
func (l life) live(t testing.TB, dieAt int, durable, keep bool) (*world, *outside) {
	t.Helper()
	o := &outside{map[string]int{}, map[string]json.RawMessage{}}
	m, err := script.Parse([]byte(l.script))
	if err != nil {
		t.Fatal(err)
	}
	s := l.spec
	s.Model, s.Tools = &heard{Model: m, t: t}, o.tools(t)
	if l.judge {
		s.Rubric = &llm.Rubric{Text: "Good.", Model: plays(t, `{"after":"repeat","steps":[{"text":"{\"pass\":false,\"why\":\"no\"}"}]}`)}
	}
	w := newWorld(t, s, "Do it.")
	w.prompts, w.dieAt, w.durable, w.keep = slices.Clone(l.prompts), dieAt, durable, keep
	w.person = func(s stint.Step) (json.RawMessage, error) {
		switch {
		case s.Answer != nil:
			return json.RawMessage(`"Well."`), nil
		case strings.Contains(string(s.Input), "2"):
			return nil, errors.New("denied by human:ana: no")
		}
		return nil, nil
	}
	w.doubt = func(key string, _ stint.Step) json.RawMessage { // a person who looks at the world outside
		if o.effects[key] > 0 {
			return o.gave[key]
		}
		return nil
	}
	w.run(60)
	return w, o
}

func (w *world) outcome() string {
	return fmt.Sprintf("%s\n%v\n%v", transcript(w.t, w.state), w.end, w.wait)
}

// Whatever a model says, every request is one that providers take, every call that is
// executed is executed once, and a session whose process died anywhere says the same in
// the end as one whose did not. It dies 300 times, with STINT_LONG=1 10,200 times.
func TestAnyScript(t *testing.T) {
	rounds := 1
	if os.Getenv("STINT_LONG") == "1" {
		rounds = 34
	}
	for range rounds { // of a hundred scripts, each killed three times
		rapid.Check(t, anyScript(t))
	}
}

func anyScript(t *testing.T) func(*rapid.T) {
	return func(rt *rapid.T) {
		l := drawLife(rt)
		whole, effects := l.live(failing{t, rt}, 0, false, false)
		for key, n := range effects.effects {
			if n != 1 {
				rt.Fatalf("call %s took effect %d times", key, n)
			}
		}
		for range 3 {
			at, durable := rapid.IntRange(1, whole.records).Draw(rt, "dies at"), rapid.Bool().Draw(rt, "durable")
			killed, again := l.live(failing{t, rt}, at, durable, rapid.Bool().Draw(rt, "keep"))
			if killed.deaths != 1 {
				rt.Fatalf("it died %d times", killed.deaths)
			}
			for key := range effects.effects {
				if n := again.effects[key]; n == 0 {
					rt.Fatalf("call %s did not take effect", key)
				}
			}
			for key, n := range again.effects {
				if once := strings.HasPrefix(string(again.gave[key]), `{"text":"once`); once && n != 1 {
					rt.Fatalf("call %s took effect %d times", key, n)
				}
			}
			// A definite error whose record was lost becomes a person's word; nothing else differs.
			got, want := killed.outcome(), whole.outcome()
			if got = strings.ReplaceAll(got, " gives: lost", " fails: error: lost"); got != want {
				rt.Fatalf("killed at %d:\n%s\n--- not killed:\n%s", at, got, want)
			}
		}
	}
}

// failing lets the helpers of a test fail a drawn case.
type failing struct {
	*testing.T

	rt *rapid.T
}

func (f failing) Errorf(format string, args ...any) { f.rt.Errorf(format, args...) }
func (f failing) Fatalf(format string, args ...any) { f.rt.Fatalf(format, args...) }
func (f failing) Fatal(args ...any)                 { f.rt.Fatal(args...) }
func (f failing) Error(args ...any)                 { f.rt.Error(args...) }
func (f failing) Helper()                           {}
