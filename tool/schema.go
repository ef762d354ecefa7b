package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/jsonx"
)

// Bounds of a schema and of the arguments that it is for.
const (
	maxSchema = 256 << 10
	maxArgs   = 16 << 20
	maxDepth  = 128
	maxFaults = 8    // faults that one message names
	maxQuoted = 4000 // bytes of a schema in a message
)

// Schema is a JSON Schema: draft 2020-12, or an older draft down to 4 where its $schema
// says so. Values are checked with all of their digits. It may be used by several
// goroutines.
type Schema struct {
	raw  json.RawMessage
	comp *jsonschema.Schema // nil: anything
}

// NewSchema reads a schema; nil or empty is one that takes anything. [stint.Invalid] for
// what is no schema, and for a reference to another document: nothing is fetched. A
// pattern that Go's regexp package cannot read, as JavaScript's (?!…), is not checked.
func NewSchema(raw json.RawMessage) (*Schema, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return &Schema{}, nil
	}
	bad := func(err error) error {
		return &stint.Error{Code: stint.Invalid, Op: "schema", Err: err, Hint: "write a JSON Schema, draft 2020-12 or draft-07"}
	}
	if err := jsonx.Check(raw, jsonx.Limits{Size: maxSchema, Depth: maxDepth, FiniteNumbers: true}); err != nil {
		return nil, bad(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, bad(err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(compilePattern)
	const here = "stint:schema"
	if err := c.AddResource(here, doc); err != nil {
		return nil, bad(err)
	}
	comp, err := c.Compile(here)
	if err != nil {
		return nil, bad(errors.New(strings.ReplaceAll(err.Error(), here, "")))
	}
	return &Schema{raw: slices.Clone(raw), comp: comp}, nil
}

// JSON is the schema as it was given; nil for one that takes anything. Do not change it.
func (s *Schema) JSON() json.RawMessage { return s.raw }

// Check tells whether value is JSON that all readers read alike (no name twice, no
// number beyond float64, no half surrogate) and that the schema takes. The error is
// [stint.Invalid]: it names the places and quotes the schema; its text is meant for who
// wrote the value.
func (s *Schema) Check(value json.RawMessage) error {
	if err := jsonx.Check(value, jsonx.Limits{Size: maxArgs, Depth: maxDepth, FiniteNumbers: true}); err != nil {
		return s.fault(err)
	}
	if s.comp == nil {
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return s.fault(err)
	}
	err = s.comp.Validate(v)
	var wrong *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &wrong):
		return s.fault(err)
	}
	f := faults{printer: message.NewPrinter(language.English)}
	f.collect(wrong)
	return s.fault(errors.New(f.String()))
}

// fault is the error of a value, with the schema if there is one.
func (s *Schema) fault(err error) error {
	if s.comp != nil {
		err = fmt.Errorf("%w. The schema is %s", err, s.quoted())
	}
	return &stint.Error{Code: stint.Invalid, Err: err}
}

// quoted is the schema in one line, cut where it is long.
func (s *Schema) quoted() string {
	var line bytes.Buffer
	if json.Compact(&line, s.raw) != nil {
		line.Write(s.raw)
	}
	return Excerpt(line.String(), maxQuoted, "")
}

// faults turns the tree of what is wrong into a list of places.
type faults struct {
	printer *message.Printer
	seen    []string
	more    int
}

func (f *faults) collect(e *jsonschema.ValidationError) {
	if len(e.Causes) > 0 {
		for _, c := range e.Causes {
			f.collect(c)
		}
		return
	}
	text := place(e.InstanceLocation) + ": " + f.reason(e.ErrorKind)
	switch {
	case slices.Contains(f.seen, text):
	case len(f.seen) == maxFaults:
		f.more++
	default:
		text, _ = Clean([]byte(text))
		f.seen = append(f.seen, Excerpt(text, 600, ""))
	}
}

// reason says what is wrong; numbers with their digits, which the library rounds.
func (f *faults) reason(k jsonschema.ErrorKind) string {
	bound := func(got, want *big.Rat, how string) string {
		return decimal(got) + " is not " + how + " " + decimal(want)
	}
	switch k := k.(type) {
	case *kind.Minimum:
		return bound(k.Got, k.Want, "at least")
	case *kind.Maximum:
		return bound(k.Got, k.Want, "at most")
	case *kind.ExclusiveMinimum:
		return bound(k.Got, k.Want, "above")
	case *kind.ExclusiveMaximum:
		return bound(k.Got, k.Want, "below")
	case *kind.MultipleOf:
		return bound(k.Got, k.Want, "a multiple of")
	}
	return k.LocalizedString(f.printer)
}

func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return strings.TrimRight(r.FloatString(20), "0")
}

// String lists what was found.
func (f *faults) String() string {
	s := strings.Join(f.seen, "; ")
	if f.more > 0 {
		s += fmt.Sprintf("; and %d faults more", f.more)
	}
	return s
}

// place writes where in the value something is, as JSON paths are read.
func place(steps []string) string {
	p := "$"
	for _, s := range steps {
		switch {
		case s != "" && strings.Trim(s, "0123456789") == "":
			p += "[" + s + "]"
		case validName(s):
			p += "." + s
		default:
			p += fmt.Sprintf("[%.66q]", s)
		}
	}
	return p
}

// noLoader fetches nothing: a schema from outside must not make stint read files or ask
// servers.
type noLoader struct{}

// Load implements the library's loader.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a reference to %s, which is not fetched; put what it says under $defs", url)
}

// pattern is a regular expression of a schema.
type pattern struct {
	text string
	re   *regexp.Regexp // nil: not readable here, so anything matches
}

// MatchString implements the library's Regexp.
func (p pattern) MatchString(s string) bool { return p.re == nil || p.re.MatchString(s) }

// String returns the expression as it is written.
func (p pattern) String() string { return p.text }

// compilePattern takes every pattern. Schemas are written for JavaScript's engine, and a
// tool should not be lost for an expression that its own server checks again.
func compilePattern(s string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(s)
	if err != nil {
		re = nil
	}
	return pattern{s, re}, nil
}
