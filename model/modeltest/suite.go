package modeltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint/model"
)

// Config is how [Test] wants a Model made.
type Config struct {
	URL  string // of a Server, without a path
	Key  func() (string, error)
	Idle time.Duration // without a byte; 0: the default
}

// Open makes the Model under test. Its Name has to be "mock".
type Open func(t testing.TB, c Config) model.Model

// Test holds a Model that speaks HTTP to the contract of [model.Model].
func Test(t *testing.T, open Open) {
	t.Run("Answers", func(t *testing.T) { testAnswers(t, open) })
	t.Run("Arguments", func(t *testing.T) { testArguments(t, open) })
	t.Run("Unusable", func(t *testing.T) { testUnusable(t, open) })
	t.Run("SameIDs", func(t *testing.T) { testSameIDs(t, open) })
	t.Run("CutByLength", func(t *testing.T) { testLength(t, open) })
	t.Run("Refusals", func(t *testing.T) { testRefusals(t, open) })
	t.Run("Inside", func(t *testing.T) { testInside(t, open) })
	t.Run("CutStream", func(t *testing.T) { testCut(t, open) })
	t.Run("Canceled", func(t *testing.T) { testCanceled(t, open) })
	t.Run("Idle", func(t *testing.T) { testIdle(t, open) })
	t.Run("Key", func(t *testing.T) { testKey(t, open) })
	t.Run("Invalid", func(t *testing.T) { testInvalid(t, open) })
	t.Run("AnyMessages", func(t *testing.T) { testAny(t, open) })
	t.Run("Concurrent", func(t *testing.T) { testConcurrent(t, open) })
}

// tools are what the requests of the suite offer.
func tools() []model.Tool {
	return []model.Tool{
		{Name: "effect", Description: "does something", Schema: []byte(`{"type":"object","properties":{"step":{"type":"integer"}}}`)},
		{Name: "echo"},
	}
}

// ask is a request of one prompt.
func ask(messages ...model.Message) *model.Request {
	return &model.Request{System: "be brief", Messages: append([]model.Message{model.Text(model.User, "do it")}, messages...), Tools: tools()}
}

func call(tb testing.TB, m model.Model, r *model.Request) *model.Answer {
	tb.Helper()
	a, err := m.Call(tb.Context(), r, nil)
	if err != nil {
		tb.Fatalf("the model answered with %v", err)
	}
	return a
}

// failure calls and returns the error, which has to be a *model.Error.
func failure(tb testing.TB, m model.Model, r *model.Request) *model.Error {
	tb.Helper()
	a, err := m.Call(tb.Context(), r, nil)
	e := model.AsError(err)
	if a != nil || e == nil {
		tb.Fatalf("got an answer %v and the error %v, want a *model.Error alone", a, err)
	}
	if e.Model != m.Name() {
		tb.Errorf("the error names the model %q", e.Model)
	}
	return e
}

// valid fails the test for each request that the server refused.
func valid(tb testing.TB, s *Server) {
	tb.Helper()
	for i, r := range s.Requests() {
		if r.Why != "" {
			tb.Errorf("request %d was refused: %s\n%s", i+1, r.Why, r.Body)
		}
	}
}

