package stint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"unicode/utf8"
)

// Marshal turns a Go value into JSON for a state, a step's input or its result.
// It writes <, > and & as they are, and keeps the digits of json.Number. What
// JSON cannot hold (a function, a channel, NaN, a string that is not UTF-8, a value
// that contains itself) is [Invalid], and the error names the path to it in the names
// that the JSON would have: "$.jobs[3].done". A long path is cut in its middle.
//
// Dates become RFC 3339 strings and byte slices base64, as encoding/json does it.
func Marshal(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	out := bytes.TrimRight(buf.Bytes(), "\n")
	// encoding/json writes \ufffd for bytes that are not UTF-8 and for nothing else; but
	// a [json.Marshaler] may have meant it, and may write any bytes itself.
	replaced := err == nil && (bytes.Contains(out, []byte(`\ufffd`)) || !utf8.Valid(out))
	if err == nil && !replaced {
		return out, nil
	}
	var c culprit
	c.find(reflect.ValueOf(v), nil)
	switch {
	case c.what != "":
	case err != nil:
		c.what = err.Error()
	default:
		return out, nil
	}
	return nil, &Error{Code: Invalid, Op: "marshal", Err: fmt.Errorf("%s: %s", c.path(), c.what),
		Hint: "store what JSON can hold: write a date as text, a set as a list, bytes as base64"}
}
