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
	d.section(n, "", "a mapping with the key agents", d.fileMembers(f))
}

func (d *decoder) fileMembers(f *File) []member {
	return []member{
		{"store", func(n *node, path string) { d.store(n, path, &f.Store) }},
		{"concurrency", func(n *node, path string) { integer(d, n, path, &f.Concurrency, 1, 10_000, false) }},
		{"agents", func(n *node, path string) { d.agents(n, path, f) }},
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

func (d *decoder) agents(n *node, path string, f *File) {
	d.each(n, path, "a mapping of names to agents", func(key, value *node, at string) {
		if why := badName(key.text); why != "" {
			hint := nameRule
			if lower := strings.ToLower(key.text); badName(lower) == "" {
				hint = "write " + lower + "; " + nameRule
			}
			d.fail(key, at, "the name "+why, hint)
			return
		}
		a := d.agent(key, value, at)
		if f.Agents == nil {
			f.Agents = map[string]Agent{}
		}
		f.Agents[a.Name] = a
	})
}

// agent reads one agent and then what its keys mean together.
func (d *decoder) agent(key, n *node, path string) Agent {
	a, _ := defaults()
	a.Name, a.Dir = key.text, d.dir
	given := d.section(n, path, "a mapping with the keys kind and command", d.agentMembers(&a))
	if n.shape != mapping {
		return a
	}
	if given["kind"] == nil {
		d.fail(key, path, "the key kind is missing", "add kind: exec")
	}
	if given["command"] == nil {
		d.fail(key, path, "the key command is missing", "add, for example, command: [python3, agent.py]")
	}
	d.together(&a, given, path)
	return a
}

// together reports keys that have no effect, or no meaning, beside others.
func (d *decoder) together(a *Agent, given map[string]*node, path string) {
	useless := func(key, why, hint string) {
		if n := given[key]; n != nil {
			d.fail(n, join(path, key), why, hint)
		}
	}
	if a.Protocol == None {
		useless("effects", "it has no effect under protocol: none, which has one step", "write effect: read, idempotent or once")
		useless("done", "it has no effect under protocol: none, where the exit code says it", "remove it, or end the program when it is done")
		if a.Keep == KeepSession {
			useless("keep", "a program under protocol: none lives for one loop", "remove it")
		}
	} else {
		useless("effect", "it is for protocol: none; under jsonl a step says its own, or effects does", "write effects: {STEP: read}, or protocol: none")
	}
	if a.Retry.Max < a.Retry.Initial {
		useless("retry", fmt.Sprintf("max is %s, which is less than initial, %s", formatDuration(a.Retry.Max), formatDuration(a.Retry.Initial)),
			"raise max or lower initial")
	}
	for _, name := range a.Pass {
		if _, twice := a.Env[name]; twice {
			useless("pass", name+" is under env too", "keep one of them")
		}
	}
}

func (d *decoder) agentMembers(a *Agent) []member {
	return []member{
		{"kind", func(n *node, path string) { d.kind(n, path, &a.Kind) }},
		{"command", func(n *node, path string) { d.command(n, path, &a.Command) }},
		{"protocol", func(n *node, path string) { choose(d, n, path, &a.Protocol, JSONL, None) }},
		{"dir", func(n *node, path string) {
			if dir, ok := d.path(n, path, "the path of a folder"); ok {
				a.Dir = dir
			}
		}},
		{"env", func(n *node, path string) { d.env(n, path, &a.Env) }},
		{"pass", func(n *node, path string) { d.pass(n, path, &a.Pass) }},
		{"keep", func(n *node, path string) { choose(d, n, path, &a.Keep, KeepLoop, KeepSession) }},
		{"effect", func(n *node, path string) { choose(d, n, path, &a.Effect, effects()...) }},
		{"effects", func(n *node, path string) {
			bySteps(d, n, path, "a mapping of step names to effects", &a.Effects, func(n *node, path string) (e stint.Effect) {
				choose(d, n, path, &e, effects()...)
				return e
			})
		}},
		{"in_doubt", func(n *node, path string) {
			bySteps(d, n, path, "a mapping of step names to what is done", &a.InDoubt, d.inDoubt)
		}},
		{"output", func(n *node, path string) { d.size(n, path, &a.Output) }},
		{"limits", func(n *node, path string) {
			d.section(n, path, "a mapping of limits", d.limitMembers(&a.Bounds))
		}},
		{"on_limit", func(n *node, path string) {
			word := "wait"
			choose(d, n, path, &word, "wait", "stop")
			a.Bounds.Stop = word == "stop"
		}},
		{"grace", func(n *node, path string) { d.duration(n, path, &a.Grace, false) }},
		{"retry", func(n *node, path string) {
			d.section(n, path, "a mapping with the keys attempts, initial, factor, max and jitter", d.retryMembers(&a.Retry))
		}},
		{"concurrency", func(n *node, path string) { integer(d, n, path, &a.Concurrency, 1, 10_000, false) }},
		{"done", func(n *node, path string) { d.done(n, path, &a.Done) }},
		{"pin", func(n *node, path string) { choose(d, n, path, &a.Pin, PinWarn, PinStrict, PinCopy) }},
		{"labels", func(n *node, path string) { d.labels(n, path, &a.Labels) }},
		{"description", func(n *node, path string) {
			if s, ok := d.oneLine(n, path, "one line of text", 200); ok {
				a.Description = s
			}
		}},
	}
}

func (d *decoder) limitMembers(b *Bounds) []member {
	return []member{
		{"wall", func(n *node, path string) { d.duration(n, path, &b.Wall, true) }},
		{"idle", func(n *node, path string) { d.duration(n, path, &b.Idle, true) }},
		{"deadline", func(n *node, path string) { d.deadline(n, path, b) }},
		{"loops", func(n *node, path string) { integer(d, n, path, &b.Loops, 1, 1e9, true) }},
		{"steps", func(n *node, path string) { integer(d, n, path, &b.Steps, 1, 1e9, true) }},
		{"cost", func(n *node, path string) { d.money(n, path, &b.Cost) }},
		{"tokens", func(n *node, path string) { integer(d, n, path, &b.Tokens, 1, 1e15, true) }},
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

func (d *decoder) kind(n *node, path string, to *string) {
	if n.shape == text && n.text != KindExec {
		d.expected(n, path, "a kind of agent", "the kinds are "+KindExec, "write kind: exec and a command")
		return
	}
	choose(d, n, path, to, KindExec)
}

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
		s, ok := d.text(value, at, "a text, env:NAME or file:PATH")
		if !ok {
			return
		}
		if name, ref := strings.CutPrefix(s, fromEnv); ref && !isVariable(name) {
			d.expected(value, at, "the name of a variable after env:", "", "for example env:GITHUB_TOKEN")
			return
		}
		if name, ref := strings.CutPrefix(s, fromFile); ref {
			if why := badLine(name, 4096); why != "" {
				d.fail(value, at, "expected the path of a file after file:, found one that "+why, "for example file:secrets/token")
				return
			}
			if name, ok = d.joined(value, at, name); !ok {
				return
			}
			s = fromFile + name
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
