package openai_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/model/modeltest"
	"github.com/stint-dev/stint/model/openai"
)

func opener(api openai.API) modeltest.Open {
	return func(tb testing.TB, c modeltest.Config) model.Model {
		tb.Helper()
		m, err := openai.New(openai.Options{Model: "mock", API: api, BaseURL: c.URL + "/v1", Key: c.Key, Idle: c.Idle})
		if err != nil {
			tb.Fatal(err)
		}
		return m
	}
}

func TestChat(t *testing.T)      { modeltest.Test(t, opener(openai.Chat)) }
func TestResponses(t *testing.T) { modeltest.Test(t, opener(openai.Responses)) }

func TestWire(t *testing.T) {
	for _, api := range []openai.API{openai.Chat, openai.Responses} {
		modeltest.Golden(t, "testdata/"+string(api)+".txt", modeltest.Transcript(t, opener(api)), *update)
	}
}

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

func canned(tb testing.TB, api openai.API, stream string) model.Model {
	tb.Helper()
	m, err := openai.New(openai.Options{Model: "mock", API: api, Client: modeltest.Canned([]byte(stream))})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func prompt() *model.Request {
	return &model.Request{Messages: []model.Message{model.Text(model.User, "do it")}}
}

const files = "../modeltest/testdata/f/"

// Streams that users reported.
func TestReported(t *testing.T) {
	for file, want := range map[string]struct {
		kind  model.Kind // of the error, if it is one
		stop  model.Stop
		text  string
		calls int // that may be executed
		cut   int // that may not
		usage model.Usage
	}{
		"openai-no-done":       {kind: model.Cut, text: "half an ans"},
		"openai-empty-choices": {stop: model.EndTurn, text: "hello", usage: model.Usage{Input: 3, Output: 4}},
		"openai-bad-args":      {stop: model.ToolUse, calls: 1},
		"openai-length-tool":   {stop: model.Length, cut: 1},
		"permanent-400":        {kind: model.Invalid},
	} {
		t.Run(file, func(t *testing.T) {
			s := modeltest.Serve(t, modeltest.Load(t, files+file+".scenario.json"))
			a, err := opener(openai.Chat)(t, modeltest.Config{URL: s.URL}).Call(t.Context(), prompt(), nil)
			if want.kind != "" {
				if e := model.AsError(err); e == nil || e.Kind != want.kind || e.Partial != want.text || a != nil {
					t.Fatalf("got %v and %v, want %s", a, err, want.kind)
				}
				return
			}
			if err != nil || a.Stop != want.stop || a.Message.Text() != want.text || len(a.Calls()) != want.calls || len(a.CutCalls()) != want.cut || a.Usage != want.usage {
				t.Fatalf("got %+v and %v", a, err)
			}
			for _, c := range a.Message.Calls() {
				if c.Args.Check() == nil {
					t.Errorf("the arguments %q pass", c.Args)
				}
			}
		})
	}
}

// chunks is a stream of data lines.
func chunks(data ...string) string {
	return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n"
}

// What services that speak Chat Completions send, and how it is read.
func TestDialects(t *testing.T) {
	const stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	const hello = `{"choices":[{"index":0,"delta":{"content":"hello"}}]}`
	tool := func(s string) string { return `{"choices":[{"index":0,"delta":{"tool_calls":[` + s + `]}}]}` }
	for name, c := range map[string]struct {
		stream string
		text   string
		calls  string // name(arguments) of each
		usage  model.Usage
	}{
		"error null in good chunks": {stream: chunks(`{"error":null,"choices":[{"index":0,"delta":{"content":"hello"}}]}`, stop, "[DONE]"), text: "hello"},
		"no DONE after a finish":    {stream: chunks(hello, stop), text: "hello"},
		"no blank line at the end":  {stream: strings.TrimRight(chunks(hello, stop, "[DONE]"), "\n"), text: "hello"},
		"usage null":                {stream: chunks(`{"usage":null,"choices":[{"index":0,"delta":{"content":"hello"}}]}`, stop, "[DONE]"), text: "hello"},
		"usage with the last chunk": {stream: chunks(hello, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}`),
			text: "hello", usage: model.Usage{Input: 5, Output: 2, CacheRead: 4}},
		"comments and CRLF":      {stream: strings.ReplaceAll(": OPENROUTER PROCESSING\n\n"+chunks(hello, stop, "[DONE]"), "\n", "\r\n"), text: "hello"},
		"content null":           {stream: chunks(`{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"refusal":null,"tool_calls":null}}]}`, hello, stop), text: "hello"},
		"a second choice":        {stream: chunks(hello, `{"choices":[{"index":1,"delta":{"content":"other"}}]}`, stop), text: "hello"},
		"a character in two":     {stream: chunks(`{"choices":[{"index":0,"delta":{"content":"a\ud83d"}}]}`, `{"choices":[{"index":0,"delta":{"content":"\ude42b"}}]}`, stop), text: "a🙂b"},
		"stop beside calls":      {stream: chunks(tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), stop), calls: "f({})"},
		"calls without ids":      {stream: chunks(tool(`{"index":0,"function":{"name":"f","arguments":"{\"a\""}}`), tool(`{"index":0,"function":{"arguments":":1}"}}`), tool(`{"index":1,"function":{"name":"g","arguments":"{}"}}`), stop), calls: `f({"a":1}) g({})`},
		"all calls with index 0": {stream: chunks(tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), tool(`{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}`), stop), calls: "f({}) g({})"},
		"calls without index":    {stream: chunks(tool(`{"id":"a","function":{"name":"f","arguments":"{"}}`), tool(`{"function":{"arguments":"}"}}`), tool(`{"id":"b","function":{"name":"g","arguments":"{}"}}`), stop), calls: "f({}) g({})"},
		"arguments as an object": {stream: chunks(tool(`{"index":0,"id":"a","function":{"name":"f","arguments":{"n": 9007199254740993}}}`), stop), calls: `f({"n": 9007199254740993})`},
		"two calls in one chunk": {stream: chunks(tool(`{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g","arguments":""}}`), stop), calls: "f() g()"},
		"numbers as strings":     {stream: chunks(`{"created":"12","choices":[{"index":0,"delta":{"content":"hello"}}]}`, stop), text: "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := canned(t, openai.Chat, c.stream).Call(t.Context(), prompt(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var calls []string
			for _, call := range a.Calls() {
				calls = append(calls, call.Name+"("+string(call.Args)+")")
			}
			if a.Message.Text() != c.text || strings.Join(calls, " ") != c.calls || a.Usage != c.usage {
				t.Errorf("text %q, calls %q, usage %+v", a.Message.Text(), calls, a.Usage)
			}
		})
	}
	for name, stream := range map[string]string{
		"DONE without a finish": chunks(hello, "[DONE]"),
		"nothing":               "",
		"no JSON":               chunks(hello, `{"choices":[{"ind`, stop),
	} {
		if a, err := canned(t, openai.Chat, stream).Call(t.Context(), prompt(), nil); model.AsError(err) == nil || model.AsError(err).Kind != model.Cut {
			t.Errorf("%s is %v and %v, want it cut", name, a, err)
		}
	}
}

