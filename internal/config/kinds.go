package config

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
)

// The kinds of agents. What each has besides the common members is a struct of
// [Kinds], but for exec, whose members stand in [Agent] itself.
const (
	KindExec = "exec" // a program
	KindLLM  = "llm"  // a model with tools
	KindHTTP = "http" // a URL
	KindCLI  = "cli"  // an agent with a command line of its own
)

func kinds() []string { return []string{KindExec, KindLLM, KindHTTP, KindCLI} }

// Kinds is what an agent has that is not of kind exec: the one member of its kind is
// set. The structs below are values; nobody changes their maps and slices.
type Kinds struct {
	LLM  *LLM  `json:"llm,omitempty"`
	HTTP *HTTP `json:"http,omitempty"`
	CLI  *CLI  `json:"cli,omitempty"`
}

// LLM is a model with tools. Of the members of [Agent] it has the limits, the retry
// policy, the rules for steps in doubt by name of a tool, and those of every kind.
type LLM struct {
	ModelRef

	MaxTokens    int64               `json:"max_tokens"`            // of one answer, 1 to 1,000,000
	Temperature  *float64            `json:"temperature,omitempty"` // 0 to 2; nil: the provider's
	Cache        bool                `json:"cache"`                 // use the provider's prompt cache
	Context      Context             `json:"context"`
	Instructions string              `json:"instructions,omitempty"` // the text itself, also where the file names one
	Prompt       string              `json:"prompt,omitempty"`       // for a session without input
	Interactive  bool                `json:"interactive"`            // wait for a person when the model has no more to say
	Result       json.RawMessage     `json:"result,omitempty"`       // JSON Schema of the result, compact; nil: no tool finish
	Rubric       *Rubric             `json:"rubric,omitempty"`
	Tools        []ToolSpec          `json:"tools,omitempty"` // those of stint first, then programs, requests and servers, by name
	Tool         map[string]ToolRule `json:"tool,omitempty"`  // by the name that the model sees
	Rules        map[string]Rule     `json:"rules,omitempty"` // built-in rules that are not as they come, by name

	// Record says that no tool is called, and whose results they give instead. No
	// stint.yaml has it: it is for a session that does another one again with a model.
	Record *Record `json:"record,omitempty"`
}

// Record names what of a session's journal its tools gave.
type Record struct {
	Session stint.ID  `json:"session"`
	Line    int       `json:"line"`
	Behind  int       `json:"behind"` // the loops of the line after this one
	Until   stint.Seq `json:"until"`  // and no entry after this one
}

// ModelRef is a model and how to reach it.
type ModelRef struct {
	// Model is PROVIDER/NAME; of the provider script NAME is the path of the file, joined
	// to the folder of stint.yaml.
	Model string `json:"model"`
	// Provider is what the file says of the provider, defaults filled in.
	Provider Provider `json:"provider"`
}

// ModelName is the model's name without the provider: what [Provider] calls it, or
// the path of the script.
func (m *ModelRef) ModelName() string { return strings.TrimPrefix(m.Model, m.Provider.Name+"/") }

// Written is the model as a stint.yaml in folder dir has it: PROVIDER/MODEL, a script by its
// path from there.
func (m *ModelRef) Written(dir string) string {
	if m.Provider.API != Script {
		return m.Model
	}
	rel, err := filepath.Rel(dir, filepath.FromSlash(m.ModelName()))
	if err != nil { // it is on another volume
		return m.Model
	}
	return m.Provider.Name + "/" + filepath.ToSlash(rel)
}

// API is what a service of models speaks.
type API string

// The APIs.
const (
	Messages  API = "messages"  // Anthropic's
	Chat      API = "chat"      // OpenAI's Chat Completions, and what speaks it
	Responses API = "responses" // OpenAI's Responses
	Script    API = "script"    // none: a file that is played
)

