package anthropic_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/model/anthropic"
	"github.com/stint-dev/stint/model/modeltest"
)

func open(tb testing.TB, c modeltest.Config) model.Model {
	tb.Helper()
	m, err := anthropic.New(anthropic.Options{Model: "mock", BaseURL: c.URL, Key: c.Key, Idle: c.Idle})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func TestModel(t *testing.T) { modeltest.Test(t, open) }

func TestWire(t *testing.T) {
	modeltest.Golden(t, "testdata/wire.txt", modeltest.Transcript(t, open), *update)
}

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

func canned(tb testing.TB, stream string) model.Model {
	tb.Helper()
	m, err := anthropic.New(anthropic.Options{Model: "mock", Client: modeltest.Canned([]byte(stream))})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func prompt() *model.Request {
	return &model.Request{Messages: []model.Message{model.Text(model.User, "do it")}}
}

const files = "../modeltest/testdata/f/"

// Streams that users reported: what the first answer has to be, and that the second is
// the scenario's.
func TestReported(t *testing.T) {
	for file, want := range map[string]struct {
		kind  model.Kind // of the error, if it is one
		stop  model.Stop
		calls int // that may be executed
		cut   int // that may not
	}{
		"overloaded-midstream": {kind: model.Overloaded},
		"cut-in-text":          {kind: model.Cut},
		"cut-in-tool":          {kind: model.Cut},
		"max-tokens-in-tool":   {stop: model.Length, cut: 1},
		"empty-args":           {stop: model.ToolUse, calls: 1},
		"permanent-400":        {kind: model.Invalid},
	} {
		t.Run(file, func(t *testing.T) {
			s := modeltest.Serve(t, modeltest.Load(t, files+file+".scenario.json"))
			m := open(t, modeltest.Config{URL: s.URL})
			a, err := m.Call(t.Context(), prompt(), nil)
			if e := model.AsError(err); want.kind != "" {
				if e == nil || e.Kind != want.kind || a != nil {
					t.Fatalf("got %v and %v, want %s", a, err, want.kind)
				}
				if file == "cut-in-text" && e.Partial != "I will now create the fi" {
					t.Errorf("the partial is %q", e.Partial)
				}
				if e.Kind.Retryable() && e.Usage != (model.Usage{Input: 10, Output: 1}) {
					t.Errorf("what was used is %+v", e.Usage)
				}
				return
			}
			if err != nil || a.Stop != want.stop || len(a.Calls()) != want.calls || len(a.CutCalls()) != want.cut {
				t.Fatalf("got %+v and %v", a, err)
			}
			for _, c := range a.Calls() {
				if c.Args.Check() != nil || c.Args.Object() != "{}" {
					t.Errorf("the arguments are %q", c.Args)
				}
			}
		})
	}
}

// A provider that counts its calls from zero in each answer: both are answered.
func TestReportedIDs(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Load(t, files+"dup-ids-across-turns.scenario.json"))
	m := open(t, modeltest.Config{URL: s.URL})
	r := prompt()
	for want := range 3 {
		a, err := m.Call(t.Context(), r, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", want, err)
		}
		if want == 2 {
			if a.Message.Text() != "finished" || len(a.Calls()) != 0 {
				t.Errorf("the last answer is %+v", a)
			}
			break
		}
		if len(a.Calls()) != 1 || string(a.Calls()[0].Args) != fmt.Sprintf("{\n      \"step\": %d\n     }", want+1) {
			t.Fatalf("answer %d has the calls %+v", want, a.Calls())
		}
		r.Messages = append(r.Messages, a.Message, model.Results(model.Result{Call: a.Calls()[0].ID, Text: "done"}))
	}
}

// 429 and 529 with a time to wait: nobody asks before it.
func TestReportedWaits(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Load(t, files+"retry-after-seconds.scenario.json"))
	waits := 0
	m := &model.Paced{Model: open(t, modeltest.Config{URL: s.URL}), Pace: model.NewPace(model.PaceConfig{}), Waits: func(w model.Wait) {
		if !w.Until.IsZero() {
			waits++
		}
	}}
	a, err := m.Call(t.Context(), prompt(), nil)
	if err != nil || a.Message.Text() != "recovered" || waits != 2 {
		t.Fatalf("%+v, %v after %d waits", a, err, waits)
	}
	r := s.Requests()
	if len(r) != 3 || r[1].At.Sub(r[0].At) < 3*time.Second || r[2].At.Sub(r[1].At) < 2*time.Second {
		t.Errorf("%d requests, the last after %s", len(r), r[len(r)-1].At.Sub(r[0].At))
	}
}

const thinking = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"is 1 < 2? \ud83d"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"\ude42"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln+/=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"opaque=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"effect","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"q\":\"a\ud83d"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\ude42 \ud83d\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}}

event: message_stop
data: {"type":"message_stop"}

