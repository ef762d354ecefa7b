package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func (d *decoder) llmMembers(l *LLM) []member {
	return []member{
		{"model", func(n *node, path string) { d.model(n, path, &l.ModelRef) }},
		{"max_tokens", func(n *node, path string) { integer(d, n, path, &l.MaxTokens, 1, 1_000_000, false) }},
		{"temperature", func(n *node, path string) {
			before := d.src.count()
			var v float64
			if d.float(n, path, &v, 0, 2); d.src.count() == before {
				l.Temperature = &v
			}
		}},
		{"cache", func(n *node, path string) { d.truth(n, path, &l.Cache) }},
		{"context", func(n *node, path string) {
			d.section(n, path, "a mapping with the keys window, compact and excerpt", d.contextMembers(&l.Context))
		}},
		{"instructions", func(n *node, path string) { d.content(n, path, "a text", &l.Instructions) }},
		{"prompt", func(n *node, path string) { d.content(n, path, "a text", &l.Prompt) }},
		{"interactive", func(n *node, path string) { d.truth(n, path, &l.Interactive) }},
		{"result", func(n *node, path string) { d.result(n, path, &l.Result) }},
		{"rubric", func(n *node, path string) { d.rubric(n, path, &l.Rubric) }},
		{"tools", func(n *node, path string) { d.tools(n, path, &l.Tools) }},
		{"tool", func(n *node, path string) { d.overrides(n, path, &l.Tool) }},
		{"rules", func(n *node, path string) { d.rules(n, path, &l.Rules) }},
	}
}

func (d *decoder) contextMembers(c *Context) []member {
	return []member{
		{"window", func(n *node, path string) { integer(d, n, path, &c.Window, 1000, 100_000_000, false) }},
		{"compact", func(n *node, path string) { d.float(n, path, &c.Compact, 0.1, 1) }},
		{"excerpt", func(n *node, path string) { d.size(n, path, &c.Excerpt) }},
	}
}

func (d *decoder) rubric(n *node, path string, to **Rubric) {
	if n.shape == text {
		d.expected(n, path, "a mapping with the keys text, model and rounds", "", "write {text: …}")
		return
	}
	r := &Rubric{Rounds: 3}
	given := d.section(n, path, "a mapping with the keys text, model and rounds", d.rubricMembers(r))
	if n.shape != mapping {
		return
	}
	if given["text"] == nil {
		d.fail(n, path, "the key text is missing", "write what a good result is like")
	}
	*to = r
}

func (d *decoder) rubricMembers(r *Rubric) []member {
	return []member{
		{"text", func(n *node, path string) { d.content(n, path, "a text", &r.Text) }},
		{"model", func(n *node, path string) { d.model(n, path, &r.ModelRef) }},
		{"rounds", func(n *node, path string) { integer(d, n, path, &r.Rounds, 1, 20, false) }},
	}
}

// rules reads what is changed of the built-in rules.
func (d *decoder) rules(n *node, path string, to *map[string]Rule) {
	out := map[string]Rule{}
	d.each(n, path, "a mapping of the names of rules to off or {warn: 3, pause: 6}", func(key, value *node, at string) {
		if !slices.Contains(ruleNames(), key.text) {
			hint := "the rules are " + strings.Join(ruleNames(), ", ")
			for _, name := range ruleNames() {
				if strings.EqualFold(name, key.text) || nearest(key.text, []string{name}) != "" && name == taintedOnce {
					hint = "did you mean " + name + "?"
				}
			}
			d.fail(key, at, "there is no such rule", hint)
			return
		}
		if r, ok := d.rule(key.text, value, at); ok {
			out[key.text] = r
		}
	})
	if len(out) > 0 {
		*to = out
	}
}

func (d *decoder) rule(name string, n *node, path string) (Rule, bool) {
	what := "off or {warn: 3, pause: 6}"
	if name == taintedOnce {
		what = "off"
	}
	switch {
	case n.shape == text && n.text == "off":
		return Rule{Off: true}, true
	case n.shape != mapping || name == taintedOnce:
		hint := ""
		if n.shape == truth && strings.EqualFold(n.text, "false") || isNone(n) {
			hint = "write off"
		} else if n.shape == truth || n.shape == text && n.text == "on" {
			hint = "it is on unless it is off; leave it out"
		}
		d.expected(n, path, what, "", hint)
		return Rule{}, false
	}
	var r Rule
	given := d.section(n, path, what, d.ruleMembers(&r))
	switch {
	case len(n.pairs) == 0:
		d.fail(n, path, "expected "+what+", found an empty mapping", "leave the rule out, or say after how many times it warns and pauses")
		return Rule{}, false
	case r.Warn > 0 && r.Pause > 0 && r.Warn > r.Pause:
		d.fail(given["warn"], join(path, "warn"), fmt.Sprintf("it warns after %d times, which is later than it pauses, %d", r.Warn, r.Pause), "lower warn or raise pause")
	}
	return r, true
}

func (d *decoder) ruleMembers(r *Rule) []member {
	return []member{
		{"warn", func(n *node, path string) { integer(d, n, path, &r.Warn, 1, 1000, false) }},
		{"pause", func(n *node, path string) { integer(d, n, path, &r.Pause, 1, 1000, false) }},
	}
}

// togetherLLM reports what the keys of an llm agent mean together.
func (d *decoder) togetherLLM(l *LLM, given map[string]*node, path string, tool *node) {
	if r := l.Rubric; r != nil && r.Model == "" {
		r.ModelRef = l.ModelRef
	}
	if n := given["max_tokens"]; n != nil && l.MaxTokens >= l.Context.Window {
		d.fail(n, join(path, "max_tokens"), fmt.Sprintf("an answer of %d tokens leaves no room in a window of %d", l.MaxTokens, l.Context.Window),
			"lower max_tokens, or raise window under context")
	} else if n := given["context"]; n != nil && l.MaxTokens >= l.Context.Window {
		d.fail(n, join(path, "context"), fmt.Sprintf("a window of %d tokens has no room for an answer of max_tokens, %d", l.Context.Window, l.MaxTokens),
			"raise window, or give a smaller max_tokens")
	}
	seen, all := map[string]bool{}, true
	for i := range l.Tools {
		names, known := l.Tools[i].names()
		all = all && known
		for _, name := range names {
			seen[name] = true
		}
	}
	if l.Result != nil {
		if seen["finish"] {
			d.fail(given["tools"], join(path, "tools"), "a tool is named finish, as the one is that result adds", "give it another name")
		}
		seen["finish"] = true
	}
	if tool == nil || tool.shape != mapping {
		return
	}
	names := slices.Sorted(maps.Keys(seen))
	for _, p := range tool.pairs {
		name := p.key.text
		if _, read := l.Tool[name]; !read || seen[name] || !all && strings.Contains(name, "__") {
			continue
		}
		hint := "there are " + clip(strings.Join(names, ", "), 200)
		switch near := nearest(name, names); {
		case near != "":
			hint = "did you mean " + near + "?"
		case !all:
			hint = "a tool of an MCP server is named SERVER__TOOL"
		case len(names) == 0:
			hint = "add it under tools"
		}
		d.fail(p.key, join(join(path, "tool"), clip(d.src.mask(name), 64)), "the agent has no such tool", hint)
	}
}
