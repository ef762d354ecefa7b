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

// shows prints what a person was asked, the transcript and the end.
func (w *world) shows() string {
	var b strings.Builder
	for _, q := range w.asked {
		fmt.Fprintf(&b, "asked: %s\n  why: %s\n", q.Ask, q.Why)
		if q.Answer != nil {
			fmt.Fprintf(&b, "  schema: %s\n", q.Answer)
		}
	}
	b.WriteString("\n" + transcript(w.t, w.state))
	switch {
	case w.end != nil:
		fmt.Fprintf(&b, "\n%s %s %s\n", w.end.Outcome, w.end.Reason, w.end.Result)
	case w.wait != nil:
		fmt.Fprintf(&b, "\nwaits for %s: %s\n", w.wait.For, w.wait.What)
	}
	return b.String()
}

func gated(tt tool.Tool, a tool.Approve) tool.Tool { tt.Approve = a; return tt }
func tainting(tt tool.Tool) tool.Tool              { tt.Taints = true; return tt }

func TestDenied(t *testing.T) {
	mail := gated(does("send_mail", stint.Once, func(tool.Call) (string, error) { return "sent", nil }), tool.Always)
	page := tainting(gated(echo("page"), tool.Always))
	m := plays(t, `{"steps":[{"tools":[{"name":"send_mail","input":{"text":"to all"}},{"name":"page","input":{}},{"name":"echo","input":{}}]},
		{"tools":[{"name":"send_mail","input":{"text":"to ana"}}]},{"text":"One mail went out."}]}`)
	w := newWorld(t, llm.Spec{Model: m, Tools: toolset(t, mail, page, echo("echo"))}, "Mail them.")
	w.person = func(s stint.Step) (json.RawMessage, error) {
		if s.Name == "page" || strings.Contains(string(s.Input), "all") {
			return nil, errors.New("denied by human:ana: not to everybody")
		}
		return nil, nil
	}
	w.run(whole)
	golden(t, "denied", w.shows())
	if len(w.runs) != 5 { // three answers, echo, one mail
		t.Errorf("these ran: %v", w.runs)
	}
	if strings.Contains(string(w.state), `"taint"`) {
		t.Error("a call that was denied taints")
	}
}

func TestUnknown(t *testing.T) {
	mail := does("send_mail", stint.Once, func(tool.Call) (string, error) { return "", errors.New("connection reset") })
	m := plays(t, `{"steps":[{"tools":[{"name":"send_mail","input":{"n":1}},{"name":"send_mail","input":{"n":2}},{"name":"send_mail","input":{"n":3}},{"name":"send_mail","input":{"n":4}}]},{"text":"I will look."}]}`)
	w := newWorld(t, llm.Spec{Model: m, Tools: toolset(t, mail)}, "Mail them.")
	w.doubt = func(_ string, s stint.Step) json.RawMessage {
		switch string(s.Input) {
		case `{"n":1}`:
			return json.RawMessage(`{"stint":"unknown","note":"interrupted; whether the effect took place is not known"}`)
		case `{"n":2}`:
			return json.RawMessage(`null`)
		case `{"n":3}`:
			return json.RawMessage(`{"id":2512292042121000001}`)
		}
		return json.RawMessage(`{"text":"sent as 17"}`)
	}
	w.run(whole)
	golden(t, "unknown", w.shows())
}

func TestQuestion(t *testing.T) {
	m := plays(t, `{"steps":[{"tools":[{"name":"ask","input":{"question":"Which\nbranch?"}},{"name":"echo","input":{}},{"name":"ask","input":{"question":"All?","schema":{"type":"boolean"}}},
		{"name":"ask","input":{"question":"?","schema":{"type":"nonsense"}}},{"name":"ask","input":{"question":"Never?"}},{"name":"ask","input":{"question":"How many?","schema":{"type":"integer"}}}]},{"text":"Good."}]}`)
	w := newWorld(t, llm.Spec{Model: m, Tools: toolset(t, builtin.Ask(), echo("echo"))}, "Clean up.")
	w.person = func(s stint.Step) (json.RawMessage, error) {
		switch {
		case strings.Contains(string(s.Input), "All"):
			return json.RawMessage(`true`), nil
		case strings.Contains(string(s.Input), "Never"):
			return nil, errors.New("denied by human:ana: do not ask me that")
		case strings.Contains(string(s.Input), "many"):
			return json.RawMessage(`"many"`), nil
		}
		return json.RawMessage(`"main \"2\""`), nil
	}
	w.run(whole)
	golden(t, "question", w.shows())
}

