package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
)

func nop() tool.Caller {
	return tool.CallerFunc(func(context.Context, tool.Call) (tool.Output, error) { return tool.Output{}, nil })
}

func named(name, schema string) tool.Tool {
	return tool.Tool{Name: name, Schema: json.RawMessage(schema), Caller: nop()}
}

func set(t testing.TB, tools ...tool.Tool) *tool.Set {
	t.Helper()
	s, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewSetRefuses(t *testing.T) {
	for want, tools := range map[string][]tool.Tool{
		"two tools have this name: one of exec, one of mcp docs": {
			{Name: "a", Source: "exec", Caller: nop()}, named("b", ""), {Name: "a", Source: "mcp docs", Caller: nop()}},
		"the name is not 1 to 64":            {named("", "")},
		"the name is not 1 to 64 of":         {named(strings.Repeat("a", 65), "")},
		`tool "a.b": the name`:               {named("a.b", "")},
		"nothing that does the call":         {{Name: "a"}},
		`there is no effect "twice"`:         {{Name: "a", Effect: "twice", Caller: nop()}},
		`there is no approve "sometimes"`:    {{Name: "a", Approve: "sometimes", Caller: nop()}},
		"is not an object":                   {named("a", "true")},
		"which is not fetched":               {named("a", `{"$ref":"file:///etc/passwd"}`)},
		"to https://example.com/s, which is": {named("a", `{"$ref":"https://example.com/s"}`)},
		"is in this object twice":            {named("a", `{"type":"object","type":"string"}`)},
		"its arguments":                      {named("a", `{"type":"onject"}`)},
	} {
		if _, err := tool.NewSet(tools...); !errors.Is(err, stint.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestSetOrder(t *testing.T) {
	s := set(t, named("b", ""), named("a__z", ""), named("a", ""), named("B", ""))
	var names []string
	for _, one := range s.Tools() {
		names = append(names, one.Name)
	}
	if got := fmt.Sprint(names); got != "[B a a__z b]" || s.Len() != 4 {
		t.Errorf("got %s", got)
	}
	if _, ok := s.Lookup("A"); ok {
		t.Error("names match without regard to case")
	}
}

const issue = `{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "type": "object",
  "properties": {
    "title": {"type": "string", "minLength": 1},
    "id": {"type": "integer", "minimum": 9007199254740993, "maximum": 18446744073709551615},
    "kind": {"$ref": "#/definitions/kind"},
    "ratio": {"multipleOf": 0.5}
  },
  "definitions": {"kind": {"enum": ["bug", "wish"]}},
  "required": ["title"],
  "additionalProperties": false
}`

func TestCheckAccepts(t *testing.T) {
	s := set(t, named("open", issue), named("any", ""))
	for _, tt := range []struct{ name, args, want string }{
		{"any", "", "{}"}, // empty arguments are no arguments
		{"any", " \n", "{}"},
		{"any", ` {"a" : 1.0e2}`, ` {"a" : 1.0e2}`},
		{"open", `{"title":"x","id":18446744073709551615}`, `{"title":"x","id":18446744073709551615}`},
		{"open", `{"title":"\ud83d\ude00 \\u0000","id":9007199254740993,"ratio":1.50,"kind":"bug"}`, `{"title":"\ud83d\ude00 \\u0000","id":9007199254740993,"ratio":1.50,"kind":"bug"}`},
	} {
		one, args, err := s.Check(tt.name, json.RawMessage(tt.args))
		if err != nil || one.Name != tt.name || string(args) != tt.want {
			t.Errorf("%s(%s): got %s, %s, %v", tt.name, tt.args, one.Name, args, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	s := set(t, named("open", issue), named("any", ""))
	for _, tt := range []struct{ name, args, want string }{
		{"open", `{"title":`, "$.title: the input ends where a value must follow"},
		{"open", `not json`, "no JSON value begins like this"},
		{"open", `{"title":"a","title":"b"}`, `the name "title" is in this object twice`},
		{"any", `{"a":1e400}`, "beyond 64-bit floating point"},
		{"any", `{"a":"\ud83d"}`, "half of a surrogate pair"},
		{"any", `{"a":` + strings.Repeat("[", 20000), "nested deeper than 128"},
		{"any", `["a"]`, "they must be one JSON object"},
		{"any", `"{}"`, "they must be one JSON object"},
		{"any", `null`, "they must be one JSON object"},
		{"open", `{}`, "$: missing property 'title'"},
		{"open", `{"title":1}`, "$.title: got number, want string"},
		{"open", `{"title":"x","id":9007199254740992}`, "$.id: 9007199254740992 is not at least 9007199254740993"},
		{"open", `{"title":"x","id":18446744073709551616}`, "$.id: 18446744073709551616 is not at most 18446744073709551615"},
		{"open", `{"title":"x","kind":"no"}`, "$.kind: value must be one of 'bug', 'wish'"},
		{"open", `{"title":"x","ratio":0.75}`, "$.ratio: 0.75 is not a multiple of 0.5"},
		{"open", `{"title":"x","Title":"y"}`, "additional properties 'Title' not allowed"},
	} {
		_, args, err := s.Check(tt.name, json.RawMessage(tt.args))
		if !errors.Is(err, stint.Invalid) || args != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s(%.40s): got %v, want %s", tt.name, tt.args, err, tt.want)
			continue
		}
		if !strings.HasPrefix(err.Error(), tt.name+" was not called. Its arguments: ") || len(err.Error()) > 9000 {
			t.Errorf("%s(%.40s): the text is %q", tt.name, tt.args, err)
		}
		if quoted := strings.Contains(err.Error(), `The schema is {"$schema":"http://json-schema.org`); quoted != (tt.name == "open") {
			t.Errorf("%s(%.40s): the schema is quoted: %v, in %v", tt.name, tt.args, quoted, err)
		}
	}
}

func TestCheckUnknown(t *testing.T) {
	s := set(t, named("write_file", ""), named("docs__search", ""))
	for name, want := range map[string]string{
		"rm":          `there is no tool "rm". The tools are: docs__search, write_file.`,
		"Write_File":  `there is no tool "Write_File". Did you mean write_file? The tools are: docs__search, write_file.`,
		"a\x00\n\xff": `there is no tool "a\x00\n\xff". The tools are: docs__search, write_file.`,
	} {
		_, _, err := s.Check(name, nil)
		if !errors.Is(err, stint.NotFound) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, _, err := set(t).Check("x", nil); err == nil || !strings.Contains(err.Error(), "There are no tools here") {
		t.Errorf("got %v", err)
	}
	many := make([]tool.Tool, 500)
	for i := range many {
		many[i] = named(fmt.Sprintf("tool_with_a_long_name_%d", i), "")
	}
	if _, _, err := set(t, many...).Check("x", nil); len(err.Error()) > 5000 {
		t.Errorf("the text has %d bytes", len(err.Error()))
	}
}

// TestPatternsOfOthers: a schema is not refused for an expression that only JavaScript has.
func TestPatternsOfOthers(t *testing.T) {
	s := set(t, named("a", `{"type":"object","properties":{"p":{"type":"string","pattern":"^(?!x)a"},"q":{"type":"string","pattern":"^a+$"}}}`))
	if _, _, err := s.Check("a", json.RawMessage(`{"p":"xb","q":"aa"}`)); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Check("a", json.RawMessage(`{"q":"b"}`)); err == nil {
		t.Error("a readable pattern is not checked")
	}
}

func TestSchemaDrafts(t *testing.T) {
	for _, raw := range []string{
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[{"type":"integer"}],"items":false}`,
		`{"prefixItems":[{"type":"integer"}],"items":false}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"integer"}],"additionalItems":false}`,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema","items":[{"type":"integer"}],"additionalItems":false}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","items":[{"type":"integer"}],"additionalItems":false}`,
	} {
		s, err := tool.NewSchema(json.RawMessage(raw))
		if err != nil {
			t.Fatal(raw, err)
		}
		if err := s.Check(json.RawMessage(`[1]`)); err != nil {
			t.Error(raw, err)
		}
		for _, bad := range []string{`["x"]`, `[1,2]`} {
			if err := s.Check(json.RawMessage(bad)); err == nil {
				t.Errorf("%s takes %s", raw, bad)
			}
		}
	}
}

func TestManyFaults(t *testing.T) {
	s, err := tool.NewSchema(json.RawMessage(`{"items":{"type":"string"}}`))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Check(json.RawMessage("[" + strings.Repeat("1,", 1000) + "1]"))
	if err == nil || !strings.Contains(err.Error(), "and 993 faults more") || len(err.Error()) > 2000 {
		t.Errorf("got %v", err)
	}
}

func TestJoin(t *testing.T) {
	valid := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	seen := map[string]string{}
	for _, tt := range [][3]string{
		{"docs", "search", "docs__search"},
		{"", "read_file", "read_file"},
		{"docs", "a.b", ""}, {"docs", "a/b", ""}, {"docs", "a_b", "docs__a_b"}, {"docs", "", "docs__"},
		{"docs", strings.Repeat("x", 80), ""}, {"docs", strings.Repeat("x", 81), ""}, {"mein Büro", "öffnen", ""}, {"", "", ""},
		{"docs", "a\x00b", ""}, {"docs", "é", ""}, {"docs", "e\u0301", ""},
	} {
		got := tool.Join(tt[0], tt[1])
		if !valid.MatchString(got) || tt[2] != "" && got != tt[2] {
			t.Errorf("%q and %q gave %q, want %q", tt[0], tt[1], got, tt[2])
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q gave %q, as %s does", tt[0], tt[1], got, other)
		}
		seen[got] = fmt.Sprintf("%q", tt[:2])
	}
}

func FuzzCheck(f *testing.F) {
	s := set(f, named("open", issue))
	for _, a := range []string{`{"title":"x"}`, ``, `{"title":"a","id":1e-999999}`, `[1]`, `{"id":"\ud800"}`} {
		f.Add(a)
	}
	f.Fuzz(func(t *testing.T, args string) {
		_, got, err := s.Check("open", json.RawMessage(args))
		if err == nil && string(got) != args {
			t.Errorf("%q became %q", args, got)
		}
		if err != nil && (stint.CodeOf(err) != stint.Invalid || !strings.Contains(err.Error(), "The schema is")) {
			t.Errorf("%q: %v", args, err)
		}
	})
}
