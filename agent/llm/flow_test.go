package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/builtin"
)

// The flow of one session, on the engine, as a person reads it.
func TestFlow(t *testing.T) {
	finish, err := builtin.Finish(json.RawMessage(`{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"],"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	add := does("add", stint.Once, func(c tool.Call) (string, error) { return "added " + string(c.Args), nil })
	fails := does("fails", stint.Once, func(tool.Call) (string, error) { return "", stint.Definite(errors.New("no such row")) })
	for _, tt := range []struct {
		name   string
		spec   llm.Spec
		script string
		say    []string // after the start, one a wait
	}{
		{name: "parallel", spec: llm.Spec{Tools: toolset(t, add, echo("echo"), fails)},
			script: `{"steps":[{"text":"Both at once.","tools":[{"name":"add","input":{"n":1}},{"name":"echo","input":{"text":"x"}},{"name":"fails","input":{}}]},{"text":"All done."}]}`},
		{name: "unusable", spec: llm.Spec{Tools: toolset(t, add)},
			script: `{"steps":[{"tools":[{"name":"add","args":"{\"n\": 1"},{"name":"add","input":{"n":"one"}},{"name":"add","args":""},{"name":"add","args":"[1]"},{"name":"add","args":"{\"n\":1,\"n\":2}"}]},{"text":"I see."}]}`},
		{name: "unknown_tool", spec: llm.Spec{Tools: toolset(t, add, echo("echo"))},
			script: `{"steps":[{"tools":[{"name":"Echo","input":{}},{"name":"rm","input":{"path":"/"}}]},{"text":"I see."}]}`},
		{name: "cut", spec: llm.Spec{Tools: toolset(t, add)},
			script: `{"steps":[{"text":"First half","stop":"length"},{"tools":[{"name":"add","args":"{\"n\":1"},{"name":"add","input":{"n":2}}],"stop":"length"},{"tools":[{"name":"add","input":{"n":3}}]},{"text":"Done."}]}`},
		{name: "cut_thrice", spec: llm.Spec{Tools: toolset(t, add)},
			script: `{"after":"repeat","steps":[{"tools":[{"name":"add","args":"{\"n\":1"}],"stop":"length"}]}`},
		{name: "finish", spec: llm.Spec{Tools: toolset(t, add, finish)},
			script: `{"steps":[{"text":"It is 3."},{"tools":[{"name":"finish","input":{"sum":"3"}}]},{"tools":[{"name":"finish","input":{"sum":3}},{"name":"add","input":{"n":9}}]}]}`},
		{name: "unfinished", spec: llm.Spec{Tools: toolset(t, finish)}, script: `{"after":"repeat","steps":[{"text":"It is 3."}]}`},
		{name: "interactive", spec: llm.Spec{Interactive: true, Tools: toolset(t, add)},
			script: `{"steps":[{"text":"Hello."},{"tools":[{"name":"add","input":{"n":1}}]},{"text":"Added."}]}`, say: []string{"Add one.", "Thanks."}},
		{name: "rubric", spec: llm.Spec{Rubric: &llm.Rubric{Text: "It names a city.",
			Model: plays(t, `{"model":"judge","steps":[{"text":"{\"pass\":false,\"why\":\"no city is named\"}","error":{"kind":"transient","times":1}}]}`)}},
			script: `{"after":"repeat","steps":[{"text":"Somewhere."}]}`},
		{name: "rubric_pass", spec: llm.Spec{Rubric: &llm.Rubric{Text: "It names a city.", Model: wants("Paris")}},
			script: `{"steps":[{"text":"Somewhere."},{"text":"In Paris."}]}`},
		{name: "rubric_finish", spec: llm.Spec{Tools: toolset(t, finish), Rubric: &llm.Rubric{Text: "The sum is 5.", Model: wants(`{"sum":5}`)}},
			script: `{"steps":[{"tools":[{"name":"finish","input":{"sum":4}}]},{"tools":[{"name":"finish","input":{"sum":5}}]}]}`},
		{name: "rubric_interactive", spec: llm.Spec{Interactive: true, Rubric: &llm.Rubric{Text: "It names a city.", Model: wants("Paris"), Rounds: 2}},
			script: `{"steps":[{"text":"Somewhere."},{"text":"In Paris."},{"text":"Nowhere."},{"text":"Nowhere."}]}`, say: []string{"And now?"}},
		{name: "sleep", spec: llm.Spec{Tools: toolset(t, builtin.Sleep())},
			script: `{"steps":[{"tools":[{"name":"sleep","input":{"seconds":3600,"why":"the build runs"}}]},{"text":"Awake."}]}`},
		{name: "sleeps", spec: llm.Spec{Tools: toolset(t, builtin.Sleep())},
			script: `{"steps":[{"tools":[{"name":"sleep","input":{"seconds":60}},{"name":"sleep","input":{"seconds":3600,"why":"the build runs"}},{"name":"sleep","input":{"seconds":5}}]}]}`},
		{name: "cut_between", spec: llm.Spec{Tools: toolset(t, echo("echo"))},
			script: `{"steps":[{"text":"1","stop":"length"},{"text":"2","stop":"length"},{"tools":[{"name":"echo","input":{}}]},{"text":"3","stop":"length"},{"text":"4","stop":"length"},{"text":"5"}]}`},
		{name: "unfinished_between", spec: llm.Spec{Tools: toolset(t, echo("echo"), finish)},
			script: `{"steps":[{"text":"1"},{"text":"2"},{"tools":[{"name":"echo","input":{}}]},{"text":"3"},{"text":"4"},{"tools":[{"name":"finish","input":{"sum":5}}]}]}`},
		{name: "pause", script: `{"steps":[{"text":"Half of it, ","stop":"pause"},{"text":"done"}]}`},
		{name: "refusal", script: `{"steps":[{"text":"I will not do that.","stop":"refusal"}]}`},
		{name: "same_call", spec: llm.Spec{Tools: toolset(t, echo("echo"))},
			script: `{"after":"repeat","steps":[{"tools":[{"name":"echo","input":{"n":1}}]}]}`, say: []string{"Try something else."}},
		{name: "always_unknown", spec: llm.Spec{Tools: toolset(t, echo("echo"))},
			script: `{"after":"repeat","steps":[{"tools":[{"name":"search","input":{"n":1}}]}]}`},
		{name: "permanent", script: `{"steps":[{"error":{"kind":"auth","message":"invalid x-api-key"}}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := plays(t, tt.script)
			tt.spec.Model = m
			onEngine(t, tt.spec, func(r *rig) {
				r.start("Do it.", nil)
				for _, text := range tt.say {
					r.say(text)
				}
				r.show()
				fmt.Fprintf(&r.out, "%d requests\n", len(m.reqs))
				r.golden(tt.name)
			})
		})
	}
}

// wants is a judge that passes an answer with this text.
type wants string

func (wants) Name() string { return "judge" }

func (w wants) Call(_ context.Context, r *model.Request, _ func(model.Delta)) (*model.Answer, error) {
	_, answer, _ := strings.Cut(r.Messages[0].Text(), "The answer:\n")
	v := fmt.Sprintf(`{"pass":%t,"why":%q}`, strings.Contains(answer, string(w)), "it does not say "+string(w))
	return &model.Answer{Message: model.Text(model.Assistant, v), Stop: model.EndTurn}, nil
}

func TestPromptWithoutInput(t *testing.T) {
	onEngine(t, llm.Spec{Model: plays(t, `{}`), Prompt: "Begin."}, func(r *rig) {
		if s := r.start("", nil); s.Status != stint.Completed {
			t.Errorf("got %s %s", s.Status, s.Reason)
		}
		if got := messages(t, r.state()); got[0].Text() != "Begin." {
			t.Errorf("the first message is %q", got[0].Text())
		}
	})
	m := plays(t, `{}`)
	onEngine(t, llm.Spec{Model: m}, func(r *rig) {
		if s := r.start("", nil); s.Status != stint.Waiting || s.Wait.For != stint.ForMessage || len(m.reqs) != 0 {
			t.Errorf("without any word: %s, %d requests", s.Status, len(m.reqs))
		}
		if s := r.say("Now."); s.Status != stint.Completed {
			t.Errorf("got %s %s", s.Status, s.Reason)
		}
	})
}

// A model whose cost nobody knows is not asked under a limit of money.
func TestUnpriced(t *testing.T) {
	m := plays(t, `{}`)
	cost := func(string, model.Usage) (stint.Money, bool) { return 0, false }
	onEngine(t, llm.Spec{Model: m, Cost: cost}, func(r *rig) {
		s := r.start("Go.", &stint.Limits{Cost: 1e9})
		if s.Status != stint.Failed || !strings.Contains(s.Reason, "not known") || len(m.reqs) != 0 {
			t.Errorf("got %s (%s), %d requests", s.Status, s.Reason, len(m.reqs))
		}
	})
	for unknown, want := range map[string]int{"script": 1, "other": 0} {
		m := plays(t, `{"after":"repeat","steps":[{"stop":"length","text":"too lo"}]}`) // three loops
		cost := func(name string, _ model.Usage) (stint.Money, bool) { return 0, name != unknown }
		onEngine(t, llm.Spec{Model: m, Cost: cost}, func(r *rig) {
			if s := r.start("Go.", nil); s.Totals.Loops != 3 {
				t.Errorf("without a limit: %s (%s)", s.Status, s.Reason)
			}
			told := 0
			for _, e := range r.entries() {
				if e.Kind == stint.OutputWritten && strings.Contains(string(e.Body), "what script costs is not known") {
					told++
				}
			}
			if told != want {
				t.Errorf("where the price of %s is not known, it was told %d times, want %d", unknown, told, want)
			}
		})
	}
}

// What the steps used is what the model said, with its cost.
func TestUsage(t *testing.T) {
	m := plays(t, `{"steps":[{"text":"hi","usage":{"input_tokens":100,"output_tokens":20,"cache_read_tokens":7,"cache_write_tokens":3}}]}`)
	cost := func(name string, u model.Usage) (stint.Money, bool) {
		return stint.Money(u.Input*1000 + u.Output*5000), name == "script"
	}
	onEngine(t, llm.Spec{Model: m, Cost: cost, Prices: "2026-11"}, func(r *rig) {
		s := r.start("Go.", &stint.Limits{Cost: 1e9})
		if want := (stint.Usage{Input: 100, Output: 20, CacheRead: 7, CacheWrite: 3, Cost: 200_000}); s.Totals.Usage != want {
			t.Errorf("got %+v, want %+v", s.Totals.Usage, want)
		}
		for _, e := range r.entries() {
			if e.Kind == stint.StepCompleted && !strings.Contains(string(e.Body), `"prices":"2026-11"`) {
				t.Errorf("recorded: %s", e.Body)
			}
		}
	})
}

func TestSpec(t *testing.T) {
	m := plays(t, `{}`)
	for name, s := range map[string]llm.Spec{
		"no model":     {},
		"window":       {Model: m, Context: llm.Context{Window: -1}},
		"compact":      {Model: m, Context: llm.Context{Compact: 1.5}},
		"excerpt":      {Model: m, Context: llm.Context{Excerpt: 100}},
		"rubric":       {Model: m, Rubric: &llm.Rubric{Text: "x"}},
		"reserved":     {Model: m, Tools: toolset(t, echo("read_result"))},
		"instructions": {Model: m, System: "\xff"},
	} {
		if _, err := llm.New(s); !errors.Is(err, stint.Invalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
