package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/safedial"
	"github.com/stint-dev/stint/tool"
	toolexec "github.com/stint-dev/stint/tool/exec"
	toolhttp "github.com/stint-dev/stint/tool/http"
)

const aTool = "sleep, ask, or a mapping with one of the keys files, exec, http, mcp and spawn"

// tools reads the list of tools and puts it in order: what the file has in another
// order is the same agent.
func (d *decoder) tools(n *node, path string, to *[]ToolSpec) {
	if n.shape != list {
		hint := ""
		if n.shape == mapping {
			hint = "begin each with a dash: - exec: {…}"
		}
		d.expected(n, path, "a list of tools", "", hint)
		return
	}
	var all []ToolSpec
	taken := map[string]bool{}
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		t, ok := d.tool(item, at)
		if !ok {
			continue
		}
		names, _ := t.names()
		if t.MCP != nil {
			names = []string{"the servers of " + t.MCP.File}
		}
		for _, name := range names {
			if taken[name] && t.MCP != nil {
				d.fail(item, at, "the file is given twice", "name all of its servers in one place")
				break
			}
			if taken[name] {
				d.fail(item, at, "there is a tool "+name+" already", "give one of them another name, or leave it out")
				break
			}
			taken[name] = true
		}
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b ToolSpec) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.label(), b.label()))
	})
	*to = all
}

// tool reads one entry of the list. It is not ok if nothing can be said of it.
func (d *decoder) tool(n *node, path string) (ToolSpec, bool) {
	var t ToolSpec
	if n.shape == text {
		hint := map[string]string{"files": "write files: {root: .}", "exec": "write exec: {name: …, command: […]}", "http": "write http: {name: …, url: …}",
			"mcp": "write mcp: {file: .mcp.json}", "finish": "it is added by result: {schema: …}", "read_file": "write files: {root: .}", "write_file": "write files: {root: ., write: true}"}[n.text]
		if hint == "" && nearest(n.text, []string{"sleep", "ask"}) != "" {
			hint = "did you mean " + nearest(n.text, []string{"sleep", "ask"}) + "?"
		}
		if t.Builtin = Builtin(n.text); t.Builtin == SleepTool || t.Builtin == AskTool {
			return t, true
		}
		d.expected(n, path, aTool, "", hint)
		return t, false
	}
	members := d.toolMembers(&t)
	if n.shape == mapping {
		if len(n.pairs) == 0 {
			d.fail(n, path, "expected "+aTool+", found an empty mapping", "remove it")
			return t, false
		}
		i := slices.IndexFunc(n.pairs, func(p pair) bool { return slices.Contains(keys(members), p.key.text) })
		switch {
		case i >= 0 && len(n.pairs) > 1 && n.pairs[i].value.shape == nothing:
			d.fail(n.pairs[i].value, path, "what the tool needs stands beside "+n.pairs[i].key.text+" and not below it", "indent it by two more")
			return t, false
		case i >= 0 && len(n.pairs) > 1:
			d.fail(n, path, "a tool has one of the keys files, exec, http, mcp and spawn, and nothing beside it", "begin another tool with a dash, and put the rest below the key")
			return t, false
		case len(n.pairs) == 1 && (n.pairs[0].key.text == string(SleepTool) || n.pairs[0].key.text == string(AskTool)):
			d.fail(n, path, n.pairs[0].key.text+" has nothing to be set", "write - "+n.pairs[0].key.text)
			return t, false
		}
	}
	d.section(n, path, aTool, members)
	return t, t.whole()
}

func (d *decoder) toolMembers(t *ToolSpec) []member {
	return []member{
		{"files", func(n *node, path string) {
			f := &FilesTool{Root: d.dir}
			if d.section(n, path, "a mapping with the keys root and write", d.filesMembers(f)); n.shape == mapping {
				t.Files = f
			}
		}},
		{"exec", func(n *node, path string) { d.execTool(n, path, &t.Exec) }},
		{"http", func(n *node, path string) { d.httpTool(n, path, &t.HTTP) }},
		{"mcp", func(n *node, path string) { d.mcpTools(n, path, &t.MCP) }},
		{"spawn", func(n *node, path string) {
			s := &spawnTool{}
			given := d.section(n, path, "a mapping with the key agents", d.spawnMembers(s))
			if len(s.Agents) > 0 {
				t.Spawn = s
			} else if n.shape == mapping && given["agents"] == nil {
				d.fail(n, path, "the key agents is missing", "add, for example, agents: [worker]")
			}
		}},
	}
}

