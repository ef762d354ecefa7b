package expression

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"
)

// Bounds of an expression's source.
const (
	MaxSource = 4096 // bytes
	maxNodes  = 500
)

// Language is what the expressions of one place of the configuration know, and how
// messages speak of that place. All members but Clock are needed.
type Language struct {
	Place string    // what an expression stands in: "a hook"
	Names types.Map // what it may mention
	Known []string  // those names in the order in which messages list them
	JSON  string    // the name among them that is JSON of somebody else: "body"

	// What hints say.
	Example string // of an expression
	Truth   string // of one that is true or false
	Long    string // to who writes too long a one
	Unknown string // beside the names, to who mentions another
	Pattern string // why a pattern has to be written out
	Clock   string // how times are compared without a clock; empty: not at all
}

// Fault is one thing that is wrong with what somebody wrote.
type Fault struct {
	Field  string // as in stint.yaml: "when", "hmac.header", "labels.repo"
	Line   int    // in the text of the field, from 1
	Column int    // in characters, from 1
	Text   string // what was expected and what was found
	Hint   string // what to write instead; may be empty
}

// Error returns field, place and text in one line.
func (f *Fault) Error() string {
	return fmt.Sprintf("%s, line %d, column %d: %s", f.Field, f.Line, f.Column, f.Text)
}

// Program is a compiled expression. The zero Program is none. It may be used concurrently.
type Program struct {
	vm   *vm.Program
	Uses map[string]bool // names that it mentions, and NAME.MEMBER of those that are objects; nobody changes it
}

// Given reports whether there is an expression.
func (p *Program) Given() bool { return p.vm != nil }

// names are those of a language with what every one has.
func (l *Language) names() types.Map {
	own := types.TypeOf(func(...any) (any, error) { return nil, nil })
	all := types.Map{
		tickName: types.TypeOf(func() bool { return true }), payName: own, payMore: own,
		"string": own, "toJSON": own, "join": own,
	}
	maps.Copy(all, l.Names)
	return all
}

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

// Functions lists those of expr-lang that expressions can call.
func Functions() []string { return slices.Sorted(maps.Keys(functions())) }

// withheld says of some functions that are not there why.
func (l *Language) withheld(name string) string {
	switch name {
	case "now", "date", "timezone", "duration":
		if l.Clock != "" {
			return "an expression has no clock and no time zones; " + l.Clock
		}
		return "an expression has no clock and no time zones"
	case "fromJSON":
		return "it would round large numbers; " + l.JSON + " is JSON already"
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

// Compile compiles an expression of expr-lang; truth wants one that is true or false. A
// fault has its place in src, and no field.
func (l *Language) Compile(src string, truth bool) (Program, *Fault) {
	if strings.TrimSpace(src) == "" {
		return Program{}, &Fault{Line: 1, Column: 1, Text: "the expression is empty", Hint: "for example " + l.Example}
	}
	if len(src) > MaxSource {
		return Program{}, &Fault{Line: 1, Column: 1, Text: fmt.Sprintf("the expression is longer than %d bytes", MaxSource), Hint: l.Long}
	}
	w := &watcher{functions: functions(), uses: map[string]bool{}}
	options := []expr.Option{
		expr.Env(l.names()), expr.MaxNodes(maxNodes),
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
		return Program{}, l.explain(src, err)
	}
	p, err := expr.Compile(src, append(options, expr.Patch(w))...)
	if err != nil {
		return Program{}, l.explain(src, err)
	}
	if w.pattern != nil {
		before := []rune(src)[:w.pattern.Location().From]
		line, column := Place(before)
		return Program{}, &Fault{Line: line, Column: column, Text: "the pattern after matches is not written out", Hint: l.Pattern}
	}
	return Program{vm: p, Uses: w.uses}, nil
}

// Place is the line and column, from 1, of what follows a text.
func Place(before []rune) (line, column int) {
	line, column = 1, 1
	for _, r := range before {
		if column++; r == '\n' {
			line, column = line+1, 1
		}
	}
	return line, column
}

// explain turns an error of expr-lang about src into ours.
func (l *Language) explain(src string, err error) *Fault {
	f := &Fault{Line: 1, Column: 1, Text: err.Error()}
	var at *file.Error
	if errors.As(err, &at) {
		f.Line, f.Column, f.Text = max(at.Line, 1), at.Column+1, at.Message
	}
	unknown := regexp.MustCompile(`^unknown name ([^ ]+)`).FindStringSubmatch(f.Text)
	switch {
	case unknown != nil && l.withheld(unknown[1]) != "":
		f.Text, f.Hint = unknown[1]+" cannot be used in "+l.Place, l.withheld(unknown[1])
	case unknown != nil:
		f.Hint = "the names are " + strings.Join(l.Known, ", ") + "; " + l.Unknown
	case strings.HasPrefix(f.Text, "expected bool, but got"):
		f.Text = "expected true or false, found " + strings.TrimPrefix(f.Text, "expected bool, but got ")
		f.Hint = "compare it with something: " + l.Truth
	case strings.Contains(f.Text, `Bracket("{")`) && strings.Contains(src, "${"):
		f.Text, f.Hint = "${ } is for templates, and this is an expression", "leave ${ and } out: "+l.Example
	case strings.Contains(f.Text, `Operator("=")`):
		f.Hint = "two values are compared with =="
	case strings.Contains(f.Text, "value out of range"):
		f.Text, f.Hint = "the number does not fit 64 bits", l.JSON+" holds it as text: compare it with its digits in quotes"
	case strings.Contains(f.Text, "mismatched types"):
		f.Hint = "compare numbers with numbers and texts with texts"
	}
	f.Text = Clip(f.Text, 160)
	return f
}

// Clip shortens a text of a message to n characters, of one line.
func Clip(s string, n int) string {
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
