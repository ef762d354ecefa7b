package config_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/hook"
)

func TestHooks(t *testing.T) {
	path := filepath.Join("testdata", "good", "hooks.yaml")
	f, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	none := hook.Limits{Body: 1 << 20}
	want := map[string]hook.Definition{
		"issues": {
			Name: "issues", Agent: "triage", Scheme: hook.GitHub, Secrets: []string{"env:GITHUB_HOOK_NEW", "file:" + filepath.Join(dir, "secrets", "github-old")},
			When: `event == "issues" && body.action == "opened"`, Key: `body.repository.full_name + "#" + string(body.issue.number)`,
			Input:   "Look at issue ${ body.issue.number } of ${ body.repository.full_name }.\n${ toJSON(body.issue) }\n",
			Session: "body.issue.title", Labels: map[string]string{"repo": "${ body.repository.full_name }", "kind": "issue"},
			Limits: hook.Limits{Body: 25 << 20, Rate: hook.Rate{Count: 60, Per: time.Minute}, Concurrency: 4}, Busy: hook.Interrupt, Late: hook.KeepLate,
		},
		"payments": {
			Name: "payments", Agent: "triage", Scheme: hook.Stripe, Secrets: []string{"env:STRIPE_HOOK"}, Key: "body.data.object.id", Order: "body.created",
			Late: hook.DropLate, Limits: none, Busy: hook.Queue,
		},
		"other": {
			Name: "other", Agent: "triage", Scheme: hook.Generic, Secrets: []string{"env:OTHER"}, Dedupe: `headers["idempotency-key"]`, Limits: none, Busy: hook.Queue, Late: hook.KeepLate,
			HMAC: &hook.HMAC{Header: "X-Signature", Algorithm: hook.SHA512, Encoding: hook.Base64, Prefix: "v0=", Timestamp: "X-Time", Signed: "v0:{timestamp}:{body}"},
		},
		"plain": {Name: "plain", Agent: "triage", Scheme: hook.None, Limits: none, Busy: hook.Queue, Late: hook.KeepLate},
	}
	got := map[string]hook.Definition{}
	for name, h := range f.Hooks {
		got[name] = h.Definition()
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// written writes a stint.yaml and returns its path.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stint.yaml")
	write(t, path, text)
	return path
}

// A server loads what is good, and can tell of each hook that is not; anybody else gets
// all of it as one error.
func TestLoadServing(t *testing.T) {
	const text = `hooks:
  good: {agent: a, scheme: none}
  good.2: {agent: a, scheme: none}
  bad: {agent: b, scheme: none, when: event}
  Odd: {agent: a, scheme: none}
  twice: {agent: a, scheme: none}
  twice: {agent: a, scheme: none}
  good.bad: {agent: a, scheme: none, key: x}
agents:
  a: {kind: exec, command: [a]}
schedules:
  good: {agent: a, every: 5m}
  never: {agent: a, cron: 0 0 31 2 *, zone: UTC}
`
	path := written(t, text)
	f, bad, err := config.LoadServing(path)
	if err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(f.Hooks)); !slices.Equal(names, []string{"good", "good.2"}) || len(f.Schedules) != 1 || f.Path != path || len(f.Agents) != 1 {
		t.Errorf("got %v of %+v", names, f)
	}
	if names := slices.Sorted(maps.Keys(bad)); !slices.Equal(names, []string{"hooks.Odd", "hooks.bad", "hooks.good.bad", "hooks.twice", "schedules.never"}) {
		t.Errorf("got %v", bad)
	}
	for name, want := range map[string][]string{
		"hooks.bad": {":4:16: hooks.bad.agent: there is no agent b", ":4:39: hooks.bad.when: expected true or false"}, "hooks.Odd": {":5:3:", "capital letters"},
		"hooks.twice": {":7:3:", "given twice, first in line 6"}, "hooks.good.bad": {":8:43:", "unknown name x"},
		"schedules.never": {":13:21:", "it never fires"},
	} {
		for _, part := range want {
			if err := bad[name]; stint.CodeOf(err) != stint.Invalid || !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), "|") {
				t.Errorf("%s: no %q in %v", name, part, err)
			}
		}
	}
	_, err = config.Load(path)
	var all *config.Problems
	if !errors.As(err, &all) || len(all.List) != 6 {
		t.Errorf("got %v", err)
	}
}

// What is wrong with the file itself is not put down to a hook.
func TestLoadServingStrict(t *testing.T) {
	for text, reason := range map[string]string{
		"agents: {a: {kind: exec}}\nhooks: {h: {agent: a, scheme: none, key: x}}\n": "command is missing",
		"hooks: [a]\n":           "expected a mapping of names to hooks",
		"hooks:\n  - a\n b: c\n": "not YAML",
		"[a]\n":                  "expected",
	} {
		_, _, err := config.LoadServing(written(t, text))
		if stint.CodeOf(err) != stint.Invalid || !strings.Contains(err.Error(), reason) || strings.Contains(err.Error(), "unknown name x") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, _, err := config.LoadServing(filepath.Join(t.TempDir(), "none.yaml")); stint.CodeOf(err) != stint.NotFound {
		t.Errorf("got %v", err)
	}
	f, bad, err := config.LoadServing(written(t, "agents: {a: {kind: exec, command: [a]}}\n"))
	if err != nil || len(bad) != 0 || len(f.Hooks) != 0 {
		t.Errorf("got %+v, %v, %v", f, bad, err)
	}
}

func TestHookSecrets(t *testing.T) {
	env := map[string]string{"NEW": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "BAD": "whsec_correct horse", "EMPTY": ""}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	readFile := func(path string) ([]byte, error) {
		if path == "/old" {
			return []byte("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"), nil
		}
		return nil, os.ErrNotExist
	}
	for _, c := range []struct {
		refs []string
		want string // the secrets, or what the error says
	}{
		{[]string{"env:NEW", "file:/old"}, env["NEW"] + " whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
		{[]string{"env:NONE", "file:/none"}, "the hook h: secret[0]: the variable NONE is not set; secret[1]: file does not exist"},
		{[]string{"env:BAD"}, "the hook h: secret, env:BAD: a secret of this hook cannot be used"},
		{[]string{"env:NEW", "env:EMPTY"}, "the hook h: secret[1], env:EMPTY: a secret of this hook cannot be used"},
		{nil, ""},
	} {
		got, err := config.HookSecrets(hook.Definition{Name: "h", Scheme: hook.Standard, Secrets: c.refs}, lookup, readFile)
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, c.want) || err != nil && (stint.CodeOf(err) != stint.Invalid || strings.Contains(text, "horse")) {
			t.Errorf("%v: %s, want %s", c.refs, text, c.want)
		}
	}
}

// What docs/hooks.md shows is read as it stands there, every scheme of it.
func TestHooksPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "hooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := "agents:\n"
	for _, name := range []string{"triage", "billing", "helper", "notes", "oncall"} {
		text += "  " + name + ": {kind: exec, command: [a]}\n"
	}
	for i, block := range strings.Split(string(page), "```yaml\n") {
		if i > 0 {
			block, _, _ = strings.Cut(block, "```")
			text += block
		}
	}
	f, err := config.Parse("stint.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	shown := map[hook.Scheme]bool{}
	for _, h := range f.Hooks {
		shown[h.Definition().Scheme] = true
	}
	for _, s := range hook.Schemes() {
		if !shown[s] {
			t.Errorf("there is no example of scheme: %s", s)
		}
	}
}
