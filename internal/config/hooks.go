package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/expression"
	"github.com/stint-dev/stint/internal/hook"
)

// LoadServing is [Load] for a server, which goes on with what is sound: hooks,
// schedules and endpoints that have something wrong are left out of the file, and bad has an
// error for each, under hooks.NAME, schedules.NAME or notify.NAME, as [Load] would have given it. What is wrong
// elsewhere is an error as of [Load].
func LoadServing(path string) (f *File, bad map[string]error, err error) {
	abs, b, err := open(path)
	if err != nil {
		return nil, nil, err
	}
	d := &decoder{src: newSource(path, b), dir: filepath.Dir(abs), read: readPlain}
	f = &File{Path: abs}
	root := d.src.document()
	if root == nil {
		return nil, nil, d.src.err()
	}
	d.file(root, f)
	bad = map[string]error{}
	for _, part := range []string{"hooks", "schedules", "notify"} {
		section := valueOf(root, part)
		if section == nil {
			continue
		}
		for _, p := range section.pairs {
			at := d.at(part, p.key)
			err := d.src.take(at).err()
			switch {
			case err == nil:
				continue
			case part == "hooks":
				delete(f.Hooks, p.key.text)
			case part == "schedules":
				delete(f.Schedules, p.key.text)
			default:
				delete(f.Notify, p.key.text)
			}
			bad[part+"."+p.key.text] = err
		}
	}
	if err := d.src.err(); err != nil {
		return nil, nil, err
	}
	return f, bad, nil
}

// take removes the problems of the key at path, and of those below it, and returns a
// source that has them alone.
func (s *source) take(path string) *source {
	of, rest := *s, s.problems[:0:0]
	of.problems = nil
	for _, p := range s.problems {
		if below(p.Path, path) {
			of.problems = append(of.problems, p)
		} else {
			rest = append(rest, p)
		}
	}
	s.problems = rest
	return &of
}