func testAnswers(t *testing.T, open Open) {
	t.Helper()
	s := Serve(t, Scenario{Steps: []Step{
		{Text: "grüße 🙂 und <b>\u2028", Usage: Usage{Input: 7, Output: 3, CacheRead: 2, CacheWrite: 1}},
		{Text: "I do both", Tools: []ToolCall{{ID: "t1", Name: "effect", Input: []byte(`{"step":1}`)}, {ID: "t2", Name: "echo"}}},
	}})
	m := open(t, Config{URL: s.URL})
	if m.Name() != "mock" {
		t.Errorf("its name is %q", m.Name())
	}
	var heard strings.Builder
	r := ask()
	a, err := m.Call(t.Context(), r, func(d model.Delta) { heard.WriteString(d.Text) })
	if err != nil {
		t.Fatal(err)
	}
	const text = "grüße 🙂 und <b>\u2028"
	if a.Message.Text() != text || heard.String() != text || a.Message.Role != model.Assistant {
		t.Errorf("the answer is %q, heard was %q", a.Message.Text(), heard.String())
	}
	if want := (model.Usage{Input: 7, Output: 3, CacheRead: 2, CacheWrite: 1}); a.Usage != want {
		t.Errorf("usage %+v, want %+v", a.Usage, want)
	}
	if a.Stop != model.EndTurn || a.ID == "" || a.Model != "mock-1" || a.Reason == "" {
		t.Errorf("stop %q (%s), id %q, model %q", a.Stop, a.Reason, a.ID, a.Model)
	}
	if len(a.Raw) == 0 || int64(len(a.Raw)) != a.RawSize || !strings.Contains(string(a.Raw), "data: ") {
		t.Errorf("raw is %d of %d bytes", len(a.Raw), a.RawSize)
	}
	b := call(t, m, r)
	calls := b.Calls()
	if len(calls) != 2 || b.Stop != model.ToolUse || calls[0].ID != "t1" || calls[0].Args != `{"step":1}` || calls[1].Name != "echo" || calls[1].Args.Check() != nil {
		t.Fatalf("stop %q, calls %+v", b.Stop, calls)
	}
	call(t, m, ask(b.Message, model.Results(model.Result{Call: "t1", Text: "one"}, model.Result{Call: "t2", Text: "", Error: true})))
	valid(t, s)
}

// testArguments sends arguments back ten times: what the model wrote, what is kept and
// what the service gets are the same bytes every time.
func testArguments(t *testing.T, open Open) {
	t.Helper()
	for _, args := range []string{
		`{"n":9007199254740993,"m":-18446744073709551615,"f":1.10,"e":1E3}`,
		`{"q":"say \"hi\" \\ \n tab\t \/ \u001b \u001B <b>&amp; \u2028 é 🙂 \ud83d\ude42"}`,
		"{ \"spaced\" : [ 1 , 2 ] ,\n \"z\":{}, \"a\":null}",
		`{"u":"\u0000","literal":"\\u0000"}`,
	} {
		steps := make([]Step, 10)
		for i := range steps {
			steps[i].Tools = []ToolCall{{ID: fmt.Sprintf("c%d", i), Name: "echo", ArgsRaw: &args}}
		}
		s := Serve(t, Scenario{Steps: steps})
		m := open(t, Config{URL: s.URL})
		r := ask()
		for i := range steps {
			a := call(t, m, r)
			if len(a.Calls()) != 1 || string(a.Calls()[0].Args) != args {
				t.Fatalf("round %d: calls %+v, want the arguments %s", i, a.Calls(), args)
			}
			r.Messages = append(r.Messages, a.Message, model.Results(model.Result{Call: a.Calls()[0].ID, Text: args}))
		}
		call(t, m, r)
		valid(t, s)
		last := s.Requests()[10].Body
		if n := strings.Count(string(last), args) + strings.Count(string(last), jsonText(args)); n < 20 {
			t.Errorf("the last request has the arguments and results %d times as they were, want 20:\n%s", n, last)
		}
	}
}

