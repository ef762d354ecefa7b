package policy_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/policy"
)

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "null",
		" \n":                           "null",
		" null ":                        "null",
		`{ "b" : 1 , "a" : [ ] }`:       `{"a":[],"b":1}`,
		`{"a":{"d":{},"c":true},"":""}`: `{"":"","a":{"c":true,"d":{}}}`,
		`[1, 1.0, 1e0, -0, 9007199254740993, 123456789012345678901234567890]`: `[1,1.0,1e0,-0,9007199254740993,123456789012345678901234567890]`,
		`"\u0041\/\u00e9\u20ac\ud83d\ude00"`:                                  `"A/é€😀"`,
		`"\u0008\t\n\u000c\r\u000b\u001f\u0000\"\\<>&\u2028\u007f"`:           "\"\\b\\t\\n\\f\\r\\u000b\\u001f\\u0000\\\"\\\\<>&\u2028\x7f\"",
		// The example of RFC 8785, section 3.2.3: UTF-16 units, so the smiley stands before what has fewer bytes.
		`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`: "{\"\\r\":2,\"1\":4,\"\u0080\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\ufb33\":3}",
	} {
		got, err := policy.Canonical(json.RawMessage(in))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		`{"a":1,"a":1}`: "twice", `{"a":1,"\u0061":1}`: "twice", `{`: "a member begins", `1 2`: "exactly one", "\"\xff\"": "UTF-8", `"\ud800"`: "surrogate", `NaN`: "NaN",
	} {
		got, err := policy.Canonical(json.RawMessage(in))
		if stint.CodeOf(err) != stint.Invalid || !strings.Contains(err.Error(), want) || got != nil {
			t.Errorf("%s: got %s, %v", in, got, err)
		}
	}
}

// value draws a JSON value as Go has it, with numbers as they are written.
func value(t *rapid.T, depth int) any {
	texts := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b", "é", "€", "😀", "\ufb33", "\n", "\"\\", "\x00", "a b"}), rapid.StringN(0, 3, -1))
	switch n := rapid.IntRange(0, 6).Draw(t, "kind"); {
	case n == 5 && depth > 0:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			list = append(list, value(t, depth-1))
		}
		return list
	case n == 6 && depth > 0:
		m := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			m[strings.ToValidUTF8(texts.Draw(t, "name"), "")] = value(t, depth-1)
		}
		return m
	case n == 0:
		return nil
	case n == 1:
		return rapid.Bool().Draw(t, "truth")
	case n == 2:
		return strings.ToValidUTF8(texts.Draw(t, "text"), "")
	}
	return json.Number(rapid.SampledFrom([]string{"0", "-0", "1", "1.0", "1e0", "1E0", "10", "9007199254740992", "9007199254740993", "1e400"}).Draw(t, "number"))
}

// written writes a value in one of the many forms that it has.
func written(t *rapid.T, v any) string {
	blank := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "blank") }
	text := func(s string) string {
		var b strings.Builder
		for _, r := range s {
			if rapid.Bool().Draw(t, "escaped") || r < ' ' || r == '"' || r == '\\' {
				if r > 0xffff {
					fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
				} else {
					fmt.Fprintf(&b, `\u%04x`, r)
				}
				continue
			}
			b.WriteRune(r)
		}
		return `"` + b.String() + `"`
	}
	var parts []string
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v { // in any order
			names = append(names, name)
		}
		for _, name := range names {
			parts = append(parts, blank()+text(name)+blank()+":"+blank()+written(t, v[name])+blank())
		}
		return "{" + strings.Join(parts, ",") + blank() + "}"
	case []any:
		for _, e := range v {
			parts = append(parts, blank()+written(t, e)+blank())
		}
		return "[" + strings.Join(parts, ",") + blank() + "]"
	case string:
		return text(v)
	case json.Number:
		return v.String()
	case bool:
		return fmt.Sprint(v)
	}
	return "null"
}

// Equal values have one canonical form, which is its own; different values have different
// ones, and different digests.
func TestCanonicalProperty(t *testing.T) {
	form := func(t *rapid.T, s string) json.RawMessage {
		got, err := policy.Canonical(json.RawMessage(s))
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		return got
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := value(t, 3), value(t, 3)
		one, same, other := form(t, written(t, a)), form(t, written(t, a)), form(t, written(t, b))
		if string(one) != string(same) || string(form(t, string(one))) != string(one) || !json.Valid(one) {
			t.Fatalf("%s and %s are one value", one, same)
		}
		equal := reflect.DeepEqual(a, b)
		if equal != (string(one) == string(other)) {
			t.Fatalf("%s and %s: equal is %v", one, other, equal)
		}
		if digest := policy.Digest("t", stint.Once, one); equal != (digest == policy.Digest("t", stint.Once, other)) || digest == policy.Digest("u", stint.Once, one) || digest == policy.Digest("t", stint.Read, one) {
			t.Fatalf("%s and %s: the digests are wrong", one, other)
		}
	})
}

// A digest is kept in journals: it stays as it is, and no part of it runs into the next.
func TestDigestIsStable(t *testing.T) {
	if got := policy.Digest("github.push", stint.Once, json.RawMessage(`{"a":1}`)).String(); got != "af4d7fb7417eba9642fa42fee470f66409f1255eae3dcfd3a25cabf52227a933" {
		t.Errorf("got %s", got)
	}
	if policy.Digest("ab", "c", nil) == policy.Digest("a", "bc", nil) {
		t.Error("parts run into each other")
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add([]byte(`{"a":[1,"\u0041"],"b":null}`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := policy.Canonical(b)
		if err != nil {
			return
		}
		again, err := policy.Canonical(got)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s became %s, %v", got, again, err)
		}
		var x, y any
		if len(strings.TrimSpace(string(b))) > 0 && (json.Unmarshal(b, &x) != nil) != (json.Unmarshal(got, &y) != nil) || len(b) > 0 && x != nil && !reflect.DeepEqual(x, y) {
			t.Errorf("%s became %s", b, got)
		}
	})
}
