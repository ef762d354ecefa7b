package model_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/model/modeltest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func answer() model.Answer {
	return model.Answer{
		Message: model.Message{Role: model.Assistant, Parts: []model.Part{
			{Opaque: &model.Opaque{Provider: "anthropic", Model: "m", Data: `{ "type":"thinking", "thinking":"1 < 2", "signature":"a+/=" }`}},
			{Text: "I look <b>\u2028"},
			{Call: &model.Call{ID: "c1", Name: "effect", Args: `{ "n" : 9007199254740993, "q":"\u00e9 \"<>\" 🙂" }`}},
			{Call: &model.Call{ID: "c2", Name: "effect", Args: "{\"q\":\"\xff"}},
			{Call: &model.Call{ID: "c3", Name: "effect"}},
		}},
		Stop: model.ToolUse, Reason: "tool_use", Usage: model.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4},
		Model: "m-20260101", ID: "msg_1", Raw: []byte("data: x"), RawSize: 7,
	}
}

// The form in journals: it may grow, and what is there stays.
func TestJSON(t *testing.T) {
	a := answer()
	results := model.Results(model.Result{Call: "c1", Text: "<ok>"}, model.Result{Call: "c2", Text: "no", Error: true}, model.Result{Call: "c3"})
	var out strings.Builder
	for _, v := range []any{&a, &results} {
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
		out.WriteByte('\n')
	}
	modeltest.Golden(t, "testdata/json.txt", out.String(), *update)
}

// Ten round trips through JSON give the bytes of the first.
func TestRoundTrips(t *testing.T) {
	first := answer()
	a := first
	for range 10 {
		b, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		a = model.Answer{}
		if err := json.Unmarshal(b, &a); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range first.Message.Parts {
		q := a.Message.Parts[i]
		if p.Text != q.Text || p.Call != nil && *p.Call != *q.Call || p.Opaque != nil && *p.Opaque != *q.Opaque {
			t.Errorf("part %d: %+v became %+v", i, p, q)
		}
	}
}

func TestValid(t *testing.T) {
	user := func(parts ...model.Part) model.Message { return model.Message{Role: model.User, Parts: parts} }
	says := func(parts ...model.Part) model.Message { return model.Message{Role: model.Assistant, Parts: parts} }
	text := model.Part{Text: "x"}
	call := func(id string) model.Part { return model.Part{Call: &model.Call{ID: id, Name: "effect"}} }
	result := func(id string) model.Part { return model.Part{Result: &model.Result{Call: id}} }
	list := func(m ...model.Message) []model.Message { return m }
	for _, c := range []struct {
		name string
		m    []model.Message
		want string // "" for a valid list
	}{
		{"one prompt", list(user(text)), ""},
		{"calls", list(user(text), says(text, call("a"), call("b")), user(result("a"), result("b"), text)), ""},
		{"text of the assistant last", list(user(text), says(text)), ""},
		{"blank text of the assistant", list(user(text), says(model.Part{Text: "\n"}, call("a")), user(result("a"))), ""},
		{"none", nil, "there is none"},
		{"assistant first", list(says(text)), "messages[0]"},
		{"user twice", list(user(text), user(text)), "messages[1]: its role"},
		{"unknown role", list(model.Message{Role: "system", Parts: []model.Part{text}}), "messages[0]: its role"},
		{"no parts", list(user()), "no parts"},
		{"nothing in a part", list(user(model.Part{})), "it is 0 things"},
		{"two things in a part", list(user(model.Part{Text: "x", Result: &model.Result{}})), "it is 2 things"},
		{"blank prompt", list(user(model.Part{Text: " \n"})), "blank"},
		{"text not UTF-8", list(user(model.Part{Text: "\xff"})), "UTF-8"},
		{"call of the user", list(user(call("a"))), "texts and results only"},
		{"open call at the end", list(user(text), says(call("a"))), "the calls a have no result"},
		{"result missing", list(user(text), says(call("a"), call("b"), call("c")), user(result("a"))), "the calls b, c have no result"},
		{"results in another order", list(user(text), says(call("a"), call("b")), user(result("b"), result("a"))), "the result of call a belongs here"},
		{"text before the result", list(user(text), says(call("a")), user(text, result("a"))), "the result of call a belongs here"},
		{"result twice", list(user(text), says(call("a")), user(result("a"), result("a"))), "comes twice"},
		{"result of nothing", list(user(text), says(text), user(result("a"))), "answers no call"},
		{"result too late", list(user(text), says(call("a")), user(result("a")), says(text), user(result("a"))), "answers no call"},
		{"result of the assistant", list(user(text), says(result("a"))), "results are the user's"},
		{"id twice in an answer", list(user(text), says(call("a"), call("a")), user(result("a"), result("a"))), "taken"},
		{"id twice over answers", list(user(text), says(call("a")), user(result("a")), says(call("a")), user(result("a"))), "taken"},
		{"id of other characters", list(user(text), says(call("a:0")), user(result("a:0"))), "A-Z"},
		{"no id", list(user(text), says(call("")), user(result(""))), "A-Z"},
		{"tool's name", list(user(text), says(model.Part{Call: &model.Call{ID: "a", Name: "a.b"}}), user(result("a"))), "the tool's name"},
		{"opaque of nobody", list(user(text), says(model.Part{Opaque: &model.Opaque{Data: "{}"}})), "names its provider"},
		{"opaque no JSON", list(user(text), says(model.Part{Opaque: &model.Opaque{Provider: "p", Data: "{"}})), "is JSON"},
	} {
		err := model.Valid(c.m)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, model.Invalid)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// Whatever a provider gives, once settled it can be sent again.
func TestSettle(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &model.Request{Messages: modeltest.Messages(rt)}
		if r.Messages[len(r.Messages)-1].Role == model.Assistant {
			r.Messages = append(r.Messages, model.Text(model.User, "go on"))
		}
		m := model.Message{Role: model.Assistant, Parts: []model.Part{{}, {Text: "a\xffb"}}}
		var results []model.Result
		for range rapid.IntRange(1, 4).Draw(rt, "calls") {
			id := rapid.OneOf(rapid.SampledFrom([]string{"", "a:0", "call_1", "call_2", "call_3", strings.Repeat("x", 41)}), rapid.String()).Draw(rt, "id")
			m.Parts = append(m.Parts, model.Part{Call: &model.Call{ID: id, Name: rapid.String().Draw(rt, "name"), Args: model.Args(rapid.String().Draw(rt, "args"))}})
		}
		r.Settle(&m)
		for _, c := range m.Calls() {
			results = append(results, model.Result{Call: c.ID})
		}
		if err := model.Valid(append(r.Messages, m, model.Results(results...))); err != nil {
			rt.Fatalf("%v\n%+v", err, m)
		}
		before := fmt.Sprintf("%+v", m.Calls())
		r.Settle(&m)
		if after := fmt.Sprintf("%+v", m.Calls()); after != before {
			rt.Fatalf("a second time changed %s to %s", before, after)
		}
	})
}

