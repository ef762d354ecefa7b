package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/types"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/expression"
)

// Policy is a list of rules that was checked. It may be used concurrently. A nil Policy
// has no rules.
type Policy struct {
	rules []Rule
	when  []expression.Program // by rule
}

// Fault is one thing that is wrong with a rule.
type Fault struct {
	Rule   int    // from 0
	Name   string // of the rule
	Field  string // as in stint.yaml: "when", "escalate_to"; empty: the rule as a whole
	Line   int    // in the text of the field, from 1
	Column int    // in characters, from 1
	Text   string // what was expected and what was found
	Hint   string // what to write instead; may be empty
}

// Faults is everything that is wrong with a list of rules.
type Faults []Fault

// Error returns the faults, one below the other.
func (f Faults) Error() string {
	all := make([]string, len(f))
	for i := range f {
		all[i] = fmt.Sprintf("rule %d %s: ", f[i].Rule+1, f[i].Name)
		all[i] += f[i].text()
	}
	return strings.Join(all, "\n")
}

// text is the field, the place where the field is an expression, and what is wrong.
func (f *Fault) text() string {
	switch f.Field {
	case "":
		return f.Text
	case "when":
		return fmt.Sprintf("when, line %d, column %d: %s", f.Line, f.Column, f.Text)
	}
	return f.Field + ": " + f.Text
}

// Compile checks rules. Their expressions are of expr-lang, give true or false, and know
//
//	args     the input of the step, or what a verb was given; whole numbers of 64 bits are exact
//	tool     the step's name; empty for a verb
//	kind     model, tool or step; effect: read, idempotent or once
//	verb     branch, rollback, restart or agent; empty for a step
//	tainted  whether the session has read what came from outside
//	trigger  schedule, hook, prompt or session; agent: its name; labels: those of the session
//	cost     dollars that the step reserves; spent: those that the session has spent before
//
// The error is [stint.Invalid], its cause a [Faults] with all that is wrong.
func Compile(rules []Rule) (*Policy, error) {
	c := compiler{Policy: &Policy{rules: slices.Clone(rules), when: make([]expression.Program, len(rules))}, seen: map[string]bool{}}
	if len(rules) > MaxRules {
		c.at, c.rule = MaxRules, &rules[MaxRules]
		c.fail("", "let one rule name several tools, or use a condition", "there are %d rules; at most %d fit", len(rules), MaxRules)
	} else {
		for i := range rules {
			c.at, c.rule = i, &rules[i]
			c.name()
			c.match()
			c.asking()
		}
	}
	if len(c.faults) > 0 {
		return nil, &stint.Error{Code: stint.Invalid, Op: "policy", Err: c.faults, Hint: "stint agent validate checks the file again"}
	}
	return c.Policy, nil
}

// Rules returns the rules, in order.
func (p *Policy) Rules() []Rule {
	if p == nil {
		return nil
	}
	return slices.Clone(p.rules)
}

func language() *expression.Language {
	return &expression.Language{
		Place: "a policy",
		Names: types.Map{
			"args": types.Any, "tool": types.String, "kind": types.String, "effect": types.String, "verb": types.String, "tainted": types.Bool,
			"trigger": types.String, "agent": types.String, "labels": types.TypeOf(map[string]string{}), "cost": types.Float64, "spent": types.Float64,
		},
		Known: []string{"args", "tool", "kind", "effect", "verb", "tainted", "trigger", "agent", "labels", "cost", "spent"},
		JSON:  "args",

		Example: `args.branch == "main"`,
		Truth:   `args.branch == "main"`,
		Long:    "make several rules of it",
		Unknown: "what the step is called with is in args",
		Pattern: "write it in quotes: what a model says is no pattern",
	}
}

// compiler collects what is wrong.
type compiler struct {
	*Policy
	at     int
	rule   *Rule
	seen   map[string]bool
	faults Faults
}

