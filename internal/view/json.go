package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
)

// WriteJSON writes v as one line of JSON. Characters that a terminal could act on
// are written as escapes, so the line is safe to look at and its value unchanged.
func WriteJSON(w io.Writer, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// encode is v as JSON without a newline, safe to look at.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, &stint.Error{Code: stint.Internal, Op: "json", Err: err}
	}
	return safeJSON(bytes.TrimRight(buf.Bytes(), "\n")), nil
}

// safeJSON escapes what a terminal could act on. In JSON such characters stand
// only inside strings, where an escape means the same.
func safeJSON(b []byte) []byte {
	if isSafe(string(b)) {
		return b
	}
	out := make([]byte, 0, len(b)+16)
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		switch {
		case r < 0x7f || r != utf8.RuneError && isSafe(string(r)):
			out = append(out, b[i:i+n]...)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			out = appendEscape(appendEscape(out, hi), lo)
		default:
			out = appendEscape(out, r)
		}
		i += n
	}
	return out
}

func appendEscape(b []byte, r rune) []byte {
	h := strconv.FormatInt(int64(r), 16)
	return append(b, `\u`+strings.Repeat("0", 4-len(h))+h...)
}

// isSafe reports whether s can be printed as it is.
func isSafe(s string) bool { return term.Escape(s) == s }

// Field returns one member of v's JSON, named by its path: "waiting.for",
// "loops.0.headline". A string is returned without quotes, anything else as JSON.
// A path that leads nowhere is [stint.NotFound] and names the members there are.
func Field(v any, path string) (string, error) {
	b, err := encode(v)
	if err != nil {
		return "", err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var at any
	if err := dec.Decode(&at); err != nil {
		return "", &stint.Error{Code: stint.Internal, Op: "field", Err: err}
	}
	for name := range strings.SplitSeq(path, ".") {
		next, known := member(at, name)
		if known != "" {
			in := ""
			if name != path {
				in = fmt.Sprintf(" in %q", path)
			}
			err := stint.NotFound.Errorf("field", "there is no member %q%s", name, in)
			err.Hint = "there are: " + known
			return "", err
		}
		at = next
	}
	if s, ok := at.(string); ok {
		return s, nil
	}
	b, err = encode(at)
	return string(b), err
}

// member returns a member of an object or an array, or else in words which there
// are.
func member(at any, name string) (v any, known string) {
	switch at := at.(type) {
	case map[string]any:
		if v, ok := at[name]; ok {
			return v, ""
		}
		return nil, strings.Join(sortedKeys(at), ", ")
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(at) {
			return at[i], ""
		}
		return nil, "numbers from 0, " + strconv.Itoa(len(at)) + " of them"
	}
	return nil, "none, it is a plain value"
}

// whole is t in UTC, to the microsecond, as JSON members have it; nil for no time.
func whole(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Microsecond)
	return &t
}

// Big is an integer that JSON readers may not hold exactly: a string of digits.
type Big int64

// MarshalText writes the digits.
func (n Big) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(n), 10), nil }

// UnmarshalText reads digits; other input is [stint.Invalid].
func (n *Big) UnmarshalText(b []byte) error {
	v, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return stint.Invalid.Errorf("number", "%q is no integer", clip(string(b)))
	}
	*n = Big(v)
	return nil
}
