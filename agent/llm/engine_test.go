package llm_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/builtin"
)

// decide answers the open question of a step, and drives the session on.
func (r *rig) decide(name string, state stint.ApprovalState, note, answer string) stint.Session {
	r.t.Helper()
	row, err := r.store.Session(r.t.Context(), r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, a := range row.Session.At.Approvals {
		if a.Name != name || a.State != stint.ApprovalOpen {
			continue
		}
		d := journal.Decision{Approval: a.Seq, State: state, Note: note}
		data, err := stint.Marshal(d)
		if err != nil {
			r.t.Fatal(err)
		}
		if err := r.store.Send(r.t.Context(), r.id, stint.Message{ID: d.MessageID(), Kind: stint.Decision, From: "human:ana", Data: data, Body: []byte(answer)}); err != nil {
			r.t.Fatal(err)
		}
		return r.goOn()
	}
	r.t.Fatalf("no question of %s is open: %+v", name, row.Session.At.Approvals)
	return stint.Session{}
}

// A person is asked before a mail goes out, and for an answer; what need not wait for it
// does not.
func TestApprovals(t *testing.T) {
	looked := 0
	look := does("look", stint.Read, func(tool.Call) (string, error) { looked++; return "seen", nil })
	mail := gated(does("send_mail", stint.Once, func(c tool.Call) (string, error) { return "sent " + string(c.Args), nil }), tool.Always)
	m := plays(t, `{"steps":[{"tools":[{"name":"send_mail","input":{"text":"all"}},{"name":"look","input":{}},{"name":"send_mail","input":{"text":"ana"}}]},
		{"tools":[{"name":"ask","input":{"question":"Which colour?","schema":{"type":"string","enum":["red","blue"]}}}]},{"text":"Blue it is."}]}`)
	onEngine(t, llm.Spec{Model: m, Tools: toolset(t, mail, look, builtin.Ask())}, func(r *rig) {
		if s := r.start("Go.", nil); s.Status != stint.Waiting || s.Wait.For != stint.ForApproval || looked != 1 {
			t.Fatalf("%s, %+v, looked %d times", s.Status, s.Wait, looked)
		}
		r.decide("send_mail", stint.ApprovalDenied, "not to all", "")
		r.decide("send_mail", stint.ApprovalApproved, "", "")
		r.decide("ask", stint.ApprovalApproved, "", `"blue"`)
		r.show()
		r.golden("approvals")
		if looked != 1 || len(m.reqs) != 3 {
			t.Errorf("looked %d times, asked the model %d times", looked, len(m.reqs))
		}
	})
}

// Who watches is told of which loop an answer is.
func TestHear(t *testing.T) {
	var heard []string
	m := plays(t, `{"steps":[{"text":"One.","tools":[{"name":"echo","input":{}}]},{"text":"Two."}]}`)
	hear := func(_ stint.ID, loop int, d model.Delta) { heard = append(heard, fmt.Sprint(loop, d.Text)) }
	onEngine(t, llm.Spec{Model: m, Tools: toolset(t, echo("echo")), Hear: hear}, func(r *rig) {
		r.start("Go.", nil)
		if got := strings.Join(heard, " "); got != "1One. 2Two." {
			t.Errorf("heard %q", got)
		}
	})
}

// A limit of tokens stops the session before the call that may pass it.
func TestBudget(t *testing.T) {
	m := plays(t, `{"after":"repeat","steps":[{"tools":[{"name":"echo","input":{}}],"usage":{"input_tokens":40000,"output_tokens":5000}}]}`)
	onEngine(t, llm.Spec{Model: m, Tools: toolset(t, echo("echo"))}, func(r *rig) {
		s := r.start("Go.", &stint.Limits{Tokens: 100_000})
		if s.Status != stint.Waiting || s.Wait.For != stint.ForBudget || !strings.Contains(s.Wait.What, "tokens") || len(m.reqs) != 2 || s.Totals.Usage.Tokens() > 100_000 {
			t.Errorf("%s, %+v, %d requests, %+v", s.Status, s.Wait, len(m.reqs), s.Totals.Usage)
		}
	})
}

// What an excerpt leaves out is read from the journal.
func TestReadResultOnEngine(t *testing.T) {
	text := lines(5000)
	big := does("big", stint.Once, func(tool.Call) (string, error) { return text, nil })
	m := plays(t, `{"steps":[{"tools":[{"name":"big","input":{}}]},{"tools":[{"name":"read_result","input":{"call":"call_1","offset":30000,"length":100}}]}]}`)
	onEngine(t, llm.Spec{Model: m, Tools: toolset(t, big), Context: llm.Context{Excerpt: 1024}}, func(r *rig) {
		r.start("Go.", nil)
		got := messages(t, r.state())
		if s := got[2].Parts[0].Result.Text; len(s) > 1024 || !strings.Contains(s, `call read_result with {"call":"call_1"}`) {
			t.Errorf("the excerpt is %s", s)
		}
		head, body, _ := strings.Cut(got[4].Parts[0].Result.Text, "\n")
		var from, to int
		if _, err := fmt.Sscanf(head, "[stint: bytes %d to %d", &from, &to); err != nil || text[from:to] != body || to-from < 90 {
			t.Errorf("read %q %q", head, body)
		}
	})
}

// An agent that is begun without news waits, and what was counted begins anew with a
// person's word.
func TestBegunAgain(t *testing.T) {
	w := newWorld(t, llm.Spec{Model: plays(t, `{"after":"repeat","steps":[{"tools":[{"name":"echo","args":"{"}],"stop":"length"}]}`), Tools: toolset(t, echo("echo"))}, "Go.")
	w.run(whole)
	if w.end == nil || w.end.Outcome != stint.Failed || w.ses.At.Loop != 4 {
		t.Fatalf("loop %d: %+v", w.ses.At.Loop, w.end)
	}
	w.end = nil
	w.run(whole)
	if w.wait == nil || w.wait.For != stint.ForMessage || len(w.past) != 3 {
		t.Errorf("begun again without a word: %+v, %d steps", w.wait, len(w.past))
	}
	w.wait, w.inbox = nil, []stint.Message{{Kind: stint.Prompt, Body: []byte("Be brief.")}}
	w.run(w.ses.At.Loop + 1)
	if w.end != nil {
		t.Errorf("cut twice after a person's word: %+v", w.end)
	}

	done := newWorld(t, llm.Spec{Model: plays(t, `{}`)}, "Go.")
	done.run(whole)
	done.end = nil
	done.run(whole)
	if done.wait == nil || len(done.past) != 1 {
		t.Errorf("after its end: %+v, %d steps", done.wait, len(done.past))
	}
}

// The input of a model step is the hash of the request as it was.
func TestInput(t *testing.T) {
	m := plays(t, `{"steps":[{"tools":[{"name":"echo","input":{}}]}]}`)
	half := 0.5
	w := newWorld(t, llm.Spec{Model: m, System: `Say "messages":null.`, Tools: toolset(t, echo("echo")), Temperature: &half, MaxTokens: 100, Cache: true}, "Go <on> & on.")
	w.run(whole)
	n := 0
	for _, s := range w.steps {
		if s.Kind != stint.Model {
			continue
		}
		r := m.reqs[n]
		n++
		if r.Session != w.ses.ID.String() {
			t.Errorf("session %q", r.Session)
		}
		r.Session = ""
		b, err := stint.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(`{"messages":%d,"sha256":"%x"}`, len(r.Messages), sha256.Sum256(b)); string(s.Input) != want {
			t.Errorf("got %s, want %s", s.Input, want)
		}
	}
	if n != 2 {
		t.Errorf("%d model steps", n)
	}
}

// Faults that pass are tried again after what the provider asked for; the others end the
// session with the provider's words and what to do.
func TestModelErrors(t *testing.T) {
	for kind, want := range map[model.Kind]stint.Code{model.Rate: stint.Unavailable, model.Overloaded: stint.Unavailable, model.Transient: stint.Unavailable, model.Cut: stint.Unavailable,
		model.Invalid: stint.Invalid, model.Auth: stint.Denied, model.Quota: stint.Denied, model.Refused: stint.Denied, model.NotFound: stint.NotFound, model.TooLong: stint.Limit} {
		w := newWorld(t, llm.Spec{Model: plays(t, fmt.Sprintf(`{"steps":[{"error":{"kind":%q,"message":"so it is","after":"3s"}}]}`, kind))}, "Go.")
		_, err := w.agent.Loop(t.Context(), &fakeLoop{w: w})
		after, final, _ := steering(err)
		var e *stint.Error
		if stint.CodeOf(err) != want || final == kind.Retryable() || kind.Retryable() != (after.Seconds() == 3) || !strings.Contains(err.Error(), "so it is") {
			t.Errorf("%s: %v, code %s, after %v, final %t", kind, err, stint.CodeOf(err), after, final)
		}
		if !errors.As(err, &e) || e.Hint == "" {
			t.Errorf("%s: no hint", kind)
		}
	}
}

// A read that fails without an outcome is tried again, and its group with it.
func TestFlaky(t *testing.T) {
	tries, acted := 0, 0
	flaky := does("flaky", stint.Read, func(tool.Call) (string, error) {
		if tries++; tries == 1 {
			return "", errReset{}
		}
		return "at last", nil
	})
	act := does("act", stint.Once, func(tool.Call) (string, error) { acted++; return "done", nil })
	onEngine(t, llm.Spec{Model: plays(t, `{"steps":[{"tools":[{"name":"act","input":{}},{"name":"flaky","input":{}}]}]}`), Tools: toolset(t, flaky, act)}, func(r *rig) {
		s := r.start("Go.", nil)
		if s.Status != stint.Completed || tries != 2 || acted != 1 || !strings.Contains(string(r.state()), "at last") {
			t.Errorf("%s %s: %d tries, acted %d times", s.Status, s.Reason, tries, acted)
		}
	})
}

type errReset struct{}

func (errReset) Error() string { return "connection reset" }

// Of all excerpts the newest 128 can be read on.
func TestManyExcerpts(t *testing.T) {
	var calls []string
	for i := range 140 {
		calls = append(calls, fmt.Sprintf(`{"name":"big","input":{"n":%d}}`, i))
	}
	big := does("big", stint.Read, func(tool.Call) (string, error) { return lines(100), nil })
	w := newWorld(t, llm.Spec{Model: plays(t, `{"steps":[{"tools":[`+strings.Join(calls, ",")+`]}]}`), Tools: toolset(t, big), Context: llm.Context{Excerpt: 512}}, "Go.")
	w.run(1)
	var s struct {
		Long []struct{ Call string } `json:"long"`
	}
	if err := json.Unmarshal(w.state, &s); err != nil || len(s.Long) != 128 || s.Long[127].Call != "call_140" {
		t.Errorf("%d, %v", len(s.Long), err)
	}
}

// Arguments that no journal takes are recorded as their beginning.
func TestStrangeArguments(t *testing.T) {
	var calls []model.Part
	for i, args := range []string{`{"n":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, `{"text":"` + strings.Repeat("☃", 6<<20) + `"}`, strings.Repeat("\xff", 1<<16)} {
		calls = append(calls, model.Part{Call: &model.Call{ID: fmt.Sprintf("c%d", i), Name: "echo", Args: model.Args(args)}})
	}
	w := newWorld(t, llm.Spec{Model: odd{calls}, Tools: toolset(t, echo("echo"))}, "Go.")
	w.run(1)
	for _, s := range w.steps[1:] {
		if len(s.Input) > 100_000 || !strings.HasPrefix(string(s.Input), `{"unusable_arguments":"`) || s.Effect != stint.Read {
			t.Errorf("recorded %d bytes: %.100s", len(s.Input), s.Input)
		}
	}
}

// redacting is a loop whose journal keeps no secret.
type redacting struct{ *fakeLoop }

func (r redacting) Do(ctx context.Context, s stint.Step, fn func(context.Context, string) (stint.Result, error)) (stint.Result, error) {
	res, err := r.fakeLoop.Do(ctx, s, fn)
	res.Data = bytes.ReplaceAll(res.Data, []byte("hunter2"), []byte("{{secret:KEY}}"))
	return res, err
}

// What counts is what was recorded.
func TestRecordThenUse(t *testing.T) {
	w := newWorld(t, llm.Spec{Model: plays(t, `{"steps":[{"text":"The key is hunter2."}]}`)}, "Go.")
	next, err := w.agent.Loop(t.Context(), redacting{&fakeLoop{w: w}})
	if err != nil || strings.Contains(string(next.State), "hunter2") || !strings.Contains(string(next.End.Result), "{{secret:KEY}}") {
		t.Errorf("%v: %s", err, next.State)
	}
}

// The judge gets the rubric, the task, what was said last and the answer.
func TestJudgeIsTold(t *testing.T) {
	j := &heard{Model: wants(""), t: t}
	onEngine(t, llm.Spec{Model: plays(t, `{}`), Interactive: true, Rubric: &llm.Rubric{Text: "Be kind.", Model: j}}, func(r *rig) {
		r.start("Say hello.", nil)
		r.say("Again.")
		want := []string{"The rubric:\nBe kind.\n\nThe task:\nSay hello.\n\nThe answer:\ndone",
			"The rubric:\nBe kind.\n\nThe task:\nSay hello.\n\nWhat was said last:\nAgain.\n\nThe answer:\ndone"}
		for i, req := range j.reqs {
			if got := req.Messages[0].Text(); got != want[i] {
				t.Errorf("got %q, want %q", got, want[i])
			}
		}
		if len(j.reqs) != 2 || j.reqs[0].Schema == nil || j.reqs[0].Tools != nil {
			t.Errorf("%d requests: %+v", len(j.reqs), j.reqs[0])
		}
	})
}
