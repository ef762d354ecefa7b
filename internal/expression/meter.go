package expression

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// What expressions may cost together for one thing that they look at. Who writes them is
// trusted; what they read is not. Work is counted and not timed, so that the same gets the
// same answer on every machine.
const (
	baseWork = 8 << 20   // bytes or values looked at
	workEach = 16        // more for each byte of what is looked at
	tickWork = 16        // for each call of a predicate
	maxMade  = 1_000_000 // values that an expression makes, as its machine counts them
	maxDepth = 20_000
)

// The names of functions that no source can spell.
const (
	tickName = "\x00tick" // counts a call of a predicate
	payName  = "\x00pay"  // counts what an operation is going to look at, and returns it
	payMore  = "\x00more" // the same for what makes many values of it
)

// errWork says that expressions looked at too much.
var errWork = errors.New("the expressions look at too much")

// Meter counts the work of the expressions that look at one thing. Inside of an
// expression it panics when there is too much, which [Meter.Run] turns into an error. It
// is for one goroutine.
type Meter struct {
	left int64
	over bool
}

// NewMeter begins to count for something of so many bytes.
func NewMeter(size int) *Meter { return &Meter{left: baseWork + workEach*int64(size)} }

// Unfit is why an expression has no value.
type Unfit struct {
	Over bool // it looks at more than it may
	// Where it does not fit what it looks at, from 1; 0: that is not known.
	Line, Column int
}

// Error says it without what was looked at, which may be nobody's to see.
func (u *Unfit) Error() string {
	switch {
	case u.Over:
		return "it looks at more than it may"
	case u.Line > 0:
		return fmt.Sprintf("line %d, column %d does not fit", u.Line, u.Column)
	}
	return "it does not fit"
}

// Run gives the value of an expression over env, into which [Meter.Functions] has put its
// own. The error is an [Unfit].
func (m *Meter) Run(p *Program, env map[string]any) (any, error) {
	machine := vm.VM{MemoryBudget: maxMade}
	out, err := machine.Run(p.vm, env)
	if err == nil {
		return out, nil
	}
	if m.over || strings.Contains(err.Error(), "memory budget") {
		return nil, &Unfit{Over: true}
	}
	var at *file.Error
	if errors.As(err, &at) {
		return nil, &Unfit{Line: max(at.Line, 1), Column: at.Column + 1}
	}
	return nil, &Unfit{}
}

// Text writes a value outside of an expression: a text as it is, anything else as compact
// JSON. The error is an [Unfit].
func (m *Meter) Text(v any) (s string, err error) {
	defer func() {
		if m.over && recover() != nil {
			s, err = "", &Unfit{Over: true}
		}
	}()
	if s, err = m.string(v); err != nil {
		return "", &Unfit{}
	}
	return s, nil
}

func (m *Meter) spend(n int64) {
	if m.left -= n; m.left < 0 {
		m.over = true
		panic(errWork)
	}
}

// pay counts all of v, deep down.
func (m *Meter) pay(v any) { m.walk(reflect.ValueOf(v), 0) }

func (m *Meter) walk(v reflect.Value, depth int) {
	if depth > maxDepth {
		m.spend(m.left + 1)
	}
	m.spend(1)
	switch v.Kind() {
	case reflect.Interface:
		m.walk(v.Elem(), depth+1)
	case reflect.String:
		m.spend(int64(v.Len()))
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			m.walk(v.Index(i), depth+1)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			m.walk(it.Key(), depth+1)
			m.walk(it.Value(), depth+1)
		}
	default: // a number, a truth, nothing
	}
}

// Functions puts into env what expressions can call besides what expr-lang has: our own
// forms of three of its functions, and those that count.
func (m *Meter) Functions(into map[string]any) {
	into[tickName] = func() bool { m.spend(tickWork); return true }
	into[payName] = func(args ...any) (any, error) { m.pay(args[0]); return args[0], nil }
	into[payMore] = func(args ...any) (any, error) {
		before := m.left
		m.pay(args[0])
		m.spend(15 * (before - m.left))
		return args[0], nil
	}
	into["string"] = func(args ...any) (any, error) { return m.string(args...) }
	into["toJSON"] = func(args ...any) (any, error) { return m.toJSON(args...) }
	into["join"] = func(args ...any) (any, error) { return m.join(args...) }
}

// string writes a value into a text: a text as it is, anything else as JSON.
func (m *Meter) string(args ...any) (string, error) {
	if len(args) == 1 {
		if s, ok := args[0].(string); ok {
			m.spend(int64(len(s)))
			return s, nil
		}
	}
	return m.toJSON(args...)
}

// toJSON writes a value as compact JSON: no < is escaped, members stand in the order of
// their names. That of expr-lang indents, which makes of a deep value a very long text.
func (m *Meter) toJSON(args ...any) (string, error) {
	if len(args) != 1 {
		return "", fmt.Errorf("one value is needed, there are %d", len(args))
	}
	m.pay(args[0])
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(args[0]); err != nil {
		return "", errors.New("the value cannot be written as JSON")
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// join puts texts together, a separator between them, and counts what comes out.
func (m *Meter) join(args ...any) (string, error) {
	if len(args) < 1 || len(args) > 2 {
		return "", fmt.Errorf("a list and a separator are needed, there are %d values", len(args))
	}
	list := reflect.ValueOf(args[0])
	if list.Kind() != reflect.Slice {
		return "", errors.New("the first value is not a list")
	}
	separator := ""
	if len(args) == 2 {
		s, ok := args[1].(string)
		if !ok {
			return "", errors.New("the separator is not a text")
		}
		separator = s
	}
	var out strings.Builder
	for i := range list.Len() {
		s, ok := list.Index(i).Interface().(string)
		if !ok {
			return "", fmt.Errorf("value %d of the list is not a text; write map(LIST, string(#))", i)
		}
		if i > 0 {
			m.spend(int64(len(separator)))
			out.WriteString(separator)
		}
		m.spend(int64(len(s)) + 1)
		out.WriteString(s)
	}
	return out.String(), nil
}
