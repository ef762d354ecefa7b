package config

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
)

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
	// own is add for a member that some kinds have not.
	own := func(name, value string, given bool) {
		if given || a.Kind == KindExec {
			add(name, value)
		} else {
			place++
		}
	}
	// given is add for a number that is told of only where there is one.
	given := func(name string, n int) {
		if place++; n != 0 {
			out = append(out, written{fmt.Sprintf("%02d", place), name, strconv.Itoa(n)})
		}
	}
	b, r := a.Bounds, a.Retry
	add("name", quote(a.Name))
	add("kind", quote(a.Kind))
	for _, k := range []any{a.LLM, a.HTTP, a.CLI} {
		place++
		l := lister{place: fmt.Sprintf("%02d", place)}
		l.value("", reflect.ValueOf(k))
		out = append(out, l.out...)
	}
	own("command", words(a.Command), a.Command != nil)
	own("protocol", string(a.Protocol), a.Protocol != "")
	own("dir", quote(a.Dir), a.Dir != "")
	each("env", texts(a.Env, quote))
	own("pass", words(a.Pass), a.Pass != nil)
	own("keep", string(a.Keep), a.Keep != "")
	own("effect", string(a.Effect), a.Effect != "")
	each("effects", texts(a.Effects, func(e stint.Effect) string { return string(e) }))
	each("in_doubt", texts(a.InDoubt, InDoubt.written))
	own("output", formatSize(a.Output), a.Output != 0)
	add("limits.wall", orNone(b.Wall, formatDuration))
	add("limits.idle", orNone(b.Idle, formatDuration))
	add("limits.deadline", b.deadline())
	add("limits.loops", orNone(b.Loops, strconv.Itoa))
	add("limits.steps", orNone(b.Steps, strconv.Itoa))
	add("limits.cost", b.cost())
	add("limits.tokens", orNone(b.Tokens, func(n int64) string { return strconv.FormatInt(n, 10) }))
	given("limits.tool_calls", b.ToolCalls)
	given("limits.children", b.Children)
	add("on_limit", map[bool]string{true: "stop", false: "wait"}[b.Stop])
	own("grace", formatDuration(a.Grace), a.Grace != 0)
	add("retry.attempts", strconv.Itoa(r.Attempts))
	add("retry.initial", formatDuration(r.Initial))
	add("retry.factor", strconv.FormatFloat(r.Factor, 'g', -1, 64))
	add("retry.max", formatDuration(r.Max))
	add("retry.jitter", strconv.FormatFloat(r.Jitter, 'g', -1, 64))
	add("concurrency", orNone(a.Concurrency, strconv.Itoa))
	add("done", orNone(a.Done, quote))
	add("pin", string(a.Pin))
	place++
	apart := lister{place: fmt.Sprintf("%02d", place)}
	apart.value("workspace", reflect.ValueOf(a.Workspace))
	out = append(out, apart.out...)
	each("labels", texts(a.Labels, quote))
	add("description", orNone(a.Description, quote))
	l := lister{place: fmt.Sprintf("%02d", place+1)}
	l.policy(a.Policy)
	out = append(out, l.out...)
	slices.SortStableFunc(out, func(a, b written) int { return strings.Compare(a.place, b.place) })
	return out
}

func (b Bounds) cost() string {
	cost := orNone(b.Cost, stint.Money.String)
	if b.CostDefault {
		cost += " by default"
	}
	return cost
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

// lister writes the members of a struct as lines: every one that its JSON has, under
// the name that it has there, so that none can be forgotten.
type lister struct {
	place string
	out   []written
}

func (l *lister) add(name, value string) {
	l.out = append(l.out, written{l.place, name, value})
}

// below lists v one level further down.
func (l *lister) below(place, name string, v reflect.Value) {
	was := l.place
	l.place += " " + place
	l.value(name, v)
	l.place = was
}

// value lists v under a name, each of its members if it has some.
func (l *lister) value(name string, v reflect.Value) {
	switch x := v.Interface().(type) {
	case interface{ written() string }:
		l.add(name, x.written())
		return
	case time.Duration:
		l.add(name, formatDuration(x))
		return
	case json.RawMessage:
		l.add(name, excerpt(string(x), string(x)))
		return
	case []string:
		l.add(name, words(x))
		return
	case []ToolSpec:
		l.tools(name, x)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			l.value(name, v.Elem())
		}
	case reflect.Struct:
		l.members(name, v)
	case reflect.Map:
		for _, k := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			l.below(k.String()+"\x00", join(name, k.String()), v.MapIndex(k))
		}
	case reflect.String:
		l.add(name, excerpt(v.String(), quote(v.String())))
	case reflect.Float64:
		l.add(name, strconv.FormatFloat(v.Float(), 'g', -1, 64))
	default: // truths and whole numbers
		l.add(name, fmt.Sprint(v.Interface()))
	}
}

// members lists a struct. What is left out of its JSON has no line.
func (l *lister) members(name string, v reflect.Value) {
	for i := range v.NumField() {
		f, field := v.Type().Field(i), v.Field(i)
		at := fmt.Sprintf("%02d", i)
		if f.Anonymous {
			l.below(at, name, field)
			continue
		}
		key, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if option == "omitempty" && (field.IsZero() || (field.Kind() == reflect.Map || field.Kind() == reflect.Slice) && field.Len() == 0) {
			continue
		}
		full := join(name, strings.TrimSuffix(key, "_ns"))
		if n, ok := field.Interface().(int64); ok && (key == "output" || key == "excerpt") {
			l.place += " " + at
			l.add(full, formatSize(n))
			l.place = l.place[:len(l.place)-len(at)-1]
			continue
		}
		l.below(at, full, field)
	}
}

// tools lists which tools there are and then each by what it is called, so that one
// more does not move the others.
func (l *lister) tools(name string, tools []ToolSpec) {
	labels := make([]string, len(tools))
	seen := map[string]int{}
	for i := range tools {
		labels[i] = tools[i].label()
		if seen[labels[i]]++; seen[labels[i]] > 1 {
			labels[i] += fmt.Sprintf(" (%d)", seen[labels[i]])
		}
	}
	l.add(name, words(labels))
	for i := range tools {
		if tools[i].whole() && tools[i].Builtin != "" {
			continue // its name says it all
		}
		if tools[i].whole() && tools[i].Files != nil {
			l.below(labels[i]+"\x00", join(name, labels[i]), reflect.ValueOf(tools[i].Files))
			continue
		}
		l.below(labels[i]+"\x00", join(name, labels[i]), reflect.ValueOf(tools[i]))
	}
}

func (r Rule) written() string {
	var all []string
	if r.Off {
		all = append(all, "off")
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"warn", r.Warn}, {"pause", r.Pause}} {
		if n.value != 0 {
			all = append(all, fmt.Sprintf("%s: %d", n.name, n.value))
		}
	}
	if r.Off && len(all) == 1 {
		return "off"
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// excerpt returns what is written for a text, or the beginning of it with its length
// and hash where it is long: different texts are written differently.
func excerpt(s, written string) string {
	const most, begin = 160, 60
	if len(written) <= most {
		return written
	}
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("%s (%d bytes, SHA-256 %x)", quote(clip(s, begin)), len(s), sum[:8])
}