func testUnusable(t *testing.T, open Open) {
	t.Helper()
	for _, c := range []struct {
		args string
		ok   bool
		wire string // in the next request
	}{
		{``, true, `{}`},
		{`  `, true, `{}`},
		{`{"step": 1, "q": "unterminated`, false, model.Unusable},
		{`[1]`, false, model.Unusable},
		{`"text"`, false, model.Unusable},
		{`{"a":1,"a":2}`, false, model.Unusable},
		{`{"a":1e400}`, false, model.Unusable},
		{`{"a":"\ud83d"}`, false, model.Unusable},
		{`{"a":1} and so on`, false, model.Unusable},
	} {
		s := Serve(t, Scenario{Steps: []Step{{Tools: []ToolCall{{ID: "c1", Name: "effect", ArgsRaw: &c.args}}}}})
		m := open(t, Config{URL: s.URL})
		a := call(t, m, ask())
		if len(a.Calls()) != 1 {
			t.Fatalf("%s: calls %+v, stop %s", c.args, a.Calls(), a.Stop)
		}
		got := a.Calls()[0]
		if string(got.Args) != c.args || (got.Args.Check() == nil) != c.ok {
			t.Errorf("%s came as %q, and its fault is %v", c.args, got.Args, got.Args.Check())
		}
		call(t, m, ask(a.Message, model.Results(model.Result{Call: got.ID, Text: "not called", Error: true})))
		valid(t, s)
		if body := s.Requests()[1].Body; !strings.Contains(string(body), c.wire) {
			t.Errorf("%s: the next request has no %s:\n%s", c.args, c.wire, body)
		}
	}
}

// testSameIDs: a provider that counts from zero in every answer, or gives ids that it
// would not take back itself.
func testSameIDs(t *testing.T, open Open) {
	t.Helper()
	bad := []string{"effect:0", "effect:0", "", strings.Repeat("x", 200), "call_1", "t", "t"}
	steps := make([]Step, 0, len(bad))
	for _, id := range bad {
		steps = append(steps, Step{Tools: []ToolCall{{ID: id, Name: "effect"}, {ID: id, Name: "functions.echo"}}})
	}
	s := Serve(t, Scenario{Steps: steps})
	m := open(t, Config{URL: s.URL})
	r := ask()
	seen := map[string]bool{}
	for range bad {
		a := call(t, m, r)
		calls := a.Calls()
		if len(calls) != 2 {
			t.Fatalf("calls %+v", calls)
		}
		for _, c := range calls {
			if seen[c.ID] {
				t.Errorf("the id %q came twice", c.ID)
			}
			seen[c.ID] = true
		}
		r.Messages = append(r.Messages, a.Message, model.Results(model.Result{Call: calls[0].ID}, model.Result{Call: calls[1].ID}))
	}
	call(t, m, r)
	valid(t, s)
}

func testLength(t *testing.T, open Open) {
	t.Helper()
	cut, whole := `{"step": 1`, `{"step": 1}`
	for _, args := range []string{cut, whole} {
		s := Serve(t, Scenario{Steps: []Step{{Stop: "max_tokens", Tools: []ToolCall{{ID: "c1", Name: "effect", ArgsRaw: &args}}}}})
		m := open(t, Config{URL: s.URL})
		a := call(t, m, ask())
		if a.Stop != model.Length || len(a.Calls()) != 0 || len(a.CutCalls()) != 1 {
			t.Fatalf("stop %s, calls %+v, cut %+v", a.Stop, a.Calls(), a.CutCalls())
		}
		call(t, m, ask(a.Message, model.Results(model.Result{Call: "c1", Text: "cut off by the output limit", Error: true})))
		valid(t, s)
	}
	s := Serve(t, Scenario{Steps: []Step{{Text: "I will not", Stop: "refusal"}}})
	if a := call(t, open(t, Config{URL: s.URL}), ask()); a.Stop != model.Refusal {
		t.Errorf("a refusal stops as %s", a.Stop)
	}
}

func testCut(t *testing.T, open Open) {
	t.Helper()
	for _, step := range []Step{
		{Text: "I will now create the file", Cut: true},
		{Text: "I will", Tools: []ToolCall{{ID: "c1", Name: "effect", Input: []byte(`{"step":1}`)}}, Cut: true},
	} {
		s := Serve(t, Scenario{Steps: []Step{step, {Text: "recovered"}}})
		m := open(t, Config{URL: s.URL})
		e := failure(t, m, ask())
		if e.Kind != model.Cut || !e.Retryable() || e.Partial != step.Text {
			t.Errorf("kind %s, partial %q", e.Kind, e.Partial)
		}
		if a := call(t, m, ask()); a.Message.Text() != "recovered" {
			t.Errorf("then it answered %q", a.Message.Text())
		}
	}
}