// Provider is a service of models. [Provider.Resolve] gives its secrets.
type Provider struct {
	Name     string            `json:"name"`
	API      API               `json:"api"`
	BaseURL  string            `json:"base_url,omitempty"`   // empty: the vendor's
	Key      string            `json:"key,omitempty"`        // "env:NAME" or "file:PATH" with the path joined; empty: none is sent
	Headers  map[string]string `json:"headers,omitempty"`    // sent with each request; literal or a reference as Key is one
	Timeout  time.Duration     `json:"timeout_ns,omitempty"` // without a byte of the answer
	Parallel int               `json:"parallel,omitempty"`   // calls at once in this process
}

// Context is how much of what was said the model gets.
type Context struct {
	Window  int64   `json:"window"`  // tokens that the model takes, 1,000 to 100,000,000
	Compact float64 `json:"compact"` // shorten at this share of the window, 0.1 to 1
	Excerpt int64   `json:"excerpt"` // bytes of one tool's output that the model sees at once
}

// Rubric is what a result is judged by before the session ends.
type Rubric struct {
	ModelRef // that of the agent where the rubric names none

	Text   string `json:"text"`
	Rounds int    `json:"rounds"` // of judging and going on, 1 to 20
}

// Rule changes a built-in rule. Off switches it off; otherwise it warns and pauses
// after so many times, 0 for as many as it comes with.
type Rule struct {
	Off   bool `json:"off,omitempty"`
	Warn  int  `json:"warn,omitempty"`
	Pause int  `json:"pause,omitempty"`
}

// taintedOnce is the rule that asks a person before a once tool is called by a model
// that has read what came from outside.
const taintedOnce = "tainted-once"

// ruleNames are the built-in rules of an agent.
func ruleNames() []string {
	return []string{taintedOnce, "N01", "N02", "N03", "N04"}
}

// HTTP is an agent behind a URL. [HTTP.Resolve] gives its secrets.
type HTTP struct {
	URL          string            `json:"url"`
	Secret       string            `json:"secret,omitempty"`  // what requests are signed with: "env:NAME" or "file:PATH"; empty: they are not signed
	Headers      map[string]string `json:"headers,omitempty"` // literal or a reference as Secret is one
	Timeout      time.Duration     `json:"timeout_ns"`        // of one request
	Idle         time.Duration     `json:"idle_ns"`           // without a byte of the response
	AllowPrivate bool              `json:"allow_private"`     // addresses that are not of the public Internet too
}

// CLI is an agent with a command line of its own. Its command, protocol, folder,
// environment, effects, output and grace stand in [Agent].
type CLI struct {
	Args        []string      `json:"args,omitempty"` // besides those that the protocol needs
	Interactive bool          `json:"interactive"`    // wait for a person when the agent has no more to say
	Hold        time.Duration `json:"hold_ns"`        // how long its process is kept while a person is asked
}

// ToolSpec is one entry under tools: exactly one member is set.
type ToolSpec struct {
	Builtin Builtin    `json:"builtin,omitempty"`
	Files   *FilesTool `json:"files,omitempty"`
	Exec    *ExecTool  `json:"exec,omitempty"`
	HTTP    *HTTPTool  `json:"http,omitempty"`
	MCP     *MCPTools  `json:"mcp,omitempty"`
	Spawn   *spawnTool `json:"spawn,omitempty"`
}

// Builtin is a tool that is named by one word.
type Builtin string

// The tools that are named by one word.
const (
	SleepTool Builtin = "sleep"
	AskTool   Builtin = "ask"
)

// spawnTool is the tools spawn, for children of these agents, and wait_for_children.
type spawnTool struct {
	Agents []string `json:"agents"` // names, sorted
}

// FilesTool is the tools read_file and list_files for a folder and, with Write,
// write_file.
type FilesTool struct {
	Root  string `json:"root"` // joined to the file's folder
	Write bool   `json:"write"`
}

