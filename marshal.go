package stint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
)

// Marshal turns a Go value into JSON for a state, a step's input or its result.
// It writes <, > and & as they are, and keeps the digits of json.Number. What
// JSON cannot hold (a function, a channel, NaN, a value that contains itself) is
// [Invalid], and the error names the path to it: "$.jobs[3].done".
//
// Dates become RFC 3339 strings and byte slices base64, as encoding/json does it.
func Marshal(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		path, what := culprit(reflect.ValueOf(v), "$", 0)
		if path == "" {
			path, what = "$", err.Error()
		}
		return nil, &Error{Code: Invalid, Op: "marshal", Err: fmt.Errorf("%s: %s", path, what),
			Hint: "store what JSON can hold: write a date as text, a set as a list, bytes as base64"}
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// maxMarshalDepth bounds the search for a value that contains itself.
const maxMarshalDepth = 200

// culprit finds the first value below v that encoding/json refuses, with its path.
func culprit(v reflect.Value, path string, depth int) (string, string) {
	if !v.IsValid() {
		return "", ""
	}
	if depth > maxMarshalDepth {
		return path, "nested more than 200 deep, or contains itself"
	}
	if v.CanInterface() {
		if _, err := json.Marshal(v.Interface()); err == nil {
			return "", ""
		} else if m := (*json.MarshalerError)(nil); errors.As(err, &m) && v.Type().Implements(reflect.TypeFor[json.Marshaler]()) {
			return path, err.Error()
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return culprit(v.Elem(), path, depth+1)
	case reflect.Map:
		for _, k := range v.MapKeys() {
			if p, w := culprit(v.MapIndex(k), path+"."+fmt.Sprint(k), depth+1); p != "" {
				return p, w
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if p, w := culprit(v.Index(i), path+"["+strconv.Itoa(i)+"]", depth+1); p != "" {
				return p, w
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				if p, w := culprit(v.Field(i), path+"."+f.Name, depth+1); p != "" {
					return p, w
				}
			}
		}
	case reflect.Func, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return path, "JSON cannot hold a " + v.Type().String()
	case reflect.Float32, reflect.Float64:
		return path, fmt.Sprintf("JSON cannot hold %v", v.Float())
	}
	return "", ""
}
