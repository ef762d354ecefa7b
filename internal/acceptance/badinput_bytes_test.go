//go:build linux

package acceptance_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/store/sqlite"
)

// everyByte is all bytes there are, which is neither text nor JSON.
func everyByte() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

// strange is data of all kinds that are hard to keep: what it is as JSON, text or
// bytes is how an agent gets it.
func strange() map[string]struct{ data, as string } {
	deep := strings.Repeat("[", 500) + strings.Repeat("]", 500)
	return map[string]struct{ data, as string }{
		"NUL":                {"a\x00b", "text"},
		"every byte":         {everyByte(), "base64"},
		"invalid UTF-8":      {"a\xffb\xc0\x80\xed\xa0\x80", "base64"},
		"a large number":     {`{"n":1e400,"m":9007199254740993.10,"k":-0.0}`, "body"},
		"duplicate keys":     {`{"a":1,"a":2}`, "text"},
		"keys alike":         {`{"tool":"rm","TOOL":"ls"}`, "body"},
		"half a surrogate":   {`{"a":"\ud800"}`, "text"},
		"escaped NUL":        {`{"a":"\u0000\ud83d\ude00"}`, "body"},
		"HTML":               {`{"a":"<script>&\u2028"}`, "body"},
		"byte order mark":    {"\ufeff{}", "text"},
		"line ends":          {"a\r\nb\n\n", "text"},
		"spaces":             {" {\"a\" : 1}\n", "body"},
		"trailing garbage":   {`{"a":1} x`, "text"},
		"NaN":                {`NaN`, "text"},
		"deep":               {deep, "body"},
		"too deep":           {strings.Repeat("[", 20_000), "text"},
		"controls":           {"\x1b]0;pwned\x07\u202e\u009b", "text"},
		"one byte":           {"\x00", "text"},
		"large and binary":   {strings.Repeat(everyByte(), 400), "base64"},
		"large text":         {strings.Repeat("a\x00", 50_000), "text"},
		"just inline":        {strings.Repeat("\x00", 2048), "text"},
		"just outside":       {strings.Repeat("\x00", 2049), "text"},
		"looks like a line":  {`{"type":"end","outcome":"complete"}`, "body"},
		"looks like a flag":  {"--json", "text"},
		"looks like base64":  {"AAAA", "text"},
		"replacement itself": {"\ufffd", "text"},
	}
}

// What a person hands over comes back as it was, to the byte: from an export, and
// to the agent as far as JSON can carry it.
func TestStrangeData(t *testing.T) {
	t.Parallel()
	for name, c := range strange() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scripted(t, map[string]string{"a": ` | printf '%s' "$loop" > got$STINT_LOOP; [ $STINT_LOOP = 2 ] && echo '{"type":"end","outcome":"complete"}' || echo '{"type":"end","outcome":"wait","wait":{"for":"message"}}'`})
			s.file("prompt", c.data)
			if r := s.run("run", "a", "-f", "prompt"); r.code != 6 || driving(r.out+r.talk) != "" {
				t.Fatalf("%s", r)
			}
			s.must("send", "@last", "-f", "prompt")
			if r := s.run("resume", "@last", "--run"); r.code != 0 || driving(r.out+r.talk) != "" {
				t.Fatalf("%s", r)
			}
			for _, file := range []string{"got1", "got2"} {
				b, err := os.ReadFile(s.path(file))
				if err != nil {
					t.Fatal(err)
				}
				if got, as := handed(t, b); as != c.as || got != asHanded(c.data, as) {
					t.Errorf("%s: the agent got it as %s: %.200q", file, as, got)
				}
			}
			exported := bodiesOf(t, s.must("export", "@last"))
			if got := exported["session.created"]; got != c.data {
				t.Errorf("the export has as its input %.200q", got)
			}
			if got := exported["message.taken"]; got != c.data {
				t.Errorf("the export has as its message %.200q", got)
			}
			s.sound(newAcks())
		})
	}
}

// handed is the message that a loop's line has, and in which form.
func handed(t *testing.T, line []byte) (data, as string) {
	t.Helper()
	l := decode[struct {
		Inbox []map[string]json.RawMessage
	}](t, string(line))
	if len(l.Inbox) != 1 {
		t.Fatalf("there are %d messages in %s", len(l.Inbox), clip(string(line)))
	}
	for _, as := range []string{"text", "base64"} {
		if v, ok := l.Inbox[0][as]; ok {
			return decode[string](t, string(v)), as
		}
	}
	return string(l.Inbox[0]["body"]), "body"
}

