package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/builtin"
)

// What a tool writes reaches the model with every digit, and with a mark for what cannot
// be kept.
func TestOddOutput(t *testing.T) {
	outputs := []string{"a\x00b", "\xff\xfe", "\xed\xa0\x80", `\u0000 as six characters`, "😀 \x1b[31mred\x07 \u2028", `{"id":9007199254740993,"f":1.0,"e":1E5}`, ""}
	odd := does("odd", stint.Read, func(c tool.Call) (string, error) {
		var args struct{ N int }
		err := json.Unmarshal(c.Args, &args)
		return outputs[args.N], err
	})
	var calls []string
	for i := range outputs {
		calls = append(calls, fmt.Sprintf(`{"name":"odd","input":{"n":%d}}`, i))
	}
	m := plays(t, `{"steps":[{"tools":[`+strings.Join(calls, ",")+`]}]}`)
	onEngine(t, llm.Spec{Model: m, Tools: toolset(t, odd)}, func(r *rig) {
		if s := r.start("Go.", nil); s.Status != stint.Completed {
			t.Errorf("got %s %s", s.Status, s.Reason)
		}
		const one = "[stint: one \uFFFD above stands for a NUL or for bytes that are not UTF-8]"
		for i, want := range []string{"a\uFFFDb\n" + one, "\uFFFD\n" + one, "\uFFFD\n" + one, outputs[3], outputs[4], outputs[5], ""} {
			for _, got := range []string{messages(t, r.state())[2].Parts[i].Result.Text, m.reqs[1].Messages[2].Parts[i].Result.Text} {
				if got != want {
					t.Errorf("output %q is %q", outputs[i], got)
				}
			}
		}
	})
}

// Digits of arguments and of results stay, also those of the session's result.
func TestDigits(t *testing.T) {
	const digits = `{"n": 9007199254740993, "text":"2512292042121000001"}`
	finish, err := builtin.Finish(json.RawMessage(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(digits)
	if err != nil {
		t.Fatal(err)
	}
	m := plays(t, `{"steps":[{"tools":[{"name":"echo","args":`+string(quoted)+`},{"name":"echo","args":"{\"n\":1e400}"}]},{"tools":[{"name":"finish","args":"{\"id\":9007199254740993}"}]}]}`)
	onEngine(t, llm.Spec{Model: m, Tools: toolset(t, echo("echo"), finish)}, func(r *rig) {
		r.start("Go.", nil)
		got := messages(t, r.state())
		if args := string(got[1].Parts[0].Call.Args); args != digits {
			t.Errorf("the arguments are %s", args)
		}
		if text := got[2].Parts[0].Result.Text; text != digits {
			t.Errorf("the result is %s", text)
		}
		if r := got[2].Parts[1].Result; !r.Error || !strings.Contains(r.Text, "beyond 64-bit floating point") {
			t.Errorf("1e400: %+v", r)
		}
		es := r.entries()
		if last := es[len(es)-1]; string(last.Body) != `{"id":9007199254740993}` {
			t.Errorf("the session's result is %s", last.Body)
		}
	})
}

// Arguments are the same bytes after ten stops, each with a process and a cache of its own.
func TestArgumentsAfterStops(t *testing.T) {
	args := []string{`{"text":"\"quoted\" \\ back\\\\slash\n\ttab \u2028 \u00e9 é 😀 \ud83d\ude00 <&>"}`, "{\"text\" :\t\"spaces\"}", `{"n":`, "\xff{", `{"text":"\ud800"}`, ""}
	var calls []model.Part
	for i, a := range args {
		calls = append(calls, model.Part{Call: &model.Call{ID: fmt.Sprintf("c%d", i), Name: "echo", Args: model.Args(a)}})
	}
	m := &heard{Model: odd{calls}, t: t}
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, store: mem.New()}
		for cycle := range 11 {
			r.agent = engine.Agent{Name: "helper", Loop: agentOf(t, llm.Spec{Model: m, Tools: toolset(t, echo("echo")), Interactive: true})}
			e, err := engine.New(t.Context(), r.store, engine.Options{Agents: []engine.Agent{r.agent}})
			if err != nil {
				t.Fatal(err)
			}
			if r.e = e; cycle == 0 {
				r.start("Go.", nil)
			} else {
				r.say(fmt.Sprintf("Again %d.", cycle))
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		results := ""
		for i, req := range m.reqs[1:] {
			for k, a := range args {
				if got := string(req.Messages[1].Parts[k].Call.Args); got != a {
					t.Errorf("request %d: the arguments are %q, not %q", i+1, got, a)
				}
			}
			var now strings.Builder
			for _, p := range req.Messages[2].Parts {
				if p.Result != nil {
					now.WriteString(p.Result.Text + "\n")
				}
			}
			if results == "" {
				results = now.String()
			}
			if now.String() != results {
				t.Errorf("request %d: the results are now %q", i+1, now.String())
			}
		}
		if len(m.reqs) != 12 {
			t.Errorf("%d requests", len(m.reqs))
		}
		if err := r.store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// odd calls once, and then says ok.
type odd struct{ calls []model.Part }

func (odd) Name() string { return "odd" }

func (o odd) Call(_ context.Context, r *model.Request, _ func(model.Delta)) (*model.Answer, error) {
	if len(r.Messages) > 1 {
		return &model.Answer{Message: model.Text(model.Assistant, "ok"), Stop: model.EndTurn}, nil
	}
	return &model.Answer{Message: model.Message{Role: model.Assistant, Parts: o.calls}, Stop: model.ToolUse}, nil
}
