package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/expression"
	"github.com/stint-dev/stint/policy"
)

const aRule = "a rule with the keys name and do, or preset: NAME"

// PolicyRules returns the rules that the agent's steps are held against, in order: its
// own, those of the file and, for a model with tools, the one that is built in, unless it
// is off or there is one of that name.
func (a *Agent) PolicyRules() []policy.Rule {
	rules := slices.Clone(a.Policy)
	named := slices.ContainsFunc(rules, func(r policy.Rule) bool { return r.Name == policy.TaintedOnce })
	if a.LLM == nil || a.LLM.Rules[taintedOnce].Off || named {
		return rules
	}
	return append(rules, policy.BuiltIn())
}

// PolicyMembers returns those rules as they would be written in the file, by their names.
func (a *Agent) PolicyMembers() []Member {
	var out []Member
	for _, r := range a.PolicyRules() {
		out = append(out, Member{r.Name, writtenRule(r)})
	}
	return out
}

// policy reads a list of rules and compiles them. Presets stand in it as their rules.
func (d *decoder) policy(n *node, path string, to *[]policy.Rule) {
	if n.shape != list {
		hint := ""
		if n.shape == mapping {
			hint = "begin each with a dash: - name: …"
		}
		d.expected(n, path, "a list of rules", "", hint)
		return
	}
	type origin struct {
		item  *node
		path  string
		given map[string]*node
	}
	var rules []policy.Rule
	var from []origin
	before := d.src.count()
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		read, given := d.policyItem(item, at)
		for range read {
			from = append(from, origin{item, at, given})
		}
		rules = append(rules, read...)
	}
	_, err := policy.Compile(rules)
	var faults policy.Faults
	errors.As(err, &faults)
	for _, f := range faults {
		o := from[f.Rule]
		if f.Field == "" {
			d.fail(n, path, f.Text, f.Hint)
			continue
		}
		d.fault(&expression.Fault{Field: f.Field, Line: f.Line, Column: f.Column, Text: f.Text, Hint: f.Hint}, o.item, o.item, o.path, o.given, before)
	}
	if d.src.count() == before {
		*to = rules
	}
}

// policyItem reads one entry of a policy: a rule, or a preset.
func (d *decoder) policyItem(n *node, path string) (rules []policy.Rule, given map[string]*node) {
	if n.shape != mapping {
		hint := ""
		if slices.Contains(policy.Presets(), n.text) {
			hint = "write preset: " + n.text
		}
		d.expected(n, path, aRule, "", hint)
		return nil, nil
	}
	if valueOf(n, "preset") != nil {
		d.section(n, path, "preset: NAME", d.presetMembers(&rules))
		return rules, map[string]*node{}
	}
	r := policy.Rule{}
	given = d.sectionOr(n, path, aRule, d.policyMembers(&r), strangerInPolicy)
	for _, key := range []struct{ name, hint string }{
		{"name", "give each rule a name: it stands in questions and in the journal"}, {"do", "add do: ask, or allow, or deny"},
	} {
		if given[key.name] == nil {
			d.fail(n, path, "the key "+key.name+" is missing", key.hint)
			given[key.name] = n // said once
		}
	}
	return []policy.Rule{r}, given
}

func (d *decoder) presetMembers(to *[]policy.Rule) []member {
	return []member{{"preset", func(n *node, path string) {
		var name string
		if choose(d, n, path, &name, policy.Presets()...); name != "" {
			*to, _ = policy.Preset(name)
		}
	}}}
}

func (d *decoder) policyMembers(r *policy.Rule) []member {
	not := func(name string, to *bool) member {
		return member{name, func(n *node, path string) {
			may := true
			d.truth(n, path, &may)
			*to = !may
		}}
	}
	return []member{
		{"name", func(n *node, path string) { r.Name, _ = d.oneLine(n, path, "a name", 64) }},
		{"tool", func(n *node, path string) { d.oneOrMore(n, path, "the name of a step, * for anything", &r.Tool) }},
		{"kind", func(n *node, path string) { some(d, n, path, &r.Kind, stint.Model, stint.Tool, stint.Custom) }},
		{"effect", func(n *node, path string) { some(d, n, path, &r.Effect, effects()...) }},
		{"when", func(n *node, path string) {
			s, ok := d.text(n, path, `an expression such as args.branch == "main"`)
			if ok && strings.TrimSpace(s) == "" {
				d.fail(n, path, "the expression is empty", "leave the key out")
			} else if ok {
				r.When = s
			}
		}},
		{"tainted", func(n *node, path string) {
			if d.truth(n, path, &r.Tainted) && !r.Tainted {
				d.fail(n, path, "false would be for every session", "leave it out, or write when: not tainted")
			}
		}},
		{"cost_over", func(n *node, path string) { d.money(n, path, &r.CostOver) }},
		{"verb", func(n *node, path string) { some(d, n, path, &r.Verb, policy.Verbs()...) }},
		{"do", func(n *node, path string) { choose(d, n, path, &r.Do, policy.Allow, policy.Ask, policy.Deny) }},
		{"message", func(n *node, path string) { r.Message, _ = d.oneLine(n, path, "one line of text", 500) }},
		{"approvers", func(n *node, path string) { d.oneOrMore(n, path, "a role or user:NAME", &r.Approvers) }},
		{"quorum", func(n *node, path string) { integer(d, n, path, &r.Quorum, 1, policy.MaxQuorum, false) }},
		{"deadline", func(n *node, path string) { d.duration(n, path, &r.Deadline, true) }},
		{"on_expire", func(n *node, path string) {
			choose(d, n, path, &r.OnExpire, policy.ExpireDeny, policy.ExpireStop, policy.Escalate, policy.ExpireAsk)
		}},
		{"escalate_to", func(n *node, path string) { d.oneOrMore(n, path, "a role or user:NAME", &r.EscalateTo) }},
		not("edit", &r.NoEdit),
		not("grant", &r.NoGrant),
	}
}

