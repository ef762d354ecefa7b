package jsonx_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stint-dev/stint/internal/jsonx"
)

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// members writes an object of n members, with their names twice that number apart.
func members(n int, name func(int) string) string {
	parts := make([]string, n)
	for i := range n {
		parts[i] = fmt.Sprintf("%q:%d", name(i), i)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func key(i int) string { return fmt.Sprintf("key %d", i) }

func TestCheckAccepts(t *testing.T) {
	strict := jsonx.Limits{NoNUL: true, FiniteNumbers: true}
	tests := []struct {
		name, in string
		lim      jsonx.Limits
	}{
		{"scalars in white space", " \t\r\n[ null , true,false ,\"\", 0, -0 ]\n", strict},
		{"empty object", "{ }", strict},
		{"lone scalar", "17", strict},
		{"numbers", `[1.5,1e5,1E+5,1e-5,-0.0,0e0,123456789012345678901234567890]`, strict},
		{"integer above 2^53", "9007199254740993", strict},
		{"40 digits", "1234567890123456789012345678901234567890", strict},
		{"300 digits", strings.Repeat("9", 300), strict},
		{"300 digits after the point", "0." + strings.Repeat("9", 300), strict},
		{"largest float64", "1.7976931348623157e308", strict},
		{"tiny", "1e-400", strict},
		{"long exponent of a small number", "1e0000000001", strict},
		{"1e400 unless finite is asked for", "1e400", jsonx.Limits{}},
		{"NUL unless refused", `"\u0000"`, jsonx.Limits{}},
		{"escapes", `"\"\\\/\b\f\n\r\t\u00e9\uD83D\ude00"`, strict},
		{"escaped backslash before u0000", `"\\u0000"`, strict},
		{"UTF-8", `{"ключ":"日本語 😀 é","�":"�"}`, strict},
		{"delete character", "\"\x7f\"", strict},
		{"depth 512", nested(512), strict},
		{"depth 512 with scalar inside", strings.Repeat(`{"a":`, 512) + "1" + strings.Repeat("}", 512), strict},
		{"depth 3 of 3", nested(3), jsonx.Limits{Depth: 3}},
		{"depth 10000 at most", nested(10000), jsonx.Limits{Depth: 1 << 30}},
		{"size at its limit", "[1,2]", jsonx.Limits{Size: 5}},
		{"same name in other objects", `{"a":{"a":[{"a":1},{"a":2}]},"b":{"a":1}}`, strict},
		{"names that differ in case", `{"a":1,"A":2}`, strict},
		{"names that differ in form", "{\"\u00e9\":1,\"e\u0301\":2,\"\":3,\" \":4}", strict},
		{"1000 names", members(1000, key), strict},
		{"nested in large objects", `{"x":` + members(50, key) + `,"y":` + members(50, key) + `}`, strict},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := jsonx.Check([]byte(tt.in), tt.lim); err != nil {
				t.Fatal(err)
			}
			if !json.Valid([]byte(tt.in)) {
				t.Error("encoding/json refuses it")
			}
		})
	}
}

type refusal struct {
	name, in string
	lim      jsonx.Limits
	at       int
	path     string // "" for any
	msg      string
}

func refusedWhole() []refusal {
	return []refusal{
		{"empty", "", jsonx.Limits{}, 0, "$", "empty"},
		{"white space only", " \n ", jsonx.Limits{}, 3, "$", "empty"},
		{"byte order mark", "\xef\xbb\xbf{}", jsonx.Limits{}, 0, "$", "byte order mark"},
		{"two values", "{} {}", jsonx.Limits{}, 3, "$", "exactly one"},
		{"trailing garbage", `{"a":1}x`, jsonx.Limits{}, 7, "$", "exactly one"},
		{"trailing NUL", "1\x00", jsonx.Limits{}, 1, "$", "exactly one"},
		{"too long", "[1,2] ", jsonx.Limits{Size: 5}, 5, "$", "the limit is 5"},
	}
}

