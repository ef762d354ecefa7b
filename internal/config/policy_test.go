package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/policy"
)

// policyVerdict is what a rule without anything but a deadline asks.
func policyVerdict() (policy.Verdict, error) {
	f, err := config.Parse("stint.yaml", []byte("policy: [{name: a, do: ask, deadline: 1h}]\nagents: {a: {kind: exec, command: [a]}}"))
	if err != nil {
		return policy.Verdict{}, err
	}
	p, err := policy.Compile(f.Policy)
	if err != nil {
		return policy.Verdict{}, err
	}
	return p.Judge(policy.Call{}), nil
}

func ruleNames(rules []policy.Rule) string {
	var all []string
	for _, r := range rules {
		all = append(all, r.Name)
	}
	return strings.Join(all, " ")
}

// An agent's own rules come first, then those of the file, then the one that is built in.
func TestOrderOfRules(t *testing.T) {
	for src, want := range map[string]string{
		"agents: {a: {kind: exec, command: [a]}}":                                                                                                 "",
		"agents: {a: {kind: llm, model: script/x}}":                                                                                               "tainted-once",
		"agents: {a: {kind: llm, model: script/x, rules: {tainted-once: off}}}":                                                                   "",
		"agents: {a: {kind: llm, model: script/x, policy: [{name: own, do: ask}]}}\npolicy: [{name: all, do: deny}]":                              "own all tainted-once",
		"agents: {a: {kind: llm, model: script/x, policy: [{preset: tainted-once}]}}\npolicy: [{preset: read-only}]":                              "tainted-once read-only",
		"agents: {a: {kind: exec, command: [a], policy: [{name: own, do: ask}]}, b: {kind: exec, command: [b]}}\npolicy: [{name: all, do: deny}]": "own all",
	} {
		f, err := config.Parse("stint.yaml", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		a := f.Agents["a"]
		if got := ruleNames(a.PolicyRules()); got != want {
			t.Errorf("%s: got %q, want %q", src, got, want)
		}
		if b, ok := f.Agents["b"]; ok && ruleNames(b.PolicyRules()) != "all" {
			t.Errorf("%s: the other agent has %q", src, ruleNames(b.PolicyRules()))
		}
	}
}

// A rule as it is written is a rule of the file, and the same one.
func TestWrittenRules(t *testing.T) {
	f, err := config.ParseWith("stint.yaml", files(t, "good")["policy"], content)
	if err != nil {
		t.Fatal(err)
	}
	a := f.Agents["triage"]
	for _, r := range a.Policy {
		line := strings.Replace(config.WrittenRule(r), "{", "{name: "+r.Name+", ", 1)
		again, err := config.Parse("stint.yaml", []byte("policy:\n  - "+line+"\nagents: {a: {kind: exec, command: [a]}}"))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got := config.WrittenRule(again.Policy[0]); got != config.WrittenRule(r) || again.Policy[0].When != r.When {
			t.Errorf("%s came back as %s", line, got)
		}
	}
	// Each member of a rule is told: a change of it is one of the agent.
	for name, edit := range map[string]func(*policy.Rule){
		"tool": func(r *policy.Rule) { r.Tool = r.Tool[1:] }, "kind": func(r *policy.Rule) { r.Kind = nil }, "effect": func(r *policy.Rule) { r.Effect = r.Effect[1:] },
		"when": func(r *policy.Rule) { r.When = "true" }, "tainted": func(r *policy.Rule) { r.Tainted = true }, "cost_over": func(r *policy.Rule) { r.CostOver++ }, "verb": func(r *policy.Rule) { r.Verb = policy.Verbs() },
		"do": func(r *policy.Rule) { r.Do = policy.Deny }, "message": func(r *policy.Rule) { r.Message = "x" }, "approvers": func(r *policy.Rule) { r.Approvers = nil }, "quorum": func(r *policy.Rule) { r.Quorum = 1 },
		"deadline": func(r *policy.Rule) { r.Deadline *= 2 }, "on_expire": func(r *policy.Rule) { r.OnExpire = policy.ExpireAsk }, "escalate_to": func(r *policy.Rule) { r.EscalateTo = nil },
		"edit": func(r *policy.Rule) { r.NoEdit = false }, "grant": func(r *policy.Rule) { r.NoGrant = false },
	} {
		b := a
		b.Policy = slices.Clone(a.Policy)
		edit(&b.Policy[0])
		if d := config.Diff(a, b); len(d) != 1 || d[0].Member != `policy["main.branch"]` {
			t.Errorf("%s: told as %v", name, d)
		}
	}
	b := a
	b.Policy = slices.Clone(a.Policy)
	b.Policy[0], b.Policy[1] = b.Policy[1], b.Policy[0]
	if d := config.Diff(a, b); len(d) != 1 || d[0].Member != "policy" {
		t.Errorf("another order is told as %v", d)
	}
}
