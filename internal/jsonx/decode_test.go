package jsonx_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/jsonx"
)

type base struct {
	ID     string `json:"id"`
	Shadow string `json:"shadow"`
}

type Inner struct {
	Deep int
	Name string `json:"name"`
}

type left struct{ Twin, OnlyLeft int }

type right struct{ Twin, OnlyRight int }

type own struct{ text string }

func (o *own) UnmarshalJSON(b []byte) error {
	o.text = string(b)
	return nil
}

type call struct {
	base
	*Inner
	left
	right
	Tool    string           `json:"tool"`
	Shadow  int              `json:"shadow,omitempty"`
	Args    json.RawMessage  `json:"args"`
	Any     any              `json:"any"`
	N       json.Number      `json:"n"`
	Plain   int64            // no tag: the name of the field
	Skipped string           `json:"-"`
	Dash    string           `json:"-,"`
	List    []Inner          `json:"list"`
	Pair    [2]Inner         `json:"pair"`
	Map     map[string]Inner `json:"map"`
	Ptr     **Inner          `json:"ptr"`
	Next    *call            `json:"next"`
	When    time.Time        `json:"when"`
	Own     own              `json:"own"`
	hidden  string
}

func TestDecode(t *testing.T) {
	in := `{"id":"x","Deep":3,"name":"n","tool":"rm","shadow":5,"args":{"B":9007199254740993,"b": 1e400},
		"any":{"n":12345678901234567890,"N":1},"n":1234567890123456789012345678901234567890,"Plain":9007199254740993,"-":"dash",
		"list":[{"Deep":1},{"name":"b"}],"pair":[{"Deep":2}],"map":{"anyKey":{"Deep":4},"ANYKEY":{}},"ptr":{"Deep":5},
		"next":{"tool":"ls","next":null},"when":"2026-01-02T03:04:05Z","own":{"X":1,"x":2},"OnlyLeft":1,"OnlyRight":2}`
	var got call
	if err := jsonx.Decode([]byte(in), &got); err != nil {
		t.Fatal(err)
	}
	var want call
	d := json.NewDecoder(strings.NewReader(in))
	d.UseNumber()
	if err := d.Decode(&want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if string(got.Args) != `{"B":9007199254740993,"b": 1e400}` || got.Plain != 9007199254740993 || got.own() != `{"X":1,"x":2}` {
		t.Errorf("got %+v", got)
	}
	if n := got.Any.(map[string]any)["n"]; n != json.Number("12345678901234567890") {
		t.Errorf("got %#v", n)
	}
	t.Run("any", func(t *testing.T) {
		var v any
		if err := jsonx.Decode([]byte(`[9007199254740993]`), &v); err != nil || !reflect.DeepEqual(v, []any{json.Number("9007199254740993")}) {
			t.Errorf("got %#v, %v", v, err)
		}
	})
}

func (c call) own() string { return c.Own.text + c.hidden }

func TestDecodeRefuses(t *testing.T) {
	tests := []struct{ name, in, path, msg string }{
		{"other case beside the name", `{"tool":"rm","TOOL":"ls"}`, "$.TOOL", `write "tool"`},
		{"other case alone", `{"Tool":"rm"}`, "$.Tool", `write "tool"`},
		{"other case, escaped", `{"\u0054ool":"rm"}`, "$.Tool", `write "tool"`},
		{"name that folds to ASCII", `{"li\u017ft":[]}`, `$["liſt"]`, `write "list"`},
		{"field name instead of tag", `{"Args":1}`, "$.Args", `write "args"`},
		{"case without a tag", `{"plain":1}`, "$.plain", `write "Plain"`},
		{"unknown", `{"tool":"rm","force":true}`, "$.force", "not known"},
		{"skipped field", `{"Skipped":"x"}`, "$.Skipped", "not known"},
		{"unexported field", `{"hidden":"x"}`, "$.hidden", "not known"},
		{"ambiguous embedded field", `{"Twin":1}`, "$.Twin", "not known"},
		{"name of an embedded struct", `{"Inner":{}}`, "$.Inner", "not known"},
		{"embedded, other case", `{"ID":"x"}`, "$.ID", `write "id"`},
		{"in a list", `{"list":[{},{"deep":1}]}`, "$.list[1].deep", `write "Deep"`},
		{"in an array", `{"pair":[{"NAME":""}]}`, "$.pair[0].NAME", `write "name"`},
		{"in a map", `{"map":{"k":{"deep":1}}}`, "$.map.k.deep", `write "Deep"`},
		{"behind pointers", `{"ptr":{"deep":1}}`, "$.ptr.deep", `write "Deep"`},
		{"recursive", `{"next":{"next":{"TOOL":1}}}`, "$.next.next.TOOL", `write "tool"`},
		{"duplicate", `{"tool":"a","tool":"b"}`, "$.tool", "twice"},
		{"duplicate where nobody looks", `{"args":{"a":1,"a":2}}`, "$.args.a", "twice"},
		{"trailing", `{"tool":"a"}{}`, "$", "exactly one"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := call{Tool: "as before"}
			err := jsonx.Decode([]byte(tt.in), &v)
			var se *jsonx.SyntaxError
			if !errors.As(err, &se) || se.Path != tt.path || !strings.Contains(se.Msg, tt.msg) {
				t.Errorf("got %v, want %q at %s", err, tt.msg, tt.path)
			}
			if !reflect.DeepEqual(v, call{Tool: "as before"}) {
				t.Errorf("the value was changed to %+v", v)
			}
		})
	}
	t.Run("place", func(t *testing.T) {
		var se *jsonx.SyntaxError
		if err := jsonx.Decode([]byte("{\n \"tool\":\"x\",\n \"TOOL\":1}"), &call{}); !errors.As(err, &se) || se.Line != 3 || se.Column != 2 {
			t.Errorf("got %v", err)
		}
	})
	t.Run("types that do not fit", func(t *testing.T) {
		for _, in := range []string{`{"tool":1}`, `{"list":{}}`, `{"list":"x"}`, `[]`, `"x"`, `{"Plain":1.5}`, `{"when":{"a":1}}`, `{"next":[{"tool":1}]}`} {
			v := call{Tool: "as before"}
			var te *json.UnmarshalTypeError
			err := jsonx.Decode([]byte(in), &v)
			if err == nil || v.Tool != "as before" {
				t.Errorf("%s: got %+v, %v", in, v, err)
			}
			if !errors.As(err, &te) && !strings.Contains(in, "when") {
				t.Errorf("%s: got %v, want the error of encoding/json", in, err)
			}
		}
	})
	t.Run("targets that cannot be filled", func(t *testing.T) {
		for _, v := range []any{nil, call{}, (*call)(nil), 1} {
			if err := jsonx.Decode([]byte(`{}`), v); err == nil {
				t.Errorf("%T was accepted", v)
			}
		}
	})
}

