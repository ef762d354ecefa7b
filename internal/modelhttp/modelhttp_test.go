package modelhttp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint/internal/modelhttp"
	"github.com/stint-dev/stint/model"
)

// A text that is cut anywhere in its UTF-16 form, as services written in JavaScript cut
// it, is whole again.
func TestJoinerPutsCharactersTogether(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("a\"\\/\n\x00<é\u2028🙂🏳😀"))).Draw(rt, "text")
		units := utf16.Encode([]rune(text))
		var j modelhttp.Joiner
		for len(units) > 0 {
			n := rapid.IntRange(1, len(units)).Draw(rt, "n")
			j.Add(quoted(units[:n], rapid.Bool().Draw(rt, "escape")))
			units = units[n:]
		}
		if got := j.String(); got != text {
			rt.Fatalf("%q became %q", text, got)
		}
	})
}

// quoted is a JSON string of UTF-16 units, each as an escape where it must be or all is.
func quoted(units []uint16, all bool) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(units); i++ {
		u := units[i]
		if !all && utf16.IsSurrogate(rune(u)) && i+1 < len(units) {
			if r := utf16.DecodeRune(rune(u), rune(units[i+1])); r != utf8.RuneError {
				b.WriteRune(r)
				i++
				continue
			}
		}
		if all || u < ' ' || u == '"' || u == '\\' || utf16.IsSurrogate(rune(u)) {
			fmt.Fprintf(&b, `\u%04x`, u)
			continue
		}
		b.WriteRune(rune(u))
	}
	b.WriteByte('"')
	return b.String()
}

func TestJoiner(t *testing.T) {
	for _, c := range []struct {
		pieces []string
		want   string
	}{
		{nil, ""},
		{[]string{"", "null", `""`}, ""},
		{[]string{`"{\"a\":"`, `"1}"`}, `{"a":1}`},
		{[]string{`{"a": 9007199254740993}`}, `{"a": 9007199254740993}`},
		{[]string{`"x\ud83d"`, `"y"`}, `x\ud83dy`},
		{[]string{`"\ude42\ud83d"`}, `\ude42\ud83d`},
		{[]string{`"\\ud83d"`}, `\ud83d`},
		{[]string{"\"\xff\""}, "\uFFFD"},
	} {
		var j modelhttp.Joiner
		for _, p := range c.pieces {
			j.Add(p)
		}
		if got := j.String(); got != c.want {
			t.Errorf("%q became %q, want %q", c.pieces, got, c.want)
		}
	}
}

func FuzzJoiner(f *testing.F) {
	f.Add(`"\ud83d"`, `"\ude42"`)
	f.Add(`"\`, `u12"`)
	f.Add(`{"a":1}`, `"`)
	f.Fuzz(func(_ *testing.T, a, b string) {
		var j modelhttp.Joiner
		j.Add(a)
		j.Add(b)
		_ = j.String()
	})
}

// What the writer writes is what encoding/json reads.
func TestWriter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.String().Draw(rt, "text")
		raw := rapid.SampledFrom([]string{`{ "a" : "<b>" }`, `1e400`, "[\n]"}).Draw(rt, "raw")
		var w modelhttp.Writer
		w.Open('{')
		w.Member("a", text)
		w.Key(text + "k")
		w.Open('[')
		w.Text(text)
		w.Raw(raw)
		w.Open('{')
		w.Close('}')
		w.Close(']')
		w.Int("n", -9007199254740993)
		w.Float("f", 0.1)
		w.Close('}')
		var m map[string]json.RawMessage
		if err := json.Unmarshal(w.Bytes(), &m); err != nil {
			rt.Fatalf("%s: %v", w.Bytes(), err)
		}
		var got string
		if json.Unmarshal(m["a"], &got) != nil || got != strings.ToValidUTF8(text, "\uFFFD") ||
			string(m["n"]) != "-9007199254740993" || string(m["f"]) != "0.1" || !strings.Contains(string(w.Bytes()), raw) {
			rt.Fatalf("%q became %s", text, w.Bytes())
		}
	})
}

// A body of any bytes makes an error that a person can read and that holds no key.
func FuzzRefusal(f *testing.F) {
	f.Add(400, `{"error":{"message":"bad","code":400}}`, "application/json")
	f.Add(200, `{"error":null,"detail":"sk-secret"}`, "application/json")
	f.Add(502, "<html><title>\xff", "text/html")
	f.Add(200, "[[]]", "application/json")
	f.Add(529, `{"response":{"response":{"error":"x"}}}`, "application/json")
	f.Fuzz(func(t *testing.T, status int, body, kind string) {
		if status < 100 || status > 999 || strings.HasPrefix(kind, "text/event-stream") {
			return
		}
		x := &modelhttp.Exchange{Model: "m", Secrets: []string{"sk-secret"}}
		ctx := x.Begin(t.Context())
		defer x.End()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := x.RoundTrip(req, func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body))}, nil
		})
		if res != nil {
			_ = res.Body.Close()
			return // taken for a stream
		}
		e := model.AsError(err)
		if e == nil || e.Kind == "" || e.Status != status || !utf8.ValidString(e.Message) || len(e.Message) > 2000 || strings.Contains(e.Error(), "sk-secret") {
			t.Fatalf("%+v", e)
		}
	})
}

func TestCheckBase(t *testing.T) {
	for base, ok := range map[string]bool{
		"": true, "http://127.0.0.1:11434/v1": true, "https://example.com": true, "http://[::1]:8080/": true,
		"example.com": false, "ftp://example.com": false, "http://": false, "http://a:b@example.com": false,
		"https://example.com?key=x": false, "https://example.com#x": false, "http://%zz": false,
	} {
		if err := modelhttp.CheckBase(base); (err == nil) != ok {
			t.Errorf("%q: %v", base, err)
		}
	}
}