func (d *decoder) spawnMembers(s *spawnTool) []member {
	return []member{
		{"agents", func(n *node, path string) { d.names(n, path, "names of agents", &s.Agents, noName) }},
	}
}

// noName says what is wrong with the name of an agent; whether there is one of it shows when
// a child is begun, for the file may change.
func noName(name string) string {
	if name == "" || strings.ContainsAny(name, " \t\n/") {
		return "the name of an agent"
	}
	return ""
}

func (d *decoder) filesMembers(f *FilesTool) []member {
	return []member{
		{"root", func(n *node, path string) {
			if dir, ok := d.path(n, path, "the path of a folder"); ok {
				f.Root = dir
			}
		}},
		{"write", func(n *node, path string) { d.truth(n, path, &f.Write) }},
	}
}

func (d *decoder) infoMembers(t *ToolInfo) []member {
	return []member{
		{"name", func(n *node, path string) { d.toolName(n, path, &t.Name) }},
		{"description", func(n *node, path string) {
			if s, ok := d.text(n, path, "a text"); ok {
				t.Description = strings.TrimSpace(s)
			}
		}},
		{"args", func(n *node, path string) { d.args(n, path, &t.Args) }},
		{"effect", func(n *node, path string) { choose(d, n, path, &t.Effect, effects()...) }},
		{"approve", func(n *node, path string) { choose(d, n, path, &t.Approve, tool.Always, tool.Never) }},
		{"parallel", func(n *node, path string) { d.truth(n, path, &t.Parallel) }},
		{"timeout", func(n *node, path string) { d.duration(n, path, &t.Timeout, false) }},
		{"taints", func(n *node, path string) { d.truth(n, path, &t.Taints) }},
		{"output", func(n *node, path string) { d.size(n, path, &t.Output) }},
	}
}

// toolName reads what the model calls a tool by.
func (d *decoder) toolName(n *node, path string, to *string) {
	const what = "a name of 1 to 64 letters, digits, _ and -"
	s, ok := d.text(n, path, what)
	if !ok {
		return
	}
	if !isToolName(s) {
		hint := "providers refuse other names"
		if made := strings.Trim(regexp.MustCompile(`[^A-Za-z0-9_-]+`).ReplaceAllString(s, "_"), "_"); isToolName(made) {
			hint = "write " + made
		}
		d.expected(n, path, what, "", hint)
		return
	}
	*to = s
}

func isToolName(s string) bool { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(s) }

// nameless reports a tool without a name.
func (d *decoder) nameless(n *node, path string, given map[string]*node) bool {
	if given["name"] == nil {
		d.fail(n, path, "the key name is missing", "the model calls the tool by it: add name: count_lines")
	}
	return given["name"] == nil
}

func (d *decoder) execTool(n *node, path string, to **ExecTool) {
	before := d.src.count()
	t := &ExecTool{ToolInfo: ToolInfo{Effect: stint.Once}, Dir: d.dir}
	given := d.section(n, path, "a mapping with the keys name and command", d.execToolMembers(t))
	if n.shape != mapping || d.nameless(n, path, given) {
		return
	}
	if given["command"] == nil {
		d.fail(n, path, "the key command is missing", `add, for example, command: [wc, -l, "{path}"]`)
	}
	for _, name := range t.Pass {
		if _, twice := t.Env[name]; twice {
			d.fail(given["pass"], join(path, "pass"), name+" is under env too", "keep one of them")
		}
	}
	if d.src.count() == before {
		_, err := toolexec.New(toolexec.Spec{Name: t.Name, Schema: t.Args, Command: t.Command, Shell: t.Shell, Env: t.Env})
		d.refused(given["command"], join(path, "command"), err)
	}
	if !t.Shell && t.Args == nil && d.src.count() == before {
		d.unknown(given["command"], join(path, "command"), t.Command...)
	}
	if t.Name != "" {
		*to = t
	}
}