func (c *compiler) fail(field, hint, format string, args ...any) {
	c.faults = append(c.faults, Fault{Rule: c.at, Name: c.rule.Name, Field: field, Line: 1, Column: 1, Text: fmt.Sprintf(format, args...), Hint: hint})
}

const nameRule = "a name has 1 to 64 characters of a-z, 0-9, '.', '_' and '-', and begins with a letter or a digit"

func (c *compiler) name() {
	name := c.rule.Name
	switch {
	case name == "":
		c.fail("name", "give each rule a name: it stands in questions and in the journal", "the key name is missing")
	case !isName(name):
		c.fail("name", nameRule, "the rule cannot be called %.70q", name)
	case c.seen[name]:
		c.fail("name", "give one of them another name, or leave one out", "there is a rule %s already", name)
	}
	c.seen[name] = true
}

func isName(s string) bool {
	inside := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
	}
	return s != "" && len(s) <= 64 && !strings.ContainsAny(s[:1], "._-") && !strings.ContainsFunc(s, func(r rune) bool { return !inside(r) })
}

func (c *compiler) match() {
	r := c.rule
	for _, p := range r.Tool {
		if p == "" || utf8.RuneCountInString(p) > maxPattern || !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl) {
			c.fail("tool", `for example tool: "github.*"`, "expected the name of a step of 1 to %d characters, * for anything, found %.60q", maxPattern, p)
		}
	}
	if len(r.Tool) > maxPatterns {
		c.fail("tool", "use * for a part of the names", "there are %d names; at most %d fit", len(r.Tool), maxPatterns)
	}
	words(c, "kind", r.Kind, []stint.StepKind{stint.Model, stint.Tool, stint.Custom})
	words(c, "effect", r.Effect, []stint.Effect{stint.Read, stint.Idempotent, stint.Once})
	words(c, "verb", r.Verb, Verbs())
	if len(r.Verb) > 0 && len(r.Tool)+len(r.Kind)+len(r.Effect) > 0 {
		c.fail("verb", "make two rules of it", "a rule is for steps, by tool, kind and effect, or for verbs")
	}
	if r.CostOver < 0 {
		c.fail("cost_over", "for example 1.00", "expected an amount of dollars")
	}
	if r.When != "" {
		p, fault := language().Compile(r.When, true)
		if fault != nil {
			c.faults = append(c.faults, Fault{Rule: c.at, Name: r.Name, Field: "when", Line: fault.Line, Column: fault.Column, Text: fault.Text, Hint: fault.Hint})
		}
		c.when[c.at] = p
	}
}

// words reports what is none of the words that there are, or is there twice.
func words[T ~string](c *compiler, field string, given, all []T) {
	for i, w := range given {
		if !slices.Contains(all, w) {
			c.fail(field, "write one of these words", "expected %s, found %.40q", oneOf(all), string(w))
		} else if slices.Contains(given[:i], w) {
			c.fail(field, "name it once", "%s is there twice", w)
		}
	}
}

func oneOf[T ~string](all []T) string {
	s := make([]string, len(all))
	for i, w := range all {
		s[i] = string(w)
	}
	last := len(s) - 1
	return strings.Join(s[:last], ", ") + " or " + s[last]
}

func (c *compiler) asking() {
	r := c.rule
	switch {
	case r.Do == "":
		c.fail("do", "add do: ask, or allow, or deny", "the key do is missing")
	case r.Do != Allow && r.Do != Ask && r.Do != Deny:
		c.fail("do", "", "expected allow, ask or deny, found %.40q", string(r.Do))
	case r.Do != Ask:
		c.useless()
	}
	if m := r.Message; !utf8.ValidString(m) || utf8.RuneCountInString(m) > maxMessage || strings.ContainsFunc(m, unicode.IsControl) {
		c.fail("message", "", "expected one line of at most %d characters", maxMessage)
	}
	c.approvers("approvers", r.Approvers)
	c.approvers("escalate_to", r.EscalateTo)
	c.quorum()
	c.deadline()
}

