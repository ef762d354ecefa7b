package jsonx_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/jsonx"
)

func TestExact(t *testing.T) {
	dec := json.NewDecoder(strings.NewReader(`{"id": 9007199254740993, "list": [1, -1, 1.5, 1e3, 1E400, 9223372036854775807, 9223372036854775808, -9223372036854775808, "1", true, null, {"a": 2}]}`))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"id":   int64(9007199254740993),
		"list": []any{int64(1), int64(-1), 1.5, 1000.0, "1E400", int64(9223372036854775807), "9223372036854775808", int64(-9223372036854775808), "1", true, nil, map[string]any{"a": int64(2)}},
	}
	if got := jsonx.Exact(v); !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, want %#v", got, want)
	}
}
