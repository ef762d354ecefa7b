package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/expression"
	"github.com/stint-dev/stint/internal/jsonx"
)

// Call is a step that is about to begin, or a verb that somebody gave.
type Call struct {
	Session stint.ID
	Agent   string
	Trigger string            // its kind
	Labels  map[string]string // of the session
	Tool    string            // the step's name
	Kind    stint.StepKind    // empty: [stint.Custom]
	Effect  stint.Effect      // empty: [stint.Once]
	Verb    Verb              // empty: it is a step
	Input   json.RawMessage   // of the step, or what the verb was given; none counts as null
	Tainted bool              // the session has read what came from outside
	Cost    stint.Money       // the most that the step may use
	Spent   stint.Money       // what the session has used before
	Approve string            // what the tool says of itself: "always", "never" or nothing
}

// What a tool can say of itself, see [Call.Approve].
const (
	approveAlways = "always"
	approveNever  = "never"
)

// Verdict is what is done about a call. What is about asking is set for [Ask] alone.
type Verdict struct {
	Do      Do     `json:"do"`
	Rule    string `json:"rule,omitempty"`    // that decided; "approve: always" and "approve: never" are the tool's own; empty: none did
	Message string `json:"message,omitempty"` // the rule's
	Why     string `json:"why,omitempty"`     // one line, for people
	Fault   string `json:"fault,omitempty"`   // why the condition of the rule could not be evaluated; then a person is asked

	Approvers  []string      `json:"approvers,omitempty"` // empty: whoever may decide
	Quorum     int           `json:"quorum,omitempty"`    // at least 1
	Deadline   time.Duration `json:"deadline_ns,omitempty"`
	OnExpire   OnExpire      `json:"on_expire,omitempty"` // set where there is a deadline
	EscalateTo []string      `json:"escalate_to,omitempty"`
	Edit       bool          `json:"edit,omitempty"`      // the arguments may be changed
	Grantable  bool          `json:"grantable,omitempty"` // a decision may hold for calls to come
	Digest     stint.Hash    `json:"digest,omitzero"`     // of the call, see [Digest]: what a yes is to
}

// Arm is what became of one rule.
type Arm struct {
	Rule    string `json:"rule"`
	Matched bool   `json:"matched"`
	Why     string `json:"why"` // why it did or did not match
}

// Judge gives the verdict on a call: that of the first rule that matches, and [Allow] if
// none does. A condition that cannot be evaluated is [Ask], whatever its rule says. Then
// the tool has its say: "never" makes an allowed call of one that is asked about by a rule,
// "always" has a person asked about one that is allowed; what is denied stays so.
func (p *Policy) Judge(c Call) Verdict {
	v, _ := p.Explain(c)
	return v
}

// Explain is Judge with what became of each rule, up to the one that decided.
func (p *Policy) Explain(c Call) (Verdict, []Arm) {
	if c.Verb == "" {
		c.Kind, c.Effect = or(c.Kind, stint.Custom), or(c.Effect, stint.Once)
	}
	v, arms := Verdict{Do: Allow, Why: "no rule matches"}, []Arm(nil)
	look := &lookup{call: &c}
	for i := range p.count() {
		r := &p.rules[i]
		why, matched, fault := look.matches(r, &p.when[i])
		arms = append(arms, Arm{r.Name, matched, why})
		if matched {
			v = r.verdict(fault, why)
			break
		}
	}
	switch {
	case v.Do == Deny || v.Fault != "" || c.Verb != "":
	case v.Do == Ask && c.Approve == approveNever:
		v = Verdict{Do: Allow, Rule: "approve: never", Why: "approve: never, whatever the rule " + v.Rule + " says"}
	case v.Do == Allow && c.Approve == approveAlways:
		v = (&Rule{Name: "approve: always", Do: Ask}).verdict("", c.Tool+" is asked for each time")
		v.Grantable = false
	}
	if v.Do == Ask {
		v.Digest = c.digest()
		v.Edit, v.Grantable = v.Edit && c.Verb == "", v.Grantable && c.Verb == "" // whoever gives a verb gives its arguments
	}
	return v, arms
}

func (p *Policy) count() int {
	if p == nil {
		return 0
	}
	return len(p.rules)
}

func or[T ~string](v, otherwise T) T {
	if v == "" {
		return otherwise
	}
	return v
}

// digest is that of the call. What has no canonical form has that of its bytes, which is
// no other's: they are not JSON.
func (c *Call) digest() stint.Hash {
	canonical, err := Canonical(c.Input)
	if err != nil {
		canonical = c.Input
	}
	return Digest(or(c.Tool, string(c.Verb)), c.Effect, canonical)
}

// verdict is what the rule says of a call that it matches.
func (r *Rule) verdict(fault, why string) Verdict {
	v := Verdict{Do: r.Do, Rule: r.Name, Message: r.Message, Fault: fault, Why: r.Name + ": " + or(r.Message, why)}
	if fault != "" {
		v.Do, v.Why = Ask, r.Name+": "+fault
	}
	if v.Do != Ask {
		return v
	}
	v.Approvers, v.Quorum = slices.Clone(r.Approvers), max(r.Quorum, 1)
	if v.Deadline = r.Deadline; v.Deadline > 0 {
		v.OnExpire, v.EscalateTo = or(r.OnExpire, ExpireDeny), slices.Clone(r.EscalateTo)
	}
	v.Edit, v.Grantable = !r.NoEdit, !r.NoGrant && fault == ""
	return v
}

