package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/jsonx"
)

// What a condition may cost. The author of the file is trusted; the state, which
// an agent wrote, may be of any size and shape.
const (
	maxCondition = 4096 // bytes of source
	maxNodes     = 500
	maxItems     = 1_000_000 // values that all, map and their like look at
	maxMemory    = 1_000_000 // values made, as the machine counts them
	maxEval      = time.Second
)

// tick is the name of the function that counts what a condition looks at. No
// source can spell it.
const tick = "\x00tick"

// Condition is a compiled done. The zero Condition never holds. It may be used
// concurrently.
type Condition struct {
	program *vm.Program
	state   bool // the source mentions the state, so it must be decoded
}

// Env is what a condition is about: a session at the end of a loop.
type Env struct {
	State   json.RawMessage // nil and null are taken for an empty object
	Loop    int
	Totals  stint.Totals
	Session stint.Session
}

// fault is what is wrong with a condition's source, at a line and column from 1.
type fault struct {
	line, column int
	text, hint   string
}

// CompileDone compiles an expression of expr-lang that gives true or false. It
// knows these names, and others are errors:
//
//	state    the state after the loop; no state is an empty object, a missing member is nil, and nil for an answer is false
//	loop     the number of the loop
//	totals   loops steps errors attempts restarts, running (a duration), tokens, cost (dollars)
//	session  id name agent trigger line attempt labels
//
// Whole numbers of the state that fit 64 bits are exact integers. Those beyond are
// texts of their digits, so that == is exact and whatever would have rounded them
// is an error. All other numbers are 64 bit floats, or texts if they are too large.
// There is no clock in a condition: the same state gives the same answer, unless
// that hangs on the order in which keys, values and toPairs list an object.
//
// An error is [stint.Invalid] and names the column.
func CompileDone(src string) (Condition, error) {
	c, f := compile(src)
	if f == nil {
		return c, nil
	}
	return Condition{}, &stint.Error{Code: stint.Invalid, Op: "config", Hint: f.hint,
		Err: fmt.Errorf("the condition %q, line %d, column %d: %s", clip(src, 80), f.line, f.column, f.text)}
}

func compile(src string) (Condition, *fault) {
	if strings.TrimSpace(src) == "" {
		return Condition{}, &fault{1, 1, "the condition is empty", "for example state.remaining == 0"}
	}
	if len(src) > maxCondition {
		return Condition{}, &fault{1, 1, "the condition is longer than 4,096 bytes", "let the agent put the answer into its state"}
	}
	w := &watcher{}
	options := []expr.Option{
		expr.Env(names()), expr.AsBool(), expr.MaxNodes(maxNodes), expr.Patch(w),
		// The optimizer would make ranges while compiling, outside the memory budget.
		expr.Optimize(false),
	}
	for name := range withheld() {
		options = append(options, expr.DisableBuiltin(name))
	}
	program, err := expr.Compile(src, options...)
	if err != nil {
		return Condition{}, explain(err)
	}
	return Condition{program: program, state: w.state}, nil
}

// names is what a condition may mention, with types.
func names() types.Map {
	return types.Map{
		"state": types.Any,
		"loop":  types.Int,
		"totals": types.Map{
			"loops": types.Int, "steps": types.Int, "errors": types.Int, "attempts": types.Int, "restarts": types.Int,
			"running": types.TypeOf(time.Duration(0)), "tokens": types.Int64, "cost": types.Float64,
		},
		"session": types.Map{
			"id": types.String, "name": types.String, "agent": types.String, "trigger": types.String,
			"line": types.Int, "attempt": types.Int, "labels": types.TypeOf(map[string]string{}),
		},
		tick: types.TypeOf(func() bool { return true }),
	}
}

// withheld are the functions of expr-lang that are not there, and why.
func withheld() map[string]string {
	const costly = "its cost is not bounded by what it reads"
	return map[string]string{
		"now":      "a condition has no clock; totals.running is the time used",
		"fromJSON": "it would round large numbers; the state is JSON already",
		"uniq":     costly,
		"repeat":   costly,
		"replace":  costly,
	}
}

// watcher makes each predicate count its calls, and notes whether the state is used.
type watcher struct{ state bool }

// Visit is called once for each node of the tree.
func (w *watcher) Visit(n *ast.Node) {
	switch n := (*n).(type) {
	case *ast.IdentifierNode:
		w.state = w.state || n.Value == "state" || n.Value == "$env"
	case *ast.PredicateNode:
		call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: tick}}
		call.SetLocation(n.Location())
		n.Node = &ast.SequenceNode{Nodes: []ast.Node{call, n.Node}}
		n.Node.SetLocation(n.Location())
	}
}

