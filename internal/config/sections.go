package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
)

// file reads the top of the file.
func (d *decoder) file(n *node, f *File) {
	_, f.Concurrency = defaults()
	d.providers = builtIn()
	// Models name providers, wherever in the file those stand.
	if p := valueOf(n, "providers"); p != nil && n.shape == mapping {
		d.each(p, "providers", "a mapping of names to services of models", d.provider)
	}
	f.providers = d.providers
	// The rules of the file are behind those of each agent.
	if p := valueOf(n, "policy"); p != nil {
		d.policy(p, "policy", &f.Policy)
	}
	d.common = f.Policy
	d.section(n, "", "a mapping with the key agents", d.fileMembers(f))
	// Hooks, schedules and endpoints name agents, in the same way.
	if h := valueOf(n, "hooks"); h != nil && n.shape == mapping {
		d.hooks(h, "hooks", f)
	}
	if s := valueOf(n, "schedules"); s != nil && n.shape == mapping {
		d.schedules(s, "schedules", f)
	}
	if e := valueOf(n, "notify"); e != nil && n.shape == mapping {
		d.notify(e, "notify", f)
	}
}

func (d *decoder) fileMembers(f *File) []member {
	return []member{
		{"store", func(n *node, path string) { d.store(n, path, &f.Store) }},
		{"concurrency", func(n *node, path string) { integer(d, n, path, &f.Concurrency, 1, 10_000, false) }},
		{"providers", func(*node, string) {}}, // read before all else
		{"policy", func(*node, string) {}},    // the same
		{"agents", func(n *node, path string) { d.agents(n, path, f) }},
		{"hooks", func(*node, string) {}},     // read after all else
		{"schedules", func(*node, string) {}}, // the same
		{"notify", func(*node, string) {}},    // the same
		{"quiet", func(n *node, path string) { d.quiet(n, path, &f.Quiet) }},
	}
}

// store reads where sessions are kept.
func (d *decoder) store(n *node, path string, to *string) {
	const what = "a store such as sqlite:.stint/stint.db"
	s, ok := d.oneLine(n, path, what, 4096)
	if !ok {
		return
	}
	scheme, name, colon := strings.Cut(s, ":")
	switch {
	case !colon:
		d.expected(n, path, what, "", "write sqlite:"+clip(s, 80))
	case scheme != "sqlite":
		d.expected(n, path, what, "the only kind of store is sqlite", "")
	case name == "":
		d.expected(n, path, what, "the path is missing", "")
	default:
		if name, ok = d.joined(n, path, name); ok {
			*to = "sqlite:" + name
		}
	}
}

func (d *decoder) limitMembers(b *Bounds) []member {
	return []member{
		{"wall", func(n *node, path string) { d.duration(n, path, &b.Wall, true) }},
		{"idle", func(n *node, path string) { d.duration(n, path, &b.Idle, true) }},
		{"deadline", func(n *node, path string) { d.deadline(n, path, b) }},
		{"loops", func(n *node, path string) { integer(d, n, path, &b.Loops, 1, 1e9, true) }},
		{"steps", func(n *node, path string) { integer(d, n, path, &b.Steps, 1, 1e9, true) }},
		{"cost", func(n *node, path string) {
			b.CostDefault = false
			d.money(n, path, &b.Cost)
		}},
		{"tokens", func(n *node, path string) { integer(d, n, path, &b.Tokens, 1, 1e15, true) }},
		{"tool_calls", func(n *node, path string) { integer(d, n, path, &b.ToolCalls, 1, 1e9, true) }},
		{"children", func(n *node, path string) { integer(d, n, path, &b.Children, 1, 1e9, true) }},
	}
}

func (d *decoder) retryMembers(r *Retry) []member {
	return []member{
		{"attempts", func(n *node, path string) { integer(d, n, path, &r.Attempts, 1, 1000, false) }},
		{"initial", func(n *node, path string) { d.duration(n, path, &r.Initial, false) }},
		{"factor", func(n *node, path string) { d.float(n, path, &r.Factor, 1, 100) }},
		{"max", func(n *node, path string) { d.duration(n, path, &r.Max, false) }},
		{"jitter", func(n *node, path string) { d.float(n, path, &r.Jitter, 0, 1) }},
	}
}

func (d *decoder) verifyMembers(to *[]string) []member {
	return []member{{"verify", func(n *node, path string) { d.command(n, path, to) }}}
}

func effects() []stint.Effect { return []stint.Effect{stint.Read, stint.Idempotent, stint.Once} }

