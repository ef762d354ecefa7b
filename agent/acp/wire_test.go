package acp_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stint-dev/stint/agent/acp"
	"github.com/stint-dev/stint/internal/jsonx"
)

func news(body string) []byte {
	return []byte(`{"sessionId":"s","update":` + body + `}`)
}

// What an agent says becomes steps, whatever it leaves out.
func TestHear(t *testing.T) {
	for name, c := range map[string]struct {
		said []string
		want acp.Heard
	}{
		"numbers keep their digits": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"execute","title":"t","status":"in_progress","rawInput":{"n":9007199254740993, "x":1e400}}`,
		}, acp.Heard{Name: "execute", Effect: "once", Input: []byte(`{"n":9007199254740993, "x":1e400}`)}},
		"no kind": {[]string{`{"sessionUpdate":"tool_call","toolCallId":"1","title":"do\u001b[31m\nit","status":"in_progress"}`},
			acp.Heard{Name: "do[31m it", Effect: "once", Input: []byte("{\"title\":\"do[31m\\nit\"}")}},
		"nothing": {[]string{`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed"}`},
			acp.Heard{Name: "other", Effect: "once", Input: []byte(`{}`), Result: []byte(`{"status":"completed"}`)}},
		"its own books": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"c7","kind":"execute","title":"t","status":"in_progress","rawInput":{"call_id":"c7","turn_id":"x","started_at_ms":5,"command":["ls"]}}`,
		}, acp.Heard{Name: "execute", Effect: "once", Input: []byte(`{"command":["ls"]}`)}},
		"no books of its own": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"c7","kind":"execute","title":"t","status":"in_progress","rawInput":{"call_id":"c8","turn_id":"x"}}`,
		}, acp.Heard{Name: "execute", Effect: "once", Input: []byte(`{"call_id":"c8","turn_id":"x"}`)}},
		"a raw output": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"search","title":"t","rawInput":{"q":1}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed","rawOutput":{"output":"none"}}`,
		}, acp.Heard{Name: "search", Effect: "read", Input: []byte(`{"q":1}`), Result: []byte(`{"status":"failed","output":"none"}`)}},
		"content before a raw output": {[]string{
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","kind":"read","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a"}},{"type":"terminal","terminalId":"x"}],"rawOutput":"b"}`,
		}, acp.Heard{Name: "read", Effect: "read", Input: []byte(`{}`), Result: []byte(`{"status":"completed","output":"a"}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			var bodies [][]byte
			for _, s := range c.said {
				bodies = append(bodies, news(s))
			}
			_, got := acp.Hear(bodies)
			if len(got) != 1 || got[0].Name != c.want.Name || got[0].Effect != c.want.Effect || !bytes.Equal(got[0].Input, c.want.Input) || !bytes.Equal(got[0].Result, c.want.Result) {
				t.Errorf("%+q, want %+q", got, c.want)
			}
		})
	}
}

func TestSameCall(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[2]}`, `{ "b":[2], "a":1 }`, true},
		{`{"a":1}`, `{"a":2}`, false},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{``, ``, true},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, false},
	} {
		if got := acp.SameCall("x", []byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}

func TestEnvelope(t *testing.T) {
	for text, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"bb`: "7 x",
		`{"method":"x","id":"q","params":["bb`:                   `"q" x`,
		`{"jsonrpc":"2.0","id":7,"result":{"a`:                   "7 ",
		`{"jsonrpc":"2.0","method":"x","params":{"id":1,"meth`:   " x",
		`[{"id":1}`: " ",
		``:          " ",
		`{"id":`:    " ",
	} {
		if id, method := acp.Envelope([]byte(text)); string(id)+" "+method != want {
			t.Errorf("%s: %s %s", text, id, method)
		}
	}
}

func TestChanged(t *testing.T) {
	for _, c := range []struct {
		before, after  string
		removed, added int
	}{
		{"", "a\nb\n", 0, 2}, {"a\nb\n", "", 2, 0}, {"a\nb\nc\n", "a\nx\ny\nc\n", 1, 2}, {"a", "a", 0, 0}, {"a", "a\n", 1, 1}, {"a\na\n", "a\n", 1, 0},
	} {
		if r, a := acp.Changed(c.before, c.after); r != c.removed || a != c.added {
			t.Errorf("%q to %q: -%d +%d", c.before, c.after, r, a)
		}
	}
}

// Whatever an agent says, a journal can hold what becomes of it.
func FuzzHear(f *testing.F) {
	for _, s := range []string{
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}`,
		`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"edit","title":"t","status":"in_progress","rawInput":{"a":1},"locations":[{"path":"x"}],"content":[{"type":"diff","path":"p","oldText":"a","newText":"b"}]}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","rawOutput":{"error":"e"}}`,
		`{"sessionUpdate":"plan","entries":[{"content":"c","status":"s","priority":"p"}]}`,
		`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.5,"currency":"USD"}}`,
	} {
		f.Add(news(s))
	}
	f.Add([]byte(`{"sessionId":"s","toolCall":{"toolCallId":"1","rawInput":[1,2,{"a":1,"a":2}]},"options":[{"optionId":"a","kind":"allow_once"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		text, heard := acp.Hear(bytes.Split(b, []byte("\n")))
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0x1b) {
			t.Errorf("text %q", text)
		}
		for _, h := range heard {
			if n := utf8.RuneCountInString(h.Name); n < 1 || n > 200 || !utf8.ValidString(h.Name+h.Ask) || len(h.Ask) > 4000 || strings.ContainsAny(h.Ask, "\n\x1b") {
				t.Errorf("%q asks %q", h.Name, h.Ask)
			}
			if err := jsonx.Check(h.Input, jsonx.Limits{}); err != nil {
				t.Errorf("input %q: %v", h.Input, err)
			}
			if h.Result != nil && jsonx.Check(h.Result, jsonx.Limits{}) != nil {
				t.Errorf("result %q", h.Result)
			}
		}
	})
}
