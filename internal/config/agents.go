package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
)

func (d *decoder) agents(n *node, path string, f *File) {
	d.each(n, path, "a mapping of names to agents", func(key, value *node, at string) {
		if why := badName(key.text); why != "" {
			hint := nameRule
			if lower := strings.ToLower(key.text); badName(lower) == "" {
				hint = "write " + lower + "; " + nameRule
			}
			d.fail(key, at, "the name "+why, hint)
			return
		}
		a := d.agent(key, value, at)
		if f.Agents == nil {
			f.Agents = map[string]Agent{}
		}
		f.Agents[a.Name] = a
	})
}

// agent reads one agent and then what its keys mean together.
func (d *decoder) agent(key, n *node, path string) Agent {
	kind := kindMeant(n)
	a := defaultsOf(kind)
	a.Name, a.Dir = key.text, d.dir
	stranger := func(key string) (why, hint string) { return misplaced(kind, key) }
	given := d.sectionOr(n, path, "a mapping with the keys kind and command", d.agentMembers(&a, kind), stranger)
	if n.shape != mapping {
		return a
	}
	if given["kind"] == nil {
		d.fail(key, path, "the key kind is missing", "add kind: "+kind)
	}
	d.required(&a, kind, key, given, path)
	d.together(&a, given, path)
	d.joinPolicy(&a, valueOf(n, "policy"), path)
	switch kind {
	case KindLLM:
		d.togetherLLM(a.LLM, given, path, valueOf(n, "tool"))
	case KindHTTP:
		d.togetherHTTP(a.HTTP, given, path)
	}
	return a
}

// kindMeant is the kind that an agent says it is or, where it says none that there is, the
// kind that its keys are of.
func kindMeant(n *node) string {
	if k := valueOf(n, "kind"); k != nil && k.shape == text && slices.Contains(kinds(), k.text) {
		return k.text
	}
	protocol := valueOf(n, "protocol")
	switch {
	case valueOf(n, "model") != nil || valueOf(n, "instructions") != nil || valueOf(n, "tools") != nil:
		return KindLLM
	case valueOf(n, "url") != nil:
		return KindHTTP
	case protocol != nil && protocol.shape == text && slices.Contains(protocols(), Protocol(protocol.text)):
		return KindCLI
	}
	return KindExec
}

// valueOf returns the value of a key, nil where a mapping has none or n is none.
func valueOf(n *node, key string) *node {
	for _, p := range n.pairs {
		if p.key.text == key {
			return p.value
		}
	}
	return nil
}

// protocols are those of cli agents.
func protocols() []Protocol { return []Protocol{Codex, Claude, OpenCode, Gemini, ACP} }

// required reports keys without which an agent is none, and fills in a command that
// follows from the protocol.
func (d *decoder) required(a *Agent, kind string, key *node, given map[string]*node, path string) {
	missing := func(name, add string) bool {
		if given[name] == nil {
			d.fail(key, path, "the key "+name+" is missing", add)
		}
		return given[name] == nil
	}
	switch kind {
	case KindExec:
		missing("command", "add, for example, command: [python3, agent.py]")
	case KindLLM:
		missing("model", "add, for example, model: anthropic/claude-sonnet-5")
	case KindHTTP:
		missing("url", "add, for example, url: https://example.com/agent")
	case KindCLI:
		hint := "add protocol: codex, claude, opencode, gemini or acp"
		if len(a.Command) > 0 && slices.Contains(protocols(), Protocol(a.Command[0])) {
			hint = "add protocol: " + a.Command[0]
		}
		if missing("protocol", hint) || given["command"] != nil {
			return
		}
		if a.Protocol == ACP {
			missing("command", "no program goes by that protocol alone: add, for example, command: [opencode, acp]")
		} else if a.Protocol != "" {
			a.Command = []string{string(a.Protocol)}
		}
	}
}

