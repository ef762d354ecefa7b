package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/worktree"
	"github.com/stint-dev/stint/policy"
)

// decoder reads nodes into values. Its methods report what is wrong to the
// source and go on, so that one reading finds all problems.
type decoder struct {
	src       *source
	dir       string                            // relative paths of the file are joined to it
	read      func(path string) ([]byte, error) // for texts in other files; nil: nothing is opened
	providers map[string]Provider
	common    []policy.Rule // of the file, for each of its agents
}

// member is one key of a section and how its value is read.
type member struct {
	name string
	read func(n *node, path string)
}

func (d *decoder) fail(n *node, path, what, hint string) {
	if n.shape != unread {
		d.src.add(n.line, n.column, path, what, hint)
	}
}

// expected reports a node of the wrong kind or form. why says more, or is empty.
func (d *decoder) expected(n *node, path, what, why, hint string) {
	if why != "" {
		why = ": " + why
	}
	d.fail(n, path, "expected "+what+", found "+d.src.found(n)+why, hint)
}

// join makes the path of a key below path.
func join(path, key string) string {
	odd := func(r rune) bool { return !letter(r) && r != '-' }
	if key == "" || strings.ContainsFunc(key, odd) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// at is the path of a key of a mapping as messages show it: short, and without a secret.
func (d *decoder) at(path string, key *node) string {
	return join(path, clip(d.src.mask(key.text), 64))
}

// each calls fn for the pairs of a mapping whose keys are texts and come for the
// first time.
func (d *decoder) each(n *node, path, what string, fn func(key, value *node, path string)) {
	if n.shape != mapping {
		d.expected(n, path, what, "", "")
		return
	}
	first := map[string]int{}
	for _, p := range n.pairs {
		at := d.at(path, p.key)
		if p.key.shape != text || p.key.block {
			d.expected(p.key, path, "a word as the key", "", "put it in quotes")
			continue
		}
		if line, twice := first[p.key.text]; twice {
			d.fail(p.key, at, fmt.Sprintf("the key is given twice, first in line %d", line), "keep one of them")
			continue
		}
		first[p.key.text] = p.key.line
		fn(p.key, p.value, at)
	}
}

// named reads a mapping of names to things of one kind, each by read; what has something
// wrong is left out. nil: there is nothing else.
func named[T any](d *decoder, n *node, path, what string, read func(key, value *node, at string) T) map[string]T {
	var all map[string]T
	d.each(n, path, what, func(key, value *node, at string) {
		if why := badName(key.text); why != "" {
			d.fail(key, at, "the name "+why, nameRule)
			return
		}
		before := d.src.count()
		v := read(key, value, at)
		if d.src.count() > before {
			return
		}
		if all == nil {
			all = map[string]T{}
		}
		all[key.text] = v
	})
	return all
}

// section reads a mapping with known keys and returns those that were given.
func (d *decoder) section(n *node, path, what string, members []member) map[string]*node {
	return d.sectionOr(n, path, what, members, func(string) (why, hint string) { return "", "" })
}

// sectionOr is section where stranger says what is wrong with some keys that are not
// known, as belonging elsewhere.
func (d *decoder) sectionOr(n *node, path, what string, members []member, stranger func(key string) (why, hint string)) map[string]*node {
	given := map[string]*node{}
	d.each(n, path, what, func(key, value *node, at string) {
		i := slices.IndexFunc(members, func(m member) bool { return m.name == key.text })
		if i < 0 {
			if sensitive(key.text) {
				d.src.hide(value)
			}
			if why, hint := stranger(key.text); why != "" {
				d.fail(key, at, why, hint)
				return
			}
			d.fail(key, at, "there is no such key here", elsewhere(key.text, members))
			// One that is only misspelt is not missing as well.
			if near := nearest(key.text, keys(members)); near != "" && given[near] == nil {
				given[near] = key
			}
			return
		}
		given[key.text] = key
		members[i].read(value, at)
	})
	return given
}

func keys(members []member) []string {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.name
	}
	return names
}

// elsewhere says which key was probably meant by one that is not known among
// members: one like it, one that other programs call so, or one of another place.
func elsewhere(key string, members []member) string {
	here := keys(members)
	if near := nearest(key, here); near != "" {
		return "did you mean " + near + "?"
	}
	place, name := meant(strings.ToLower(key))
	if sensitive(key) && slices.Contains(here, "secret") {
		name = "secret"
	}
	if slices.Contains(here, name) {
		return "did you mean " + name + "?"
	}
	if p, k := placeOf(key); name == "" || k == key {
		place, name = p, k
	}
	if name != "" {
		return "did you mean " + name + " " + place + "?"
	}
	return "the keys here are " + strings.Join(here, ", ")
}

// The sections of the file that have known keys, as messages name them.
const (
	inFile     = "at the top of the file"
	inAgent    = "in an agent"
	inLimits   = "under limits"
	inRetry    = "under retry"
	inContext  = "under context"
	inRubric   = "under rubric"
	inApart    = "under workspace"
	inProvider = "in a provider, under providers"
	inTool     = "in a tool"
	inHook     = "in a hook, under hooks"
	inHMAC     = "under hmac, in a hook"
	inPolicy   = "in a rule, under policy"
)