func refusedNames() []refusal {
	dup := strings.Replace(members(1000, key), `"key 999"`, `"key 17"`, 1)
	return []refusal{
		{"duplicate", `{"a":1,"a":2}`, jsonx.Limits{}, 7, "$.a", `"a" is in this object twice`},
		{"duplicate escaped", `{"a":1,"\u0061":2}`, jsonx.Limits{}, 7, "$.a", `"a" is in this object twice`},
		{"duplicate, first escaped", `{"\u0061":1,"a":2}`, jsonx.Limits{}, 12, "$.a", `"a" is in this object twice`},
		{"duplicate surrogate pair", `{"😀":1,"\ud83d\ude00":2}`, jsonx.Limits{}, 10, `$["😀"]`, "twice"},
		{"duplicate slash", `{"a\/b":1,"a/b":2}`, jsonx.Limits{}, 10, `$["a/b"]`, "twice"},
		{"duplicate empty name", `{"":1,"":2}`, jsonx.Limits{}, 6, `$[""]`, "twice"},
		{"duplicate deep", `{"a":[1,{"b":{"x":1,"y":2,"x":3}}]}`, jsonx.Limits{}, 26, "$.a[1].b.x", "twice"},
		{"duplicate after a nested object", `{"a":{"b":1},"b":2,"a":3}`, jsonx.Limits{}, 19, "$.a", "twice"},
		{"duplicate among 1000", dup, jsonx.Limits{}, strings.LastIndex(dup, `"key 17"`), `$["key 17"]`, "twice"},
		{"duplicate 17th", members(16, key)[:len(members(16, key))-1] + `,"key 0":1}`, jsonx.Limits{}, len(members(16, key)), `$["key 0"]`, "twice"},
		{"duplicate 16th", members(15, key)[:len(members(15, key))-1] + `,"key 14":1}`, jsonx.Limits{}, len(members(15, key)), `$["key 14"]`, "twice"},
		{"duplicate behind large object", `{"a":` + members(99, key) + `,"a":1}`, jsonx.Limits{}, 6 + len(members(99, key)), "$.a", "twice"},
	}
}

func refusedNumbers() []refusal {
	return []refusal{
		{"NaN", `{"a":NaN}`, jsonx.Limits{}, 5, "$.a", "NaN"},
		{"Infinity", `[1,Infinity]`, jsonx.Limits{}, 3, "$[1]", "NaN"},
		{"minus Infinity", `-Infinity`, jsonx.Limits{}, 1, "$", "digit"},
		{"1e400", `{"n":[0,1e400]}`, jsonx.Limits{FiniteNumbers: true}, 8, "$.n[1]", "floating point"},
		{"-1e999", `-1e999`, jsonx.Limits{FiniteNumbers: true}, 0, "$", "floating point"},
		{"400 digits", strings.Repeat("9", 400), jsonx.Limits{FiniteNumbers: true}, 0, "$", "floating point"},
		{"150 digits and e200", strings.Repeat("9", 150) + "e200", jsonx.Limits{FiniteNumbers: true}, 0, "$", "floating point"},
		{"230 digits and e99", strings.Repeat("9", 230) + "e99", jsonx.Limits{FiniteNumbers: true}, 0, "$", "floating point"},
		{"leading zero", "[01]", jsonx.Limits{}, 1, "$[0]", "leading zero"},
		{"minus leading zero", "-012", jsonx.Limits{}, 1, "$", "leading zero"},
		{"plus", "+1", jsonx.Limits{}, 0, "$", "no JSON value"},
		{"point first", ".5", jsonx.Limits{}, 0, "$", "no JSON value"},
		{"point last", "5.", jsonx.Limits{}, 2, "$", "digit"},
		{"point then exponent", "5.e1", jsonx.Limits{}, 2, "$", "digit"},
		{"exponent without digits", "5e+", jsonx.Limits{}, 3, "$", "exponent"},
		{"minus alone", "-", jsonx.Limits{}, 1, "$", "digit"},
		{"hexadecimal", "0x10", jsonx.Limits{}, 1, "$", "exactly one"},
	}
}

