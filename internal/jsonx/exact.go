package jsonx

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Exact replaces each [json.Number] in v, in place where it can, for expressions: whole
// numbers of 64 bits by int64, those with a point or an exponent by float64, and what is
// too large for that by the text of its digits. So no id is ever rounded.
func Exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		s := v.String()
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return i
		}
		if !strings.ContainsAny(s, ".eE") {
			return s
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
		return s
	case []any:
		for i := range v {
			v[i] = Exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = Exact(v[k])
		}
	}
	return v
}
