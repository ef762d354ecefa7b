package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// What is too long is cut and listed; numbers, order and everything else stay.
func TestBounded(t *testing.T) {
	long := strings.Repeat("é", maxString)
	many := make([]int, maxItems+5)
	for _, c := range []struct{ name, doc, want string }{
		{"plain", `{"b":1,"a":[1.50,12345678901234567890,true,null,"x"],"c":{}}`, `{"b":1,"a":[1.50,12345678901234567890,true,null,"x"],"c":{}}`},
		{"controls", `{"a":"\u001b[2J\u202e\u0000","k\u0007":"<&>"}`, `{"a":"\\x1b[2J\\u202e\\x00","k\\x07":"<&>"}`},
		{"lines", `{"a":"one\n\ttwo"}`, `{"a":"one\n\ttwo"}`},
		{"text", `{"a":{"b/c":["x","` + long + `"]}}`,
			`{"a":{"b/c":["x","` + long[:maxString] + cutMark + `"]},"cut":[{"path":"/a/b~1c/1","size":8192,"kept":4096}]}`},
		{"list", `{"a":` + text(t, many) + `}`, `{"a":` + text(t, many[:maxItems]) + `,"cut":[{"path":"/a","size":205,"kept":200}]}`},
	} {
		got, err := bounded(json.RawMessage(c.doc))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n got %.300s\nwant %.300s", c.name, err, got, c.want)
		}
	}
	deep := strings.Repeat(`{"a":[`, 4000) + strings.Repeat(`]}`, 4000)
	if got, err := bounded(json.RawMessage(deep)); err != nil || string(got) != deep {
		t.Errorf("deep: %v", err)
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A cut is never in the middle of a character, and says that it is one.
func TestClipped(t *testing.T) {
	for n := range 12 {
		got := clipped("aé€😀z", n)
		if !utf8.ValidString(got) || n < 11 && !strings.HasSuffix(got, cutMark) || n >= 11 && got != "aé€😀z" {
			t.Errorf("%d bytes: %q", n, got)
		}
	}
}

// JSON of any shape that is too long is null, with its beginning beside it.
func TestFree(t *testing.T) {
	if raw, cut := free(json.RawMessage(`{"a":1}`)); string(raw) != `{"a":1}` || cut != nil {
		t.Errorf("%s %v", raw, cut)
	}
	long := `"` + strings.Repeat("x", maxFree) + `"`
	if raw, cut := free(json.RawMessage(long)); raw != nil || cut == nil || cut.Size != len(long) || !strings.HasSuffix(cut.Text, cutMark) {
		t.Errorf("%s %+v", raw, cut)
	}
}

// A list has as many items as fit, and one at least.
func TestFitting(t *testing.T) {
	big := strings.Repeat("x", maxString)
	var items []map[string]string
	for range 100 {
		items = append(items, map[string]string{"a": big})
	}
	if n, err := fitting(items); err != nil || n != maxList/(maxString+len(`{"a":""}`)) {
		t.Errorf("%d items fit: %v", n, err)
	}
	items[0] = map[string]string{}
	for i := range 100 {
		items[0][string(rune('a'+i))] = big
	}
	if n, err := fitting(items); err != nil || n != 1 {
		t.Errorf("%d items fit beside one that is too big: %v", n, err)
	}
}

// Only addresses of this machine are served.
func TestLoopback(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8811": "127.0.0.1:8811", "localhost:0": "127.0.0.1:0", "[::1]:8811": "[::1]:8811", "127.9.9.9:1": "127.9.9.9:1",
		":8811": "", "0.0.0.0:8811": "", "[::]:8811": "", "192.168.1.2:8811": "", "example.com:8811": "", "127.0.0.1": "", "": "", "localhost.evil.com:1": "", "0:1": "",
	} {
		got, err := loopback(addr)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v", addr, got, err)
		}
	}
}

// A Host header is this machine's own name, or a foreign page's trick.
func TestOwnName(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:1": true, "127.0.0.1": true, "127.0.0.1:1": true, "[::1]": true, "[::1]:1": true,
		"evil.com": false, "evil.com:1": false, "localhost.evil.com": false, "127.0.0.1.evil.com": false, "": false, "10.0.0.1": false, "[": false, "[]": false,
	} {
		if ownName(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}