// lookup is a call while rules are held against it. What they have in common is made once.
type lookup struct {
	call  *Call
	meter *expression.Meter
	env   map[string]any
	args  bool  // env has the arguments
	bad   error // or this is why not
}

// matches holds a rule against the call. A fault says that its condition could not be
// evaluated, which counts as a match.
func (l *lookup) matches(r *Rule, when *expression.Program) (why string, matched bool, fault string) {
	c := l.call
	if why, matched = r.fits(c); !matched || r.When == "" {
		return why, matched, ""
	}
	yes, err := l.holds(when)
	switch {
	case err != nil:
		return "its condition cannot be evaluated", true, "the condition cannot be evaluated: " + err.Error()
	case !yes:
		return "when is false for this call", false, ""
	}
	return why, true, ""
}

// fits holds everything of the rule but its condition against a call.
func (r *Rule) fits(c *Call) (why string, matched bool) {
	switch {
	case len(r.Verb) == 0 && c.Verb != "":
		return "it is for steps", false
	case len(r.Verb) > 0 && c.Verb == "":
		return "it is for verbs", false
	case c.Verb != "" && !slices.Contains(r.Verb, c.Verb):
		return fmt.Sprintf("verb is %s, not %s", c.Verb, listed(r.Verb)), false
	case len(r.Tool) > 0 && !slices.ContainsFunc(r.Tool, func(p string) bool { return glob(p, c.Tool) }):
		return fmt.Sprintf("tool is %s, not %s", c.Tool, listed(r.Tool)), false
	case len(r.Kind) > 0 && !slices.Contains(r.Kind, c.Kind):
		return fmt.Sprintf("kind is %s, not %s", c.Kind, listed(r.Kind)), false
	case len(r.Effect) > 0 && !slices.Contains(r.Effect, c.Effect):
		return fmt.Sprintf("effect is %s, not %s", c.Effect, listed(r.Effect)), false
	case r.Tainted && !c.Tainted:
		return "the session is not tainted", false
	case r.CostOver > 0 && c.total() <= r.CostOver:
		return fmt.Sprintf("%s with this step is not over %s", c.total(), r.CostOver), false
	}
	return r.reason(c), true
}

// total is what the session will have spent, at most.
func (c *Call) total() stint.Money {
	if sum := c.Cost + c.Spent; sum >= max(c.Cost, c.Spent) || c.Cost < 0 || c.Spent < 0 {
		return sum
	}
	return 1<<63 - 1
}

// reason is one line on what of the call the rule is for.
func (r *Rule) reason(c *Call) string {
	var all []string
	add := func(given bool, format string, args ...any) {
		if given {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(len(r.Verb) > 0, "verb is %s", c.Verb)
	add(len(r.Tool) > 0, "tool is %s", c.Tool)
	add(len(r.Kind) > 0, "kind is %s", c.Kind)
	add(len(r.Effect) > 0, "effect is %s", c.Effect)
	add(r.Tainted, "the session is tainted")
	add(r.CostOver > 0, "%s with this step is over %s", c.total(), r.CostOver)
	add(r.When != "", "when is true")
	if len(all) == 0 {
		return "it is for every step"
	}
	return strings.Join(all, ", ")
}

func listed[T ~string](all []T) string {
	if len(all) == 1 {
		return string(all[0])
	}
	return oneOf(all)
}

// holds evaluates a condition.
func (l *lookup) holds(when *expression.Program) (bool, error) {
	c := l.call
	if l.env == nil {
		l.meter = expression.NewMeter(len(c.Input))
		l.env = map[string]any{
			"args": nil, "tool": c.Tool, "kind": string(c.Kind), "effect": string(c.Effect), "verb": string(c.Verb), "tainted": c.Tainted,
			"trigger": c.Trigger, "agent": c.Agent, "labels": c.Labels, "cost": dollars(c.Cost), "spent": dollars(c.Spent),
		}
		l.meter.Functions(l.env)
	}
	if (when.Uses["args"] || when.Uses["$env"]) && !l.args {
		l.args = true
		l.env["args"], l.bad = decode(c.Input)
	}
	if l.bad != nil && (when.Uses["args"] || when.Uses["$env"]) {
		return false, l.bad
	}
	out, err := l.meter.Run(when, l.env)
	if err != nil {
		return false, err
	}
	yes, is := out.(bool)
	if !is {
		return false, fmt.Errorf("it gave a %T", out)
	}
	return yes, nil
}

// dollars is money as conditions have it.
func dollars(m stint.Money) float64 { return float64(m) / 1e9 }

// decode reads the arguments of a call for conditions. There is one way to read them, or
// none.
func decode(input json.RawMessage) (any, error) {
	if len(bytes.TrimSpace(input)) == 0 {
		return nil, nil
	}
	v, err := exact(input)
	if err != nil {
		return nil, fmt.Errorf("the arguments cannot be read: %w", err)
	}
	return jsonx.Exact(v), nil
}

// exact reads JSON that has one meaning, with numbers as they are written.
func exact(input json.RawMessage) (v any, err error) {
	if err = jsonx.Check(input, jsonx.Limits{}); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

// glob reports whether a name fits a pattern, in which * stands for any text.
func glob(pattern, name string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	name, ok := strings.CutPrefix(name, first)
	if !star || !ok {
		return ok && name == ""
	}
	parts := strings.Split(rest, "*")
	last := len(parts) - 1
	for _, part := range parts[:last] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return strings.HasSuffix(name, parts[last])
}
