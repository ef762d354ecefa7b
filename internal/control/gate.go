package control

import (
	"slices"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/policy"
)

// Gate reports whether a person may do what a command asks of a session, as the policy of its
// agent says of the verb: nil, or [stint.Denied] with whom to ask. A verb that the policy asks
// about is done by those who decide, and by nobody else. p may be nil.
func Gate(p *policy.Policy, ses *stint.Session, verb policy.Verb, c *journal.Command, by stint.Actor, roles []string) error {
	if p == nil {
		return nil
	}
	verbs := []policy.Verb{verb}
	if c.Agent != nil {
		verbs = append(verbs, policy.Agent)
	}
	input := map[string]any{"reason": c.Reason, "say": c.Say, "state": c.State != nil}
	if c.From != nil {
		input["from"] = *c.From
	}
	if c.Agent != nil {
		input["agent"] = c.Agent.Name
	}
	raw, err := stint.Marshal(input)
	if err != nil {
		return err
	}
	for _, verb := range verbs {
		v := p.Judge(policy.Call{Session: ses.ID, Agent: ses.Agent.Name, Trigger: ses.Trigger.Kind, Labels: ses.Labels, Verb: verb, Input: raw, Spent: ses.Totals.Usage.Cost})
		if err := gated(&v, verb, by, roles); err != nil {
			err.Session = ses.ID
			return err
		}
	}
	return nil
}

// gated is what the verdict says to one person.
func gated(v *policy.Verdict, verb policy.Verb, by stint.Actor, roles []string) *stint.Error {
	text := strings.TrimSuffix("the policy's rule "+v.Rule+": "+v.Message, ": ")
	switch {
	case v.Do == policy.Allow:
		return nil
	case v.Do == policy.Deny:
		return stint.Denied.Errorf(string(verb), "%s", text)
	case len(v.Approvers) == 0 && !slices.Contains(roles, "approver") && !slices.Contains(roles, "admin"):
		e := stint.Denied.Errorf(string(verb), "%s: it is for those who decide what sessions ask", text)
		e.Hint = "ask somebody with the role approver to do it"
		return e
	case v.Admits(policy.Vote{By: by, Roles: roles, Yes: true}) != nil:
		e := stint.Denied.Errorf(string(verb), "%s: it is for %s", text, strings.Join(v.Approvers, ", "))
		e.Hint = "ask one of them to do it"
		return e
	}
	return nil
}