func TestRequestCheck(t *testing.T) {
	ok := func() *model.Request {
		return &model.Request{Messages: []model.Message{model.Text(model.User, "x")}, Tools: []model.Tool{{Name: "a"}}}
	}
	for name, change := range map[string]func(*model.Request){
		"tool's name":      func(r *model.Request) { r.Tools[0].Name = "a.b" },
		"tool twice":       func(r *model.Request) { r.Tools = append(r.Tools, r.Tools[0]) },
		"tool's schema":    func(r *model.Request) { r.Tools[0].Schema = []byte(`[]`) },
		"choice":           func(r *model.Request) { r.Choice = model.Choice{Mode: model.Named, Tool: "b"} },
		"nothing to call":  func(r *model.Request) { r.Tools, r.Choice = nil, model.Choice{Mode: model.Required} },
		"schema":           func(r *model.Request) { r.Schema = &model.Schema{Name: "a", Schema: []byte(`1`)} },
		"session":          func(r *model.Request) { r.Session = strings.Repeat("s", 65) },
		"system not UTF-8": func(r *model.Request) { r.System = "\xff" },
		"messages":         func(r *model.Request) { r.Messages = nil },
	} {
		r := ok()
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		change(r)
		if err := r.Check(); !errors.Is(err, model.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestError(t *testing.T) {
	e := &model.Error{Kind: model.Rate, Model: "m", Status: 429, Code: "rate_limit_error", Message: "slow down", After: 3 * time.Second, Err: errors.New("cause")}
	if got := e.Error(); got != "m: too many requests (HTTP 429, rate_limit_error): slow down" {
		t.Error(got)
	}
	if !errors.Is(e, model.Rate) || errors.Is(e, model.Cut) || model.AsError(fmt.Errorf("x: %w", e)) != e || !errors.Is(e, e.Err) {
		t.Error("the error is not found by its kind, its type or its cause")
	}
	for _, k := range []model.Kind{model.Rate, model.Overloaded, model.Transient, model.Cut, model.Invalid, model.TooLong, model.Auth, model.Quota, model.NotFound, model.Refused} {
		e := &model.Error{Kind: k}
		if e.Error() == string(k) || e.Hint() == "" || k.Shared() && !k.Retryable() {
			t.Errorf("%s: %q, %q", k, e.Error(), e.Hint())
		}
	}
}
