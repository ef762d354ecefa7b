package config_test

import (
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
	"github.com/stint-dev/stint/internal/config"
)

func TestResolveEnv(t *testing.T) {
	vars := map[string]string{"HOME": "/home/x", "TOKEN": "tok", "EMPTY": "", "OTHER": "no"}
	content := map[string]string{"/k": "key\n", "/crlf": "key\r\n", "/two": "a\nb\n\n", "/none": "", "/nul": "a\x00", "/big": strings.Repeat("x", 70_000)}
	lookup := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	read := func(path string) ([]byte, error) {
		if s, ok := content[path]; ok {
			return []byte(s), nil
		}
		return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
	}

	a := config.Agent{Name: "a", Pass: []string{"HOME", "UNSET", "EMPTY"}, Env: map[string]string{
		"MODE": "fast", "T": "env:TOKEN", "E": "env:EMPTY", "K": "file:/k", "C": "file:/crlf", "TWO": "file:/two", "NONE": "file:/none"}}
	got, err := a.ResolveEnv(lookup, read)
	want := map[string]string{"HOME": "/home/x", "EMPTY": "", "MODE": "fast", "T": "tok", "E": "", "K": "key", "C": "key", "TWO": "a\nb\n", "NONE": ""}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v\nwant %v", got, err, want)
	}

	a.Env = map[string]string{"T": "env:TOKEN", "A": "env:MISSING", "B": "file:/gone", "C": "file:/nul", "D": "file:/big", "E": "env:MISSING"}
	got, err = a.ResolveEnv(lookup, read)
	var e *stint.Error
	if got != nil || !errors.As(err, &e) || e.Code != stint.Invalid {
		t.Fatalf("got %v, %v", got, err)
	}
	for _, part := range []string{"agent a", "env.A: the variable MISSING is not set", "env.B: open /gone", "env.C: the content of /nul has a NUL",
		"env.D: the content of /big is longer", "env.E: the variable MISSING"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	if strings.Contains(err.Error(), "tok") || strings.Count(e.Hint, "MISSING") != 1 {
		t.Errorf("got %v with hint %q", err, e.Hint)
	}

	if got, err = (&config.Agent{}).ResolveEnv(lookup, read); err != nil || len(got) != 0 {
		t.Errorf("nothing: got %v, %v", got, err)
	}
}

// What stint sets is refused here already, with a line, and not when the agent starts.
func TestOwnVariables(t *testing.T) {
	for _, name := range []string{"STINT_SESSION", "STINT_NAME", "STINT_LINE", "STINT_LOOP", "STINT_ATTEMPT", "STINT_EPOCH", "STINT_PROTOCOL",
		"STINT_IDEMPOTENCY_KEY", "STINT_STORE", "PATH"} {
		_, early := config.Parse("stint.yaml", []byte("agents: {a: {kind: exec, command: [a], env: {"+name+": x}}}"))
		late := exec.Spec{Command: []string{"a"}, Env: map[string]string{name: "x"}}.Validate()
		if (early == nil) != (late == nil) {
			t.Errorf("%s: the file says %v, the agent %v", name, early, late)
		}
	}
}