// useless reports what has no effect where nobody is asked.
func (c *compiler) useless() {
	r := c.rule
	for _, k := range []struct {
		field string
		given bool
	}{
		{"approvers", r.Approvers != nil}, {"quorum", r.Quorum != 0}, {"deadline", r.Deadline != 0}, {"on_expire", r.OnExpire != ""}, {"escalate_to", r.EscalateTo != nil},
		{"edit", r.NoEdit}, {"grant", r.NoGrant}, {"message", r.Do == Allow && r.Message != ""},
	} {
		if k.given {
			c.fail(k.field, "remove it, or write do: ask", "it has no effect under do: %s", r.Do)
		}
	}
}

func (c *compiler) approvers(field string, all []string) {
	for i, a := range all {
		if why, hint := badApprover(a); why != "" {
			c.fail(field, hint, "%s", why)
		} else if slices.Contains(all[:i], a) {
			c.fail(field, "name each once", "%s is there twice", a)
		}
	}
	if len(all) > MaxApprovers {
		c.fail(field, "name a role", "there are %d; at most %d fit", len(all), MaxApprovers)
	}
}

func badApprover(a string) (why, hint string) {
	name, user := strings.CutPrefix(a, "user:")
	_, err := access.ParseRole(a)
	switch {
	case !user && err != nil:
		hint = "the roles are viewer, operator, approver and admin; a person is user:NAME"
		if isName(strings.ToLower(a)) {
			hint += ": user:" + a
		}
		return fmt.Sprintf("expected a role or user:NAME, found %.60q", a), hint
	case user && (strings.TrimSpace(name) != name || name == "" || len(name) > 100 || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl)):
		return fmt.Sprintf("expected a name behind user:, found %.60q", name), "write the name that stint approvals shows of who decided: user:ana"
	}
	return "", ""
}

func (c *compiler) quorum() {
	r := c.rule
	if r.Quorum < 0 || r.Quorum > MaxQuorum {
		c.fail("quorum", "", "expected a whole number from 1 to %d, found %d", MaxQuorum, r.Quorum)
		return
	}
	people := len(r.Approvers)
	role := people == 0
	for _, a := range slices.Concat(r.Approvers, r.EscalateTo) {
		role = role || !strings.HasPrefix(a, "user:")
	}
	if r.OnExpire == Escalate {
		people += len(r.EscalateTo)
	}
	if !role && people < r.Quorum {
		c.fail("quorum", "name more people, or a role", "%d people have to agree, and %d may decide", r.Quorum, people)
	}
}

// maxSpan is the longest time that a policy can name, as stint.yaml has it.
const maxSpan = 3650 * 24 * time.Hour

func (c *compiler) deadline() {
	r := c.rule
	words(c, "on_expire", nonEmpty(r.OnExpire), []OnExpire{ExpireDeny, ExpireStop, Escalate, ExpireAsk})
	if r.Deadline < 0 || r.Deadline > maxSpan {
		c.fail("deadline", "for example 4h", "expected a duration of at most ten years")
	}
	switch {
	case r.OnExpire != "" && r.Deadline == 0 && r.Do == Ask:
		c.fail("on_expire", "add deadline: 4h, or leave on_expire out: a question without a deadline waits", "it has no effect without a deadline")
	case r.OnExpire == Escalate && len(r.EscalateTo) == 0:
		c.fail("on_expire", "add escalate_to: [admin]", "escalate needs the key escalate_to")
	case r.OnExpire != Escalate && len(r.EscalateTo) > 0 && r.Do == Ask:
		c.fail("escalate_to", "write on_expire: escalate, or remove it", "it has no effect without on_expire: escalate")
	}
	for _, a := range r.EscalateTo {
		if slices.Contains(r.Approvers, a) {
			c.fail("escalate_to", "name somebody else", "%s is among the approvers already", a)
		}
	}
}

func nonEmpty(w OnExpire) []OnExpire {
	if w == "" {
		return nil
	}
	return []OnExpire{w}
}