// asHanded is what an agent gets of data: JSON loses the white space around its
// tokens, and nothing else.
func asHanded(data, as string) string {
	var b bytes.Buffer
	switch {
	case as == "base64":
		return base64.StdEncoding.EncodeToString([]byte(data))
	case as == "body" && json.Compact(&b, []byte(data)) == nil:
		return b.String()
	}
	return data
}

// bodiesOf is the bodies of an export by the kind of their entry, of each the last.
func bodiesOf(t *testing.T, export string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for l := range strings.Lines(export) {
		e := decode[map[string]json.RawMessage](t, l)
		kind := strings.Trim(string(e["kind"]), `"`)
		for _, name := range []string{"body", "blob_body"} {
			if v, ok := e[name]; ok {
				all[kind] = string(v)
			}
			if v, ok := e[name+"_base64"]; ok {
				b, err := base64.StdEncoding.DecodeString(decode[string](t, string(v)))
				if err != nil {
					t.Fatal(err)
				}
				all[kind] = string(b)
			}
		}
	}
	return all
}

// What an agent hands over as JSON is kept as it was written, each token, or is
// refused: nothing in between.
func TestStrangeResults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ value, why string }{
		"a large number":   {`{"n":1e400,"m":[9007199254740993,1.10,-0.0,0.1e-999]}`, ""},
		"escapes":          {`{"a":"\u0000\u001b\ud83d\ude00\/<>&"}`, ""},
		"controls":         {"{\"a\":\"\u007f\u009b\u202e\u2028\"}", ""},
		"keys alike":       {`{"tool":"rm","TOOL":"ls","":0}`, ""},
		"a text":           {`"x"`, ""},
		"null":             {`null`, ""},
		"deep":             {strings.Repeat("[", 500) + strings.Repeat("]", 500), ""},
		"too deep":         {strings.Repeat("[", 600) + strings.Repeat("]", 600), "deep"},
		"duplicate keys":   {`{"a":{"b":1,"b":2}}`, "twice"},
		"half a surrogate": {`"\udc00"`, "surrogate"},
		"NaN":              {`NaN`, "not a line of JSON"},
		"infinity":         {`1e`, "not a line of JSON"},
		"a NUL":            {"\"\x00\"", "control character"},
		"not UTF-8":        {"\"\xff\"", "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scripted(t, map[string]string{"a": ` | ` + step + `printf '{"type":"result","id":1,"result":'; cat value; echo '}'; printf '{"type":"state","replace":'; cat value; echo '}'; printf '{"type":"end","outcome":"complete","result":'; cat value; echo '}'`})
			s.file("value", c.value)
			r := s.run("run", "a")
			if bad := driving(r.out + r.talk); bad != "" {
				t.Errorf("%s is printed: %s", bad, r)
			}
			s.sound(newAcks())
			if c.why != "" {
				if v := s.list()[0]; r.code != 7 || v.Status != "failed" || !strings.Contains(v.Reason, c.why) {
					t.Errorf("it is %s: %s: %s", v.Status, v.Reason, r)
				}
				return
			}
			if r.code != 0 {
				t.Fatalf("%s", r)
			}
			if got := s.state("@last"); got != c.value {
				t.Errorf("the state is %q", got)
			}
			for _, kind := range []string{"step.completed", "session.ended"} {
				if got := bodiesOf(t, s.must("export", "@last"))[kind]; got != c.value {
					t.Errorf("the body of the %s is %q", kind, got)
				}
			}
		})
	}
}