// explain turns an error of expr-lang into ours.
func explain(err error) *fault {
	f := &fault{line: 1, column: 1, text: err.Error()}
	var at *file.Error
	if errors.As(err, &at) {
		f.line, f.column, f.text = max(at.Line, 1), at.Column+1, at.Message
	}
	unknown := regexp.MustCompile(`^unknown (name|field) ([^ ]+)`).FindStringSubmatch(f.text)
	switch {
	case unknown != nil && withheld()[unknown[2]] != "":
		f.text, f.hint = unknown[2]+" cannot be used in a condition", withheld()[unknown[2]]
	case unknown != nil:
		f.hint = sibling(unknown[1], unknown[2])
	case strings.HasPrefix(f.text, "expected bool, but got"):
		f.text = "expected true or false, found " + strings.TrimPrefix(f.text, "expected bool, but got ")
		f.hint = "compare it with something: state.remaining == 0"
	case strings.Contains(f.text, `Operator("=")`):
		f.hint = "two values are compared with =="
	case strings.Contains(f.text, "value out of range"):
		f.text, f.hint = "the number does not fit 64 bits", "the state holds it as text: compare it with its digits in quotes"
	case strings.Contains(f.text, "mismatched types"):
		f.hint = "compare numbers with numbers and texts with texts"
	case strings.HasPrefix(f.text, "unexpected token"), strings.HasPrefix(f.text, "literal not terminated"):
		f.hint = "the condition cannot be read from here on"
	}
	f.text = clip(f.text, 160)
	return f
}

// sibling says what may stand in place of an unknown name.
func sibling(what, name string) string {
	var known []string
	for top, t := range names() {
		if what == "name" && top != tick {
			known = append(known, top)
		}
		if m, ok := t.(types.Map); ok && what == "field" {
			for field := range m {
				known = append(known, field)
			}
		}
	}
	if near := nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	if what == "name" {
		return "the names are state, loop, totals and session; what the agent keeps is in state"
	}
	return "totals has loops, steps, errors, attempts, restarts, running, tokens, cost; session has id, name, agent, trigger, line, attempt, labels"
}

// Eval tells whether the condition holds. A condition that does not fit the state
// is [stint.Invalid]: it computes with a member that is missing or of another type,
// or its answer is not true or false. One that looks at more than a million values, or takes
// over a second, is [stint.Limit].
func (c Condition) Eval(env Env) (bool, error) {
	if c.program == nil {
		return false, nil
	}
	var state any
	if c.state {
		var err error
		if state, err = decode(env.State); err != nil {
			return false, &stint.Error{Code: stint.Invalid, Op: "done", Session: env.Session.ID,
				Err: fmt.Errorf("the state is not JSON: %w", err), Hint: "a state is one JSON value"}
		}
	}
	looked, until, over := 0, time.Now().Add(maxEval), false
	machine := vm.VM{MemoryBudget: maxMemory}
	out, err := machine.Run(c.program, values(env, state, func() bool {
		looked++
		if looked > maxItems || time.Now().After(until) {
			over = true
			panic("the condition looks at too much")
		}
		return true
	}))
	if err != nil {
		return false, unfit(env.Session.ID, err, over)
	}
	answer, ok := out.(bool)
	if !ok { // the compiler has made it one, or an error
		return false, stint.Internal.Errorf("done", "the condition gave a %T", out)
	}
	return answer, nil
}

// unfit turns an error of evaluation into ours.
func unfit(id stint.ID, err error, over bool) error {
	e := &stint.Error{Code: stint.Invalid, Op: "done", Session: id, Err: err,
		Hint: "a member that may be missing is written state.x ?? 0; mend done and restart from the last loop"}
	var at *file.Error
	if !errors.As(err, &at) {
		return e
	}
	e.Err = fmt.Errorf("line %d, column %d of the condition: %s", max(at.Line, 1), at.Column+1, clip(at.Message, 160))
	switch {
	case over || strings.Contains(at.Message, "memory budget"):
		e.Code, e.Hint = stint.Limit, "let the agent put the answer into its state, and done look at that"
	case strings.HasPrefix(at.Message, "invalid operation: bool("):
		e.Err = fmt.Errorf("the condition gave %s, not true or false", kindOf(at.Message))
		e.Hint = "compare it with something: state.remaining == 0"
	}
	return e
}

// values is what names promises.
func values(env Env, state any, count func() bool) map[string]any {
	s, t := &env.Session, env.Totals
	return map[string]any{
		"state": state,
		"loop":  env.Loop,
		"totals": map[string]any{
			"loops": t.Loops, "steps": t.Steps, "errors": t.Errors, "attempts": t.Attempts, "restarts": t.Restarts,
			"running": t.Running, "tokens": t.Usage.Tokens(), "cost": float64(t.Usage.Cost) / 1e9,
		},
		"session": map[string]any{
			"id": s.ID.String(), "name": s.Name, "agent": s.Agent.Name, "trigger": s.Trigger.Kind,
			"line": s.At.Line, "attempt": s.At.Attempt, "labels": s.Labels,
		},
		tick: count,
	}
}

// decode reads a state. Its numbers become what [CompileDone] says.
func decode(b json.RawMessage) (any, error) {
	if len(bytes.TrimSpace(b)) == 0 {
		return map[string]any{}, nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, errors.New("more than one value")
	}
	if v == nil {
		return map[string]any{}, nil
	}
	return jsonx.Exact(v), nil
}

// kindOf names the Go type that a message ends with.
func kindOf(message string) string {
	switch {
	case strings.Contains(message, "(map["):
		return "an object"
	case strings.Contains(message, "([]"):
		return "a list"
	case strings.Contains(message, "(string)"):
		return "a text"
	default:
		return "a number"
	}
}