// together reports keys that have no effect, or no meaning, beside others.
func (d *decoder) together(a *Agent, given map[string]*node, path string) {
	useless := func(key, why, hint string) {
		if n := given[key]; n != nil {
			d.fail(n, join(path, key), why, hint)
		}
	}
	if a.Protocol == None {
		useless("effects", "it has no effect under protocol: none, which has one step", "write effect: read, idempotent or once")
		useless("done", "it has no effect under protocol: none, where the exit code says it", "remove it, or end the program when it is done")
		if a.Keep == KeepSession {
			useless("keep", "a program under protocol: none lives for one loop", "remove it")
		}
	} else if a.set() == 0 {
		useless("effect", "it is for protocol: none; under jsonl a step says its own, or effects does", "write effects: {STEP: read}, or protocol: none")
	}
	if a.Retry.Max < a.Retry.Initial {
		useless("retry", fmt.Sprintf("max is %s, which is less than initial, %s", formatDuration(a.Retry.Max), formatDuration(a.Retry.Initial)),
			"raise max or lower initial")
	}
	for _, name := range a.Pass {
		if _, twice := a.Env[name]; twice {
			useless("pass", name+" is under env too", "keep one of them")
		}
	}
}

func (d *decoder) togetherHTTP(h *HTTP, given map[string]*node, path string) {
	if n := given["idle"]; n == nil {
		h.Idle = min(h.Idle, h.Timeout)
	} else if h.Idle > h.Timeout {
		d.fail(n, join(path, "idle"), fmt.Sprintf("it is more than timeout, %s, and would never be reached", formatDuration(h.Timeout)), "lower it, or raise timeout")
	}
	if u := hostOf(h.URL); u != "" && !h.AllowPrivate {
		if why := private(u); why != "" {
			d.fail(given["url"], join(path, "url"), "the host "+quote(clip(u, 80))+" "+why, "add allow_private: true if it is meant")
		}
	}
}

// agentMembers are the keys of an agent of a kind.
func (d *decoder) agentMembers(a *Agent, kind string) []member {
	kindKey := []member{{"kind", func(n *node, path string) { d.kind(n, path, &a.Kind) }}}
	switch kind {
	case KindLLM:
		return slices.Concat(kindKey, d.llmMembers(a.LLM), d.apartMembers(a), d.commonMembers(a))
	case KindHTTP:
		return slices.Concat(kindKey, d.httpMembers(a.HTTP), d.effectMembers(a), d.commonMembers(a))
	case KindCLI:
		return slices.Concat(kindKey, d.programMembers(a, protocols()...), d.cliMembers(a.CLI), d.effectMembers(a), d.outputMembers(a), d.apartMembers(a), d.commonMembers(a))
	}
	return slices.Concat(kindKey, d.programMembers(a, JSONL, None), d.execMembers(a), d.effectMembers(a), d.outputMembers(a), d.apartMembers(a), d.commonMembers(a))
}

func (d *decoder) programMembers(a *Agent, protocols ...Protocol) []member {
	return []member{
		{"command", func(n *node, path string) { d.command(n, path, &a.Command) }},
		{"protocol", func(n *node, path string) { d.protocol(n, path, &a.Protocol, protocols) }},
		{"dir", func(n *node, path string) {
			if dir, ok := d.path(n, path, "the path of a folder"); ok {
				a.Dir = dir
			}
		}},
		{"env", func(n *node, path string) { d.env(n, path, &a.Env) }},
		{"pass", func(n *node, path string) { d.pass(n, path, &a.Pass) }},
	}
}

// protocol reads one of the protocols of a kind, and knows those of the other.
func (d *decoder) protocol(n *node, path string, to *Protocol, words []Protocol) {
	hint := ""
	switch p := Protocol(n.text); {
	case n.shape != text || slices.Contains(words, p):
	case slices.Contains(protocols(), p):
		hint = "it is a protocol of kind: cli"
	case p == JSONL || p == None:
		hint = "it is a protocol of kind: exec"
	}
	if hint != "" {
		all := make([]string, len(words))
		for i, w := range words {
			all[i] = string(w)
		}
		d.expected(n, path, or(all), "", hint)
		return
	}
	choose(d, n, path, to, words...)
}

