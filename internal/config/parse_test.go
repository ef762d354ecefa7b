package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
)

var update = flag.Bool("update", false, "write the golden files")

// odd are files whose bytes an editor or git would change.
func odd() map[string]string {
	return map[string]string{
		"good/windows":           "\xef\xbb\xbfagents:\r\n  hello:\r\n    kind: exec\r\n    command: [echo, \"h\xc3\xa9llo\"]   # a comment\r\n",
		"bad/windows":            "\xef\xbb\xbfagents:\r\n  hello:\r\n    kind: exec\r\n    comand: [echo]\r\n",
		"bad/nul":                "agents:\n  a: \x00\n",
		"bad/escape":             "agents:\n  a: \x1b[31m\n",
		"bad/latin1":             "agents:\n  a: {description: caf\xe9}\n",
		"bad/utf16":              "\xff\xfea\x00",
		"bad/return":             "agents:\r  a: {}\r",
		"bad/line-sep":           "agents:\n  a: {description: one\u2028two}\n",
		"bad/yaml-no-blank":      "agents: {a: {kind:exec}}\n",
		"bad/yaml-brace":         "agents: {}\n}\n",
		"bad/yaml-bracket":       "agents: {a: [b}\n",
		"bad/yaml-comma":         "agents: {, a: b}\n",
		"bad/yaml-commas":        "agents: {a: [b,, c]}\n",
		"bad/yaml-block-comma":   "agents: {}\n, store: x\n",
		"bad/yaml-comma-after":   "agents: [a], b\n",
		"bad/yaml-close":         "agents: [a]]\n",
		"bad/yaml-lines-its":     "agents:\n  a: {description: 'it''s\n    two'}\n",
		"bad/yaml-open":          "agents:\n  a: {description: \"one}\n",
		"bad/yaml-colons":        "agents: {a: b: c: d}\n",
		"bad/yaml-quoted-colons": "agents: {a: 'b': c}\n",
		"bad/yaml-flow-dash":     "agents: {a: - b}\n",
		"bad/yaml-flow-block":    "agents: {a: |\n  b\n}\n",
		"bad/yaml-flow-brackets": "agents: {a: b]c}\n",
		"bad/yaml-escape":        "agents:\n  a: {description: \"\\u12\"}\n",
		"bad/yaml-surrogate":     "agents:\n  a: {kind: exec, command: [\"\\ud800\"]}\n",
		"bad/yaml-lines-quoted":  "agents:\n  a: {description: \"one\n    two\"}\n",
		"bad/yaml-lines-single":  "agents:\n  a: {description: 'one\n    two'}\n",
		"bad/yaml-lines-plain":   "agents:\n  a:\n    description: one\n      two\n",
		"bad/yaml-colon-line":    "agents # a comment\n: {}\n",
		"bad/yaml-not-indented":  "agents:\n  a:\n    kind:\n    exec\n    pin: warn\n",
		"bad/yaml-after-end":     "agents: {}\n...\nstore: x\n",
		"bad/yaml-block-key":     "agents:\n  a: {}\n  >\n: b\n",
		"bad/yaml-percent":       "agents:\n  a:\n    labels: {a: %x}\n",
		"bad/large":              strings.Repeat("# 16 characters\n", 1<<16) + "agents: {}\n",
		"bad/tokens":             "agents: [" + strings.Repeat("a,", 1<<16) + "]\n",
	}
}

// files returns the files of a folder of testdata, and those of odd, by name.
func files(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no files in testdata: ", err)
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(p), ".yaml")] = b
	}
	for name, s := range odd() {
		if base, ok := strings.CutPrefix(name, folder+"/"); ok {
			out[base] = []byte(s)
		}
	}
	return out
}

// content reads the files that the files of testdata name: those of testdata/content,
// and one that is too large.
func content(path string) ([]byte, error) {
	if path == "large.md" {
		return bytes.Repeat([]byte("x"), 1<<20), nil
	}
	if filepath.IsAbs(path) {
		return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrPermission}
	}
	path = filepath.Join("testdata", "content", path)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, &os.PathError{Op: "open", Path: path, Err: errors.New("it is a folder")}
	}
	return os.ReadFile(path)
}

// golden compares got with a file, or writes it under -update.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant, as in %s,\n%s", got, path, want)
	}
}

