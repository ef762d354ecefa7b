package compare

import (
	"encoding/json"
	"strings"
	"testing"
)

// A pointer leads to the value that its tokens name, and what is none is refused.
func FuzzPointer(f *testing.F) {
	f.Add("/a/0", `{"a":[1]}`)
	f.Add("/a~1b/~0", `{"a/b":{"~":null}}`)
	f.Add("/~2", `{}`)
	f.Add("//", `{"":{"":7}}`)
	f.Fuzz(func(t *testing.T, p, state string) {
		path, err := parsePointer(p)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, token := range path {
			again.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1"))
		}
		if again.String() != p {
			t.Fatalf("%q is read as %q", p, path)
		}
		if v, ok := resolve(json.RawMessage(state), path); ok && json.Valid([]byte(state)) && !json.Valid(v) {
			t.Fatalf("%q of %q is %q", p, state, v)
		}
	})
}
