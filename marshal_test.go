package stint_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
)

type jobs struct {
	Jobs []map[string]any `json:"jobs"`
}

type hooked struct {
	Hook func()  `json:"-"`
	Rate float64 `json:"rate"`
}

type inner struct{ Fn func() }

type outer struct {
	inner
	A int
}

type Named struct{ Fn func() }

type shadowed struct {
	Named
	Fn int // it hides the one that is embedded
}

type twice struct {
	*Named
	Other struct{ Fn func() } `json:"-,"`
}

type optional struct {
	Gone []func()       `json:"gone,omitempty"`
	Zero map[point]bool `json:",omitzero"`
	Bad  chan int       `json:"a b,omitempty"`
}

type point struct{ A int }

type texter string

func (t texter) MarshalText() ([]byte, error) {
	if t == "" {
		return nil, errors.New("it is empty")
	}
	return []byte(t), nil
}

type speaker string

func (s speaker) MarshalJSON() ([]byte, error) {
	if s == "" {
		return nil, errors.New("it says nothing")
	}
	return []byte(s), nil
}

// reached has its method on the pointer, which encoding/json reaches where it can.
type reached struct{ Fn func() }

func (*reached) MarshalJSON() ([]byte, error) { return []byte(`1`), nil }

type list struct {
	V    any   `json:"v"`
	Next *list `json:"next"`
}

func cycles() map[string]any {
	self := map[string]any{}
	self["self"] = self
	in := []any{nil}
	in[0] = in
	ring := &list{}
	ring.Next = &list{Next: ring}
	deep := map[string]any{}
	deep["depends_on_other_tasks"] = []any{deep}
	return map[string]any{"$.self": self, "$[0]": in, "$.next.next": ring, "$.depends_on_other_tasks[0]": deep}
}

// TestMarshalNamesThePath is what JSON cannot hold, and where the error says it is.
func TestMarshalNamesThePath(t *testing.T) {
	for _, c := range []struct {
		name string
		v    any
		want string // path and the beginning of the cause
	}{
		{"a function", func() {}, "$: JSON cannot hold a func()"},
		{"the names of JSON", jobs{[]map[string]any{{}, {"done": func() {}}}}, "$.jobs[1].done: JSON cannot hold a func()"},
		{"a field that is skipped", hooked{Rate: math.NaN()}, "$.rate: JSON cannot hold NaN"},
		{"a promoted field", map[string]any{"a": outer{}}, "$.a.Fn: JSON cannot hold"},
		{"a field that hides another", map[string]any{"a": shadowed{}, "b": math.Inf(1)}, "$.b: JSON cannot hold +Inf"},
		{"a field named -", twice{}, "$.-.Fn: JSON cannot hold"},
		{"an embedded pointer", twice{Named: &Named{}}, "$.Fn: JSON cannot hold"},
		{"fields that are left out", optional{}, `$["a b"]: JSON cannot hold a chan int`},
		{"keys of a struct", map[string]any{"set": map[point]bool{{1}: true}}, "$.set: JSON cannot hold a map with keys of type stint_test.point"},
		{"keys of a struct, none", map[point]bool(nil), "$: JSON cannot hold a map with keys"},
		{"a key that is no text", map[string]any{"m": map[texter]int{"\xff": 1}}, "$.m: a key is not UTF-8"},
		{"numbers as keys", map[int]any{7: math.NaN()}, "$.7: JSON cannot hold NaN"},
		{"a key with spaces", map[string]any{"a key": math.NaN()}, `$["a key"]: JSON cannot hold NaN`},
		{"a key of many", map[string]any{strings.Repeat("k", 5000): math.NaN()}, `$["` + strings.Repeat("k", 60) + `"…]: JSON cannot hold NaN`},
		{"a number that is none", map[string]any{"n": json.Number("12a")}, `$.n: "12a" is not a number`},
		{"a string", map[string]string{"file": "caf\xe9.txt"}, "$.file: the string is not UTF-8: byte 3 of it is 0xe9"},
		{"a string in a list", []any{"ok", []string{"\ufffd", "a\xff"}}, "$[1][1]: the string is not UTF-8: byte 1 of it is 0xff"},
		{"a key", map[string]any{"a": map[string]int{"caf\xe9": 1}}, "$.a: a key is not UTF-8"},
		{"raw JSON", map[string]any{"raw": json.RawMessage(`{"a":`)}, "$.raw: unexpected end"},
		{"raw bytes", map[string]any{"raw": json.RawMessage("\"\xff\"")}, "$.raw: what json.RawMessage.MarshalJSON writes is not UTF-8"},
		{"what a method says", []any{speaker("")}, "$[0]: it says nothing"},
		{"what a method writes", []any{speaker("nonsense")}, "$[0]: invalid character"},
		{"a text that cannot be", map[string]any{"t": texter("")}, "$.t: it is empty"},
		{"a text that is none", map[string]any{"t": texter("\xff")}, "$.t: the string is not UTF-8"},
		{"a method out of reach", map[string]any{"r": reached{}}, "$.r.Fn: JSON cannot hold"},
		{"a year", map[string]any{"at": time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}, "$.at: Time.MarshalJSON: year"},
		{"a complex number", [1]any{1i}, "$[0]: JSON cannot hold a complex128"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := stint.Marshal(c.v)
			if stint.CodeOf(err) != stint.Invalid || !strings.HasPrefix(fmt.Sprint(err), "marshal: "+c.want) {
				t.Errorf("%s, %v", b, err)
			}
		})
	}
	for path, v := range cycles() {
		if _, err := stint.Marshal(v); err == nil || err.Error() != "marshal: "+path+": the value contains itself" {
			t.Errorf("a cycle: %v", err)
		}
	}
}