// oneOrMore reads a text, or a list of some.
func (d *decoder) oneOrMore(n *node, path, what string, to *[]string) {
	items, at := []*node{n}, func(int) string { return path }
	if n.shape == list {
		items, at = n.items, func(i int) string { return fmt.Sprintf("%s[%d]", path, i) }
	}
	if len(items) == 0 {
		d.fail(n, path, "expected "+what+", or a list, found an empty list", "leave the key out")
	}
	for i, item := range items {
		if s, ok := d.oneLine(item, at(i), what, 200); ok {
			*to = append(*to, s)
		}
	}
}

// some reads one of a few words, or a list of some.
func some[T ~string](d *decoder, n *node, path string, to *[]T, words ...T) {
	items, at := []*node{n}, func(int) string { return path }
	if n.shape == list {
		items, at = n.items, func(i int) string { return fmt.Sprintf("%s[%d]", path, i) }
	}
	if len(items) == 0 {
		d.fail(n, path, "the list is empty", "leave the key out")
	}
	for i, item := range items {
		var w T
		if choose(d, item, at(i), &w, words...); w != "" {
			*to = append(*to, w)
		}
	}
}

// strangerInPolicy says what to write in place of a key that other programs have.
func strangerInPolicy(key string) (why, hint string) {
	instead := map[string]string{
		"if": "when", "condition": "when", "match": "when", "tools": "tool", "step": "tool", "kinds": "kind", "effects": "effect", "verbs": "verb", "action": "do", "then": "do", "decision": "do",
		"roles": "approvers", "role": "approvers", "who": "approvers", "approver": "approvers", "users": "approvers", "timeout": "deadline", "ttl": "deadline", "expires": "deadline",
		"on_timeout": "on_expire", "reason": "message", "description": "message", "cost": "cost_over", "count": "quorum", "escalate": "escalate_to", "id": "name",
	}[strings.ToLower(key)]
	if instead == "" {
		return "", ""
	}
	return "there is no such key here", "did you mean " + instead + "?"
}

// joinPolicy puts the rules of the file behind those of an agent.
func (d *decoder) joinPolicy(a *Agent, own *node, path string) {
	for _, r := range d.common {
		if own != nil && slices.ContainsFunc(a.Policy, func(o policy.Rule) bool { return o.Name == r.Name }) {
			d.fail(own, join(path, "policy"), "there is a rule "+r.Name+" in the policy of the file too", "those of the file hold for each agent, behind its own: give one another name, or leave it out")
			return
		}
	}
	if n := len(a.Policy) + len(d.common); n > policy.MaxRules && own != nil {
		d.fail(own, join(path, "policy"), fmt.Sprintf("with those of the file there are %d rules; at most %d fit", n, policy.MaxRules), "let one rule name several tools")
		return
	}
	if len(d.common) > 0 {
		a.Policy = slices.Concat(a.Policy, d.common)
	}
}

// writtenRule is a rule as it would be written in the file, in one line.
func writtenRule(r policy.Rule) string {
	var all []string
	add := func(given bool, key, value string) {
		if given {
			all = append(all, key+": "+value)
		}
	}
	each := func(key string, list []string) {
		if len(list) == 1 {
			add(true, key, quote(list[0]))
		} else {
			add(len(list) > 0, key, words(list))
		}
	}
	each("tool", r.Tool)
	each("kind", plain(r.Kind))
	each("effect", plain(r.Effect))
	add(r.When != "", "when", quote(r.When))
	add(r.Tainted, "tainted", "true")
	add(r.CostOver != 0, "cost_over", r.CostOver.String())
	each("verb", plain(r.Verb))
	add(true, "do", string(r.Do))
	add(r.Message != "", "message", quote(r.Message))
	each("approvers", r.Approvers)
	add(r.Quorum != 0, "quorum", strconv.Itoa(r.Quorum))
	add(r.Deadline != 0, "deadline", formatDuration(r.Deadline))
	add(r.OnExpire != "", "on_expire", string(r.OnExpire))
	each("escalate_to", r.EscalateTo)
	add(r.NoEdit, "edit", "false")
	add(r.NoGrant, "grant", "false")
	return "{" + strings.Join(all, ", ") + "}"
}

func plain[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, w := range all {
		out[i] = string(w)
	}
	return out
}

// policy lists the names of rules and then each, so that an order that changed is seen.
func (l *lister) policy(rules []policy.Rule) {
	if len(rules) == 0 {
		return
	}
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.Name
	}
	l.add("policy", words(names))
	was := l.place
	for _, r := range rules {
		l.place = was + " " + r.Name + "\x00"
		w := writtenRule(r)
		l.add(join("policy", r.Name), excerpt(w, w))
	}
	l.place = was
}
