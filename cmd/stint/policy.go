package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/policy"
	"github.com/stint-dev/stint/tool"
)

func (a *app) policyCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "policy", Short: "Look at the rules that have people asked",
		Example: "  stint policy show triage\n  stint policy test triage --tool git.push --args '{\"branch\":\"main\"}'",
	}, a.policyShowCommand(), a.policyTestCommand())
}

func (a *app) policyShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show AGENT", Short: "Print the rules that an agent's steps are held against, in order",
		Long:    "Print the rules that an agent's steps are held against: its own, those of the file, and the\none that is built in. The first that matches decides; if none does, a step begins.",
		Example: "  stint policy show triage\n  stint policy show triage --json", Args: exactly(1, "one agent"), ValidArgsFunction: a.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.agentShown(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			members := c.PolicyMembers()
			if a.json {
				type item struct {
					Name string `json:"name"`
					Rule string `json:"rule"`
				}
				items := []item{}
				for _, m := range members {
					items = append(items, item{m.Name, m.Value})
				}
				return a.printJSON(struct {
					Schema string `json:"schema"`
					Agent  string `json:"agent"`
					Items  []item `json:"items"`
				}{"stint.policy/1", c.Name, items})
			}
			if len(members) == 0 {
				a.printf("%s has no rules: no step of it is asked about, but for what its tools say themselves\n", c.Name)
			}
			width := 0
			for _, m := range members {
				width = max(width, len(m.Name))
			}
			for i, m := range members {
				a.printf("%3d  %s  %s\n", i+1, term.Pad(m.Name, width, false), term.Line(m.Value))
			}
			return nil
		},
	}
}

// policyOptions are the flags of stint policy test.
type policyOptions struct {
	tool, args, effect, kind, verb, trigger, cost, spent string
	labels                                               []string
	tainted                                              bool
}