// A state, a result or an input over 32 MiB is refused with the limit and the
// remedy, and what was recorded before stays.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	const half = `head -c 20000000 /dev/zero | tr '\0' x; `
	for name, script := range map[string]string{
		"state in a line":   `printf '{"type":"state","replace":"'; ` + half + half + half + `echo '"}'; ` + over,
		"state in two":      `printf '{"type":"state","patch":{"a":"'; ` + half + `echo '"}}'; printf '{"type":"state","patch":{"b":"'; ` + half + `echo '"}}'; ` + over,
		"result in a line":  step + `printf '{"type":"result","id":1,"result":"'; ` + half + half + `echo '"}'; ` + over,
		"input in a line":   `printf '{"type":"step","id":1,"name":"x","input":"'; ` + half + half + `echo '"}'; read -r go; ` + over,
		"result of the end": `printf '{"type":"end","outcome":"complete","result":"'; ` + half + half + `echo '"}'`,
		"text in a line":    `printf '{"type":"log","text":"'; ` + half + half + `echo '"}'; ` + over,
	} {
		t.Run(name, func(t *testing.T) {
			s := scripted(t, map[string]string{"a": " | " + script})
			cmd := s.command(bin.stint, "run", "-q", "a")
			code, peak := peakOf(t, cmd)
			v := s.list()[0]
			if code != 7 || v.Status != "failed" || !strings.Contains(v.Reason, "32 MiB") && !strings.Contains(v.Reason, "33554432") && !strings.Contains(v.Reason, "a line is longer than 34603008 bytes") || len(v.Reason) > 4000 {
				t.Errorf("exit status %d; it is %s: %s", code, v.Status, clip(v.Reason))
			}
			if peak > 500 {
				t.Errorf("it took %d MiB of memory", peak)
			}
			s.sound(newAcks())
		})
	}
	t.Run("in Go", func(t *testing.T) { tooLargeInGo(t) })
	t.Run("as large as may be", func(t *testing.T) {
		s := scripted(t, map[string]string{"a": ` | cat > rest; ` + over})
		s.file("prompt", strings.Repeat("\x00", 32<<20))
		s.must("start", "a", "-f", "prompt")
		if got := bodiesOf(t, s.must("export", "@last"))["session.created"]; len(got) != 32<<20 || strings.Trim(got, "\x00") != "" {
			t.Errorf("%d bytes come back", len(got))
		}
		s.sound(newAcks())
		s.file("prompt", strings.Repeat("\x00", 32<<20+1))
		s.refuses(6, "longer than 33554432 bytes", "start", "a", "-f", "prompt")
		s.refuses(6, "longer than 33554432 bytes", "run", "a", "-f", "prompt")
		s.refuses(6, "longer than 33554432 bytes", "send", "@last", "-f", "prompt")
	})
}

func tooLargeInGo(t *testing.T) {
	s := newSite(t, nil)
	st, err := sqlite.Open(t.Context(), sqlite.Options{Path: s.store()})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(t.Context(), st, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	large := json.RawMessage(`"` + strings.Repeat("x", 50<<20) + `"`)
	for name, fn := range map[string]stint.AgentFunc{
		"state": func(context.Context, stint.Loop) (stint.Next, error) {
			return stint.Next{State: large, End: &stint.End{}}, nil
		},
		"step": func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			_, err := stint.Do(ctx, l, stint.Step{Name: "x", Effect: stint.Read}, func(context.Context, string) (json.RawMessage, error) { return large, nil })
			return stint.Next{End: &stint.End{}}, err
		},
		"input": func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			_, err := stint.Do(ctx, l, stint.Step{Name: "x", Effect: stint.Once, Input: large}, func(context.Context, string) (int, error) { return 1, nil })
			return stint.Next{End: &stint.End{}}, err
		},
		"not-json": func(context.Context, stint.Loop) (stint.Next, error) {
			return stint.Next{State: json.RawMessage("{"), End: &stint.End{}}, nil
		},
		"twice": func(context.Context, stint.Loop) (stint.Next, error) {
			return stint.Next{State: json.RawMessage(`{"a":1,"a":2}`), End: &stint.End{}}, nil
		},
	} {
		got, err := e.RunNew(t.Context(), engine.Request{Agent: engine.Agent{Name: name, Loop: fn, Retry: engine.Retry{Attempts: 1}}, Name: name}, func(engine.Created) {})
		if err != nil || got.Status != stint.Failed || len(got.Reason) > 4000 || !utf8.ValidString(got.Reason) {
			t.Errorf("%s: %v, it is %s: %s", name, err, got.Status, clip(got.Reason))
		} else if !strings.Contains(got.Reason, "33554432") && name != "not-json" && name != "twice" {
			t.Errorf("%s: the reason is %q", name, clip(got.Reason))
		}
	}
	if _, err := e.Start(t.Context(), engine.Request{Agent: engine.Agent{Name: "x", Loop: stint.AgentFunc(nil)}, Input: large}); stint.CodeOf(err) != stint.Limit {
		t.Errorf("an input of 50 MiB: %v", err)
	}
	if err := errors.Join(e.Close(), st.Close()); err != nil {
		t.Fatal(err)
	}
	s.sound(newAcks())
}