// After content from outside, a once tool is asked for; not one that says never, and not
// where the rule is off.
func TestTainted(t *testing.T) {
	const play = `{"steps":[{"tools":[{"name":"push","input":{}},{"name":"fetch","input":{}}]},
		{"tools":[{"name":"push","input":{}},{"name":"free","input":{}},{"name":"note","input":{}}]}]}`
	fetch := tainting(echo("fetch"))
	push := does("push", stint.Once, func(tool.Call) (string, error) { return "pushed", nil })
	free := gated(does("free", stint.Once, func(tool.Call) (string, error) { return "done", nil }), tool.Never)
	note := does("note", stint.Idempotent, func(tool.Call) (string, error) { return "noted", nil })
	for _, tt := range []struct {
		name    string
		trust   bool
		trigger string
		from    stint.Actor
		want    []string
	}{
		{"outside", false, "prompt", "human:ana", []string{"tainted: what fetch gave comes from outside, and push is of class once"}},
		{"trusted", true, "prompt", "human:ana", nil},
		{"hook", false, "hook", "human:ana", []string{"tainted: what the hook github gave comes from outside, and push is of class once", "tainted: what the hook github gave comes from outside, and push is of class once"}},
		{"message of a hook", false, "prompt", "hook:ci", []string{"tainted: what the hook ci gave comes from outside, and push is of class once", "tainted: what the hook ci gave comes from outside, and push is of class once"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, llm.Spec{Model: plays(t, play), Tools: toolset(t, fetch, push, free, note), TrustAll: tt.trust}, "Go.")
			w.ses.Trigger = stint.Trigger{Kind: tt.trigger, Ref: "github"}
			w.inbox[0].From = tt.from
			w.person = func(stint.Step) (json.RawMessage, error) { return nil, nil }
			w.run(whole)
			var why []string
			for _, q := range w.asked {
				why = append(why, q.Why)
				if q.Ask != "push {}" {
					t.Errorf("asked %q", q.Ask)
				}
			}
			if fmt.Sprint(why) != fmt.Sprint(tt.want) {
				t.Errorf("got %q, want %q", why, tt.want)
			}
		})
	}
}

// What the engine is told of a step beside its input.
func TestSteps(t *testing.T) {
	single := echo("single")
	single.Parallel = false
	cost := func(_ string, u model.Usage) (stint.Money, bool) { return stint.Money(u.Output), true }
	m := plays(t, `{"steps":[{"tools":[{"name":"single","input":{}},{"name":"echo","input":{}},{"name":"nosuch","input":{}}]}]}`)
	w := newWorld(t, llm.Spec{Model: m, Tools: toolset(t, single, echo("echo")), MaxTokens: 500, Cost: cost, System: "Be brief."}, strings.Repeat("Go. ", 1000))
	w.run(1)
	if len(w.steps) != 4 {
		t.Fatalf("steps: %+v", w.steps)
	}
	ask := w.steps[0]
	if ask.Kind != stint.Model || ask.Effect != stint.Read || len(ask.Input) > 120 || !strings.HasPrefix(string(ask.Input), `{"messages":1,"sha256":"`) {
		t.Errorf("the model step is %+v", ask)
	}
	if r := ask.Reserve; r.Input < 1000 || r.Input > 1300 || r.Output != 500 || r.Cost != 500 {
		t.Errorf("it reserves %+v", r)
	}
	if !w.steps[1].Alone || w.steps[2].Alone || w.steps[3].Alone || w.steps[3].Effect != stint.Read || w.steps[3].Kind != stint.Tool {
		t.Errorf("the calls are %+v", w.steps[1:])
	}
}

// A call gets its place, its key and the session.
func TestCall(t *testing.T) {
	var got tool.Call
	see := tool.Tool{Name: "see", Caller: tool.CallerFunc(func(_ context.Context, c tool.Call) (tool.Output, error) { got = c; return tool.Output{}, nil })}
	w := newWorld(t, llm.Spec{Model: plays(t, `{"steps":[{"tools":[{"name":"see","input":{}},{"name":"see","input":{ "a" : 1 }}]}]}`), Tools: toolset(t, see)}, "Go.")
	w.run(1)
	if want := (stint.Position{Loop: 1, Attempt: 1, Step: 2, Sub: 2}); got.Position != want || got.Key != "1.2.2" || got.Session != w.ses.ID || got.Name != w.ses.Name || got.Epoch != 1 || string(got.Args) != `{ "a" : 1 }` {
		t.Errorf("got %+v", got)
	}
}
