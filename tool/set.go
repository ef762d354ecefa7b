package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
)

// Set is the tools of one agent, each with a name of its own. It does not change once it
// is made, so it may be used by many goroutines.
type Set struct {
	tools   []Tool // by name
	schemas map[string]*Schema
}

// NewSet makes a set of tools. [stint.Invalid] names the first that cannot be used: a
// name twice or not of the characters that providers take, no caller, an effect or an
// approval that there is not, a schema that is none or not of an object.
func NewSet(tools ...Tool) (*Set, error) {
	s := &Set{tools: slices.Clone(tools), schemas: make(map[string]*Schema, len(tools))}
	slices.SortStableFunc(s.tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	for i, t := range s.tools {
		if i > 0 && s.tools[i-1].Name == t.Name {
			return nil, invalid(t.Name, fmt.Errorf("two tools have this name%s", of(s.tools[i-1].Source, t.Source)),
				"name one of them otherwise, or leave it out")
		}
		schema, err := t.check()
		if err != nil {
			return nil, err
		}
		s.schemas[t.Name] = schema
	}
	return s, nil
}

func of(a, b string) string {
	if a == "" || b == "" {
		return ""
	}
	return ": one of " + a + ", one of " + b
}

func invalid(name string, err error, hint string) error {
	return &stint.Error{Code: stint.Invalid, Op: fmt.Sprintf("tool %.100q", name), Err: err, Hint: hint}
}

// check tells whether a tool can be used, and returns its schema.
func (t Tool) check() (*Schema, error) {
	if !validName(t.Name) {
		return nil, invalid(t.Name, fmt.Errorf("the name is not 1 to %d of a-z, A-Z, 0-9, _ and -", MaxName), "providers refuse other names")
	}
	switch {
	case t.Caller == nil:
		return nil, invalid(t.Name, errors.New("it has nothing that does the call"), "set Caller")
	case !slices.Contains([]stint.Effect{"", stint.Read, stint.Idempotent, stint.Once}, t.Effect):
		return nil, invalid(t.Name, fmt.Errorf("there is no effect %q", t.Effect), "write read, idempotent or once")
	case !slices.Contains([]Approve{"", Always, Never}, t.Approve):
		return nil, invalid(t.Name, fmt.Errorf("there is no approve %q", t.Approve), "write always or never, or leave it out")
	}
	schema, err := NewSchema(t.Schema)
	if err != nil {
		return nil, invalid(t.Name, fmt.Errorf("its arguments: %w", err), "mend the schema of its arguments")
	}
	if raw := bytes.TrimSpace(t.Schema); len(raw) > 0 && raw[0] != '{' {
		return nil, invalid(t.Name, errors.New("the schema of its arguments is not an object"), `begin with {"type":"object"}`)
	}
	return schema, nil
}

// Tools returns the tools in the order of their names. The slice is the caller's.
func (s *Set) Tools() []Tool { return slices.Clone(s.tools) }

// Len is how many tools there are.
func (s *Set) Len() int { return len(s.tools) }

// Lookup returns the tool with exactly this name.
func (s *Set) Lookup(name string) (Tool, bool) {
	i, ok := slices.BinarySearchFunc(s.tools, name, func(t Tool, n string) int { return strings.Compare(t.Name, n) })
	if !ok {
		return Tool{}, false
	}
	return s.tools[i], true
}

// Check prepares a call that a model asked for. It returns the tool and the arguments to
// store and to call it with: the bytes of args, or {} where there are none. Nothing is
// executed when it fails, and the text of the error, without its hint, is meant as the
// call's result for the model: [stint.NotFound] lists the tools that there are,
// [stint.Invalid] says what is wrong with the arguments and quotes their schema.
func (s *Set) Check(name string, args json.RawMessage) (Tool, json.RawMessage, error) {
	t, ok := s.Lookup(name)
	if !ok {
		return Tool{}, nil, s.unknown(name)
	}
	trimmed := bytes.TrimSpace(args)
	if len(trimmed) == 0 {
		args, trimmed = json.RawMessage("{}"), []byte("{}")
	}
	schema := s.schemas[name]
	err := schema.Check(args)
	if err == nil && trimmed[0] != '{' {
		err = schema.fault(errors.New(`they must be one JSON object, like {"name":"value"}`))
	}
	if err != nil {
		return Tool{}, nil, &stint.Error{Code: stint.Invalid, Err: fmt.Errorf("%s was not called. Its arguments: %w", name, err),
			Hint: "the model gets this as the call's result and may call it again"}
	}
	return t, args, nil
}

// unknown says what there is instead.
func (s *Set) unknown(name string) error {
	shown, _ := Clean(fmt.Appendf(nil, "%.100q", name))
	names := make([]string, len(s.tools))
	for i, t := range s.tools {
		names[i] = t.Name
	}
	list := "There are no tools here; answer without one."
	if len(names) > 0 {
		list = "The tools are: " + strings.Join(names, ", ") + "."
	}
	list = Excerpt(list, maxQuoted, "")
	for _, known := range names {
		if strings.EqualFold(known, name) {
			list = "Did you mean " + known + "? " + list
			break
		}
	}
	return &stint.Error{Code: stint.NotFound, Err: fmt.Errorf("there is no tool %s. %s", shown, list),
		Hint: "the model gets this as the call's result"}
}