func testCanceled(t *testing.T, open Open) {
	t.Helper()
	s := Serve(t, Scenario{Steps: []Step{{Text: "a long answer that stops in the middle", Stall: true}}})
	m := open(t, Config{URL: s.URL})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("a person stopped it")
	a, err := m.Call(ctx, ask(), func(model.Delta) { cancel(cause) })
	if a != nil || !errors.Is(err, cause) && !errors.Is(err, context.Canceled) || model.AsError(err) != nil {
		t.Errorf("got %v and %v, want the context's error", a, err)
	}
}

func testIdle(t *testing.T, open Open) {
	t.Helper()
	s := Serve(t, Scenario{Steps: []Step{{Text: "half of it", Stall: true}}})
	m := open(t, Config{URL: s.URL, Idle: 100 * time.Millisecond})
	if e := failure(t, m, ask()); e.Kind != model.Cut || e.Partial != "half of it" || !strings.Contains(e.Message, "100ms") {
		t.Errorf("a stream that stalls is %v, partial %q", e, e.Partial)
	}
	s = Serve(t, Scenario{Steps: []Step{{Hang: true}, {Hang: true}}})
	m = open(t, Config{URL: s.URL, Idle: 100 * time.Millisecond})
	if e := failure(t, m, ask()); e.Kind != model.Transient || !strings.Contains(e.Message, "100ms") {
		t.Errorf("a service that says nothing is %v", e)
	}
	cause := errors.New("a person stopped it")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
	if _, err := m.Call(ctx, ask(), nil); !errors.Is(err, cause) {
		t.Errorf("canceled while nothing came: %v", err)
	}
}

func testInvalid(t *testing.T, open Open) {
	t.Helper()
	s := Serve(t, Scenario{})
	m := open(t, Config{URL: s.URL})
	orphan := model.Message{Role: model.Assistant, Parts: []model.Part{{Call: &model.Call{ID: "a", Name: "effect"}}}}
	for name, r := range map[string]*model.Request{
		"nothing":             {},
		"call without result": ask(orphan),
		"tool twice":          {Messages: ask().Messages, Tools: append(tools(), tools()...)},
	} {
		if e := failure(t, m, r); e.Kind != model.Invalid {
			t.Errorf("%s: %v", name, e)
		}
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func testAny(t *testing.T, open Open) {
	t.Helper()
	s := Serve(t, Scenario{})
	m := open(t, Config{URL: s.URL})
	rapid.Check(t, func(rt *rapid.T) {
		r := ask()
		r.Messages = Messages(rt)
		r.Cache = rapid.Bool().Draw(rt, "cache")
		if _, err := m.Call(t.Context(), r, nil); err != nil {
			rt.Fatalf("%v", err)
		}
	})
	valid(t, s)
}

func testConcurrent(t *testing.T, open Open) {
	t.Helper()
	calls := make([]ToolCall, 50)
	for i := range calls {
		calls[i] = ToolCall{ID: fmt.Sprintf("c%d", i), Name: "effect", Input: fmt.Appendf(nil, `{"step":%d}`, i)}
	}
	s := Serve(t, Scenario{Steps: []Step{{Tools: calls}}, After: "repeat_last"})
	m := open(t, Config{URL: s.URL})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			a, err := m.Call(t.Context(), ask(), func(model.Delta) {})
			if err != nil || len(a.Calls()) != 50 || a.Calls()[49].Args != `{"step":49}` {
				t.Errorf("%v, answer %+v", err, a)
			}
		})
	}
	wg.Wait()
	valid(t, s)
}
