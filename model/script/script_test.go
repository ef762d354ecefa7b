package script_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/model/script"
)

func parse(tb testing.TB, s string) *script.Model {
	tb.Helper()
	m, err := script.Parse([]byte(s))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func prompt() *model.Request {
	return &model.Request{Messages: []model.Message{model.Text(model.User, "do it")}}
}

// loop asks until the turn ends and answers every call; it returns the messages.
func loop(tb testing.TB, m model.Model, r *model.Request, answers int) []model.Message {
	tb.Helper()
	for range answers {
		a, err := m.Call(tb.Context(), r, nil)
		if err != nil {
			tb.Fatal(err)
		}
		r.Messages = append(r.Messages, a.Message)
		var results []model.Result
		for _, c := range a.Message.Calls() {
			results = append(results, model.Result{Call: c.ID, Text: "ok"})
		}
		if len(results) == 0 {
			r.Messages = append(r.Messages, model.Text(model.User, "go on"))
			continue
		}
		r.Messages = append(r.Messages, model.Results(results...))
	}
	return r.Messages
}

const three = `{"model":"demo","steps":[
	{"text":"I look.","tools":[{"name":"read","input":{ "n":9007199254740993 },"id":"effect:0"},{"name":"read","args":"{\"cut"}]},
	{"tools":[{"name":"read","id":"effect:0"}]},
	{"text":"finished","usage":{"input_tokens":7,"output_tokens":3}}]}`

// The same position gives the same answer, whatever was asked before: after a restart,
// from an earlier loop, and to many sessions at once.
func TestPositionDecides(t *testing.T) {
	first := loop(t, parse(t, three), prompt(), 4)
	if got := first[1].Parts[1].Call; got.Args != `{ "n":9007199254740993 }` || got.ID != "call_1" {
		t.Errorf("the first call is %+v", got)
	}
	if first[1].Parts[2].Call.Args.Check() == nil || first[5].Text() != "finished" || first[7].Text() != "done" {
		t.Errorf("the messages are %+v", first)
	}
	m := parse(t, three)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for n := 1; n < len(first); n += 2 {
				r := &model.Request{Messages: first[:n]}
				a, err := m.Call(t.Context(), r, nil)
				if err != nil || !reflect.DeepEqual(a.Message, first[n]) {
					t.Errorf("at %d: %+v, %v", n, a, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestStrict(t *testing.T) {
	m := parse(t, three)
	r := prompt()
	r.Messages = append(r.Messages, model.Message{Role: model.Assistant, Parts: []model.Part{{Call: &model.Call{ID: "a", Name: "read"}}}})
	if _, err := m.Call(t.Context(), r, nil); !errors.Is(err, model.Invalid) || !strings.HasPrefix(err.Error(), "demo: ") {
		t.Errorf("an open call is %v", err)
	}
}

func TestAnswer(t *testing.T) {
	m := parse(t, `{"steps":[{"text":"grüße 🙂, dies ist länger als ein Stück","thought":"hm","stop":"length"}]}`)
	var said, thought strings.Builder
	pieces := 0
	a, err := m.Call(t.Context(), prompt(), func(d model.Delta) {
		if d.Thought {
			thought.WriteString(d.Text)
			return
		}
		pieces++
		said.WriteString(d.Text)
	})
	if err != nil || m.Name() != "script" {
		t.Fatal(m.Name(), err)
	}
	if said.String() != a.Message.Text() || thought.String() != "hm" || pieces < 2 || a.Stop != model.Length || a.Usage.Input == 0 || a.Usage.Output == 0 {
		t.Errorf("said %q in %d pieces, thought %q, answer %+v", said.String(), pieces, thought.String(), a)
	}
	a.Message.Parts[0].Text = "changed"
	if b, err := m.Call(t.Context(), prompt(), nil); err != nil || b.Message.Text() != said.String() {
		t.Errorf("changing an answer changed the script: %v, %v", b, err)
	}
}

func TestErrors(t *testing.T) {
	m := parse(t, `{"after":"fail","steps":[{"text":"ok then","error":{"kind":"rate","message":"slow down","after":"2s","times":2}}]}`)
	for _, session := range []string{"a", "b"} {
		for n := range 4 {
			r := prompt()
			r.Session = session
			a, err := m.Call(t.Context(), r, nil)
			e := model.AsError(err)
			if n < 2 && (e == nil || e.Kind != model.Rate || e.After != 2*time.Second || e.Message != "slow down") || n >= 2 && (err != nil || a.Message.Text() != "ok then") {
				t.Errorf("%s, request %d: %v, %v", session, n, a, err)
			}
		}
	}
	r := prompt()
	r.Messages = append(r.Messages, model.Text(model.Assistant, "x"), model.Text(model.User, "y"))
	if _, err := m.Call(t.Context(), r, nil); !errors.Is(err, model.Invalid) {
		t.Errorf("beyond the end: %v", err)
	}
	m = parse(t, `{"steps":[{"text":"half","error":{"kind":"cut"}}]}`)
	for range 3 {
		if _, err := m.Call(t.Context(), prompt(), nil); !errors.Is(err, model.Cut) || model.AsError(err).Partial != "half" {
			t.Errorf("always cut: %v", err)
		}
	}
	m = parse(t, `{"after":"repeat","steps":[{"text":"again"}]}`)
	if got := loop(t, m, prompt(), 3)[5].Text(); got != "again" {
		t.Errorf("repeated was %q", got)
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := parse(t, `{"steps":[{"delay":"1m30s"}]}`)
		start := time.Now()
		if _, err := m.Call(t.Context(), prompt(), nil); err != nil || time.Since(start) != 90*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		stop := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stop) })
		if _, err := m.Call(ctx, prompt(), nil); !errors.Is(err, stop) {
			t.Errorf("canceled: %v", err)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	for s, want := range map[string]string{
		``:                                "EOF",
		`[]`:                              "array",
		`{} {}`:                           "follows",
		`{"step":[]}`:                     "step",
		`{"after":"loop"}`:                "after",
		`{"after":"repeat"}`:              "no step",
		`{"steps":[{},{"stop":"tools"}]}`: "steps[1]: it stops for tools",
		`{"steps":[{"stop":"eos"}]}`:      "no stop",
		`{"steps":[{"delay":"-1s"}]}`:     "negative",
		`{"steps":[{"delay":"soon"}]}`:    "soon",
		`{"steps":[{"error":{"kind":"bad luck"}}]}`:                   "no kind",
		`{"steps":[{"error":{"kind":"rate","times":-1}}]}`:            "times",
		`{"steps":[{"tools":[{"name":"a","input":{},"args":"{}"}]}]}`: "both",
	} {
		if _, err := script.Parse([]byte(s)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", s, err, want)
		}
	}
	if _, err := script.Load("testdata/none.json"); err == nil {
		t.Error("a file that is not there was read")
	}
	if m, err := script.Load("testdata/demo.json"); err != nil || m.Name() != "demo" {
		t.Errorf("the file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(three))
	f.Add([]byte(`{"after":"repeat","steps":[{"error":{"kind":"cut","times":1}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := script.Parse(b)
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // so that a delay does not hold the fuzzer
		if a, err := m.Call(ctx, prompt(), nil); a != nil && err != nil {
			t.Fatal("both an answer and an error")
		}
	})
}

// BenchmarkLoop is a session of 20 loops, two calls in each.
func BenchmarkLoop(b *testing.B) {
	m := parse(b, `{"after":"repeat","steps":[{"text":"`+strings.Repeat("x", 1024)+`","tools":[{"name":"read","input":{"a":1}},{"name":"read","input":{"a":2}}]}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if got := loop(b, m, prompt(), 20); len(got) != 41 {
			b.Fatalf("%d messages", len(got))
		}
	}
	b.ReportMetric(float64(b.N)*20/b.Elapsed().Seconds(), "loops/s")
}
