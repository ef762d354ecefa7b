package config_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/model/openai"
	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/builtin"
)

// The one agent of a file.
func one(t *testing.T, text string) config.Agent {
	t.Helper()
	f, err := config.Parse("stint.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f.Agents["a"]
}

func TestResolve(t *testing.T) {
	lookup := func(name string) (string, bool) {
		v, ok := map[string]string{"KEY": "k", "EMPTY": ""}[name]
		return v, ok
	}
	read := func(path string) ([]byte, error) {
		if path == "/f" {
			return []byte("from a file\r\n"), nil
		}
		return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
	}
	for value, want := range map[string]string{"env:KEY": "k", "env:EMPTY": "", "file:/f": "from a file", "plain": "plain", "": "", "environment": "environment"} {
		if got, err := config.Resolve(value, lookup, read); got != want || err != nil {
			t.Errorf("%s: got %q, %v", value, got, err)
		}
		if config.IsReference(value) != strings.Contains(value, ":") {
			t.Errorf("%s: is it a reference?", value)
		}
	}
	for value, want := range map[string]string{"env:MISSING": "env:MISSING: the variable MISSING is not set", "file:/none": "file:/none: open /none"} {
		var e *stint.Error
		if got, err := config.Resolve(value, lookup, read); got != "" || !errors.As(err, &e) || e.Code != stint.Invalid || e.Hint == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v", value, got, err)
		}
	}

	p := config.Provider{Name: "near", Key: "env:KEY", Headers: map[string]string{"X-Team": "a", "Authorization": "file:/f"}}
	key, headers, err := p.Resolve(lookup, read)
	if want := map[string]string{"X-Team": "a", "Authorization": "from a file"}; key != "k" || !maps.Equal(headers, want) || err != nil {
		t.Errorf("got %q, %v, %v", key, headers, err)
	}
	if key, headers, err = (&config.Provider{Name: "none"}).Resolve(lookup, read); key != "" || len(headers) > 0 || err != nil {
		t.Errorf("nothing: got %q, %v, %v", key, headers, err)
	}
	p.Key, p.Headers["X-Other"] = "env:MISSING", "file:/none"
	var e *stint.Error
	key, headers, err = p.Resolve(lookup, read)
	if key != "" || headers != nil || !errors.As(err, &e) || e.Code != stint.Invalid || !strings.Contains(e.Hint, "MISSING") {
		t.Errorf("got %q, %v, %v", key, headers, err)
	}
	for _, part := range []string{"the provider near", "key: the variable MISSING", "headers.X-Other: open /none"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}

	h := config.HTTP{URL: "https://example.com", Secret: "file:/f", Headers: map[string]string{"A": "env:KEY"}}
	secret, headers, err := h.Resolve(lookup, read)
	if secret != "from a file" || headers["A"] != "k" || err != nil {
		t.Errorf("got %q, %v, %v", secret, headers, err)
	}
	h.Secret = "env:MISSING"
	if secret, headers, err = h.Resolve(lookup, read); secret != "" || headers != nil || !strings.Contains(err.Error(), "https://example.com: secret: the variable MISSING") {
		t.Errorf("got %q, %v, %v", secret, headers, err)
	}
}

// Texts and schemas in other files are read once, with the file that names them; a pipe
// is not waited for, and Parse opens nothing.
func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "stint.yaml")
	write(t, path, "agents: {a: {kind: llm, model: script/play.json, instructions: {file: sub/a.md}, result: {file: schema.json}}}")
	write(t, filepath.Join(dir, "sub", "a.md"), "Be brief.\r\n")
	write(t, filepath.Join(dir, "schema.json"), "{\n \"type\": \"object\" }")
	f, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	l := f.Agents["a"].LLM
	if l.Instructions != "Be brief.\r\n" || string(l.Result) != `{"type":"object"}` || l.ModelName() != filepath.ToSlash(filepath.Join(dir, "play.json")) {
		t.Errorf("got %+v", l)
	}
	if _, err = config.Parse(path, []byte("agents: {a: {kind: llm, model: a/b, instructions: {file: sub/a.md}}}")); err == nil || !strings.Contains(err.Error(), "is not read here") {
		t.Errorf("Parse: got %v", err)
	}
	write(t, path, "agents: {a: {kind: llm, model: openai/x, instructions: {file: sub}}}")
	if _, err = config.Load(path); err == nil || !strings.Contains(err.Error(), "it is no plain file") {
		t.Errorf("a folder: got %v", err)
	}
	write(t, path, "agents: {a: {kind: llm, model: openai/x, instructions: {file: none.md}}}")
	if _, err = config.Load(path); err == nil || !strings.Contains(err.Error(), `the file "none.md" is not there`) {
		t.Errorf("missing: got %v", err)
	}
}