// unknown reports a place for an argument of a tool whose schema the model is not told.
func (d *decoder) unknown(n *node, path string, templates ...string) {
	for _, text := range templates {
		t, err := tool.ParseTemplate(text)
		if err != nil {
			return // it was reported
		}
		for _, name := range t.Names() {
			d.fail(n, path, "{"+name+"} stands for an argument, and there are no args", "add args: {type: object, properties: {"+name+": {type: string}}}")
			return
		}
	}
}

// refused reports what the package that a tool is for has against it.
func (d *decoder) refused(n *node, path string, err error) {
	if err == nil {
		return
	}
	d.fail(n, path, "there can be no such tool: "+clip(d.src.mask(causeOf(err)), 300), hintOf(err))
}

func (d *decoder) execToolMembers(t *ExecTool) []member {
	return append(d.infoMembers(&t.ToolInfo),
		member{"command", func(n *node, path string) { d.command(n, path, &t.Command) }},
		member{"shell", func(n *node, path string) { d.truth(n, path, &t.Shell) }},
		member{"dir", func(n *node, path string) {
			if dir, ok := d.path(n, path, "the path of a folder"); ok {
				t.Dir = dir
			}
		}},
		member{"env", func(n *node, path string) { d.env(n, path, &t.Env) }},
		member{"pass", func(n *node, path string) { d.pass(n, path, &t.Pass) }},
		member{"grace", func(n *node, path string) { d.duration(n, path, &t.Grace, false) }},
	)
}

func (d *decoder) httpTool(n *node, path string, to **HTTPTool) {
	before := d.src.count()
	t := &HTTPTool{ToolInfo: ToolInfo{Taints: true, Timeout: time.Minute}, Method: http.MethodGet}
	given := d.section(n, path, "a mapping with the keys name and url", d.httpToolMembers(t))
	if n.shape != mapping || d.nameless(n, path, given) {
		return
	}
	if given["url"] == nil {
		d.fail(n, path, "the key url is missing", `add, for example, url: "https://example.com/items/{id}"`)
	}
	if t.Effect == "" {
		t.Effect = effectOf(t.Method)
	}
	if d.src.count() == before {
		spec := toolhttp.Spec{Name: t.Name, Schema: t.Args, Method: t.Method, URL: t.URL, Effect: t.Effect, Headers: t.Headers, Allow: t.Allow}
		_, err := toolhttp.New(spec)
		if e := (*stint.Error)(nil); errors.As(err, &e) {
			err = e.Err // its hint is for any tool
		}
		d.refused(given["url"], join(path, "url"), err)
	}
	if t.Args == nil && d.src.count() == before {
		d.unknown(given["url"], join(path, "url"), t.URL)
	}
	if t.Name != "" {
		*to = t
	}
}

// effectOf is what doing a request again means (RFC 9110, section 9.2).
func effectOf(method string) stint.Effect {
	switch method {
	case http.MethodGet, http.MethodHead:
		return stint.Read
	case http.MethodPut, http.MethodDelete:
		return stint.Idempotent
	}
	return stint.Once
}

func (d *decoder) httpToolMembers(t *HTTPTool) []member {
	return append(d.infoMembers(&t.ToolInfo),
		member{"method", func(n *node, path string) {
			choose(d, n, path, &t.Method, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete)
		}},
		member{"url", func(n *node, path string) {
			const what = "a URL such as https://example.com/items/{id}"
			if n.shape == text && strings.Contains(n.text, "@") && regexp.MustCompile(`^[a-zA-Z]+://[^/?#]*@`).MatchString(n.text) {
				d.src.hide(n)
				d.fail(n, path, "expected "+what+", found one with a user or a password in it", "write headers: {Authorization: env:NAME}")
				return
			}
			if s, ok := d.oneLine(n, path, what, 4096); ok {
				t.URL = s
			}
		}},
		member{"headers", func(n *node, path string) {
			d.headers(n, path, &t.Headers, http.CanonicalHeaderKey(toolhttp.KeyHeader), http.CanonicalHeaderKey(toolhttp.EpochHeader))
		}},
		member{"allow", func(n *node, path string) { d.allow(n, path, &t.Allow) }},
	)
}

