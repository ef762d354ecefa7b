package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
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
	case d.Kind != KindExec || len(d.Command) == 0:
		err = fmt.Errorf("a pinned agent is of kind %q with %d words of command", clip(d.Kind, 40), len(d.Command))
	}
	if err != nil {
		return Agent{}, &stint.Error{Code: stint.Invalid, Op: "config", Err: err,
			Hint: "a newer stint may have written it: `stint version` tells which this is"}
	}
	d.Bounds.DeadlineAt = d.Bounds.DeadlineAt.UTC()
	return d.Agent, nil
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
	return out
}

// written is a member of an agent as a line of text. Members stand in the order of
// place: that of their key in the file, and below one key that of the keys there.
type written struct {
	place, name, value string
}

// Member is one key of an agent, and its value as it would be written in the file.
type Member struct {
	Name  string // "limits.wall", "env.MODE", "command"
	Value string // "none" for what is not there
}

// Members returns what the agent is, defaults filled in, in the order of the file.
func (a *Agent) Members() []Member {
	var out []Member
	for _, w := range a.members() {
		out = append(out, Member{w.name, w.value})
	}
	return out
}

// members writes an agent as lines, each key of the file in its place.
func (a *Agent) members() []written {
	var out []written
	place := 0
	add := func(name, value string) {
		place++
		out = append(out, written{fmt.Sprintf("%02d", place), name, value})
	}
	each := func(name string, m map[string]string) {
		place++
		for _, k := range slices.Sorted(maps.Keys(m)) {
			out = append(out, written{fmt.Sprintf("%02d %s", place, k), join(name, k), m[k]})
		}
	}
	b, r := a.Bounds, a.Retry
	add("name", quote(a.Name))
	add("kind", quote(a.Kind))
	add("command", words(a.Command))
	add("protocol", string(a.Protocol))
	add("dir", quote(a.Dir))
	each("env", texts(a.Env, quote))
	add("pass", words(a.Pass))
	add("keep", string(a.Keep))
	add("effect", string(a.Effect))
	each("effects", texts(a.Effects, func(e stint.Effect) string { return string(e) }))
	each("in_doubt", texts(a.InDoubt, InDoubt.written))
	add("output", formatSize(a.Output))
	add("limits.wall", orNone(b.Wall, formatDuration))
	add("limits.idle", orNone(b.Idle, formatDuration))
	add("limits.deadline", b.deadline())
	add("limits.loops", orNone(b.Loops, strconv.Itoa))
	add("limits.steps", orNone(b.Steps, strconv.Itoa))
	add("limits.cost", orNone(b.Cost, stint.Money.String))
	add("limits.tokens", orNone(b.Tokens, func(n int64) string { return strconv.FormatInt(n, 10) }))
	add("on_limit", map[bool]string{true: "stop", false: "wait"}[b.Stop])
	add("grace", formatDuration(a.Grace))
	add("retry.attempts", strconv.Itoa(r.Attempts))
	add("retry.initial", formatDuration(r.Initial))
	add("retry.factor", strconv.FormatFloat(r.Factor, 'g', -1, 64))
	add("retry.max", formatDuration(r.Max))
	add("retry.jitter", strconv.FormatFloat(r.Jitter, 'g', -1, 64))
	add("concurrency", orNone(a.Concurrency, strconv.Itoa))
	add("done", orNone(a.Done, quote))
	add("pin", string(a.Pin))
	each("labels", texts(a.Labels, quote))
	add("description", orNone(a.Description, quote))
	return out
}

func (b Bounds) deadline() string {
	if !b.DeadlineAt.IsZero() {
		return b.DeadlineAt.Format(time.RFC3339Nano)
	}
	return orNone(b.DeadlineIn, formatDuration)
}

func (i InDoubt) written() string {
	if i.Do == Verify {
		return "{verify: " + words(i.Verify) + "}"
	}
	return string(i.Do)
}

func words(list []string) string {
	all := make([]string, len(list))
	for i, w := range list {
		all[i] = quote(w)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func texts[T any](m map[string]T, write func(T) string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = write(v)
	}
	return out
}

func orNone[T comparable](v T, write func(T) string) string {
	var zero T
	if v == zero {
		return "none"
	}
	return write(v)
}