// below reports whether path is that of a key or of one below it.
func below(path, key string) bool {
	rest, ok := strings.CutPrefix(path, key)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// HookSecrets returns the secrets of a hook, references replaced as [Agent.ResolveEnv]
// does it, each of a form that its scheme can use. Errors and the result are as there.
func HookSecrets(d hook.Definition, lookup func(string) (string, bool), readFile func(string) ([]byte, error)) ([]string, error) {
	r := resolver{lookup: lookup, readFile: readFile}
	var out []string
	for i, ref := range d.Secrets {
		name := "secret"
		if len(d.Secrets) > 1 {
			name += "[" + strconv.Itoa(i) + "]"
		}
		s, ok := r.one(name, ref)
		if !ok {
			continue
		}
		if err := hook.CheckSecret(d.Scheme, s); err != nil {
			var e *stint.Error
			errors.As(err, &e)
			return nil, &stint.Error{Code: stint.Invalid, Op: "config", Hint: e.Hint,
				Err: fmt.Errorf("the hook %s: %s, %s: %w", d.Name, name, ref, e.Err)}
		}
		out = append(out, s)
	}
	if err := r.err("the hook " + d.Name); err != nil {
		return nil, err
	}
	return out, nil
}

// hooks reads the hooks, after the agents, which they name.
func (d *decoder) hooks(n *node, path string, f *File) {
	f.Hooks = named(d, n, path, "a mapping of names to hooks", func(key, value *node, at string) *hook.Hook { return d.hook(key, value, at, f) })
}

// hook reads one hook and compiles it; nil if something is wrong with it.
func (d *decoder) hook(key, n *node, path string, f *File) *hook.Hook {
	before := d.src.count()
	def := hook.Definition{Name: key.text}
	given := d.sectionOr(n, path, "a mapping with the keys agent, scheme and secret", d.hookMembers(&def), strangerInHook)
	if n.shape != mapping {
		return nil
	}
	for _, name := range []string{"agent", "scheme"} {
		if given[name] == nil {
			hint := map[string]string{"agent": "name the agent whose sessions it begins", "scheme": "add scheme: github, or another of " + or(schemeNames())}[name]
			d.fail(key, path, "the key "+name+" is missing", hint)
			given[name] = key // said once
		}
	}
	if a := valueOf(n, "agent"); a != nil && def.Agent != "" {
		d.hookAgent(a, join(path, "agent"), def.Agent, f)
	}
	h, err := hook.Compile(def)
	var faults hook.Faults
	if errors.As(err, &faults) {
		for i := range faults {
			d.fault(&faults[i], key, n, path, given, before)
		}
	}
	if d.src.count() > before {
		return nil
	}
	return h
}

func schemeNames() []string { return spelled(hook.Schemes()) }

// hookAgent checks that there is an agent of that name.
func (d *decoder) hookAgent(n *node, path, name string, f *File) {
	if _, err := f.Agent(name); err != nil {
		var e *stint.Error
		errors.As(err, &e)
		d.fail(n, path, "there is no agent "+quote(clip(name, 64)), e.Hint)
	}
}

// fault reports what the compiler found, unless reading found it already.
func (d *decoder) fault(f *expression.Fault, key, n *node, path string, given map[string]*node, before int) {
	first, second, nested := strings.Cut(f.Field, ".")
	at, where := join(path, first), valueOf(n, first)
	if where == nil && given[first] != nil {
		return // it is misspelt, or missing, which is said
	}
	if where == nil {
		where, at = key, path
	} else if nested {
		at = join(at, second)
		if inner := valueOf(where, second); inner != nil {
			where = inner
		}
	}
	for _, p := range d.src.problems[before:] {
		if below(p.Path, at) || below(at, p.Path) && p.Path != path {
			return
		}
	}
	point := *where
	switch {
	case f.Line == 1 && f.Column == 1:
		d.fail(where, at, f.Text, f.Hint)
	case where.shape != text || where.block || f.Line > 1:
		d.fail(where, at, fmt.Sprintf("%s (line %d, column %d of the text)", f.Text, f.Line, f.Column), f.Hint)
	default:
		if point.column += f.Column - 1; where.quoted {
			point.column++
		}
		d.fail(&point, at, f.Text, f.Hint)
	}
}

func (d *decoder) hookMembers(h *hook.Definition) []member {
	expression := func(name, example string, to *string) member {
		return member{name, func(n *node, path string) {
			s, ok := d.text(n, path, "an expression such as "+example)
			if ok && strings.TrimSpace(s) == "" {
				d.fail(n, path, "the expression is empty", "leave the key out")
			} else if ok {
				*to = s
			}
		}}
	}
	return []member{
		{"agent", func(n *node, path string) {
			if s, ok := d.oneLine(n, path, "the name of an agent", 64); ok {
				h.Agent = s
			}
		}},
		{"scheme", func(n *node, path string) { choose(d, n, path, &h.Scheme, hook.Schemes()...) }},
		{"secret", func(n *node, path string) { d.hookSecrets(n, path, &h.Secrets) }},
		{"hmac", func(n *node, path string) {
			h.HMAC = &hook.HMAC{}
			d.section(n, path, "a mapping with the key header", d.hmacMembers(h.HMAC))
		}},
		expression("when", `event == "push"`, &h.When),
		expression("key", "body.repository.full_name", &h.Key),
		expression("dedupe", `headers["idempotency-key"]`, &h.Dedupe),
		expression("order", "body.created", &h.Order),
		{"late", func(n *node, path string) { choose(d, n, path, &h.Late, hook.KeepLate, hook.DropLate) }},
		{"input", func(n *node, path string) { d.content(n, path, "a text", &h.Input) }},
		expression("name", "body.issue.title", &h.Session),
		{"labels", func(n *node, path string) { d.hookLabels(n, path, &h.Labels) }},
		{"limits", func(n *node, path string) {
			d.section(n, path, "a mapping with the keys body, rate and concurrency", d.hookLimitMembers(&h.Limits))
		}},
		{"busy", func(n *node, path string) {
			choose(d, n, path, &h.Busy, hook.Queue, hook.Reject, hook.Interrupt, hook.Replace)
		}},
	}
}

func (d *decoder) hmacMembers(h *hook.HMAC) []member {
	line := func(name, what string, to *string) member {
		return member{name, func(n *node, path string) {
			if s, ok := d.oneLine(n, path, what, 256); ok {
				*to = s
			}
		}}
	}
	return []member{
		line("header", "the name of a header", &h.Header),
		{"algorithm", func(n *node, path string) { choose(d, n, path, &h.Algorithm, hook.SHA256, hook.SHA512) }},
		{"encoding", func(n *node, path string) { choose(d, n, path, &h.Encoding, hook.Hex, hook.Base64) }},
		line("prefix", "what stands before the signature, such as sha256=", &h.Prefix),
		line("timestamp", "the name of a header", &h.Timestamp),
		line("signed", "what is signed, such as {timestamp}.{body}", &h.Signed),
	}
}

func (d *decoder) hookLimitMembers(l *hook.Limits) []member {
	return []member{
		{"body", func(n *node, path string) { d.size(n, path, &l.Body) }},
		{"rate", func(n *node, path string) { d.rate(n, path, &l.Rate) }},
		{"concurrency", func(n *node, path string) { integer(d, n, path, &l.Concurrency, 1, 10_000, true) }},
	}
}

// hookSecrets reads one reference, or a list of two while a secret is changed.
func (d *decoder) hookSecrets(n *node, path string, to *[]string) {
	if n.shape != list {
		var s string
		if d.secretRef(n, path, "the secret", &s); s != "" {
			*to = []string{s}
		}
		return
	}
	if len(n.items) < 1 || len(n.items) > hook.MaxSecrets {
		d.src.hide(n)
		d.fail(n, path, fmt.Sprintf("expected 1 or %d secrets, found %d", hook.MaxSecrets, len(n.items)), "give the new one and the one that is going out")
		return
	}
	for i, item := range n.items {
		var s string
		if d.secretRef(item, fmt.Sprintf("%s[%d]", path, i), "the secret", &s); s != "" {
			*to = append(*to, s)
		}
	}
}

// hookLabels reads labels whose texts may have places for what a delivery says.
func (d *decoder) hookLabels(n *node, path string, to *map[string]string) {
	out := map[string]string{}
	d.each(n, path, "a mapping of labels", func(key, value *node, at string) {
		if !isLabel(key.text) {
			d.expected(key, at, aLabel, "", "")
			return
		}
		if s, ok := d.oneLine(value, at, "one line of text", 4096); ok {
			out[key.text] = s
		}
	})
	if len(out) > 0 {
		*to = out
	}
}

// rate reads so many in a second, minute, hour or day.
func (d *decoder) rate(n *node, path string, to *hook.Rate) {
	if isNone(n) {
		return
	}
	count, unit, slash := strings.Cut(n.text, "/")
	v, err := strconv.Atoi(count)
	per := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": day}[unit]
	if n.shape != text || !slash || err != nil || v < 1 || v > 1_000_000 || count[0] == '0' || count[0] == '+' || per == 0 {
		hint := ""
		if n.shape == number {
			hint = "add a time: " + n.text + "/m"
		}
		d.expected(n, path, "a rate such as 10/s, 60/m, 1000/h or 5000/d, or none", "", hint)
		return
	}
	*to = hook.Rate{Count: v, Per: per}
}

// strangerInHook says what to write in place of a key that other programs have.
func strangerInHook(key string) (why, hint string) {
	instead := map[string]string{
		"filter": "when", "if": "when", "condition": "when", "prompt": "input", "template": "input", "text": "input", "message": "input",
		"type": "scheme", "kind": "scheme", "provider": "scheme", "auth": "scheme", "session": "name", "id": "dedupe", "idempotency": "dedupe",
		"overlap": "busy", "secrets": "secret", "secret_env": "secret", "token": "secret", "header": "hmac: {header: …}", "algorithm": "hmac: {algorithm: …}",
	}[strings.ToLower(key)]
	if instead == "" {
		return "", ""
	}
	return "there is no such key here", "did you mean " + instead + "?"
}
