package policy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stint-dev/stint"
)

// Scope is which calls a grant is for.
type Scope string

// The scopes.
const (
	InSession Scope = "session" // those of one session
	OfAgent   Scope = "agent"   // those of all sessions of one agent
	InStore   Scope = "store"   // those of all sessions
)

// How long a grant holds: unless it is said, and at most.
const (
	GrantLife    = 30 * 24 * time.Hour
	MaxGrantLife = 366 * 24 * time.Hour
)

// Grant is a yes to calls to come: those that one rule asks about, of tools of a name and
// a class, with certain arguments. It ends by itself.
type Grant struct {
	ID      string       `json:"id"`
	Scope   Scope        `json:"scope"`
	Session stint.ID     `json:"session,omitzero"` // of [InSession]
	Agent   string       `json:"agent,omitempty"`  // of [OfAgent]
	Rule    string       `json:"rule"`             // whose questions it answers
	Tool    string       `json:"tool"`             // a name, * stands for anything
	Effect  stint.Effect `json:"effect"`
	// Exactly one of Digest, the arguments themselves, and When, a condition as rules have.
	// A grant for all arguments says so: true.
	Digest  stint.Hash  `json:"digest,omitzero"`
	When    string      `json:"when,omitempty"`
	By      stint.Actor `json:"by"`
	At      time.Time   `json:"at"`
	Expires time.Time   `json:"expires"`
}

// NewGrant checks a grant that is made now, and fills in when it ends. [stint.Invalid] says
// what is wrong.
func NewGrant(g Grant, now time.Time) (Grant, error) {
	g.At = now
	if g.Expires.IsZero() {
		g.Expires = now.Add(GrantLife)
	}
	why, hint := g.fault()
	switch {
	case why != "":
	case !g.Expires.After(now):
		why, hint = "it has ended before it begins", "name a time to come"
	case g.Expires.Sub(now) > MaxGrantLife:
		why, hint = "it would hold for more than a year", "give it a shorter life: an allow rule in stint.yaml is for what holds always"
	}
	if why != "" {
		return Grant{}, &stint.Error{Code: stint.Invalid, Op: "grant", Err: errors.New(why), Hint: hint}
	}
	return g, nil
}

// fault says what is wrong with a grant, but for its times.
func (g *Grant) fault() (why, hint string) {
	rule := Rule{Name: "grant", Do: Allow, Match: Match{Tool: []string{g.Tool}, Effect: []stint.Effect{g.Effect}, When: g.When}}
	_, err := Compile([]Rule{rule})
	var faults Faults
	errors.As(err, &faults)
	switch {
	case g.Rule == "":
		return "it names no rule whose questions it answers", "give the name of the rule"
	case !strings.HasPrefix(string(g.By), "human:"):
		return fmt.Sprintf("%q is no person, and a person grants", string(g.By)), "grant it in a shell of your own"
	case g.Scope == InSession && g.Session == stint.ID{}:
		return "it is for a session and names none", "name the session"
	case g.Scope == OfAgent && g.Agent == "":
		return "it is for an agent and names none", "name the agent"
	case g.Scope != InSession && g.Scope != OfAgent && g.Scope != InStore:
		return fmt.Sprintf("expected session, agent or store, found %.40q", string(g.Scope)), "say which calls it is for"
	case g.Digest.IsZero() == (g.When == ""):
		return "it needs the digest of arguments or a condition, and not both", "when: true is for all arguments"
	case len(faults) > 0:
		return faults[0].text(), faults[0].Hint
	}
	return "", ""
}

// Covers reports whether a call is one that the grant is for, at a time. An error says why
// its condition cannot be evaluated; then it is not.
func (g *Grant) Covers(c Call, now time.Time) (bool, error) {
	c.Effect = or(c.Effect, stint.Once)
	switch {
	case c.Verb != "" || now.Before(g.At) || !now.Before(g.Expires):
		return false, nil
	case g.Scope == InSession && g.Session != c.Session, g.Scope == OfAgent && g.Agent != c.Agent:
		return false, nil
	case !glob(g.Tool, c.Tool) || g.Effect != c.Effect:
		return false, nil
	}
	if why, hint := g.fault(); why != "" { // it was not made by NewGrant
		return false, &stint.Error{Code: stint.Invalid, Op: "grant", Err: errors.New(why), Hint: hint}
	}
	if g.When == "" {
		return g.Digest == c.digest(), nil
	}
	p, err := Compile([]Rule{{Name: "grant", Do: Allow, Match: Match{When: g.When}}})
	if err != nil {
		return false, err
	}
	look := &lookup{call: &c}
	yes, err := look.holds(&p.when[0])
	if err != nil {
		return false, &stint.Error{Code: stint.Invalid, Op: "grant", Err: fmt.Errorf("the condition of the grant %s cannot be evaluated: %w", g.ID, err),
			Hint: "a member that may be missing is written args.x ?? \"\""}
	}
	return yes, nil
}

// Granted returns the first of some grants that answers the question of a verdict. Those
// of other rules do not: whoever let a tool write has not let it write what a stranger asked
// for. One that cannot be evaluated answers nothing.
func Granted(grants []Grant, v Verdict, c Call, now time.Time) (Grant, bool) {
	if v.Do != Ask || !v.Grantable || v.Fault != "" {
		return Grant{}, false
	}
	for i := range grants {
		if grants[i].Rule != v.Rule {
			continue
		}
		if yes, err := grants[i].Covers(c, now); yes && err == nil {
			return grants[i], true
		}
	}
	return Grant{}, false
}