func (a *app) policyTestCommand() *cobra.Command {
	var o policyOptions
	cmd := &cobra.Command{
		Use: "test AGENT", Short: "Say which rule would decide on a step, and why",
		Long: `Say what would be done about a step of an agent, or about a verb such as rollback: which
rule decides, and why each rule before it does not match. Nothing is called and nothing
is recorded. The class of a tool, and what the tool says of itself, are those of the
agent where it names the tool; the class is once where nobody says another.`,
		Example: "  stint policy test triage --tool git.push --args '{\"branch\":\"main\"}'\n  stint policy test triage --tool label --effect idempotent --tainted --json\n  stint policy test triage --verb rollback",
		Args:    exactly(1, "one agent"), ValidArgsFunction: a.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.agentShown(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			call, err := o.call(cmd, &c)
			if err != nil {
				return err
			}
			p, err := policy.Compile(c.PolicyRules())
			if err != nil {
				return err
			}
			return a.printVerdict(&c, call, p)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.tool, "tool", "", "the step's name")
	f.StringVar(&o.args, "args", "", "what it is called with, `JSON`")
	f.StringVar(&o.effect, "effect", "", "read, idempotent or once (default: as the agent has it)")
	f.StringVar(&o.kind, "kind", "", "model, tool or step (default: tool for a model with tools, else step)")
	f.StringVar(&o.verb, "verb", "", "branch, rollback, restart or agent, instead of a step")
	f.BoolVar(&o.tainted, "tainted", false, "the session has read what came from outside")
	f.StringVar(&o.trigger, "trigger", "prompt", "what began the session: schedule, hook, prompt or session")
	f.StringArrayVarP(&o.labels, "label", "l", nil, "a label of the session, `key=value`; repeatable")
	f.StringVar(&o.cost, "cost", "0", "US dollars that the step reserves")
	f.StringVar(&o.spent, "spent", "0", "US dollars that the session has spent before")
	return cmd
}

// call is the step or verb that the flags describe.
func (o *policyOptions) call(cmd *cobra.Command, c *config.Agent) (policy.Call, error) {
	call := policy.Call{Agent: c.Name, Trigger: o.trigger, Tool: o.tool, Verb: policy.Verb(o.verb), Input: json.RawMessage(o.args), Tainted: o.tainted}
	if (o.tool == "") == (o.verb == "") {
		return call, misused(cmd, "give --tool or --verb, and not both")
	}
	if o.verb != "" && (o.effect != "" || o.kind != "") {
		return call, misused(cmd, "a verb has no --effect and no --kind")
	}
	if err := jsonx.Check(call.Input, jsonx.Limits{}); o.args != "" && err != nil {
		return call, misused(cmd, "--args cannot be read: %v", err)
	}
	if o.verb == "" {
		call.Effect, call.Approve = toolFacts(c, o.tool)
		call.Kind = stint.Custom
		if c.LLM != nil {
			call.Kind = stint.Tool
		}
		call.Effect, call.Kind = cmp.Or(stint.Effect(o.effect), call.Effect), cmp.Or(stint.StepKind(o.kind), call.Kind)
	}
	for _, w := range []struct{ flag, is string }{{"effect", o.effect}, {"kind", o.kind}, {"verb", o.verb}, {"trigger", o.trigger}} {
		if words := policyWords(w.flag); w.is != "" && !slices.Contains(words, w.is) {
			return call, misused(cmd, "--%s is one of %s, not %q", w.flag, strings.Join(words, ", "), w.is)
		}
	}
	for _, m := range []struct {
		flag, is string
		to       *stint.Money
	}{{"cost", o.cost, &call.Cost}, {"spent", o.spent, &call.Spent}} {
		if err := m.to.UnmarshalText([]byte(m.is)); err != nil || *m.to < 0 {
			return call, misused(cmd, "--%s is an amount of US dollars such as 1.50, not %q", m.flag, m.is)
		}
	}
	var err error
	if call.Labels, err = (&requestOptions{labels: o.labels}).labelled(c.Labels); call.Labels == nil {
		call.Labels = c.Labels
	}
	return call, err
}

// policyWords are the words that a flag of stint policy test takes.
func policyWords(flag string) []string {
	switch flag {
	case "effect":
		return texts([]stint.Effect{stint.Read, stint.Idempotent, stint.Once})
	case "kind":
		return texts([]stint.StepKind{stint.Model, stint.Tool, stint.Custom})
	case "verb":
		return texts(policy.Verbs())
	}
	return []string{"schedule", "hook", "prompt", "session"}
}

// toolFacts is what an agent says of a step: its class, and whether its tool has a word
// of its own on asking. What is not known is once.
func toolFacts(c *config.Agent, name string) (effect stint.Effect, approve string) {
	effect = cmp.Or(c.Effects[name], stint.Once)
	if c.LLM == nil {
		return effect, ""
	}
	var own tool.Approve
	for i := range c.LLM.Tools {
		switch t := &c.LLM.Tools[i]; {
		case t.Exec != nil && t.Exec.Name == name:
			effect, own = t.Exec.Effect, t.Exec.Approve
		case t.HTTP != nil && t.HTTP.Name == name:
			effect, own = t.HTTP.Effect, t.HTTP.Approve
		case t.Files != nil && name == "write_file":
			effect = stint.Idempotent
		case t.Files != nil && (name == "read_file" || name == "list_files"), t.Builtin != "" && string(t.Builtin) == name:
			effect = stint.Read
		}
	}
	r := c.LLM.Tool[name]
	return cmp.Or(r.Effect, effect), string(cmp.Or(r.Approve, own))
}

// verdictItem is a verdict as JSON. What is about asking is null where nobody is asked.
type verdictItem struct {
	Do      policy.Do  `json:"do"`
	Rule    *string    `json:"rule"`
	Why     string     `json:"why"`
	Message string     `json:"message"`
	Fault   *string    `json:"fault"`
	Asks    *askedItem `json:"asks"`
}

type askedItem struct {
	Approvers  []string        `json:"approvers"`
	Quorum     int             `json:"quorum"`
	DeadlineMS *int64          `json:"deadline_ms"`
	OnExpire   policy.OnExpire `json:"on_expire"`
	EscalateTo []string        `json:"escalate_to"`
	Edit       bool            `json:"edit"`
	Grant      bool            `json:"grant"`
	Digest     stint.Hash      `json:"digest"`
}

func verdictOf(v *policy.Verdict) verdictItem {
	orNull := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	ms := func(d time.Duration) *int64 {
		if n := d.Milliseconds(); d > 0 {
			return &n
		}
		return nil
	}
	it := verdictItem{Do: v.Do, Rule: orNull(v.Rule), Why: v.Why, Message: v.Message, Fault: orNull(v.Fault)}
	if v.Do != policy.Ask {
		return it
	}
	it.Asks = &askedItem{Approvers: append([]string{}, v.Approvers...), Quorum: v.Quorum, DeadlineMS: ms(v.Deadline), OnExpire: v.OnExpire,
		EscalateTo: append([]string{}, v.EscalateTo...), Edit: v.Edit, Grant: v.Grantable, Digest: v.Digest}
	return it
}

func (a *app) printVerdict(c *config.Agent, call policy.Call, p *policy.Policy) error {
	v, arms := p.Explain(call)
	if a.json {
		return a.printJSON(struct {
			Schema  string       `json:"schema"`
			Agent   string       `json:"agent"`
			Tool    string       `json:"tool"`
			Kind    string       `json:"kind"`
			Effect  stint.Effect `json:"effect"`
			Verb    policy.Verb  `json:"verb"`
			Rules   []policy.Arm `json:"rules"`
			Verdict verdictItem  `json:"verdict"`
		}{"stint.policy.test/1", c.Name, call.Tool, string(call.Kind), call.Effect, call.Verb, append([]policy.Arm{}, arms...), verdictOf(&v)})
	}
	width := 0
	for _, arm := range arms {
		width = max(width, len(arm.Rule))
	}
	for _, arm := range arms {
		word := map[bool]string{true: "yes", false: "no "}[arm.Matched]
		a.printf("  %s  %s  %s\n", term.Pad(arm.Rule, width, false), word, term.Line(arm.Why))
	}
	a.printf("%s: %s\n", v.Do, term.Line(v.Why))
	if v.Do == policy.Ask {
		a.printAsked(&v)
	}
	return nil
}

// printAsked prints who is asked, and how.
func (a *app) printAsked(v *policy.Verdict) {
	who := "whoever may decide"
	if len(v.Approvers) > 0 {
		who = strings.Join(v.Approvers, ", ")
	}
	if v.Quorum > 1 {
		who += fmt.Sprintf("; %d of them have to agree", v.Quorum)
	}
	until := "none: the question waits"
	if v.Deadline > 0 {
		until = away(v.Deadline) + ", then " + string(v.OnExpire)
		if v.OnExpire == policy.Escalate {
			until += " to " + strings.Join(v.EscalateTo, ", then ") + ", then " + string(policy.ExpireDeny)
		}
	}
	word := map[bool]string{true: "yes", false: "no"}
	a.printf("  approvers  %s\n  deadline   %s\n  edit       %s\n  grant      %s\n", term.Line(who), term.Line(until), word[v.Edit], word[v.Grantable])
}
