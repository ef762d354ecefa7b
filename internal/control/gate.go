package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/policy"
)

// Gate says whether what a command asks of a session is done, as the policy of its agent says
// of the verb. A verb that the policy asks about is done at once by those who decide; for
// anybody else, and where several have to agree, it returns the question to ask them. One
// that it forbids is [stint.Denied]. p may be nil.
func Gate(p *policy.Policy, ses *stint.Session, verb policy.Verb, c *journal.Command, by stint.Actor, roles []string) (*journal.ApprovalRequested, error) {
	if p == nil {
		return nil, nil
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
		return nil, err
	}
	var ask *policy.Verdict
	for _, verb := range verbs {
		v := p.Judge(policy.Call{Session: ses.ID, Agent: ses.Agent.Name, Trigger: ses.Trigger.Kind, Labels: ses.Labels, Verb: verb, Input: raw, Spent: ses.Totals.Usage.Cost})
		switch {
		case v.Do == policy.Deny:
			e := stint.Denied.Errorf(string(verb), "%s", strings.TrimSuffix("the policy's rule "+v.Rule+": "+v.Message, ": "))
			e.Session = ses.ID
			return nil, e
		case v.Do == policy.Allow || v.Quorum < 2 && decides(&v, by, roles):
		case ask != nil && ask.Rule != v.Rule:
			e := stint.Denied.Errorf(string(verb), "the rules %s and %s want different people asked about it", ask.Rule, v.Rule)
			e.Session, e.Hint = ses.ID, "one question has one rule: ask somebody whom one of them names to order it"
			return nil, e
		default:
			ask = &v
		}
	}
	if ask == nil {
		return nil, nil
	}
	return question(ask, verbs[0], c, by)
}

// decides reports whether somebody is among those who decide for a rule.
func decides(v *policy.Verdict, by stint.Actor, roles []string) bool {
	if len(v.Approvers) == 0 && !slices.Contains(roles, "approver") && !slices.Contains(roles, "admin") {
		return false
	}
	return v.Admits(policy.Vote{By: by, Roles: roles, Yes: true}) == nil
}

// question is what those who decide are asked about an order.
func question(v *policy.Verdict, verb policy.Verb, c *journal.Command, by stint.Actor) (*journal.ApprovalRequested, error) {
	raw, err := stint.Marshal(v)
	if err != nil {
		return nil, err
	}
	q := &journal.ApprovalRequested{Text: asks(verb, c, by), Why: v.Why, Approvers: v.Approvers, Policy: raw}
	q.Name, q.Rule = string(verb), v.Rule
	if v.Quorum > 1 {
		q.Quorum = v.Quorum
	}
	if v.Deadline > 0 {
		q.Until = time.Now().Add(v.Deadline).UTC()
	}
	return q, nil
}

// asks is one line on what an order does.
func asks(verb policy.Verb, c *journal.Command, by stint.Actor) string {
	text := string(verb)
	switch {
	case c.From == nil:
		text += " from the newest checkpoint"
	case *c.From == 0 && verb == policy.Rollback:
		text += " to the beginning"
	case *c.From == 0:
		text += " from the beginning"
	case verb == policy.Rollback:
		text += fmt.Sprintf(" to the end of loop %d", *c.From)
	default:
		text += fmt.Sprintf(" behind loop %d", *c.From)
	}
	if c.Agent != nil {
		text += ", with the agent " + c.Agent.Name + " as it is now"
	}
	if c.State != nil {
		text += ", with another state"
	}
	text += ", asked for by " + string(by)
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return text
}