// What a definition says does not hang on the order in which the file lists tools, and
// the model's text in it is that of the file to the byte.
func TestOrderOfTools(t *testing.T) {
	first := one(t, `agents: {a: {kind: llm, model: openai/x, tools: [ask, sleep, {files: {}}, {exec: {name: b, command: [b]}}, {exec: {name: a, command: [a]}}, {mcp: {file: x.json, servers: [p, q]}}]}}`)
	other := one(t, `agents: {a: {kind: llm, model: openai/x, tools: [{mcp: {file: x.json, servers: [q, p]}}, {exec: {name: a, command: [a]}}, sleep, {exec: {name: b, command: [b]}}, ask, {files: {}}]}}`)
	_, left := first.Definition()
	_, right := other.Definition()
	if left != right || !reflect.DeepEqual(first, other) {
		t.Errorf("they differ in %v", config.Diff(first, other))
	}
}

// The key of a vendor is sent to nobody else: a provider of that name elsewhere has none
// unless the file says so.
func TestKeysOfVendors(t *testing.T) {
	for entry, want := range map[string]string{
		"":                                   "env:OPENAI_API_KEY",
		"openai: {api: chat}":                "env:OPENAI_API_KEY",
		"openai: {base_url: http://near/v1}": "",
		"openai: {base_url: http://near/v1, key: env:OPENAI_API_KEY}": "env:OPENAI_API_KEY",
		"anthropic: {base_url: http://near}":                          "env:OPENAI_API_KEY",
	} {
		a := one(t, "providers: {"+entry+"}\nagents: {a: {kind: llm, model: openai/gpt-5}}")
		if got := a.LLM.Provider.Key; got != want || a.LLM.ModelName() != "gpt-5" {
			t.Errorf("%s: got %q", entry, got)
		}
	}
}

// Nothing that was given where a reference belongs comes back in a message.
func TestLiteralSecretsAreNotShown(t *testing.T) {
	const secret = "correct horse"
	heads := []string{"providers:\n  p:\n    api: chat\n    base_url: https://example.com\n    ", "agents:\n  a:\n    kind: http\n    url: https://example.com\n    "}
	for _, value := range []string{secret, `"` + secret + `"`, "'" + secret + "'", "|\n      " + secret, "|-\n      x\n\n      " + secret, ">\n      x\n      " + secret, "[" + secret + "]", "{a: " + secret + "}",
		`"correct\u0020horse"`, "\n      " + secret, "'it''s " + secret + "'"} {
		for _, key := range []string{"key", "secret", "headers:\n      Authorization", "headers:\n      X-Api-Key", "headers:\n      api-token", "api_key", "token", "password", "PASSWORD"} {
			for _, head := range heads {
				// The line after it is wrong as well, so that what is left out is seen.
				_, err := config.Parse("stint.yaml", []byte(head+key+": "+strings.ReplaceAll(value, "\n", "\n    ")+"\n    timeout: 5\n"))
				if err == nil {
					t.Fatalf("%s: %s was taken", key, value)
				}
				if text := err.Error(); strings.Contains(text, "horse") || !strings.Contains(text, "timeout: 5") {
					t.Errorf("%s: %s: the message is\n%s", key, value, text)
				}
			}
		}
	}
	for name, b := range files(t, "bad") {
		if _, err := config.ParseWith("stint.yaml", b, content); strings.Contains(err.Error(), "hunter2") {
			t.Errorf("bad/%s shows a secret:\n%v", name, err)
		}
	}
	for _, line := range []string{"X-Team: a", "X-Author: a", "X-Keyboard: a", "User-Agent: a", "X-Api-Key: env:A", "Cookie: file:a"} {
		one(t, heads[1]+"headers: {"+line+"}\n")
	}
}

// Words of the file that other packages spell too mean the same there.
func TestWordsOfOthers(t *testing.T) {
	for got, want := range map[string]string{string(config.Chat): string(openai.Chat), string(config.Responses): string(openai.Responses),
		string(config.SleepTool): builtin.Sleep().Name, string(config.AskTool): builtin.Ask().Name} {
		if got != want {
			t.Errorf("%q is called %q", got, want)
		}
	}
	files, err := builtin.OpenFiles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	finish, err := builtin.Finish(json.RawMessage(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range append(files.Tools(), finish, builtin.Sleep(), builtin.Ask()) {
		text := "agents: {a: {kind: llm, model: openai/x, result: {schema: {type: object}}, tools: [sleep, ask, {files: {write: true}}, {exec: {name: " + b.Name + ", command: [a]}}]}}"
		if _, err := config.Parse("stint.yaml", []byte(text)); err == nil {
			t.Errorf("a program may be called %s, as a tool of stint is", b.Name)
		}
		one(t, "agents: {a: {kind: llm, model: openai/x, result: {schema: {type: object}}, tools: [sleep, ask, {files: {write: true}}], tool: {"+b.Name+": {approve: always}}}}")
	}
	one(t, "agents: {a: {kind: llm, model: openai/x, tools: [mcp: {file: x}], tool: {"+tool.Join("docs", "search")+": {poll: true}}}}")
}

// An http agent waits no longer for a byte than for the whole.
func TestIdleOfHTTP(t *testing.T) {
	a := one(t, "agents: {a: {kind: http, url: https://example.com, timeout: 10s}}")
	if a.HTTP.Idle != a.HTTP.Timeout {
		t.Errorf("got %+v", a.HTTP)
	}
}