// ToolInfo is what programs and requests have in common as tools.
type ToolInfo struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Args        json.RawMessage `json:"args,omitempty"` // JSON Schema, compact; nil: any object
	Effect      stint.Effect    `json:"effect"`
	Approve     tool.Approve    `json:"approve,omitempty"`
	Parallel    bool            `json:"parallel"`
	Timeout     time.Duration   `json:"timeout_ns,omitempty"` // of one call; 0: the step's
	Taints      bool            `json:"taints"`
	Output      int64           `json:"output,omitempty"` // bytes kept of its output; 0: tool.MaxText
}

// ExecTool is a program as a tool, as package tool/exec describes it. Env may have
// references, for [Resolve] to look up at each call.
type ExecTool struct {
	ToolInfo

	Command []string          `json:"command"`
	Shell   bool              `json:"shell"`
	Dir     string            `json:"dir"`                // joined to the file's folder
	Env     map[string]string `json:"env,omitempty"`      // literal or a reference, as [Agent] has it
	Pass    []string          `json:"pass,omitempty"`     // names copied from stint's environment, sorted
	Grace   time.Duration     `json:"grace_ns,omitempty"` // 0: that of tool/exec
}

// HTTPTool is a request as a tool, as package tool/http describes it. Headers may have
// references, for [Resolve] to look up at each call.
type HTTPTool struct {
	ToolInfo

	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	Allow   []string          `json:"allow,omitempty"` // hosts, or host:port, that may have an address of any kind; sorted
}

// MCPTools is the tools of servers that a .mcp.json describes. The file may hold
// secrets, so its content is no part of the definition.
type MCPTools struct {
	File    string   `json:"file"`              // joined to the file's folder
	Servers []string `json:"servers,omitempty"` // sorted; empty: all
	Trust   []string `json:"trust,omitempty"`   // servers whose hints decide the effect of their tools; sorted
	Allow   []string `json:"allow,omitempty"`   // hosts of servers behind a URL, as [HTTPTool] has them
}

// ToolRule changes a tool. What is empty or nil is as the tool has it.
type ToolRule struct {
	Effect   stint.Effect  `json:"effect,omitempty"`
	Approve  tool.Approve  `json:"approve,omitempty"`
	Parallel *bool         `json:"parallel,omitempty"`
	Timeout  time.Duration `json:"timeout_ns,omitempty"`
	Taints   *bool         `json:"taints,omitempty"`
	Poll     bool          `json:"poll,omitempty"` // calling it again and again is how it is meant
}

// set counts the members that are set.
func (k *Kinds) set() int {
	n := 0
	for _, is := range []bool{k.LLM != nil, k.HTTP != nil, k.CLI != nil} {
		if is {
			n++
		}
	}
	return n
}

// label is what a tool is called where tools are listed, and by what they are sorted.
func (t *ToolSpec) label() string {
	switch {
	case t.Files != nil:
		return "files"
	case t.Exec != nil:
		return t.Exec.Name
	case t.HTTP != nil:
		return t.HTTP.Name
	case t.MCP != nil:
		return t.MCP.File
	case t.Spawn != nil:
		return "spawn"
	}
	return string(t.Builtin)
}

// rank puts the kinds of tools in order.
func (t *ToolSpec) rank() int {
	return slices.Index([]bool{t.Builtin != "", t.Files != nil, t.Exec != nil, t.HTTP != nil, t.MCP != nil, t.Spawn != nil}, true)
}

// whole reports whether exactly one member is set.
func (t *ToolSpec) whole() bool {
	set := 0
	for _, is := range []bool{t.Builtin != "", t.Files != nil, t.Exec != nil, t.HTTP != nil, t.MCP != nil, t.Spawn != nil} {
		if is {
			set++
		}
	}
	return set == 1
}

// names are those of the tool that the model sees; known is whether they are known
// before a server is asked.
func (t *ToolSpec) names() (names []string, known bool) {
	switch {
	case t.MCP != nil:
		return nil, false
	case t.Files != nil && t.Files.Write:
		return []string{"list_files", "read_file", "write_file"}, true
	case t.Files != nil:
		return []string{"list_files", "read_file"}, true
	case t.Spawn != nil:
		return []string{"spawn", "wait_for_children"}, true
	}
	return []string{t.label()}, true
}
