package model_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stint-dev/stint/model"
)

func TestArgs(t *testing.T) {
	deep := strings.Repeat("[", 20000)
	for args, fault := range map[string]string{
		``:                                    "",
		" \n\t":                               "",
		`{}`:                                  "",
		` {"a":9007199254740993} `:            "",
		`{"a":{"b":1},"b":[{"b":2},{"b":3}]}`: "",
		`{"a":"\ud83d\ude42 \\ud83d \u0000"}`: "",
		`{"a":1e308,"b":-0.0,"c":1E-400}`:     "",
		`{"tool":"a","TOOL":"b"}`:             "",
		`{"a":1,"a":2}`:                       `the name "a" twice`,
		`{"a":1,"\u0061":2}`:                  `the name "a" twice`,
		`{"x":[{"a":1,"b":2,"a":3}]}`:         `the name "a" twice`,
		`{"a":1e400}`:                         "1e400",
		`{"a":[-1e999]}`:                      "-1e999",
		`{"a":1` + strings.Repeat("0", 400) + `}`: "beyond what",
		`{"a":"\ud83d"}`:       `\ud83d`,
		`{"a":"\ude42\ud83d"}`: `\ude42`,
		`{"a":"\ud83d\u0041"}`: `\ud83d`,
		`{"\udfff":1}`:         `\udfff`,
		"{\"a\":\"\xff\"}":     "UTF-8",
		`{"a":1`:               "not JSON",
		`{"a":1} {}`:           "not JSON",
		`{"a":NaN}`:            "not JSON",
		"\ufeff{}":             "not JSON",
		`{"a":` + deep:         "not JSON",
		`[1]`:                  "a JSON array",
		`"x"`:                  "a JSON string",
		`12`:                   "a JSON number",
		`true`:                 "a JSON boolean",
		`null`:                 "null",
	} {
		err := model.Args(args).Check()
		if fault == "" && err != nil || fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
			t.Errorf("%.60s: %v, want %q", args, err, fault)
		}
		object(t, model.Args(args))
	}
}

// object checks that what stands on the wire is an object, and the arguments themselves
// when they may be used.
func object(t *testing.T, a model.Args) {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(a.Object()), &m); err != nil || m == nil {
		t.Errorf("%.60q stands as %.60q: %v", a, a.Object(), err)
	}
	if _, marked := m[model.Unusable]; a.Check() != nil && !marked || len(a.Object()) > len(a)+8000 {
		t.Errorf("%.60q stands as %.60q, without the mark", a, a.Object())
	}
	if a.Check() == nil && strings.TrimSpace(string(a)) != "" && a.Object() != string(a) {
		t.Errorf("%.60q stands as %.60q", a, a.Object())
	}
}

func FuzzArgs(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"a":1,"a":2}`, `{"a":"\ud83d"}`, "{\"\xff\":1e999}", `{"a":[{"b":{}}]}`, `"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a := model.Args(s)
		object(t, a)
		b, err := json.Marshal(a)
		if err != nil || !utf8.Valid(b) {
			t.Fatalf("%q: %v", b, err)
		}
		var back model.Args
		if err := json.Unmarshal(b, &back); err != nil || back != a {
			t.Fatalf("%q came back as %q: %v", a, back, err)
		}
	})
}