func (d *decoder) execMembers(a *Agent) []member {
	return []member{
		{"keep", func(n *node, path string) { choose(d, n, path, &a.Keep, KeepLoop, KeepSession) }},
		{"effect", func(n *node, path string) { choose(d, n, path, &a.Effect, effects()...) }},
	}
}

func (d *decoder) effectMembers(a *Agent) []member {
	return []member{
		{"effects", func(n *node, path string) {
			bySteps(d, n, path, "a mapping of step names to effects", &a.Effects, func(n *node, path string) (e stint.Effect) {
				choose(d, n, path, &e, effects()...)
				return e
			})
		}},
	}
}

func (d *decoder) outputMembers(a *Agent) []member {
	return []member{
		{"output", func(n *node, path string) { d.size(n, path, &a.Output) }},
		{"grace", func(n *node, path string) { d.duration(n, path, &a.Grace, false) }},
	}
}

func (d *decoder) httpMembers(h *HTTP) []member {
	return []member{
		{"url", func(n *node, path string) {
			if u, ok := d.address(n, path, "a URL such as https://example.com/agent", true); ok {
				h.URL = u.String()
			}
		}},
		{"secret", func(n *node, path string) { d.secretRef(n, path, "the secret", &h.Secret) }},
		{"headers", func(n *node, path string) { d.headers(n, path, &h.Headers, "Content-Type", "Accept") }},
		{"timeout", func(n *node, path string) { d.duration(n, path, &h.Timeout, false) }},
		{"idle", func(n *node, path string) { d.duration(n, path, &h.Idle, false) }},
		{"allow_private", func(n *node, path string) { d.truth(n, path, &h.AllowPrivate) }},
	}
}

func (d *decoder) cliMembers(c *CLI) []member {
	return []member{
		{"args", func(n *node, path string) { d.arguments(n, path, &c.Args) }},
		{"interactive", func(n *node, path string) { d.truth(n, path, &c.Interactive) }},
		{"hold", func(n *node, path string) { d.duration(n, path, &c.Hold, false) }},
	}
}

// arguments reads the arguments of a program.
func (d *decoder) arguments(n *node, path string, to *[]string) {
	const what = "a list of arguments"
	if n.shape != list || len(n.items) > 1000 {
		hint := "for example [--model, gpt-5]"
		if n.shape == text {
			hint = "write it as a list: " + clip(asList(d.src.mask(n.text)), 200)
		}
		d.expected(n, path, what, "", hint)
		return
	}
	var all []string
	for i, item := range n.items {
		if s, ok := d.text(item, fmt.Sprintf("%s[%d]", path, i), "a text"); ok {
			all = append(all, s)
		}
	}
	*to = all
}

// commonMembers are the keys that agents of every kind have.
func (d *decoder) commonMembers(a *Agent) []member {
	return []member{
		{"in_doubt", func(n *node, path string) {
			bySteps(d, n, path, "a mapping of step names to what is done", &a.InDoubt, d.inDoubt)
		}},
		{"limits", func(n *node, path string) {
			d.section(n, path, "a mapping of limits", d.limitMembers(&a.Bounds))
		}},
		{"on_limit", func(n *node, path string) {
			word := "wait"
			choose(d, n, path, &word, "wait", "stop")
			a.Bounds.Stop = word == "stop"
		}},
		{"retry", func(n *node, path string) {
			d.section(n, path, "a mapping with the keys attempts, initial, factor, max and jitter", d.retryMembers(&a.Retry))
		}},
		{"concurrency", func(n *node, path string) { integer(d, n, path, &a.Concurrency, 1, 10_000, false) }},
		{"done", func(n *node, path string) { d.done(n, path, &a.Done) }},
		{"pin", func(n *node, path string) { choose(d, n, path, &a.Pin, PinWarn, PinStrict, PinCopy) }},
		{"policy", func(n *node, path string) { d.policy(n, path, &a.Policy) }},
		{"labels", func(n *node, path string) { d.labels(n, path, &a.Labels) }},
		{"description", func(n *node, path string) {
			if s, ok := d.oneLine(n, path, "one line of text", 200); ok {
				a.Description = s
			}
		}},
	}
}

