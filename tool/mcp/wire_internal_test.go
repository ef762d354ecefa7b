package mcp

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"
)

func TestIDs(t *testing.T) {
	for end, want := range map[string]string{
		`…"}]},"jsonrpc":"2.0","id":7}` + "\n": "7",
		`…"}]},"id":7,"jsonrpc":"2.0"}`:        "7",
		`…"}]},"id":"a7"}`:                     "",
		`…"}]},"id":7}}`:                       "",
		`…\"id\":7}"}`:                         "",
		`…,"id":7,"x":1}`:                      "",
		`…"id":7`:                              "",
		`}`:                                    "",
	} {
		if id, ok := lastID([]byte(end)); string(id) != want || ok != (want != "") {
			t.Errorf("%s: got %s, %v", end, id, ok)
		}
	}
	for begin, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"result":{"content":[{"te`: "7",
		`{"id":7,"jsonrpc":"2.0","result":{`:                "7",
		`{"result":{"id":9},"id":7`:                         "",
		`{"jsonrpc":"2.0","id":{"a":1},`:                    "",
		`[{"id":7`:                                          "",
		``:                                                  "",
	} {
		if id, ok := firstID([]byte(begin)); string(id) != want || ok != (want != "") {
			t.Errorf("%s: got %s, %v", begin, id, ok)
		}
	}
}

func TestReadLine(t *testing.T) {
	r := bufio.NewReaderSize(strings.NewReader("ab\n"+strings.Repeat("x", 1000)+"END\n"+"c"), 16)
	for _, want := range []struct {
		line, end string
		size      int64
	}{{"ab\n", "", 3}, {strings.Repeat("x", 100), strings.Repeat("x", 252) + "END\n", 1004}, {"c", "", 1}} {
		line, end, size, err := readLine(r, 100)
		if string(line) != want.line || string(end) != want.end || size != want.size || (err != nil) != (want.line == "c") {
			t.Errorf("got %q, %q, %d, %v, want %+v", line, end, size, err, want)
		}
	}
}

// FuzzMend: what is sent stays what it is, but for what no store keeps.
func FuzzMend(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a\u0000\ud83d"}],"structuredContent":{"n":18446744073709551615}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{"maximum":9007199254740993},"_meta":null},null]}}`,
		`{"result":{"structuredContent":1,"_meta":[1]}}`, `{"result":null,"x":"\u0000"}`, `[{"inputSchema":1}]`, `{"result":{"tools":"inputSchema"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		out := mend(msg)
		if json.Valid(msg) && !json.Valid(out) {
			t.Fatalf("%q became %q", msg, out)
		}
		var in, is struct {
			ID     json.RawMessage `json:"id"`
			Result struct {
				Structured json.RawMessage   `json:"structuredContent"`
				Meta       map[string]any    `json:"_meta"`
				Tools      []json.RawMessage `json:"tools"`
			} `json:"result"`
		}
		if !json.Valid(msg) || json.Unmarshal(msg, &in) != nil || json.Unmarshal(out, &is) != nil {
			return
		}
		if len(in.Result.Tools) != len(is.Result.Tools) {
			t.Errorf("%q became %q", msg, out)
		}
	})
}