func (d *decoder) mcpTools(n *node, path string, to **MCPTools) {
	var t MCPTools
	given := d.section(n, path, "a mapping with the keys file, servers, trust and allow", d.mcpMembers(&t))
	if n.shape != mapping {
		return
	}
	if given["file"] == nil {
		d.fail(n, path, "the key file is missing", "add, for example, file: .mcp.json")
		return
	}
	for _, name := range t.Trust {
		if len(t.Servers) > 0 && !slices.Contains(t.Servers, name) {
			d.fail(given["trust"], join(path, "trust"), name+" is trusted and not among servers", "add it to servers, or remove it here")
		}
	}
	if t.File != "" {
		*to = &t
	}
}

func (d *decoder) mcpMembers(t *MCPTools) []member {
	server := func(s string) string {
		if badLine(s, 200) != "" {
			return "the name of a server in the file"
		}
		return ""
	}
	return []member{
		{"file", func(n *node, path string) {
			if name, ok := d.path(n, path, "the path of a .mcp.json"); ok {
				t.File = name
			}
		}},
		{"servers", func(n *node, path string) { d.names(n, path, "names of servers", &t.Servers, server) }},
		{"trust", func(n *node, path string) { d.names(n, path, "names of servers", &t.Trust, server) }},
		{"allow", func(n *node, path string) { d.allow(n, path, &t.Allow) }},
	}
}

// allow reads hosts that may have an address of any kind.
func (d *decoder) allow(n *node, path string, to *[]string) {
	d.names(n, path, "hosts that may have an address of any kind", to, func(s string) string {
		if err := safedial.CheckAllow([]string{s}); err != nil {
			return "a host or host:port such as db.internal:8080"
		}
		return ""
	})
}

// names reads a list of texts, each once, and sorts it. bad says what one should be.
func (d *decoder) names(n *node, path, what string, to *[]string, bad func(string) string) {
	if n.shape == list && len(n.items) == 0 {
		d.fail(n, path, "expected a list of "+what+", found an empty one", "leave the key out")
		return
	}
	if n.shape != list {
		hint := ""
		if n.shape == text {
			hint = "write it as a list: [" + quote(clip(d.src.mask(n.text), 80)) + "]"
		}
		d.expected(n, path, "a list of "+what, "", hint)
		return
	}
	var all []string
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		s, ok := d.text(item, at, "a text")
		if !ok {
			continue
		}
		switch want := bad(s); {
		case want != "":
			d.expected(item, at, want, "", "")
		case slices.Contains(all, s):
			d.fail(item, at, "the name is given twice", "keep one of them")
		default:
			all = append(all, s)
		}
	}
	slices.Sort(all)
	*to = all
}

// overrides reads what is changed of tools, by the name that the model sees.
func (d *decoder) overrides(n *node, path string, to *map[string]ToolRule) {
	out := map[string]ToolRule{}
	d.each(n, path, "a mapping of names of tools to what is changed of them", func(key, value *node, at string) {
		if !isToolName(key.text) {
			d.expected(key, at, "the name of a tool as the model sees it, letters, digits, _ and -", "", "a tool of an MCP server is named SERVER__TOOL")
			return
		}
		var r ToolRule
		d.section(value, at, "a mapping with some of the keys effect, approve, parallel, timeout, taints and poll", d.overrideMembers(&r))
		if value.shape == mapping && len(value.pairs) == 0 {
			d.fail(value, at, "nothing is changed of the tool", "remove it")
		}
		out[key.text] = r
	})
	if len(out) > 0 {
		*to = out
	}
}

func (d *decoder) overrideMembers(r *ToolRule) []member {
	flag := func(to **bool) func(*node, string) {
		return func(n *node, path string) {
			var v bool
			if d.truth(n, path, &v) {
				*to = &v
			}
		}
	}
	return []member{
		{"effect", func(n *node, path string) { choose(d, n, path, &r.Effect, effects()...) }},
		{"approve", func(n *node, path string) { choose(d, n, path, &r.Approve, tool.Always, tool.Never) }},
		{"parallel", flag(&r.Parallel)},
		{"timeout", func(n *node, path string) { d.duration(n, path, &r.Timeout, false) }},
		{"taints", flag(&r.Taints)},
		{"poll", func(n *node, path string) { d.truth(n, path, &r.Poll) }},
	}
}
