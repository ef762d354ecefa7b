package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/policy"
)

// definitionVersion is the version of the form that [Agent.Definition] writes. A
// change to it, or to a member's meaning, raises it.
const definitionVersion = 1

// definition is a pinned agent as it is written.
type definition struct {
	Version int `json:"v"`
	Agent
}

// Definition returns the agent as JSON, and the SHA-256 of those bytes: the same
// agent always gives the same ones. Members stand in a fixed order and maps by
// key; durations are whole nanoseconds, named _ns, and money is decimal text.
// References to secrets are written as references.
func (a *Agent) Definition() (json.RawMessage, stint.Hash) {
	b, err := stint.Marshal(definition{definitionVersion, *a})
	if err != nil { // an Agent holds texts and numbers; a NaN can only come from code
		b = fmt.Appendf(nil, `{"v":%d,"name":%q}`, definitionVersion, a.Name)
	}
	return b, stint.Hash(sha256.Sum256(b))
}

// FromDefinition reads what [Agent.Definition] wrote. What this version does not
// know is [stint.Invalid]: leaving a member out could run the agent without one
// of its limits.
func FromDefinition(b json.RawMessage) (Agent, error) {
	var d definition
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	err := dec.Decode(&d)
	switch {
	case err != nil:
		err = fmt.Errorf("a pinned agent cannot be read: %w", err)
	case dec.More():
		err = errors.New("a pinned agent cannot be read: there is more after it")
	case d.Version != definitionVersion:
		err = fmt.Errorf("a pinned agent has version %d, known is %d", d.Version, definitionVersion)
	default:
		err = d.Agent.complete()
	}
	if err != nil {
		return Agent{}, &stint.Error{Code: stint.Invalid, Op: "config", Err: err,
			Hint: "a newer stint may have written it: `stint version` tells which this is"}
	}
	d.Bounds.DeadlineAt = d.Bounds.DeadlineAt.UTC()
	return d.Agent, nil
}

// complete reports a definition without what its kind needs, or with what another
// kind has.
func (a *Agent) complete() error {
	has := func(kind string) bool {
		switch kind {
		case KindExec:
			return a.set() == 0 && len(a.Command) > 0
		case KindLLM:
			return a.set() == 1 && a.LLM != nil && a.LLM.Model != ""
		case KindHTTP:
			return a.set() == 1 && a.HTTP != nil && a.HTTP.URL != ""
		case KindCLI:
			return a.set() == 1 && a.CLI != nil && len(a.Command) > 0
		}
		return false
	}
	switch {
	case !slices.Contains(kinds(), a.Kind):
		return fmt.Errorf("a pinned agent is of kind %q; known are %s", clip(a.Kind, 40), strings.Join(kinds(), ", "))
	case !has(a.Kind):
		return fmt.Errorf("a pinned agent is of kind %q with %d words of command, and is not what that kind is", a.Kind, len(a.Command))
	}
	if _, err := policy.Compile(a.Policy); err != nil {
		return fmt.Errorf("a pinned agent has a policy that cannot be used: %w", err)
	}
	if a.LLM == nil {
		return nil
	}
	for i := range a.LLM.Tools {
		if !a.LLM.Tools[i].whole() {
			return fmt.Errorf("a pinned agent has at %d what is not one tool", i)
		}
	}
	return nil
}

// Change is one member in which two agents differ, as it would be written in the
// file. A member that is not there is written as "none".
type Change struct {
	Member string `json:"member"` // "limits.wall", "env.MODE", "command"
	From   string `json:"from"`
	To     string `json:"to"`
}

// String returns "member: from → to".
func (c Change) String() string { return c.Member + ": " + c.From + " → " + c.To }

// Diff returns the members in which a and b differ, in the order of the file. It
// is empty exactly when their definitions are equal.
func Diff(a, b Agent) []Change {
	var out []Change
	left, right := a.members(), b.members()
	for len(left) > 0 || len(right) > 0 {
		c := Change{From: "none", To: "none"}
		order := 0
		switch {
		case len(right) == 0:
			order = -1
		case len(left) == 0:
			order = 1
		default:
			order = strings.Compare(left[0].place, right[0].place)
		}
		if order <= 0 {
			c.Member, c.From, left = left[0].name, left[0].value, left[1:]
		}
		if order >= 0 {
			c.Member, c.To, right = right[0].name, right[0].value, right[1:]
		}
		if order != 0 || c.From != c.To {
			out = append(out, c)
		}
	}
	return met(out)
}

// met makes one change of two of the same member, which stand apart where two kinds
// have a key in common.
func met(changes []Change) []Change {
	at := map[string]int{}
	var out []Change
	for _, c := range changes {
		i, twice := at[c.Member]
		if !twice {
			at[c.Member] = len(out)
			out = append(out, c)
			continue
		}
		if c.From != "none" {
			out[i].From = c.From
		} else {
			out[i].To = c.To
		}
	}
	return slices.DeleteFunc(out, func(c Change) bool { return c.From == c.To })
}
