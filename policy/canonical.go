package policy

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/stint-dev/stint"
)

// Canonical writes JSON in the one form that equal values have: without blanks, members in
// the order of RFC 8785, texts with as few escapes as can be. Numbers keep their digits:
// 1 and 1.0 are different, since what gets them may tell them apart. What has no one
// meaning, as an object with a name twice, is [stint.Invalid]. No bytes count as null.
func Canonical(input json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(input)) == 0 {
		return json.RawMessage("null"), nil
	}
	v, err := exact(input)
	if err != nil {
		return nil, &stint.Error{Code: stint.Invalid, Op: "policy", Err: fmt.Errorf("the arguments cannot be read: %w", err), Hint: "send one JSON value in which no name is twice"}
	}
	return appendValue(make([]byte, 0, len(input)), v), nil
}

func appendValue(out []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendText(out, v)
	case json.Number:
		return append(out, v...)
	case bool:
		if v {
			return append(out, "true"...)
		}
		return append(out, "false"...)
	case []any:
		out = append(out, '[')
		for i := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendValue(out, v[i])
		}
		return append(out, ']')
	case map[string]any:
		out = append(out, '{')
		for i, name := range slices.SortedFunc(maps.Keys(v), order) {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendText(out, name), ':')
			out = appendValue(out, v[name])
		}
		return append(out, '}')
	}
	return append(out, "null"...)
}

// order compares names by their UTF-16 units. Below the surrogates that is the order of
// the bytes of UTF-8.
func order(a, b string) int {
	high := func(r rune) bool { return r >= 0xd800 }
	if !strings.ContainsFunc(a, high) || !strings.ContainsFunc(b, high) {
		return cmp.Compare(a, b)
	}
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

func appendText(out []byte, s string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c >= ' ':
			out = append(out, c)
		case strings.IndexByte("\b\t\n\f\r", c) >= 0:
			out = append(out, '\\', "btnfr"[strings.IndexByte("\b\t\n\f\r", c)])
		default:
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(out, '"')
}

// Digest is what a decision is bound to: the name of a step (or a verb), its class, and its
// arguments as [Canonical] writes them.
func Digest(name string, effect stint.Effect, canonical json.RawMessage) stint.Hash {
	h := sha256.New()
	for _, part := range [][]byte{[]byte("policy digest 1"), []byte(name), []byte(effect), canonical} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return stint.Hash(h.Sum(nil))
}
