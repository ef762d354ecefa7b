package policy

import (
	"time"

	"github.com/stint-dev/stint"
)

// Rule is one arm of a policy. Its JSON is what an agent is pinned with.
type Rule struct {
	Name string `json:"name"` // 1 to 64 characters of a-z, 0-9, '.', '_' and '-'; unique in a policy
	Match
	Do Do `json:"do"`
	Asking
}

// Match is what a rule is for: all that is given has to fit. One without a verb is for
// steps, one with a verb is for control alone.
type Match struct {
	Tool     []string         `json:"tool,omitempty"`      // names of steps, * stands for anything; one of them fits
	Kind     []stint.StepKind `json:"kind,omitempty"`      // one of them
	Effect   []stint.Effect   `json:"effect,omitempty"`    // one of them
	When     string           `json:"when,omitempty"`      // an expression, see [Compile]
	Tainted  bool             `json:"tainted,omitempty"`   // the session has read what came from outside
	CostOver stint.Money      `json:"cost_over,omitempty"` // the session has spent more, with what the step reserves
	Verb     []Verb           `json:"verb,omitempty"`      // one of them
}

// Asking is how a person is asked by a rule of [Ask]. Message is for [Deny] too.
type Asking struct {
	Message    string        `json:"message,omitempty"`     // one line to whoever decides, or is refused
	Approvers  []string      `json:"approvers,omitempty"`   // roles, and user:NAME; empty: whoever may decide
	Quorum     int           `json:"quorum,omitempty"`      // distinct people that have to agree; 0: 1
	Deadline   time.Duration `json:"deadline_ns,omitempty"` // from the asking; 0: none
	OnExpire   OnExpire      `json:"on_expire,omitempty"`   // at the deadline; empty: [ExpireDeny]
	EscalateTo []string      `json:"escalate_to,omitempty"` // who may decide besides, one more at each deadline
	NoEdit     bool          `json:"no_edit,omitempty"`     // the arguments can be taken or refused, and not changed
	NoGrant    bool          `json:"no_grant,omitempty"`    // no decision holds for calls to come
}

// Do is what is done about a call.
type Do string

// What is done.
const (
	Allow Do = "allow"
	Ask   Do = "ask"
	Deny  Do = "deny"
)

// Verb is an act of control that a person can be asked about.
type Verb string

// The verbs.
const (
	Branch   Verb = "branch"   // a new session at a checkpoint of this one
	Rollback Verb = "rollback" // to an earlier loop
	Restart  Verb = "restart"  // from an earlier loop
	Agent    Verb = "agent"    // going on with an agent that is not the pinned one
)

// Verbs lists all verbs.
func Verbs() []Verb { return []Verb{Branch, Rollback, Restart, Agent} }

// OnExpire is what comes after a deadline at which nobody has decided.
type OnExpire string

// What comes after a deadline.
const (
	ExpireDeny OnExpire = "deny"     // the step does not begin, and the agent is told why
	ExpireStop OnExpire = "stop"     // the session ends as stopped
	Escalate   OnExpire = "escalate" // somebody else may decide besides; after the last of them as [ExpireDeny]
	ExpireAsk  OnExpire = "ask"      // the question is asked anew
)

// Bounds of a policy.
const (
	MaxRules     = 200 // of one policy
	MaxApprovers = 50  // of one rule, and as many to escalate to
	MaxQuorum    = 20

	maxMessage  = 500 // characters
	maxPatterns = 100 // of one rule
	maxPattern  = 200 // characters, as the name of a step
)

// Preset returns the rules of a preset; false if there is none of that name.
func Preset(name string) ([]Rule, bool) {
	switch name {
	case TaintedOnce:
		return []Rule{BuiltIn()}, true
	case "ask-once":
		return []Rule{{Name: "ask-once", Match: Match{Effect: []stint.Effect{stint.Once}}, Do: Ask}}, true
	case "read-only":
		return []Rule{{Name: "read-only", Match: Match{Effect: []stint.Effect{stint.Idempotent, stint.Once}}, Do: Deny,
			Asking: Asking{Message: "this agent may read and nothing else"}}}, true
	}
	return nil, false
}

// Presets lists the names of all presets.
func Presets() []string { return []string{TaintedOnce, "ask-once", "read-only"} }

// TaintedOnce is the name of the rule that is there without being written.
const TaintedOnce = "tainted-once"

// BuiltIn returns the rule of the models with tools that stands behind all others: what
// came from outside may have told the model to call a tool of class once.
func BuiltIn() Rule {
	return Rule{Name: TaintedOnce, Match: Match{Kind: []stint.StepKind{stint.Tool}, Effect: []stint.Effect{stint.Once}, Tainted: true}, Do: Ask}
}