func (d *decoder) kind(n *node, path string, to *string) {
	if n.shape == text && !slices.Contains(kinds(), n.text) {
		hint := "write kind: exec and a command to run any program"
		if near := nearest(n.text, kinds()); near != "" {
			hint = "did you mean " + near + "?"
		} else if slices.Contains(protocols(), Protocol(n.text)) {
			hint = "write kind: cli and protocol: " + n.text
		} else if slices.Contains([]string{"model", "anthropic", "openai", "chat", "react"}, n.text) {
			hint = "write kind: llm and a model"
		}
		d.expected(n, path, "a kind of agent", "the kinds are "+strings.Join(kinds(), ", "), hint)
		return
	}
	choose(d, n, path, to, kinds()...)
}

// misplaced says of a key that an agent of a kind has not, and one of another kind has,
// what to write instead. It is empty for a key that no agent has.
func misplaced(kind, key string) (why, hint string) {
	var has []string
	var d decoder // the members are only listed
	for _, k := range kinds() {
		a := defaultsOf(k)
		if k != kind && slices.Contains(keys(d.agentMembers(&a, k)), key) {
			has = append(has, k)
		}
	}
	if len(has) == 0 {
		return "", ""
	}
	hint = instead(kind, key)
	if hint == "" {
		hint = "remove it; it is for kind: " + or(has)
	}
	return "an agent of kind: " + kind + " has no " + key, hint
}

// instead is what to write in place of a key that a kind has not.
func instead(kind, key string) string {
	switch kind + " " + key {
	case "exec model", "exec instructions", "exec tools", "exec tool", "exec rules", "exec rubric":
		return "the program does as it likes; write kind: llm for a model with tools"
	case "exec args":
		return "put the arguments into command"
	case "exec max_tokens":
		return "write limits: {tokens: 100000}"
	case "exec prompt", "http prompt", "cli prompt":
		return "give the session an input when it is begun"
	case "exec url", "cli url", "llm url":
		return "write kind: http for an agent behind a URL"
	case "exec timeout", "cli timeout":
		return "write limits: {wall: 1h}"
	case "exec idle", "cli idle", "llm idle":
		return "write limits: {idle: 5m}"
	case "llm timeout":
		return "write timeout in the provider or in a tool, or limits: {wall: 1h}"
	case "llm command", "llm args":
		return "the model can be given a program: tools: [{exec: {name: NAME, command: [PROGRAM]}}]"
	case "llm protocol":
		return "remove it; how the model is spoken to is the api of its provider"
	case "llm dir", "llm env", "llm pass", "llm grace":
		return "write it in the exec tool that needs it"
	case "llm effect", "llm effects":
		return "write tool: {NAME: {effect: read}}"
	case "llm output":
		return "write context: {excerpt: 32KiB}, or output in a tool"
	case "llm headers":
		return "write headers in a provider under providers"
	case "llm secret":
		return "write key: env:NAME in a provider under providers"
	case "http workspace":
		return "the agent runs elsewhere, with files of its own"
	case "http command", "http args", "http protocol", "http keep", "http grace", "http dir":
		return "the agent runs elsewhere; write kind: exec or cli for a program"
	case "http env", "http pass":
		return "the agent runs elsewhere; what it is to know may stand in headers"
	case "http effect", "cli effect":
		return "write effects: {STEP: read}"
	case "cli model":
		return "the program chooses its model: write args: [--model, NAME]"
	case "cli tools", "cli tool", "cli instructions", "cli rubric":
		return "the program brings its own; write kind: llm for a model with tools of yours"
	case "cli keep":
		return "write hold: 30m, which is how long its process is kept while a person is asked"
	}
	return ""
}

// or lists words: "a, b or c".
func or(all []string) string {
	if last := len(all) - 1; last > 0 {
		return strings.Join(all[:last], ", ") + " or " + all[last]
	}
	return strings.Join(all, "")
}