const reasoned = `event: response.created
data: {"type":"response.created","response":{"id":"resp_1","model":"m","status":"in_progress","error":null}}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"a<b>+/=="}}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":"call_a","name":"f","arguments":"{\"a\":1}","status":"completed"}}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","model":"m","status":"completed","error":null,"incomplete_details":null,"usage":{"input_tokens":9,"output_tokens":3,"input_tokens_details":{"cached_tokens":2}}}}

`

// Reasoning goes back as it came, to Responses and not to Chat Completions.
func TestReasoning(t *testing.T) {
	a, err := canned(t, openai.Responses, reasoned).Call(t.Context(), prompt(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Message.Parts) != 2 || len(a.Calls()) != 1 || a.Usage != (model.Usage{Input: 7, Output: 3, CacheRead: 2}) {
		t.Fatalf("%+v", a)
	}
	const item = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"a<b>+/=="}`
	for api, want := range map[openai.API]bool{openai.Responses: true, openai.Chat: false} {
		s := modeltest.Serve(t, modeltest.Scenario{})
		r := prompt()
		r.Messages = append(r.Messages, a.Message, model.Results(model.Result{Call: "call_a"}))
		if _, err := opener(api)(t, modeltest.Config{URL: s.URL}).Call(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(s.Requests()[0].Body), item); got != want {
			t.Errorf("%s: the reasoning was sent: %v\n%s", api, got, s.Requests()[0].Body)
		}
	}
}

// What an open model thought before its call goes back in the same member, to it alone.
func TestChatReasoning(t *testing.T) {
	stream := chunks(`{"choices":[{"index":0,"delta":{"reasoning_content":"is 1 < 2? \ud83d"}}]}`, `{"choices":[{"index":0,"delta":{"reasoning_content":"\ude42"}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`)
	a, err := canned(t, openai.Chat, stream).Call(t.Context(), prompt(), nil)
	if err != nil || len(a.Message.Parts) != 2 || a.Message.Parts[0].Opaque == nil {
		t.Fatalf("%+v, %v", a, err)
	}
	s := modeltest.Serve(t, modeltest.Scenario{})
	r := prompt()
	r.Messages = append(r.Messages, a.Message, model.Results(model.Result{Call: "a"}))
	for i, name := range []string{"mock", "other"} {
		m, err := openai.New(openai.Options{Model: name, BaseURL: s.URL + "/v1"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Call(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(s.Requests()[i].Body), `"reasoning_content":"is 1 < 2? 🙂"`); got != (name == "mock") {
			t.Errorf("%s got the thoughts: %v\n%s", name, got, s.Requests()[i].Body)
		}
	}
}

// A stream that is cut after any of its bytes is an answer only if it was whole.
func TestEveryCut(t *testing.T) {
	chat := chunks(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":\"é\"}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, "[DONE]")
	for api, c := range map[openai.API]struct {
		stream string
		whole  int
	}{
		openai.Chat:      {chat, strings.Index(chat, `"tool_calls"}]}`) + len(`"tool_calls"}]}`)},
		openai.Responses: {reasoned, len(strings.TrimRight(reasoned, "\n"))},
	} {
		for n := range len(c.stream) {
			a, err := canned(t, api, c.stream[:n]).Call(t.Context(), prompt(), nil)
			e := model.AsError(err)
			if n < c.whole && (e == nil || e.Kind != model.Cut) || e == nil && (len(a.Calls()) != 1 || a.Calls()[0].Args.Check() != nil) {
				t.Fatalf("%s cut after %d of %d bytes: %+v, %v", api, n, len(c.stream), a, err)
			}
		}
		if _, err := canned(t, api, c.stream).Call(t.Context(), prompt(), nil); err != nil {
			t.Errorf("%s whole: %v", api, err)
		}
	}
}

// A service that keeps the connection open after the finish delays the answer, and does
// not lose it.
func TestOpenAfterFinish(t *testing.T) {
	for idle := 200 * time.Millisecond; ; idle *= 4 {
		s := modeltest.Serve(t, modeltest.Scenario{Steps: []modeltest.Step{{Text: "hello", Linger: true}}})
		a, err := opener(openai.Chat)(t, modeltest.Config{URL: s.URL, Idle: idle}).Call(t.Context(), prompt(), nil)
		if err != nil && idle < 10*time.Second { // a busy machine may have let that much pass between two words
			continue
		}
		if err != nil || a.Message.Text() != "hello" {
			t.Errorf("got %+v, %v", a, err)
		}
		return
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]openai.Options{
		"no model":      {},
		"no such API":   {Model: "m", API: "assistants"},
		"no scheme":     {Model: "m", BaseURL: "api.example.com"},
		"key in URL":    {Model: "m", BaseURL: "https://example.com/v1?key=secret"},
		"extra of ours": {Model: "m", Extra: []byte(`{"stream":false}`)},
	} {
		if _, err := openai.New(o); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := modeltest.Serve(t, modeltest.Scenario{})
	t.Setenv("OPENAI_API_KEY", "from-the-environment")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("OPENAI_ORG_ID", "from-the-environment")
	m, err := openai.New(openai.Options{Model: "m", BaseURL: s.URL + "/v1/", Headers: map[string][]string{"X-Team": {"a"}}})
	if err != nil {
		t.Fatal(err)
	}
	r := prompt()
	r.MaxTokens = 7
	if _, err := m.Call(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	got := s.Requests()[0]
	if got.Path != "/v1/chat/completions" || got.Header.Get("X-Team") != "a" || got.Header.Get("Authorization") != "" ||
		got.Header.Get("Openai-Organization") != "" || !strings.Contains(string(got.Body), `"max_tokens":7`) {
		t.Errorf("%s %v\n%s", got.Path, got.Header, got.Body)
	}
}

// answered is what must hold of whatever came: an answer that can be sent again, or an
// error of one of the kinds.
func answered(tb testing.TB, api openai.API, stream string) {
	tb.Helper()
	r := prompt()
	a, err := canned(tb, api, stream).Call(tb.Context(), r, func(model.Delta) {})
	if err != nil {
		if e := model.AsError(err); e == nil || e.Kind == "" || a != nil {
			tb.Fatalf("%v, %v", a, err)
		}
		return
	}
	if len(a.Message.Parts) == 0 {
		return
	}
	r.Messages = append(r.Messages, a.Message)
	var results []model.Result
	for _, c := range a.Message.Calls() {
		results = append(results, model.Result{Call: c.ID})
	}
	if len(results) > 0 {
		r.Messages = append(r.Messages, model.Results(results...))
	}
	if err := model.Valid(r.Messages); err != nil {
		tb.Fatalf("%v\n%+v", err, a.Message)
	}
}

// Events in any order, any number of times, with any of their members gone.
func TestAnyEvents(t *testing.T) {
	chat := []string{
		`{"choices":[]}`, `{"choices":null}`, `null`, `{"choices":[{"index":0,"delta":null}]}`, `{"choices":[{"index":0}]}`,
		`{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"hello","reasoning":"hm"}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\""}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":3,"id":"b","function":{"name":"g.h","arguments":{}}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":-1,"function":null}]},"finish_reason":"length"}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":"9","completion_tokens":-2}}`,
	}
	items := strings.SplitAfter(reasoned, "\n\n")
	items = append(items, "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"x\"},{\"type\":\"refusal\",\"refusal\":null}]}}\n\n",
		"data: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\n", "data: {\"type\":\"response.incomplete\"}\n\n", "data: {\"type\":\"response.output_item.done\"}\n\n")
	member := regexp.MustCompile(`"(index|type|delta|item|id|call_id|name|arguments|usage|response|content|choices|function|tool_calls)":`)
	rapid.Check(t, func(rt *rapid.T) {
		spoil := func(e string) string {
			if at := member.FindAllStringIndex(e, -1); len(at) > 0 && rapid.IntRange(0, 3).Draw(rt, "spoil") == 0 {
				m := at[rapid.IntRange(0, len(at)-1).Draw(rt, "member")]
				return e[:m[0]] + `"x":` + e[m[1]:]
			}
			return e
		}
		var stream strings.Builder
		for _, e := range rapid.SliceOfN(rapid.SampledFrom(chat), 1, 8).Draw(rt, "chunks") {
			stream.WriteString(chunks(spoil(e)))
		}
		answered(t, openai.Chat, stream.String()+chunks(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`))
		stream.Reset()
		for _, e := range rapid.SliceOfN(rapid.SampledFrom(items), 1, 8).Draw(rt, "items") {
			stream.WriteString(spoil(e))
		}
		answered(t, openai.Responses, stream.String()+items[3])
	})
}

func FuzzStream(f *testing.F) {
	f.Add(reasoned)
	for _, name := range []string{"openai-bad-args", "openai-empty-choices", "openai-length-tool", "openai-no-done"} {
		b, err := os.ReadFile(files + name + ".sse")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Fuzz(func(t *testing.T, stream string) {
		answered(t, openai.Chat, stream)
		answered(t, openai.Responses, stream)
	})
}