func refusedText() []refusal {
	return []refusal{
		{"invalid UTF-8", "[\"abc\xffdef\"]", jsonx.Limits{}, 5, "$[0]", "invalid UTF-8"},
		{"invalid UTF-8 in a name", "{\"a\xc3\":1}", jsonx.Limits{}, 3, "$", "invalid UTF-8"},
		{"overlong UTF-8", "\"\xc0\xaf\"", jsonx.Limits{}, 1, "$", "invalid UTF-8"},
		{"surrogate in UTF-8", "\"é\xed\xa0\x80\"", jsonx.Limits{}, 3, "$", "invalid UTF-8"},
		{"cut UTF-8", "\"\xe6\x97", jsonx.Limits{}, 1, "$", "invalid UTF-8"},
		{"lone high surrogate", `{"a":"\ud800"}`, jsonx.Limits{}, 6, "$.a", "surrogate"},
		{"lone high surrogate at the end", `"\ud800`, jsonx.Limits{}, 1, "$", "surrogate"},
		{"high surrogate, other escape", `"\ud800\n"`, jsonx.Limits{}, 1, "$", "surrogate"},
		{"two high surrogates", `"\ud800\ud800"`, jsonx.Limits{}, 1, "$", "surrogate"},
		{"lone low surrogate", `"\udfff"`, jsonx.Limits{}, 1, "$", "surrogate"},
		{"surrogate in a name", `{"\ud800":1}`, jsonx.Limits{}, 2, "$", "surrogate"},
		{"NUL refused", `{"a":["x\u0000"]}`, jsonx.Limits{NoNUL: true}, 8, "$.a[0]", `\u0000`},
		{"NUL in a name refused", `{"\u0000":1}`, jsonx.Limits{NoNUL: true}, 2, "$", `\u0000`},
		{"NUL byte in a string", "\"a\x00\"", jsonx.Limits{}, 2, "$", "control"},
		{"line end in a string", "\"12345678\n\"", jsonx.Limits{}, 9, "$", "control"},
		{"unknown escape", `"\x41"`, jsonx.Limits{}, 1, "$", "escape"},
		{"short escape", `"\u12"`, jsonx.Limits{}, 1, "$", "hexadecimal"},
		{"wrong digits", `"\u12g4"`, jsonx.Limits{}, 1, "$", "hexadecimal"},
		{"cut string", `{"a":"b`, jsonx.Limits{}, 7, "$.a", "ends inside a string"},
		{"cut escape", `"\`, jsonx.Limits{}, 2, "$", "ends inside a string"},
	}
}

func refusedShape() []refusal {
	return []refusal{
		{"cut array", `[1`, jsonx.Limits{}, 2, "$", "array"},
		{"cut after comma", `[1,`, jsonx.Limits{}, 3, "$[1]", "ends"},
		{"cut object", `{"a":1`, jsonx.Limits{}, 6, "$", "object"},
		{"cut before colon", `{"a"`, jsonx.Limits{}, 4, "$", `':' must follow the name "a"`},
		{"cut after colon", `{"a":`, jsonx.Limits{}, 5, "$.a", "ends"},
		{"cut brace", `{`, jsonx.Limits{}, 1, "$", "name"},
		{"trailing comma in array", `[1,]`, jsonx.Limits{}, 3, "$[1]", "missing"},
		{"trailing comma in object", `{"a":1,}`, jsonx.Limits{}, 7, "$", "name"},
		{"no comma", `[1 2]`, jsonx.Limits{}, 3, "$", "','"},
		{"comment", `{"a":1 /* x */}`, jsonx.Limits{}, 7, "$", "','"},
		{"name without quotes", `{a:1}`, jsonx.Limits{}, 1, "$", "name"},
		{"single quotes", `['a']`, jsonx.Limits{}, 1, "$[0]", "double quotes"},
		{"wrong bracket", `[1}`, jsonx.Limits{}, 2, "$", "']'"},
		{"True", `True`, jsonx.Limits{}, 0, "$", "no JSON value"},
		{"cut word", `[tru]`, jsonx.Limits{}, 1, "$[0]", "true"},
		{"word at the end", `nul`, jsonx.Limits{}, 0, "$", "null"},
		{"other white space", "\u00a01", jsonx.Limits{}, 0, "$", "no JSON value"},
		{"vertical tab", "\v1", jsonx.Limits{}, 0, "$", "no JSON value"},
		{"depth 4 of 3", `{"a":[{"b":[1]}]}`, jsonx.Limits{Depth: 3}, 11, "$.a[0].b", "deeper than 3"},
		{"depth 513", nested(513), jsonx.Limits{}, 512, "", "deeper than 512"},
		{"depth 20000, never closed", strings.Repeat("[", 20000), jsonx.Limits{}, 512, "", "deeper than 512"},
		{"depth 10001", nested(10001), jsonx.Limits{Depth: 1 << 30}, 10000, "", "deeper than 10000"},
	}
}

func TestCheckRefuses(t *testing.T) {
	tests := slices.Concat(refusedWhole(), refusedNames(), refusedNumbers(), refusedText(), refusedShape())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := jsonx.Check([]byte(tt.in), tt.lim)
			var se *jsonx.SyntaxError
			if !errors.As(err, &se) {
				t.Fatalf("got %v, want a *SyntaxError", err)
			}
			if se.Offset != tt.at || !strings.Contains(se.Msg, tt.msg) {
				t.Errorf("got offset %d, %q, want %d and %q", se.Offset, se.Msg, tt.at, tt.msg)
			}
			if tt.path != "" && se.Path != tt.path {
				t.Errorf("got path %s, want %s", se.Path, tt.path)
			}
			if len(se.Path) > 600 || len(err.Error()) > 1000 {
				t.Errorf("the path has %d bytes, the message %d", len(se.Path), len(err.Error()))
			}
		})
	}
}

// TestPlainBytes puts each ASCII byte at each place of the eight that are read together.
func TestPlainBytes(t *testing.T) {
	for c := range byte(0x80) {
		for at := range 9 {
			in := []byte(`"12345678 12345678"`)
			in[1+at] = c
			if got := jsonx.Check(in, jsonx.Limits{}) == nil; got != json.Valid(in) {
				t.Errorf("%q: accepted is %v", in, got)
			}
		}
	}
}

func TestErrorPlace(t *testing.T) {
	in := "{\n  \"é\": 1,\n  \"日本\": {\"x y\": [0, tru]}\n}"
	var se *jsonx.SyntaxError
	if err := jsonx.Check([]byte(in), jsonx.Limits{}); !errors.As(err, &se) {
		t.Fatalf("got %v", err)
	}
	if se.Line != 3 || se.Column != 21 || se.Path != `$["日本"]["x y"][1]` {
		t.Errorf("got line %d column %d path %s", se.Line, se.Column, se.Path)
	}
	want := fmt.Sprintf(`JSON, line 3 column 21 (byte %d), at $["日本"]["x y"][1]: `, strings.Index(in, "tru"))
	if !strings.HasPrefix(se.Error(), want) {
		t.Errorf("got %s, want it to begin with %s", se.Error(), want)
	}
	t.Run("long names are cut", func(t *testing.T) {
		name := strings.Repeat("é", 5000)
		err := jsonx.Check([]byte(`{"`+name+`":{"`+name+`":1,"`+name+`":2}}`), jsonx.Limits{})
		if err == nil || len(err.Error()) > 1000 || !utf8.ValidString(err.Error()) {
			t.Errorf("got %v", err)
		}
	})
}

// TestManyNames would take minutes if names were compared pair by pair.
func TestManyNames(t *testing.T) {
	in := members(300000, key)
	if err := jsonx.Check([]byte(in), jsonx.Limits{}); err != nil {
		t.Fatal(err)
	}
	if err := jsonx.Check([]byte(in[:len(in)-1]+`,"key 299999":0}`), jsonx.Limits{}); err == nil {
		t.Error("a duplicate behind 300000 names was accepted")
	}
}

func TestCheckAllocations(t *testing.T) {
	in := plain(1 << 16)
	if n := testing.AllocsPerRun(20, func() {
		if err := jsonx.Check(in, jsonx.Limits{}); err != nil {
			t.Fatal(err)
		}
	}); n > 5 {
		t.Errorf("%v allocations for plain input", n)
	}
}

// plain is a list of messages of about n bytes.
func plain(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"n":17,"messages":[`)
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"role":"user","id":%d,"cost":%d.25,"done":true,"content":"%s"}`, i, i*7, strings.Repeat("some words of text ", 10))
	}
	b.WriteString("]}")
	return b.Bytes()
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,"x\ud83d\ude00",null,true,false]}`, `{"a":1,"\u0061":2}`, `"\ud800"`, "\"\xff\"", nested(20),
		members(20, key), "\xef\xbb\xbf1", `{"a":{"b":[{"c":"é"}]}} x`, `[1e400,-0,01]`, `"日本語\n"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		was := bytes.Clone(in)
		err := jsonx.Check(in, jsonx.Limits{})
		if !bytes.Equal(was, in) {
			t.Fatal("the input was changed")
		}
		if err == nil {
			if !json.Valid(in) || !utf8.Valid(in) {
				t.Fatalf("%q is accepted, but not valid", in)
			}
			if fault := disputed(in); fault != "" {
				t.Fatalf("%q is accepted in spite of %s", in, fault)
			}
			if err := jsonx.Check(in, jsonx.Limits{FiniteNumbers: true}); err == nil {
				var v any
				if err := json.Unmarshal(in, &v); err != nil {
					t.Fatalf("%q: %v", in, err)
				}
			}
			return
		}
		var se *jsonx.SyntaxError
		if !errors.As(err, &se) || se.Offset > len(in) || se.Line < 1 || se.Column < 1 || !utf8.ValidString(err.Error()) {
			t.Fatalf("%q: bad error %#v", in, err)
		}
		if json.Valid(in) && utf8.Valid(in) && disputed(in) == "" {
			t.Fatalf("%q is refused without a reason: %v", in, err)
		}
	})
}

// disputed names what valid JSON holds that Check must refuse. It is another, slower way
// to the same answer.
func disputed(in []byte) string {
	unpaired := bytes.ReplaceAll(in, []byte(`\\`), nil)
	for i := 0; i+6 <= len(unpaired); i++ {
		var r, next rune
		if n, _ := fmt.Sscanf(string(unpaired[i:i+6]), `\u%04x`, &r); n != 1 || r < 0xd800 || r > 0xdfff {
			continue
		}
		if i+12 > len(unpaired) {
			return "a surrogate at the end"
		}
		if n, _ := fmt.Sscanf(string(unpaired[i+6:i+12]), `\u%04x`, &next); r > 0xdbff || n != 1 || next < 0xdc00 || next > 0xdfff {
			return "a lone surrogate"
		}
		i += 11
	}
	d := json.NewDecoder(bytes.NewReader(in))
	d.UseNumber()
	var open []map[string]bool // nil for an array
	name := false              // the next string is a name
	for {
		tok, err := d.Token()
		if err != nil {
			return ""
		}
		text, isText := tok.(string)
		switch {
		case tok == json.Delim('{'):
			open, name = append(open, map[string]bool{}), true
		case tok == json.Delim('['):
			open, name = append(open, nil), false
		case tok == json.Delim(']') || tok == json.Delim('}'):
			open = open[:len(open)-1]
			name = len(open) > 0 && open[len(open)-1] != nil
		case name && isText:
			if open[len(open)-1][text] {
				return "a duplicate name"
			}
			open[len(open)-1][text], name = true, false
		default:
			name = len(open) > 0 && open[len(open)-1] != nil
		}
		if len(open) > jsonx.DefaultDepth {
			return "its depth"
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	for name, in := range map[string][]byte{
		"plain":  plain(1 << 20),
		"dense":  []byte("[" + strings.Repeat(`{"a":1,"b":[true,null,-2.5],"c":"x"},`, 20000) + "0]"),
		"indent": []byte("[" + strings.Repeat("\n        {\n            \"name\": \"value\"\n        },", 20000) + "0]"),
		"names":  []byte(members(50000, key)),
		"cjk":    []byte(`["` + strings.Repeat("日本語の文章", 50000) + `"]`),
		"escape": []byte(`["` + strings.Repeat(`line one\nline \"two\"\n`, 50000) + `"]`),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if err := jsonx.Check(in, jsonx.Limits{NoNUL: true, FiniteNumbers: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("encoding-json-valid-plain", func(b *testing.B) {
		in := plain(1 << 20)
		b.SetBytes(int64(len(in)))
		for b.Loop() {
			json.Valid(in)
		}
	})
}
