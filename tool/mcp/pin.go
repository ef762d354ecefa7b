package mcp

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
)

// Pin is what a server was when somebody looked at it: how it is started, and what it
// says of its tools. It is JSON, to be kept where a person accepted it. Variables are in
// it by name, without their values.
type Pin struct {
	Server  string                `json:"server"`
	Command []string              `json:"command,omitempty"`
	Dir     string                `json:"dir,omitempty"`
	URL     string                `json:"url,omitempty"`
	Env     map[string]string     `json:"env,omitempty"`
	Headers map[string]string     `json:"headers,omitempty"`
	Tools   map[string]Definition `json:"tools"` // by the server's own names
}

// Definition is what a server says of one tool: the model reads the description and the
// schema, and the hints may decide its effect.
type Definition struct {
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Hints       Hints           `json:"hints"`
}

// Hints are the annotations of a tool, as the server gives them; nil is not given.
type Hints struct {
	ReadOnly    bool  `json:"readOnly,omitempty"`
	Idempotent  bool  `json:"idempotent,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	OpenWorld   *bool `json:"openWorld,omitempty"`
}

// pinOf is the pin of a Spec whose variables are not put in. Values that look secret are
// not kept: their hash is.
func pinOf(s Spec, tools map[string]Definition) Pin {
	hide := func(in map[string]string) map[string]string {
		out := make(map[string]string, len(in))
		for name, v := range in {
			if secretName(name) && !strings.Contains(v, "${") {
				v = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(v)))
			}
			out[name] = v
		}
		if len(out) == 0 {
			return nil
		}
		return out
	}
	p := Pin{Server: s.Name, Dir: s.Dir, URL: s.URL, Env: hide(s.Env), Headers: hide(s.Headers), Tools: tools}
	if s.Transport == Stdio {
		p.Command = append([]string{s.Command}, s.Args...)
	}
	return p
}

// Start is the part of the server's pin that is known before it is started: all but the
// tools. Whoever compares it first does not start what nobody has accepted.
func (s Spec) Start() Pin { return pinOf(s, nil) }

// Hash is the SHA-256 of the pin, which a person can compare.
func (p Pin) Hash() stint.Hash {
	b, err := json.Marshal(p)
	if err != nil {
		return stint.Hash{} // not reached: a schema in a pin is JSON
	}
	return sha256.Sum256(b)
}

// Changed is the error of a server that is not what was accepted.
type Changed struct {
	Server string
	Was    stint.Hash
	Is     stint.Hash
	Diff   []string // a line each
}

// Error shows the difference.
func (c *Changed) Error() string {
	return fmt.Sprintf("it is not what was accepted (%.12s, now %.12s): %s", c.Was, c.Is, strings.Join(c.Diff, "; "))
}

// wrapped is Changed with its code and the way out.
func (c *Changed) wrapped() error {
	return &stint.Error{Code: stint.Denied, Op: "mcp server " + c.Server, Err: c,
		Hint: "read the difference; if it is meant, accept the pin " + c.Is.String()}
}

// Compare returns the difference of now to what was accepted, a line each.
func (p Pin) Compare(now Pin) []string {
	d := diff{}
	if !slices.Equal(p.Command, now.Command) {
		d.line("the command was %s and is %s", shownWords(p.Command), shownWords(now.Command))
	}
	d.text("the folder", p.Dir, now.Dir)
	d.text("the url", p.URL, now.URL)
	d.texts("the variable ", p.Env, now.Env)
	d.texts("the header ", p.Headers, now.Headers)
	for _, name := range both(p.Tools, now.Tools) {
		old, had := p.Tools[name]
		is, has := now.Tools[name]
		switch {
		case !had:
			d.line("the tool %q is new: %s", name, shown(is.Description))
		case !has:
			d.line("the tool %q is gone", name)
		default:
			d.tool(name, old, is)
		}
	}
	return d
}

type diff []string

func (d *diff) line(format string, args ...any) { *d = append(*d, fmt.Sprintf(format, args...)) }

func (d *diff) text(what, old, is string) {
	if old != is {
		d.line("%s was %s and is %s", what, shown(old), shown(is))
	}
}

func (d *diff) texts(what string, old, is map[string]string) {
	for _, name := range both(old, is) {
		d.text(what+name, old[name], is[name])
	}
}

func (d *diff) tool(name string, old, is Definition) {
	what := fmt.Sprintf("of the tool %q ", name)
	d.text(what+"the description", old.Description, is.Description)
	d.text(what+"the schema", string(old.Schema), string(is.Schema))
	a, errA := json.Marshal(old.Hints)
	b, errB := json.Marshal(is.Hints)
	if errors.Join(errA, errB) == nil {
		d.text(what+"the hints", string(a), string(b))
	}
}

func both[V any](a, b map[string]V) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}

// shown is a text of the server's in an error: quoted, so that nothing in it can act on a
// terminal, and cut in the middle where it is long.
func shown(s string) string { return fmt.Sprintf("%+q", tool.Excerpt(s, 600, "")) }

// shownWords is shown for a command.
func shownWords(words []string) string {
	return tool.Excerpt(fmt.Sprintf("%+q", words), 2000, "")
}
