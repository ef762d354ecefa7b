package cases_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// bigints are the numbers that the tool of that name gives.
const bigints = `{"id": 2512292042121000001, "neg": -9223372036854775808, "u64": 18446744073709551615}`

// deed is a line of the log of effects.
type deed struct{ tool, key, args string }

// deeds are the effects that took place, oldest first.
func (s *site) deeds() (all []deed) {
	s.t.Helper()
	b, err := os.ReadFile(s.path("effects"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	for l := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSuffix(l, "\n"), " ", 3)
		if len(f) != 3 {
			s.t.Fatalf("the log of effects has the line %q", l)
		}
		all = append(all, deed{f[0], f[1], f[2]})
	}
	return all
}

// did checks which effects took place: by their arguments, in order.
func (s *site) did(want ...string) {
	s.t.Helper()
	var got []string
	for _, d := range s.deeds() {
		got = append(got, d.args)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Errorf("the effects are %q, want %q", got, want)
	}
}

// begun is how many effects have begun, whether or not they took place.
func (s *site) begun() int {
	b, err := os.ReadFile(s.path("effects.begun"))
	if err != nil {
		return 0
	}
	return bytes.Count(b, []byte("\n"))
}

// tool describes one of the tools of testdata/tool in stint.yaml. It goes by name, and more is
// further keys.
type toolSpec struct {
	name, part string
	env        map[string]string
	args       string // JSON Schema; empty: any object
	more       string
}

func (s *site) tool(t toolSpec) string {
	s.t.Helper()
	part := t.part
	if part == "" {
		part = t.name
	}
	env := "EFFECT_LOG: " + strconv.Quote(s.path("effects"))
	for k, v := range t.env {
		env += fmt.Sprintf(", %s: %q", k, v)
	}
	more := ""
	if t.more != "" {
		more = ", " + t.more
	}
	return fmt.Sprintf("      - exec: {name: %s, description: It is called %s, command: [%q, %s], args: %s, env: {%s}%s}\n",
		t.name, t.name, filepath.ToSlash(toolPath(s.t)), part, cmp.Or(t.args, "{type: object}"), env, more)
}

// TestTheToolOfTheCases: the tool does what the cases take for granted.
func TestTheToolOfTheCases(t *testing.T) {
	t.Parallel()
	s := &site{t: t, dir: t.TempDir()}
	cmd := s.command(toolPath(t), "effect")
	cmd.Env = append(cmd.Env, "EFFECT_LOG="+s.path("effects"), "STINT_TOOL=effect", "STINT_IDEMPOTENCY_KEY=k1")
	cmd.Stdin = strings.NewReader(`{"step": 1}`)
	if out, err := cmd.Output(); err != nil || string(out) != "done" {
		t.Fatalf("it gave %q, %v", out, err)
	}
	if got := s.deeds(); len(got) != 1 || got[0] != (deed{"effect", "k1", `{"step":1}`}) || s.begun() != 1 {
		t.Errorf("the log has %v, %d begun", got, s.begun())
	}
}