// placeOf returns where in the file there is a key of that name, or one like it.
func placeOf(key string) (place, name string) {
	var d decoder // the members are only listed
	all := []struct {
		place string
		keys  []string
	}{
		{inFile, keys(d.fileMembers(&File{}))},
		{inAgent, nil},
		{inLimits, keys(d.limitMembers(&Bounds{}))},
		{inRetry, keys(d.retryMembers(&Retry{}))},
		{inApart, keys(d.workspaceMembers(&worktree.Spec{}))},
		{inContext, keys(d.contextMembers(&Context{}))},
		{inProvider, keys(d.providerMembers(&Provider{}))},
		{inRubric, keys(d.rubricMembers(&Rubric{}))},
		{inTool, slices.Concat(keys(d.execToolMembers(&ExecTool{})), keys(d.httpToolMembers(&HTTPTool{})), keys(d.overrideMembers(&ToolRule{})))},
		{inHook, keys(d.hookMembers(&hook.Definition{}))},
		{inHMAC, keys(d.hmacMembers(&hook.HMAC{}))},
		{inPolicy, keys(d.policyMembers(&policy.Rule{}))},
	}
	for _, kind := range kinds() {
		a := defaultsOf(kind)
		all[1].keys = append(all[1].keys, keys(d.agentMembers(&a, kind))...)
	}
	for _, s := range all {
		if slices.Contains(s.keys, key) {
			return s.place, key
		}
	}
	for _, s := range all {
		if near := nearest(key, s.keys); near != "" {
			return s.place, near
		}
	}
	return "", ""
}

// meant returns the key that goes by another name in other programs.
func meant(key string) (place, name string) {
	switch key {
	case "cmd", "args", "argv", "entrypoint", "exec", "script":
		return inAgent, "command"
	case "cwd", "workdir", "working_dir", "working_directory":
		return inAgent, "dir"
	case "environment", "env_vars", "variables":
		return inAgent, "env"
	case "type":
		return inAgent, "kind"
	case "worktree", "isolation", "sandbox":
		return inAgent, "workspace"
	case "until", "stop_when", "done_when":
		return inAgent, "done"
	case "timeout", "max_time":
		return inLimits, "wall"
	case "max_loops", "max_iterations", "max_turns":
		return inLimits, "loops"
	case "budget", "max_cost", "cost_usd":
		return inLimits, "cost"
	case "max_tokens":
		return inLimits, "tokens"
	case "api_key", "apikey", "token":
		return inProvider, "key"
	case "endpoint", "baseurl", "api_base":
		return inProvider, "base_url"
	case "system", "system_prompt":
		return inAgent, "instructions"
	case "input_schema", "parameters":
		return inTool, "args"
	case "webhook":
		return inAgent, "url"
	case "retries", "max_retries":
		return inRetry, "attempts"
	}
	return "", ""
}

// text reads a text that is not a secret.
func (d *decoder) text(n *node, path, what string) (string, bool) {
	if n.shape != text {
		hint := ""
		if n.shape == number || n.shape == truth {
			hint = "write it in quotes: " + strconv.Quote(n.text)
		}
		d.expected(n, path, what, "", hint)
		return "", false
	}
	if why := badText(n.text); why != "" {
		d.fail(n, path, "the text "+why, "")
		return "", false
	}
	if d.src.secret.MatchString(n.text) {
		d.fail(n, path, "this looks like a secret, and the file is read, pinned and shared",
			"keep it outside: env: {NAME: env:NAME} takes it from the environment, file:PATH from a file")
		return "", false
	}
	return n.text, true
}

// oneLine reads a text of one line and at most so many characters.
func (d *decoder) oneLine(n *node, path, what string, most int) (string, bool) {
	s, ok := d.text(n, path, what)
	if !ok {
		return "", false
	}
	if why := badLine(s, most); why != "" {
		d.fail(n, path, "expected "+what+", found one that "+why, "")
		return "", false
	}
	return s, true
}

// choose reads one of a few words.
func choose[T ~string](d *decoder, n *node, path string, to *T, words ...T) {
	all := spelled(words)
	if n.shape == text && slices.Contains(all, n.text) {
		*to = T(n.text)
		return
	}
	hint := ""
	if near := nearest(n.text, all); near != "" {
		hint = "did you mean " + near + "?"
	}
	d.expected(n, path, or(all), "", hint)
}

// truth reads true or false.
func (d *decoder) truth(n *node, path string, to *bool) bool {
	if n.shape == truth {
		*to = strings.EqualFold(n.text, "true")
		return true
	}
	hint := ""
	if n.shape == text {
		hint = map[string]string{"yes": "write true", "on": "write true", "no": "write false", "off": "write false",
			"true": "remove the quotes", "false": "remove the quotes"}[strings.ToLower(n.text)]
	}
	d.expected(n, path, "true or false", "", hint)
	return false
}