type named struct {
	X Inner `json:"x"`
	Y Inner `json:"Z"`
}

type tagged struct {
	W Inner `json:"Z2"`
}

type untagged struct{ Z2 struct{ Other int } }

// outer hides x of named by a field of another type; of the two Z2 the tagged one counts.
type outer struct {
	named
	tagged
	untagged
	X struct{ Above int } `json:"x"`
}

// TestDecodeHiddenFields has fields whose types show which of two equal names was meant.
func TestDecodeHiddenFields(t *testing.T) {
	for in, ok := range map[string]bool{
		`{"x":{"Above":1}}`: true, `{"x":{"above":1}}`: false, `{"x":{"Deep":1}}`: false,
		`{"Z2":{"Deep":1}}`: true, `{"Z2":{"Other":1}}`: false, `{"Z":{"name":"z"}}`: true, `{"Y":{}}`: false,
	} {
		var got, want outer
		err := jsonx.Decode([]byte(in), &got)
		if (err == nil) != ok {
			t.Errorf("%s: got %v, want it accepted: %v", in, err, ok)
		}
		if err == nil && (json.Unmarshal([]byte(in), &want) != nil || got != want) {
			t.Errorf("%s: got %+v, want %+v", in, got, want)
		}
	}
}

func TestDecodeReplaces(t *testing.T) {
	inside := &Inner{Deep: 7}
	v := call{Tool: "old", Any: inside, Map: map[string]Inner{"old": {}}, List: []Inner{{Name: "old"}}}
	if err := jsonx.Decode([]byte(`{"any":{"deep":1},"map":{},"list":[{"Deep":1}]}`), &v); err != nil {
		t.Fatal(err)
	}
	if v.Tool != "" || len(v.Map) != 0 || v.List[0].Name != "" || inside.Deep != 7 {
		t.Errorf("old contents are left in %+v", v)
	}
}
