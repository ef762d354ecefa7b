package jsonx_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/jsonx"
	"pgregory.net/rapid"
)

func TestMerge(t *testing.T) {
	many := members(40, key)
	tests := []struct{ name, doc, patch, want string }{
		// RFC 7396, appendix A, in its order.
		{"A1", `{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{"A2", `{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{"A3", `{"a":"b"}`, `{"a":null}`, `{}`},
		{"A4", `{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{"A5", `{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{"A6", `{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{"A7", `{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{"A8", `{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{"A9", `["a","b"]`, `["c","d"]`, `["c","d"]`},
		{"A10", `{"a":"b"}`, `["c"]`, `["c"]`},
		{"A11", `{"a":"foo"}`, `null`, `null`},
		{"A12", `{"a":"foo"}`, `"bar"`, `"bar"`},
		{"A13", `{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{"A14", `[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{"A15", `{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},

		{"no document", ``, `{"a":{"b":null,"c":1}}`, `{"a":{"c":1}}`},
		{"no document, scalar patch", ``, ` 5 `, `5`},
		{"no document, empty patch", ``, `{}`, `{}`},
		{"empty patch keeps all bytes", " {\n \"a\" : 1.0 } \n", `{}`, " {\n \"a\" : 1.0 } \n"},
		{"empty patch, document no object", `[1]`, `{}`, `{}`},
		{"untouched members keep their bytes", `{"id":9007199254740993,"e":"\u00e9\/<&>","f":1.50E+2, "o" :{ "x":[ 1,2 ] },"a":1}`, `{"a":2}`,
			`{"id":9007199254740993,"e":"\u00e9\/<&>","f":1.50E+2, "o" :{ "x":[ 1,2 ] },"a":2}`},
		{"patch values keep their bytes", `{"a":1}`, `{"a":[ 1, null,{"x":null} ],"b":{ "c" : 1.0 },"d":"\u0061"}`, `{"a":[ 1, null,{"x":null} ],"b":{ "c" : 1.0 },"d":"\u0061"}`},
		{"sibling stays", `{"ticket":{"id":7,"summary":"old","assignee":"eva"},"n":1}`, `{"ticket":{"summary":"disk"}}`, `{"ticket":{"id":7,"summary":"disk","assignee":"eva"},"n":1}`},
		{"null of a missing member", `{"a":1}`, `{"b":null}`, `{"a":1}`},
		{"null deep, missing", `{"a":{}}`, `{"a":{"b":{"c":null}}}`, `{"a":{"b":{}}}`},
		{"first of three goes", `{"a":1,"b":2,"c":3}`, `{"a":null}`, `{"b":2,"c":3}`},
		{"middle of three goes", `{"a":1,"b":2,"c":3}`, `{"b":null}`, `{"a":1,"c":3}`},
		{"last of three goes", `{"a":1,"b":2,"c":3}`, `{"c":null}`, `{"a":1,"b":2}`},
		{"first and last go", `{"a":1,"b":2,"c":3}`, `{"a":null,"c":null}`, `{"b":2}`},
		{"all go, one comes", `{"a":1,"b":2}`, `{"a":null,"b":null,"c":3}`, `{"c":3}`},
		{"order of the document, then of the patch", `{"c":1,"b":2}`, `{"z":1,"b":3,"y":2,"c":4}`, `{"c":4,"b":3,"z":1,"y":2}`},
		{"object replaces scalar", `{"a":1}`, `{"a":{"b":1,"c":null,"d":{"e":null}}}`, `{"a":{"b":1,"d":{}}}`},
		{"object replaces array", `{"a":[1,2]}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{"object replaces null", `{"a":null}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{"empty object keeps an object", `{"a":{"b":1}}`, `{"a":{}}`, `{"a":{"b":1}}`},
		{"empty object replaces a scalar", `{"a":1}`, `{"a":{}}`, `{"a":{}}`},
		{"scalar replaces object", `{"a":{"b":{"c":1}}}`, `{"a":false}`, `{"a":false}`},
		{"names are compared unescaped", `{"\u0061":1,"é":2}`, `{"a":3,"\u00e9":null}`, `{"\u0061":3}`},
		{"names are case-sensitive", `{"a":1}`, `{"A":2}`, `{"a":1,"A":2}`},
		{"strings with braces", `{"a":"}\"],{","b":"\\"}`, `{"b":1,"c":"{\"x\":null}"}`, `{"a":"}\"],{","b":1,"c":"{\"x\":null}"}`},
		{"indented", "{\n  \"a\": 1,\n  \"b\": {\n    \"x\": 1 ,\n    \"y\": 2\n  },\n  \"c\": 3\n}\n", `{"b":{"y":5,"z":6},"c":null}`,
			"{\n  \"a\": 1,\n  \"b\": {\n    \"x\": 1 ,\n    \"y\": 5,\"z\":6\n  }\n}\n"},
		{"indented, all go", "{\n  \"a\": 1\n}", `{"a":null}`, "{\n}"},
		{"space before a comma goes with its member", `{"a":1 ,"b":2 ,"c":3}`, `{"b":null}`, `{"a":1 ,"c":3}`},
		{"spaced empty object", `{ }`, `{"a":1}`, `{"a":1 }`},
		{"large patch", many, strings.Replace(many, `"key 39":39`, `"key 39":null,"new":0`, 1), strings.Replace(many, `"key 39":39`, `"new":0`, 1)},
		{"large patch on its own part", `{"key 5":0,"other":1}`, many, `{"key 5":5,"other":1,` + strings.Replace(many[1:], `"key 5":5,`, ``, 1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, patch := []byte(tt.doc), []byte(tt.patch)
			got, err := jsonx.Merge(doc, patch)
			if err != nil || string(got) != tt.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
			if string(doc) != tt.doc || string(patch) != tt.patch {
				t.Error("an input was changed")
			}
			if tt.doc != "" {
				compareWithSlow(t, doc, patch, got)
			}
		})
	}
}

func TestMergeRefuses(t *testing.T) {
	for _, tt := range []struct{ name, doc, patch, who string }{
		{"document duplicate", `{"a":1,"a":2}`, `{}`, "document"},
		{"document blank", ` `, `{}`, "document"},
		{"patch duplicate", `{}`, `{"a":1,"\u0061":null}`, "merge patch"},
		{"patch empty", `{}`, ``, "merge patch"},
		{"patch too deep", `{}`, nested(513), "merge patch"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := jsonx.Merge([]byte(tt.doc), []byte(tt.patch))
			var se *jsonx.SyntaxError
			if got != nil || !errors.As(err, &se) || !strings.Contains(err.Error(), tt.who) {
				t.Errorf("got %s, %v, want an error of the %s", got, err, tt.who)
			}
		})
	}
}

// decoded gives the meaning of a document that Check accepts.
func decoded(t fataler, b []byte) any {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return v
}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

// slowMerge is the pseudocode of RFC 7396, section 2, on maps.
func slowMerge(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if old, ok := target.(map[string]any); ok {
		for k, v := range old {
			out[k] = v
		}
	}
	for k, v := range p {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = slowMerge(out[k], v)
		}
	}
	return out
}

func compareWithSlow(t fataler, doc, patch, got []byte) {
	t.Helper()
	if err := jsonx.Check(got, jsonx.Limits{}); err != nil {
		t.Fatalf("the result %s is refused: %v", got, err)
	}
	if want := slowMerge(decoded(t, doc), decoded(t, patch)); !reflect.DeepEqual(decoded(t, got), want) {
		t.Fatalf("doc %s, patch %s: got %s, want %v", doc, patch, got, want)
	}
}

// drawValue writes a JSON value with few names, so that patches meet documents, in many
// spellings.
func drawValue(t *rapid.T, depth int) string {
	space := rapid.SampledFrom([]string{"", "", "", " ", "\n\t"})
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind = 5
	}
	names := []string{`"a"`, `"b"`, `"c\/"`, `"~d"`, `"\u0065"`, `""`}
	if rapid.Bool().Draw(t, "respelled") {
		names = []string{`"\u0061"`, `"b"`, `"c/"`, `"\u007ed"`, `"e"`, `""`}
	}
	for i := range 3 * rapid.IntRange(0, 8).Draw(t, "more names") {
		names = append(names, fmt.Sprintf(`"m%d"`, i))
	}
	if kind <= 3 {
		var parts []string
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, len(names), rapid.ID).Draw(t, "names") {
			s := space.Draw(t, "space")
			parts = append(parts, s+name+s+":"+space.Draw(t, "space")+drawValue(t, depth-1)+s)
		}
		return "{" + strings.Join(parts, ",") + space.Draw(t, "space") + "}"
	}
	if kind == 4 {
		return "[" + drawValue(t, depth-1) + " ,null]"
	}
	return rapid.SampledFrom([]string{`null`, `null`, `1`, `1.0`, `9007199254740993`, `"x"`, `"{\"\\"`, `true`, `{}`, `[]`, `[{"a":null}]`}).Draw(t, "leaf")
}

func TestMergeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc, patch := []byte(drawValue(t, 3)), []byte(drawValue(t, 3))
		got, err := jsonx.Merge(doc, patch)
		if err != nil {
			t.Fatalf("doc %s, patch %s: %v", doc, patch, err)
		}
		compareWithSlow(t, doc, patch, got)
		again, err := jsonx.Merge(got, patch)
		if err != nil || !bytes.Equal(got, again) {
			t.Fatalf("patching %s again with %s gives %s, %v", got, patch, again, err)
		}
		if doc[0] == '{' {
			if same, err := jsonx.Merge(doc, []byte(`{}`)); err != nil || !bytes.Equal(same, doc) {
				t.Fatalf("an empty patch made %s of %s, %v", same, doc, err)
			}
		}
	})
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1},"c":[1]}`), []byte(`{"a":{"b":null,"d":{"e":null}},"c":{}}`))
	f.Add([]byte("{ \"a\" :1 ,\n\"b\": \"\\u0061\" }"), []byte(`{"\u0061":null,"z":1.0}`))
	f.Add([]byte(`[]`), []byte(`{"a":{"b":null}}`))
	f.Add([]byte(members(20, key)), []byte(members(18, func(i int) string { return key(2 * i) })))
	f.Fuzz(func(t *testing.T, doc, patch []byte) {
		got, err := jsonx.Merge(doc, patch)
		bad := jsonx.Check(patch, jsonx.Limits{}) != nil || len(doc) > 0 && jsonx.Check(doc, jsonx.Limits{}) != nil
		if bad != (err != nil) {
			t.Fatalf("got %s, %v, want an error: %v", got, err, bad)
		}
		if err != nil {
			return
		}
		if len(doc) == 0 {
			doc = []byte(`{}`)
		}
		compareWithSlow(t, doc, patch, got)
		if len(got) > len(doc)+len(patch) {
			t.Fatalf("%d bytes of %d and %d", len(got), len(doc), len(patch))
		}
	})
}

func TestKeys(t *testing.T) {
	for _, tt := range []struct {
		patch string
		want  []string
	}{
		{`{}`, nil},
		{`{"a":1}`, []string{"/a"}},
		{`{"b":null,"a":{"c":[{"x":1}],"d":{"e":{}}}}`, []string{"/b", "/a/c", "/a/d/e"}},
		{`{"a/b":{"~":1},"":{"":2},"\u0061":3}`, []string{"/a~1b/~0", "//", "/a"}},
		{`{"~1":1}`, []string{"/~01"}},
		{`5`, []string{""}},
		{`[{"a":1}]`, []string{""}},
		{`null`, []string{""}},
	} {
		t.Run(tt.patch, func(t *testing.T) {
			got, err := jsonx.Keys([]byte(tt.patch))
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
	t.Run("bad patch", func(t *testing.T) {
		var se *jsonx.SyntaxError
		if _, err := jsonx.Keys([]byte(`{`)); !errors.As(err, &se) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("paths far longer than the patch", func(t *testing.T) {
		patch := `{"` + strings.Repeat("x", 100000) + `":` + members(10000, key) + `}`
		if got, err := jsonx.Keys([]byte(patch)); err == nil || got != nil {
			t.Errorf("%d paths, %v, want an error", len(got), err)
		}
	})
}

func TestConflict(t *testing.T) {
	many := members(30, key)
	for _, tt := range []struct{ name, a, b, want string }{
		{"other keys", `{"a":1}`, `{"b":1}`, ""},
		{"same key", `{"a":1}`, `{"b":0,"a":2}`, "/a"},
		{"same value", `{"a":1}`, `{"a":1}`, "/a"},
		{"same key, other spelling", `{"\u0061":1}`, `{"a":2}`, "/a"},
		{"delete and write", `{"a":null}`, `{"a":2}`, "/a"},
		{"two deletes", `{"a":null}`, `{"a":null}`, "/a"},
		{"siblings in one object", `{"a":{"x":1,"y":1}}`, `{"a":{"z":2}}`, ""},
		{"deep", `{"a":{"x":1,"y":{"~/":1}}}`, `{"a":{"y":{"~/":3},"z":1}}`, "/a/y/~0~1"},
		{"first writes an ancestor", `{"a":1}`, `{"a":{"x":{"y":1,"z":1}}}`, "/a/x/y"},
		{"second writes an ancestor", `{"a":{"x":{"y":1}}}`, `{"a":null}`, "/a/x/y"},
		{"array is a value", `{"a":[1]}`, `{"a":{"x":1}}`, "/a/x"},
		{"empty object is a value", `{"a":{}}`, `{"a":{"x":1}}`, "/a/x"},
		{"two empty objects", `{"a":{}}`, `{"a":{}}`, "/a"},
		{"first in the order of the first", `{"z":1,"b":1,"c":1}`, `{"c":1,"b":1}`, "/b"},
		{"names with one beginning", `{"a":1}`, `{"ab":1}`, ""},
		{"nothing written", `{}`, `{"a":1}`, ""},
		{"nothing by both", `{}`, `{}`, ""},
		{"whole document by one", `5`, `{"a":{"b":1}}`, "/a/b"},
		{"whole document by the other", `{"a":{"b":1}}`, `[]`, "/a/b"},
		{"whole document by both", `5`, `null`, "#"},
		{"whole document and an empty patch", `{}`, `null`, "#"},
		{"many", many, `{"x":1,"key 29":1,"key 28":1}`, "/key 28"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := jsonx.Conflict([]byte(tt.a), []byte(tt.b))
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
	for _, bad := range [][2]string{{`{`, `{}`}, {`{}`, `{"a":1,"a":1}`}} {
		t.Run("refused "+bad[0]+bad[1], func(t *testing.T) {
			var se *jsonx.SyntaxError
			if _, err := jsonx.Conflict([]byte(bad[0]), []byte(bad[1])); !errors.As(err, &se) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestConflictProperty holds Conflict against Keys, and against what it is for.
func TestConflictProperty(t *testing.T) {
	merge := func(t *rapid.T, doc, patch []byte) []byte {
		got, err := jsonx.Merge(doc, patch)
		if err != nil {
			t.Fatalf("%v", err)
		}
		return got
	}
	rapid.Check(t, func(t *rapid.T) {
		doc, a, b := []byte(drawValue(t, 2)), []byte(drawValue(t, 2)), []byte(drawValue(t, 2))
		path, err := jsonx.Conflict(a, b)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if back, err := jsonx.Conflict(b, a); err != nil || (back == "") != (path == "") {
			t.Fatalf("%s and %s: %q, in the other order %q, %v", a, b, path, back, err)
		}
		keysA, errA := jsonx.Keys(a)
		keysB, errB := jsonx.Keys(b)
		if errA != nil || errB != nil {
			t.Fatalf("%v %v", errA, errB)
		}
		var both []string
		for _, x := range keysA {
			for _, y := range keysB {
				if strings.HasPrefix(x+"/", y+"/") {
					both = append(both, x)
				} else if strings.HasPrefix(y+"/", x+"/") {
					both = append(both, y)
				}
			}
		}
		switch {
		case path == "#":
			if a[0] == '{' && b[0] == '{' {
				t.Fatalf("%s and %s: %q", a, b, path)
			}
		case path == "":
			if len(both) > 0 {
				t.Fatalf("%s and %s: no conflict, but both write %q", a, b, both)
			}
			ab, ba := merge(t, merge(t, doc, a), b), merge(t, merge(t, doc, b), a)
			if !reflect.DeepEqual(decoded(t, ab), decoded(t, ba)) {
				t.Fatalf("no conflict of %s and %s, but %s becomes %s or %s", a, b, doc, ab, ba)
			}
		case len(both) == 0 || path != both[0]:
			t.Fatalf("%s and %s: %q, but both write %q", a, b, path, both)
		}
	})
}

// TestMergeLinear has input that a merge which reads nested values again at each level
// would need minutes for.
func TestMergeLinear(t *testing.T) {
	deep := func(inner string) []byte {
		return []byte(strings.Repeat(`{"a":`, 500) + inner + strings.Repeat(`}`, 500))
	}
	long := `{"s":"` + strings.Repeat("x", 8<<20) + `"}`
	got, err := jsonx.Merge(deep(long), deep(`{"t":"`+strings.Repeat("y", 8<<20)+`"}`))
	if err != nil || len(got) < 16<<20 {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if _, err := jsonx.Merge([]byte(members(100000, key)), []byte(members(100000, func(i int) string { return key(i + 50000) }))); err != nil {
		t.Error(err)
	}
	name := strings.Repeat("n", 20000)
	chain := []byte(strings.Repeat(`{"`+name+`":`, 500) + `1` + strings.Repeat(`}`, 500))
	if path, err := jsonx.Conflict(chain, chain); err != nil || len(path) != 500*(1+len(name)) {
		t.Errorf("a path of %d bytes, %v", len(path), err)
	}
}

func BenchmarkMerge(b *testing.B) {
	doc := plain(1 << 20)
	patch := []byte(`{"n":18,"memory":{"last":"ok","old":null}}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := jsonx.Merge(doc, patch); err != nil {
			b.Fatal(err)
		}
	}
}