// isNone reports whether a node is the word that lifts a limit.
func isNone(n *node) bool { return n.shape == text && n.text == "none" }

// duration reads a time span. orNone says that the word none is taken too, as 0.
func (d *decoder) duration(n *node, path string, to *time.Duration, orNone bool) {
	what := aDuration
	if orNone {
		if isNone(n) {
			*to = 0
			return
		}
		what += ", or none"
	}
	switch n.shape {
	case text:
		v, why := parseDuration(n.text)
		if why != "" {
			d.expected(n, path, what, why, "")
			return
		}
		*to = v
	case number:
		hint := "add a unit: " + n.text + "s or " + n.text + "m"
		if !digits(n.text) || strings.Trim(n.text, "0.") == "" {
			hint = ""
		}
		d.expected(n, path, what, "", hint)
	default:
		d.expected(n, path, what, "", "")
	}
}

// integer reads a whole number between low and high.
func integer[T int | int64](d *decoder, n *node, path string, to *T, low, high T, orNone bool) {
	what := fmt.Sprintf("a whole number from %d to %d", low, high)
	if orNone {
		if isNone(n) {
			*to = 0
			return
		}
		what += ", or none"
	}
	hint := ""
	if n.shape == number && !strings.HasPrefix(n.text, "0") && strings.Trim(n.text, "0123456789") == "" {
		v, err := strconv.ParseInt(n.text, 10, 64)
		if err == nil && T(v) >= low && T(v) <= high {
			*to = T(v)
			return
		}
	} else if n.text == "0" && orNone {
		hint = "write none for no limit"
	} else if n.shape == text && n.text != "" && strings.Trim(n.text, "0123456789") == "" {
		hint = "remove the quotes"
	}
	d.expected(n, path, what, "", hint)
}

// float reads a number between low and high.
func (d *decoder) float(n *node, path string, to *float64, low, high float64) {
	if n.shape == number && digits(n.text) {
		v, err := strconv.ParseFloat(n.text, 64)
		if err == nil && v >= low && v <= high {
			*to = v
			return
		}
	}
	d.expected(n, path, fmt.Sprintf("a number from %v to %v", low, high), "", "")
}

// size reads a number of bytes.
func (d *decoder) size(n *node, path string, to *int64) {
	if n.shape != text && n.shape != number {
		d.expected(n, path, aSize, "", "")
		return
	}
	v, why := parseSize(n.text)
	if why != "" {
		d.expected(n, path, aSize, why, "")
		return
	}
	*to = v
}

// money reads dollars, digit by digit: a number, or a text of one as programs write it.
func (d *decoder) money(n *node, path string, to *stint.Money) {
	if isNone(n) {
		*to = 0
		return
	}
	hint := ""
	if (n.shape == number || n.shape == text) && digits(n.text) {
		var m stint.Money
		if err := m.UnmarshalText([]byte(n.text)); err == nil && m > 0 {
			*to = m
			return
		}
		if m == 0 {
			hint = "write none for no limit"
		}
	} else if n.shape == text && strings.HasPrefix(n.text, "$") {
		hint = "leave the $ out"
	}
	d.expected(n, path, anAmount+", or none", "", hint)
}

// command reads a program with its arguments.
func (d *decoder) command(n *node, path string, to *[]string) {
	const what = "a list of a program and its arguments"
	if n.shape == text {
		d.expected(n, path, what, "", "write it as a list: "+clip(asList(d.src.mask(n.text)), 200))
		return
	}
	if n.shape != list {
		d.expected(n, path, what, "", "for example [python3, agent.py]")
		return
	}
	if len(n.items) == 0 || len(n.items) > 1000 {
		d.fail(n, path, fmt.Sprintf("expected %s, found %d entries", what, len(n.items)), "for example [python3, agent.py]")
		return
	}
	var words []string
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		word, ok := d.text(item, at, "a text")
		if ok && i == 0 && strings.TrimSpace(word) == "" {
			d.fail(item, at, "expected the name or path of a program, found an empty text", "for example [python3, agent.py]")
		}
		words = append(words, word)
	}
	*to = words
}

// path reads a file name and joins it to the file's folder.
func (d *decoder) path(n *node, path, what string) (string, bool) {
	s, ok := d.oneLine(n, path, what, 4096)
	if !ok {
		return "", false
	}
	return d.joined(n, path, s)
}

// joined joins a file name to the file's folder. A ~ would be taken for a
// folder's name, which nobody means.
func (d *decoder) joined(n *node, path, name string) (string, bool) {
	if name == "~" || strings.HasPrefix(name, "~/") {
		d.fail(n, path, "~ is not expanded here", "write the whole path")
		return "", false
	}
	name = filepath.FromSlash(name)
	if !filepath.IsAbs(name) {
		name = filepath.Join(d.dir, name)
	}
	return filepath.Clean(name), true
}
