package config_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
)

// An agent of a command line is the one that a stint.yaml with the same words has.
func TestPrompt(t *testing.T) {
	dir := t.TempDir()
	parse := func(text string) *config.File {
		t.Helper()
		f, err := config.Parse(filepath.Join(dir, config.FileName), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	const providers = "providers:\n  local: {api: chat, base_url: \"http://127.0.0.1:11434/v1\", key: file:keys/local}\n  anthropic: {base_url: \"https://proxy.example.com\"}\n"
	for _, c := range []struct {
		providers, model, system string
		tools                    []string
		yaml                     string
	}{
		{"", "anthropic/claude-sonnet-5", "", nil, ""},
		{"", "script/demo.json", "Be brief.\n", []string{"files"}, "instructions: \"Be brief.\\n\", tools: [{files: {}}]"},
		{providers, "local/a/model", " ", []string{"mcp:tools/.mcp.json", "sleep", "files:rw", "ask"}, "tools: [{files: {write: true}}, ask, sleep, {mcp: {file: tools/.mcp.json}}]"},
		{providers, "anthropic/claude-sonnet-5", "", []string{"mcp:b", "mcp:a"}, "tools: [{mcp: {file: a}}, {mcp: {file: b}}]"},
	} {
		want := parse(c.providers + "agents:\n  prompt: {kind: llm, model: " + c.model + ", " + c.yaml + "}\n").Agents["prompt"]
		var file *config.File
		if c.providers != "" {
			file = parse(c.providers)
		}
		got, err := config.Prompt(file, dir, c.model, c.system, c.tools)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", c.model, err, got, want)
			continue
		}
		def, _ := got.Definition()
		if back, err := config.FromDefinition(def); err != nil || !reflect.DeepEqual(back, got) {
			t.Errorf("%s: its definition is not it: %v", c.model, err)
		}
	}
	if got := parse(providers).Providers(); !reflect.DeepEqual(got, []string{"anthropic", "local", "openai", "script"}) {
		t.Errorf("the providers are %q", got)
	}
	if got := (*config.File)(nil).Providers(); !reflect.DeepEqual(got, []string{"anthropic", "openai", "script"}) {
		t.Errorf("the providers without a file are %q", got)
	}
}

func TestPromptRefuses(t *testing.T) {
	for _, c := range []struct {
		model, system string
		tools         []string
		flag, hint    string
	}{
		{"claude-sonnet-5", "", nil, "--model", "write anthropic/claude-sonnet-5"},
		{"antropic/x", "", nil, "--model", "did you mean anthropic/x?"},
		{"anthropic/", "", nil, "--model", "write it after anthropic/"},
		{"a/b\nc", "", nil, "--model", ""},
		{"script/~/x", "", nil, "--model", "write the whole path"},
		{"openai/x", "a\x00b", nil, "--system", ""},
		{"openai/x", "", []string{"fils"}, "--tools", "did you mean files?"},
		{"openai/x", "", []string{"files:ro"}, "--tools", "files:rw to write"},
		{"openai/x", "", []string{"mcp"}, "--tools", "write mcp:PATH"},
		{"openai/x", "", []string{"mcp:"}, "--tools", "write mcp:PATH"},
		{"openai/x", "", []string{"sleep:1"}, "--tools", ""},
		{"openai/x", "", []string{"bash"}, "--tools", "stint init --agent llm"},
		{"openai/x", "", []string{""}, "--tools", ""},
		{"openai/x", "", []string{"files", "files:rw"}, "--tools", "leave one out"},
		{"openai/x", "", []string{"mcp:a", "mcp:./a"}, "--tools", "leave one out"},
	} {
		_, err := config.Prompt(nil, t.TempDir(), c.model, c.system, c.tools)
		e, ok := err.(*stint.Error)
		if !ok || e.Code != stint.Invalid || e.Op != c.flag || !strings.Contains(e.Hint, c.hint) || strings.Contains(e.Error(), "stint.yaml") {
			t.Errorf("%q %q %q: %v", c.model, c.system, c.tools, err)
		}
	}
}
