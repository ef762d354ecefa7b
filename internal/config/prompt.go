package config

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
)

// PromptName is what the agent is called that [Prompt] makes.
const PromptName = "prompt"

// Prompt makes an agent of kind llm of what a command line says of it: a model as in
// stint.yaml, instructions, which may be empty, and words for tools: files, files:rw,
// sleep, ask, mcp:PATH. Paths are joined to dir, which files are below; providers are
// those of file, or the built-in ones where it is nil. Everything else is as a
// stint.yaml that says nothing has it. What is wrong is [stint.Invalid], and says in
// which of the flags --model, --system and --tools it is.
func Prompt(file *File, dir, model, system string, tools []string) (Agent, error) {
	a := defaultsOf(KindLLM)
	a.Name, a.Kind, a.Dir = PromptName, KindLLM, dir
	d := &decoder{src: newSource("", nil), dir: dir, providers: builtIn()}
	if file != nil && file.providers != nil {
		d.providers = file.providers
	}
	said := func(s string) *node { return &node{shape: text, text: s} }
	d.model(said(model), "--model", &a.LLM.ModelRef)
	if strings.TrimSpace(system) != "" {
		d.content(said(system), "--system", "a text", &a.LLM.Instructions)
	}
	seen := map[string]bool{}
	for _, word := range tools {
		t, ok := d.toolWord(said(word), dir)
		switch {
		case !ok:
		case seen[t.label()]:
			d.fail(said(word), "--tools", quote(clip(word, 80))+" is given twice, in one way or another", "leave one out")
		default:
			seen[t.label()] = true
			a.LLM.Tools = append(a.LLM.Tools, t)
		}
	}
	slices.SortStableFunc(a.LLM.Tools, func(x, y ToolSpec) int {
		return cmp.Or(cmp.Compare(x.rank(), y.rank()), strings.Compare(x.label(), y.label()))
	})
	if len(d.src.problems) > 0 {
		p := d.src.problems[0]
		return Agent{}, &stint.Error{Code: stint.Invalid, Op: p.Path, Err: errors.New(p.Text), Hint: p.Hint}
	}
	return a, nil
}

// Providers are the names of the services of models, sorted; f may be nil.
func (f *File) Providers() []string {
	if f == nil || f.providers == nil {
		return slices.Sorted(maps.Keys(builtIn()))
	}
	return slices.Sorted(maps.Keys(f.providers))
}

// toolWord reads one word of --tools.
func (d *decoder) toolWord(n *node, dir string) (ToolSpec, bool) {
	const flag = "--tools"
	name, rest, colon := strings.Cut(n.text, ":")
	switch {
	case name == "files" && (!colon || rest == "rw"):
		return ToolSpec{Files: &FilesTool{Root: dir, Write: colon}}, true
	case !colon && (name == string(SleepTool) || name == string(AskTool)):
		return ToolSpec{Builtin: Builtin(name)}, true
	case name == "mcp" && rest != "":
		path, ok := d.joined(n, flag, rest)
		return ToolSpec{MCP: &MCPTools{File: path}}, ok
	}
	hint := "others are described in a stint.yaml, for an agent with a name: stint init --agent llm"
	switch near := nearest(name, []string{"files", "sleep", "ask", "mcp"}); {
	case name == "mcp":
		hint = "write mcp:PATH, with the path of a .mcp.json"
	case name == "files":
		hint = "write files to read, or files:rw to write too"
	case near != "":
		hint = "did you mean " + near + "?"
	}
	d.expected(n, flag, "files, files:rw, sleep, ask or mcp:PATH", "", hint)
	return ToolSpec{}, false
}