`

// Thinking goes back with its signature, a character that was cut in two is whole, and
// half of one stays visible as what it is.
func TestThinking(t *testing.T) {
	var thought strings.Builder
	a, err := canned(t, thinking).Call(t.Context(), prompt(), func(d model.Delta) {
		if d.Thought {
			thought.WriteString(d.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	p := a.Message.Parts
	if len(p) != 3 || p[0].Opaque == nil || p[1].Opaque == nil || p[2].Call == nil {
		t.Fatalf("parts %+v", p)
	}
	if got := p[0].Opaque.Data; !strings.Contains(got, `"signature":"c2ln+/=="`) || !strings.Contains(got, "2? 🙂") {
		t.Errorf("the thinking is %s", got)
	}
	if p[1].Opaque.Data != `{"type":"redacted_thinking","data":"opaque=="}` {
		t.Errorf("the redacted thinking is %s", p[1].Opaque.Data)
	}
	if got := p[2].Call.Args; got != `{"q":"a🙂 \ud83d"}` || got.Check() == nil {
		t.Errorf("the arguments are %s, and their fault is %v", got, got.Check())
	}
	if !strings.HasPrefix(thought.String(), "is 1 < 2?") {
		t.Errorf("heard was %q", thought.String())
	}
	s := modeltest.Serve(t, modeltest.Scenario{})
	r := prompt()
	r.Messages = append(r.Messages, a.Message, model.Results(model.Result{Call: "toolu_1"}))
	if _, err := open(t, modeltest.Config{URL: s.URL}).Call(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	if body := string(s.Requests()[0].Body); !strings.Contains(body, p[0].Opaque.Data) || !strings.Contains(body, p[1].Opaque.Data) {
		t.Errorf("the thinking went back changed:\n%s", body)
	}
	other, err := anthropic.New(anthropic.Options{Model: "other", BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Call(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	if body := string(s.Requests()[1].Body); strings.Contains(body, "thinking") {
		t.Errorf("another model got the thinking:\n%s", body)
	}
}

// A stream that is cut after any of its bytes is no answer, and neither is one whose
// events have no names, which some gateways leave out, until it is whole.
func TestEveryCut(t *testing.T) {
	nameless := strings.Join(strings.Split(thinking, "event: message_start\n"), "")
	for _, name := range []string{"content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"} {
		nameless = strings.ReplaceAll(nameless, "event: "+name+"\n", "")
	}
	for _, whole := range []string{thinking, nameless, strings.ReplaceAll(thinking, "\n", "\r\n")} {
		end := len(strings.TrimRight(whole, "\r\n"))
		for n := range len(whole) {
			_, err := canned(t, whole[:n]).Call(t.Context(), prompt(), nil)
			if e := model.AsError(err); n < end && (e == nil || e.Kind != model.Cut) {
				t.Fatalf("cut after %d of %d bytes: %v", n, len(whole), err)
			}
		}
		a, err := canned(t, whole).Call(t.Context(), prompt(), nil)
		if err != nil || len(a.Calls()) != 1 {
			t.Fatalf("whole: %+v, %v", a, err)
		}
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]anthropic.Options{
		"no model":      {},
		"no scheme":     {Model: "m", BaseURL: "api.example.com"},
		"key in URL":    {Model: "m", BaseURL: "http://u:secret@127.0.0.1"},
		"extra array":   {Model: "m", Extra: []byte(`[]`)},
		"extra of ours": {Model: "m", Extra: []byte(`{"messages":[]}`)},
	} {
		if _, err := anthropic.New(o); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := modeltest.Serve(t, modeltest.Scenario{})
	t.Setenv("ANTHROPIC_API_KEY", "from-the-environment")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	m, err := anthropic.New(anthropic.Options{Model: "m", BaseURL: s.URL + "/v1/", Extra: []byte(`{"thinking":{"type":"disabled"}}`),
		Headers: map[string][]string{"X-Team": {"a"}}, Bearer: true, Key: func() (string, error) { return "kkkk", nil }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Call(t.Context(), prompt(), nil); err != nil {
		t.Fatal(err)
	}
	got := s.Requests()[0]
	if got.Path != "/v1/messages" || got.Header.Get("X-Team") != "a" || got.Header.Get("Authorization") != "Bearer kkkk" ||
		got.Header.Get("X-Api-Key") != "" || !strings.Contains(string(got.Body), `"thinking":{"type":"disabled"}`) {
		t.Errorf("%s %v\n%s", got.Path, got.Header, got.Body)
	}
}

// answered is what must hold of whatever came: an answer that can be sent again, or an
// error of one of the kinds.
func answered(tb testing.TB, stream string) {
	tb.Helper()
	r := prompt()
	a, err := canned(tb, stream).Call(tb.Context(), r, func(model.Delta) {})
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
	events := strings.SplitAfter(thinking, "\n\n")
	events = append(events, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", "event: ping\ndata: {}\n\n", "data: null\n\n",
		"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"input\":{\"a\":1}}}\n\n",
		"data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
		"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":null},\"usage\":null}\n\n")
	member := regexp.MustCompile(`"(index|type|delta|content_block|id|name|input|usage|thinking|text|partial_json)":`)
	rapid.Check(t, func(rt *rapid.T) {
		var stream strings.Builder
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(events)-1), 1, 12).Draw(rt, "events") {
			e := events[i]
			if at := member.FindAllStringIndex(e, -1); len(at) > 0 && rapid.IntRange(0, 3).Draw(rt, "spoil") == 0 {
				m := at[rapid.IntRange(0, len(at)-1).Draw(rt, "member")]
				e = e[:m[0]] + `"x":` + e[m[1]:]
			}
			stream.WriteString(e)
		}
		answered(t, stream.String()+"data: {\"type\":\"message_stop\"}\n\n")
	})
}

func FuzzStream(f *testing.F) {
	f.Add(thinking)
	for _, name := range []string{"cut-in-text", "cut-in-tool", "empty-args", "max-tokens-in-tool", "overloaded-midstream"} {
		b, err := os.ReadFile(files + name + ".sse")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add("data: {\"type\":\"content_block_delta\",\"index\":7}\n\n")
	f.Add("data:{\"type\":\"content_block_start\"}\n\ndata:{\"type\":\"message_stop\"}\n\n")
	f.Fuzz(func(t *testing.T, stream string) { answered(t, stream) })
}