// TestMarshalKeeps is what is written as it is.
func TestMarshalKeeps(t *testing.T) {
	shared := map[string]any{"x": 1}
	for want, v := range map[string]any{
		`"<a> & b"`:              "<a> & b",
		"\"\ufffd\"":             "\ufffd",
		`"\ufffd"`:               json.RawMessage(`"\ufffd"`),
		`12345678901234567890`:   json.Number("12345678901234567890"),
		`[{"x":1},{"x":1}]`:      []any{shared, shared},
		`{"rate":1}`:             hooked{Rate: 1},
		`1`:                      &reached{},
		`{"v":null,"next":null}`: list{},
		`"//4="`:                 []byte{0xff, 0xfe},
		`[[],[]]`:                [2][]int{{}, {}},
		`null`:                   nil,
	} {
		if b, err := stint.Marshal(v); err != nil || string(b) != want {
			t.Errorf("%s, %v; want %s", b, err, want)
		}
	}
}

// drawn is a value that JSON can hold, with a place in it for one that it cannot.
func drawn(t *rapid.T, bad any, depth int) (v any, path string) {
	name := rapid.StringMatching(`[a-z_]{1,12}`)
	if depth == 0 {
		return bad, ""
	}
	var at string
	switch in, path := drawn(t, bad, depth-1); rapid.IntRange(0, 3).Draw(t, "shape") {
	case 0:
		n := rapid.IntRange(0, 3).Draw(t, "before")
		all := append(make([]any, n), in, "after \ufffd")
		v, at = all, fmt.Sprintf("[%d]%s", n, path)
	case 1:
		k := name.Draw(t, "key")
		v, at = map[string]any{"0": 1, k: in}, "."+k+path
	case 2:
		v, at = list{V: in}, ".v"+path
	default:
		v, at = &list{Next: &list{V: in}}, ".next.v"+path
	}
	return v, at
}

// TestMarshalFindsIt plants what JSON cannot hold anywhere in a value.
func TestMarshalFindsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bad := rapid.SampledFrom([]any{math.NaN(), "caf\xe9", json.Number("x"), func() {}, map[point]int{}, json.RawMessage(`{`), speaker("")}).Draw(t, "bad")
		v, path := drawn(t, bad, rapid.IntRange(0, 60).Draw(t, "depth"))
		_, err := stint.Marshal(v)
		if stint.CodeOf(err) != stint.Invalid {
			t.Fatalf("%v", err)
		}
		text := err.Error()
		if len(text) > 1000 || !utf8.ValidString(text) {
			t.Fatalf("%d bytes: %q", len(text), text)
		}
		head, tail, cut := strings.Cut(strings.TrimPrefix(text, "marshal: "), "…")
		switch want := "$" + path; {
		case !cut:
			if !strings.HasPrefix(head, want+": ") {
				t.Fatalf("%s; it is at %s", text, want)
			}
		case len(want) <= 400 || !strings.HasPrefix(want, head) || !strings.HasSuffix(want, tail[:strings.Index(tail, ": ")]):
			t.Fatalf("%s; it is at %s", text, want)
		}
	})
}

// TestMarshalReadsBack: what is accepted says what the value said.
func TestMarshalReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) })).Draw(t, "s")
		b, err := stint.Marshal(map[string]string{"s": s})
		if valid := utf8.ValidString(s); valid != (err == nil) {
			t.Fatalf("%q: %s, %v", s, b, err)
		}
		var back map[string]string
		if err == nil && (json.Unmarshal(b, &back) != nil || back["s"] != s) {
			t.Fatalf("%q came back as %q", s, back["s"])
		}
	})
}
