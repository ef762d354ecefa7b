package jsonx_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/jsonx"
)

// decodedText is what decoding all of b finds.
func decodedText(b []byte, path ...string) string {
	var v any
	if json.Unmarshal(b, &v) != nil {
		return ""
	}
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	s, _ := v.(string)
	return s
}

func FuzzText(f *testing.F) {
	for _, s := range []string{
		`{"type":"a"}`, ` { "n" : [ {"type":"no"} , "x\"" ] , "type" : "\u0061b" } `, `{"type":"a","type":"b"}`, `{"type":"a","type":3}`, `{"t\u0079pe":"esc"}`,
		`{"event":{"type":"deep"}}`, `{"event":{"type":"x"},"event":{}}`, `"type"`, `[]`, `null`, `{}`, `{"type":{"type":"x"}}`, `{"type":"\ud800"}`, "{\"type\":\"\xff\"}",
		`{"a":-1.5e3,"type":"é","b":true}`, `{"TYPE":"other"}`, `{"":{"":"empty"}}`, strings.Repeat(`{"type":`, 50) + `"x"` + strings.Repeat(`}`, 50),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !json.Valid(b) {
			return
		}
		for _, path := range [][]string{{}, {"type"}, {"event", "type"}, {""}, {"", ""}} {
			if got, want := jsonx.Text(b, path...), decodedText(b, path...); got != want {
				t.Fatalf("%q below %q is %q, decoded %q", b, path, got, want)
			}
		}
	})
}
