package hook

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"
)

// program is a compiled expression. The zero program is none.
type program struct {
	vm   *vm.Program
	uses map[string]bool // names that it mentions, and headers.NAME and query.NAME
}

func (p *program) given() bool { return p.vm != nil }

// names is what an expression may mention.
func names() types.Map {
	text := types.TypeOf(map[string]string{})
	own := types.TypeOf(func(...any) (any, error) { return nil, nil })
	return types.Map{
		"body": types.Any, "headers": text, "query": text, "event": types.String, "raw": types.String,
		tickName: types.TypeOf(func() bool { return true }), payName: own, payMore: own,
		"string": own, "toJSON": own, "join": own,
	}
}

// known are the names that messages tell of.
func known() []string { return []string{"body", "headers", "query", "event", "raw"} }

// price is what the arguments of a function cost.
type price int

const (
	free  price = iota // it looks at no more than one value, or each of its calls is counted
	whole              // it looks at all of its arguments
	many               // and makes more values than they have
)

// functions are those of expr-lang that are there. One that a new version brings is not,
// until its price is known.
func functions() map[string]price {
	out := map[string]price{"split": many, "splitAfter": many, "toPairs": many, "keys": many, "values": many}
	for _, name := range []string{
		"all", "none", "any", "one", "filter", "map", "find", "findIndex", "findLast", "findLastIndex", "count", "reduce",
		"type", "abs", "ceil", "floor", "round", "first", "last", "get", "bitnot", "bitand", "bitor", "bitxor", "bitnand", "bitshl", "bitshr", "bitushr",
	} {
		out[name] = free
	}
	for _, name := range []string{
		"len", "sum", "groupBy", "sortBy", "int", "float", "trim", "trimPrefix", "trimSuffix", "upper", "lower", "indexOf", "lastIndexOf",
		"hasPrefix", "hasSuffix", "max", "min", "mean", "median", "toBase64", "fromBase64", "take", "fromPairs", "reverse", "concat", "flatten", "sort",
	} {
		out[name] = whole
	}
	return out
}

// withheld says of some functions that are not there why.
func withheld(name string) string {
	switch name {
	case "now", "date", "timezone", "duration":
		return "an expression has no clock and no time zones; order takes a time as it is written"
	case "fromJSON":
		return "it would round large numbers; body is JSON already"
	case "uniq", "repeat", "replace":
		return "its cost is not bounded by what it reads"
	}
	return ""
}

// watcher makes an expression count what it looks at, and notes which names it mentions.
type watcher struct {
	functions map[string]price
	uses      map[string]bool
	pattern   ast.Node // a matches whose pattern is not written out
}

// Visit is called once for each node of the tree, for the inner ones first.
func (w *watcher) Visit(n *ast.Node) {
	switch n := (*n).(type) {
	case *ast.IdentifierNode:
		w.uses[n.Value] = true
	case *ast.MemberNode:
		w.member(n.Node, n.Property)
	case *ast.PredicateNode:
		n.Node = after(call(tickName, n.Location()), n.Node)
	case *ast.BinaryNode:
		switch n.Operator {
		case "==", "!=", "<", "<=", ">", ">=", "+", "in", "contains", "startsWith", "endsWith":
			n.Left, n.Right = paid(payName, n.Left), paid(payName, n.Right)
		case "matches":
			n.Left = paid(payMore, n.Left)
			if _, written := n.Right.(*ast.StringNode); !written && w.pattern == nil {
				w.pattern = n
			}
		}
	case *ast.SliceNode:
		n.Node = paid(payName, n.Node)
	case *ast.BuiltinNode:
		if n.Name == "get" && len(n.Arguments) == 2 {
			w.member(n.Arguments[0], n.Arguments[1])
		}
		for i := range n.Arguments {
			if _, predicate := n.Arguments[i].(*ast.PredicateNode); predicate {
				continue
			}
			switch w.functions[n.Name] {
			case whole:
				n.Arguments[i] = paid(payName, n.Arguments[i])
			case many:
				n.Arguments[i] = paid(payMore, n.Arguments[i])
			case free:
			}
		}
	}
}

// member notes a member of an object that is named, if its name is written out.
func (w *watcher) member(of, name ast.Node) {
	object, ok := of.(*ast.IdentifierNode)
	text, written := name.(*ast.StringNode)
	if ok && written {
		w.uses[object.Value+"."+text.Value] = true
	}
}

func call(name string, at file.Location, args ...ast.Node) ast.Node {
	callee := &ast.IdentifierNode{Value: name}
	callee.SetLocation(at)
	c := &ast.CallNode{Callee: callee, Arguments: args}
	c.SetLocation(at)
	return c
}

// paid wraps a node so that its value is counted. What is written out needs no counting.
func paid(name string, n ast.Node) ast.Node {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NilNode:
		return n
	}
	return call(name, n.Location(), n)
}