func TestGood(t *testing.T) {
	for name, b := range files(t, "good") {
		t.Run(name, func(t *testing.T) {
			f, err := config.ParseWith("stint.yaml", b, content)
			if err != nil {
				t.Fatal(err)
			}
			agents := map[string]json.RawMessage{}
			for n, a := range f.Agents {
				if n != a.Name {
					t.Errorf("agent %q is called %q", n, a.Name)
				}
				agents[n], _ = a.Definition()
			}
			out, err := json.MarshalIndent(map[string]any{"store": f.Store, "concurrency": f.Concurrency, "agents": agents}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", "good", name+".json"), append(out, '\n'))
		})
	}
}

func TestBad(t *testing.T) {
	for name, b := range files(t, "bad") {
		t.Run(name, func(t *testing.T) {
			f, err := config.ParseWith("stint.yaml", b, content)
			if err == nil || f != nil {
				t.Fatalf("accepted: %+v", f)
			}
			checkError(t, err)
			var e *stint.Error
			if !errors.As(err, &e) || e.Hint == "" {
				t.Fatalf("there is no hint: %v", err)
			}
			golden(t, filepath.Join("testdata", "bad", name+".txt"), []byte(err.Error()+"\n  "+e.Hint+"\n"))
		})
	}
}

// checkError holds an error of Parse to what every one of them has.
func checkError(t *testing.T, err error) {
	t.Helper()
	var e *stint.Error
	var ps *config.Problems
	if !errors.As(err, &e) || e.Code != stint.Invalid || e.Op != "config" || !errors.As(err, &ps) || len(ps.List) == 0 {
		t.Fatalf("not an invalid config: %#v", err)
	}
	if len(ps.List) > 20 {
		t.Errorf("%d problems are too many", len(ps.List))
	}
	for i := range ps.List {
		p := &ps.List[i]
		lines := strings.Split(p.Excerpt, "\n")
		if p.File == "" || p.Line < 1 || p.Column < 1 || p.Text == "" || len(lines) != 2 || !strings.HasSuffix(lines[1], "^") {
			t.Errorf("incomplete: %+v", p)
		}
		if strings.ContainsAny(err.Error(), "\x00\x1b\r\t") {
			t.Errorf("a control character in %q", err)
		}
	}
}

// A secret must not come back in the message that refuses it.
func TestSecretsAreNotShown(t *testing.T) {
	_, err := config.Parse("stint.yaml", files(t, "bad")["secrets"])
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{"abcdefgh", "IOSFODNN", "1234567890"} {
		if strings.Contains(err.Error(), part) {
			t.Errorf("the message shows %q:\n%s", part, err)
		}
	}
}

func TestSecretsAreKnown(t *testing.T) {
	with := func(value string) error {
		_, err := config.Parse("stint.yaml", []byte("agents:\n  a: {kind: exec, command: [a], env: {X: '"+value+"'}}\n"))
		return err
	}
	for _, v := range []string{
		"sk-abcdefghijklmnop", "sk-ant-api03-abcdefghijkl_mnop-qrst", "ghp_abcdefghijklmnopqrst", "github_pat_11ABCDEFG0abcdefghij",
		"glpat-abcdefghij1234567890", "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", "AIzaSyA1234567890abcdefghijklmnopqrstuv",
		"xoxb-123456789012-abc", "hf_abcdefghijklmnopqrstuv", "sk_live_abcdefghijklmnopqrst", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc", "-----BEGIN RSA PRIVATE KEY-----", "Bearer sk-abcdefghijklmnop",
		"https://user:ghp_abcdefghijklmnopqrst@example.com",
	} {
		if with(v) == nil {
			t.Errorf("%q was taken", v)
		}
	}
	for _, v := range []string{"fast", "sk-SK", "task-abcdefghijklmnopqrstuvwxyz", "risk-management-for-everybody", "AKIA", "env:GITHUB_TOKEN",
		"file:keys/sk", "https://example.com/ghp_x", "0123456789abcdef0123456789abcdef"} {
		if err := with(v); err != nil {
			t.Errorf("%q: %v", v, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	f, err := config.Parse(filepath.Join("proj", "stint.yaml"), files(t, "good")["minimal"])
	if err != nil {
		t.Fatal(err)
	}
	want := config.Agent{
		Name: "hello", Kind: "exec", Command: []string{"echo", "hello"}, Protocol: config.JSONL, Dir: "proj", Keep: config.KeepLoop,
		Effect: stint.Once, Output: 1 << 20, Grace: 90e9, Pin: config.PinWarn,
		Bounds: config.Bounds{Wall: 3600e9, Loops: 50},
		Retry:  config.Retry{Attempts: 5, Initial: 1e9, Factor: 2, Max: 60e9, Jitter: 0.2},
	}
	if got := f.Agents["hello"]; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if f.Concurrency != 16 || f.Store != "" || f.Path != filepath.Join("proj", "stint.yaml") {
		t.Errorf("got %+v", f)
	}
}

func TestExample(t *testing.T) {
	text := config.Example()
	f, err := config.Parse("stint.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Agents) != 1 || f.Agents["hello"].Protocol != config.None {
		t.Errorf("got %+v", f.Agents)
	}
	// What stands there as a comment must be right too: a key, and what is below one.
	var all []string
	inside := false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimLeft(line, " ")
		rest, comment := strings.CutPrefix(trimmed, "# ")
		key := regexp.MustCompile(`^(triage|reader|review|coder|store|concurrency|providers|hooks|schedules|notify|policy|quiet):`).MatchString(rest)
		if inside = comment && (key || inside && strings.HasPrefix(rest, "  ")); inside {
			line = line[:len(line)-len(trimmed)] + rest
		}
		all = append(all, line)
	}
	f, err = config.Parse("stint.yaml", []byte(strings.Join(all, "")))
	if err != nil {
		t.Fatal(err)
	}
	triage := f.Agents["triage"]
	if len(f.Hooks) != 1 || f.Store == "" || triage.Concurrency != 2 || triage.Description != "" || len(f.Agents) != 5 {
		t.Errorf("the commented lines were not read: %+v", f)
	}
	if len(f.Policy) != 4 || f.Policy[1].Quorum != 2 || f.Policy[3].Name != "ask-once" || len(triage.Policy) != 4 {
		t.Errorf("the policy was not read: %+v", f.Policy)
	}
	// It shows every key, and the default where there is one.
	plain, err := config.Parse("stint.yaml", []byte(`agents:
  triage: {kind: exec, command: [python3, triage.py]}
  reader: {kind: llm, model: anthropic/claude-sonnet-5}
  review: {kind: http, url: https://example.com/agent}
  coder: {kind: cli, protocol: codex}
`))
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{
		"triage": "env.MODE env.GITHUB_TOKEN env.API_KEY pass effects.list_issues in_doubt.charge concurrency done labels.team policy policy.",
		"reader": "temperature instructions prompt result rubric. tools tool.docs__search. rules.N02 policy policy.",
		"review": "secret headers.X-Team policy policy.",
		"coder":  "args policy policy.",
	}
	for name, members := range shown {
		for _, c := range config.Diff(plain.Agents[name], f.Agents[name]) {
			if !slices.ContainsFunc(strings.Fields(members), func(m string) bool {
				return c.Member == m || (strings.HasSuffix(m, ".") || m == "tools") && strings.HasPrefix(c.Member, m)
			}) {
				t.Errorf("%s of the example is not the default: %s", name, c)
			}
		}
	}
	for _, section := range []string{"endpoint", "notifyExec", "notifySMTP", "quiet"} {
		for _, key := range config.KnownKeys()[section] {
			if _, below, _ := strings.Cut(text, "\n# notify:"); !regexp.MustCompile(`\b`+key+`: `).MatchString(below) && !strings.Contains(below, " "+key+":") {
				t.Errorf("the endpoints of the example do not show %s", key)
			}
		}
	}
	for kind, name := range map[string]string{config.KindLLM: "reader", config.KindHTTP: "review", config.KindCLI: "coder"} {
		common := config.KnownKeys()[config.KindExec]
		for _, key := range config.KnownKeys()[kind] {
			if !slices.Contains(common, key) && !strings.Contains(text, "#   "+key+":") {
				t.Errorf("%s of the example does not show %s", name, key)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, folder := range []string{"good", "bad"} {
		paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
		if err != nil {
			f.Fatal(err)
		}
		for _, p := range paths {
			b, err := os.ReadFile(p)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	for _, s := range odd() {
		if len(s) < 1<<10 {
			f.Add([]byte(s))
		}
	}
	for _, s := range []string{
		"agents: {a: {kind: llm, model: script/x, result: {schema: {type: [object, 'null'], maximum: -0.0e+5}}, tools: [exec: {name: a, command: ['{{a}}{b}'], args: {type: object, properties: {b: {}}}}]}}",
		"agents: {a: {kind: llm, model: script/x, tools: [{http: {name: a, args: {type: object}, url: 'https://a/{b}?c={b}'}}, mcp: {file: a, trust: [b]}], tool: {a__b: {poll: true}}, rules: {N04: {pause: 2}}}}",
		"providers: {a: {api: chat, base_url: 'http://[::1]:1/v1', key: file:x, headers: {A: env:B}}}\nagents: {a: {kind: llm, model: a/b/c, prompt: {file: a.md}, rubric: {text: {file: a.md}}}}",
		"agents: {a: {kind: http, url: 'http://127.0.0.1/?a=b', allow_private: true, secret: env:A}, b: {kind: cli, protocol: acp, command: [a], hold: 1ns}}",
		"policy: [preset: ask-once, {name: a, do: deny, message: x}]\nagents: {a: {kind: exec, command: [a], policy: [{name: b, tool: 'x*', when: args.a == 1, do: ask, approvers: [admin, 'user:b'], quorum: 2, remind: [1m, 2h]}]}}",
		"providers:\n  a:\n    key: |2-\n        x\n      y\n    headers: {Authorization: \"a\\x41\"}\n",
	} {
		f.Add([]byte(s))
	}
	known := func(path string) ([]byte, error) {
		switch filepath.ToSlash(path) {
		case "prompts/triage.md", "a.md":
			return []byte("Be brief.\r\n"), nil
		case "schema.json":
			return []byte(`{"type": "object", "maximum": 1e400}`), nil
		}
		return nil, os.ErrNotExist
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := config.ParseWith("stint.yaml", b, known)
		if err != nil {
			checkError(t, err)
			return
		}
		for _, a := range file.Agents {
			def, hash := a.Definition()
			back, err := config.FromDefinition(def)
			if err != nil {
				t.Fatal(err)
			}
			if _, again := back.Definition(); again != hash || !reflect.DeepEqual(a, back) {
				t.Fatalf("%+v\ncame back as\n%+v", a, back)
			}
		}
	})
}