// bySteps reads a mapping whose keys are names of steps.
func bySteps[T any](d *decoder, n *node, path, what string, to *map[string]T, read func(n *node, path string) T) {
	out := map[string]T{}
	d.each(n, path, what, func(key, value *node, at string) {
		if _, ok := d.oneLine(key, at, "the name of a step", 200); ok {
			out[key.text] = read(value, at)
		}
	})
	if len(out) > 0 {
		*to = out
	}
}

func (d *decoder) inDoubt(n *node, path string) InDoubt {
	if n.shape == mapping {
		out := InDoubt{Do: Verify}
		given := d.section(n, path, "", d.verifyMembers(&out.Verify))
		if given["verify"] == nil {
			d.fail(n, path, "the key verify is missing", "write ask, unknown or {verify: [program, arguments]}")
		}
		return out
	}
	var out InDoubt
	if n.shape != text || n.text != string(Ask) && n.text != string(Unknown) {
		d.expected(n, path, "ask, unknown or {verify: [program, arguments]}", "", "")
		return out
	}
	out.Do = Action(n.text)
	return out
}

// deadline reads a time span from creation or a point in time.
func (d *decoder) deadline(n *node, path string, b *Bounds) {
	const what = "a duration from creation such as 2d, a time such as 2027-01-31T18:00:00Z, or none"
	b.DeadlineIn, b.DeadlineAt = 0, time.Time{}
	if isNone(n) {
		return
	}
	if n.shape != text || n.text == "" {
		d.expected(n, path, what, "", "")
		return
	}
	if dated := regexp.MustCompile(`^\d{4}-`); !dated.MatchString(n.text) {
		v, why := parseDuration(n.text)
		if why != "" {
			d.expected(n, path, what, why, "")
			return
		}
		b.DeadlineIn = v
		return
	}
	at, err := time.Parse(time.RFC3339, n.text)
	if err != nil {
		d.expected(n, path, what, "", "a time has a date, T, a time of day, and Z or an offset like +01:00")
		return
	}
	b.DeadlineAt = at.UTC().Truncate(time.Microsecond)
}

// env reads values for the program's environment. A reference stays one.
func (d *decoder) env(n *node, path string, to *map[string]string) {
	out := map[string]string{}
	d.each(n, path, "a mapping of names to values", func(key, value *node, at string) {
		if !isVariable(key.text) {
			d.expected(key, at, aVariable, "", "")
			return
		}
		if ours(key.text) {
			d.fail(key, at, "stint sets this variable itself", "use another name")
			return
		}
		s, ok := d.reference(value, at, "a text, "+aReference)
		if !ok {
			return
		}
		out[key.text] = s
	})
	if len(out) > 0 {
		*to = out
	}
}

// pass reads names of stint's own variables.
func (d *decoder) pass(n *node, path string, to *[]string) {
	if n.shape != list {
		hint := ""
		if n.shape == text && isVariable(n.text) {
			hint = "write it as a list: [" + n.text + "]"
		}
		d.expected(n, path, "a list of names of environment variables", "", hint)
		return
	}
	var names []string
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case item.shape != text || !isVariable(item.text):
			d.expected(item, at, aVariable, "", "give names here, values under env")
		case ours(item.text):
			d.fail(item, at, "stint sets this variable itself", "remove it")
		case slices.Contains(names, item.text):
			d.fail(item, at, "the name is given twice", "keep one of them")
		default:
			names = append(names, item.text)
		}
	}
	slices.Sort(names)
	*to = names
}

func (d *decoder) labels(n *node, path string, to *map[string]string) {
	out := map[string]string{}
	d.each(n, path, "a mapping of labels", func(key, value *node, at string) {
		if !isLabel(key.text) {
			d.expected(key, at, aLabel, "", "")
			return
		}
		if s, ok := d.oneLine(value, at, "one line of text", maxLabelText); ok {
			out[key.text] = s
		}
	})
	if len(out) > MaxLabels {
		d.fail(n, path, fmt.Sprintf("%d labels are too many", len(out)), fmt.Sprintf("a session has at most %d", MaxLabels))
		return
	}
	if len(out) > 0 {
		*to = out
	}
}

// done reads a condition and points at the character that is wrong with it.
func (d *decoder) done(n *node, path string, to *string) {
	s, ok := d.text(n, path, "a condition such as state.remaining == 0")
	if !ok {
		return
	}
	_, fault := compile(s)
	if fault == nil {
		*to = s
		return
	}
	at := *n
	if n.block {
		d.fail(&at, path, fmt.Sprintf("%s (line %d, column %d of the condition)", fault.text, fault.line, fault.column), fault.hint)
		return
	}
	if at.column += fault.column - 1; n.quoted {
		at.column++
	}
	d.fail(&at, path, fault.text, fault.hint)
}