func after(first, then ast.Node) ast.Node {
	s := &ast.SequenceNode{Nodes: []ast.Node{first, then}}
	s.SetLocation(then.Location())
	return s
}

// compileExpression compiles an expression. A fault has its place in src, and no field.
func compileExpression(src string, truth bool) (program, *Fault) {
	if strings.TrimSpace(src) == "" {
		return program{}, &Fault{Line: 1, Column: 1, Text: "the expression is empty", Hint: "for example body.action"}
	}
	if len(src) > maxExpression {
		return program{}, &Fault{Line: 1, Column: 1, Text: fmt.Sprintf("the expression is longer than %d bytes", maxExpression), Hint: "let the agent look at the body itself"}
	}
	w := &watcher{functions: functions(), uses: map[string]bool{}}
	options := []expr.Option{
		expr.Env(names()), expr.MaxNodes(maxNodes),
		// The optimizer would do work while compiling, where nothing counts it.
		expr.Optimize(false), expr.DisableAllBuiltins(),
	}
	for name := range w.functions {
		options = append(options, expr.EnableBuiltin(name))
	}
	if truth {
		options = append(options, expr.AsBool())
	}
	// What counts has no type, so types that do not fit are found without it.
	if _, err := expr.Compile(src, options...); err != nil {
		return program{}, explain(src, err)
	}
	p, err := expr.Compile(src, append(options, expr.Patch(w))...)
	if err != nil {
		return program{}, explain(src, err)
	}
	if w.pattern != nil {
		before := []rune(src)[:w.pattern.Location().From]
		line, column := place(before)
		return program{}, &Fault{Line: line, Column: column, Text: "the pattern after matches is not written out", Hint: "write it in quotes: what a delivery says is no pattern"}
	}
	return program{vm: p, uses: w.uses}, nil
}

// place is the line and column, from 1, of what follows a text.
func place(before []rune) (line, column int) {
	line, column = 1, 1
	for _, r := range before {
		if column++; r == '\n' {
			line, column = line+1, 1
		}
	}
	return line, column
}

// explain turns an error of expr-lang about src into ours.
func explain(src string, err error) *Fault {
	f := &Fault{Line: 1, Column: 1, Text: err.Error()}
	var at *file.Error
	if errors.As(err, &at) {
		f.Line, f.Column, f.Text = max(at.Line, 1), at.Column+1, at.Message
	}
	unknown := regexp.MustCompile(`^unknown name ([^ ]+)`).FindStringSubmatch(f.Text)
	switch {
	case unknown != nil && withheld(unknown[1]) != "":
		f.Text, f.Hint = unknown[1]+" cannot be used in a hook", withheld(unknown[1])
	case unknown != nil:
		f.Hint = "the names are " + strings.Join(known(), ", ") + "; what was sent is in body"
	case strings.HasPrefix(f.Text, "expected bool, but got"):
		f.Text = "expected true or false, found " + strings.TrimPrefix(f.Text, "expected bool, but got ")
		f.Hint = `compare it with something: body.action == "opened"`
	case strings.Contains(f.Text, `Bracket("{")`) && strings.Contains(src, "${"):
		f.Text, f.Hint = "${ } is for templates, and this is an expression", "leave ${ and } out: body.name"
	case strings.Contains(f.Text, `Operator("=")`):
		f.Hint = "two values are compared with =="
	case strings.Contains(f.Text, "value out of range"):
		f.Text, f.Hint = "the number does not fit 64 bits", "body holds it as text: compare it with its digits in quotes"
	case strings.Contains(f.Text, "mismatched types"):
		f.Hint = "compare numbers with numbers and texts with texts"
	}
	f.Text = clip(f.Text, 160)
	return f
}

// run gives the value of an expression. What went wrong is a refusal that says in which
// field and where, and no value.
func (m *meter) run(field string, p *program, env map[string]any) (any, error) {
	machine := vm.VM{MemoryBudget: maxMade}
	out, err := machine.Run(p.vm, env)
	if err == nil {
		return out, nil
	}
	if m.over || strings.Contains(err.Error(), "memory budget") {
		return nil, refuse(unprocessable, "let the hook look at less, or the agent look itself", "%s looks at more of the body than it may", field)
	}
	place := ""
	var at *file.Error
	if errors.As(err, &at) {
		place = fmt.Sprintf(", line %d, column %d", max(at.Line, 1), at.Column+1)
	}
	return nil, refuse(unprocessable, "a member that may be missing is written body.x?.y ?? \"\"; when: can leave out other deliveries",
		"%s%s does not fit this delivery", field, place)
}

// clip shortens a text of a message.
func clip(s string, n int) string {
	r := []rune(strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s))
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}
