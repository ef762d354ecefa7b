package arch_test

import (
	"fmt"
	"strings"
)

// count makes n lines by calling line with 1 to n.
func count(n int, line func(i int) string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		b.WriteString(line(i) + "\n")
	}
	return b.String()
}

// lines makes a file of n lines.
func lines(n int) string {
	return "package p\n" + count(n-1, func(int) string { return "//" })
}

// function makes a file whose function f has n lines and begins on line 3.
func function(n int) string {
	return "package p\n\nfunc f() {\n" + count(n-2, func(int) string { return "\tprintln()" }) + "}\n"
}

func numbered(format string) func(i int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}

func budgetSamples() []sample {
	const (
		sizes  = "file size"
		funcs  = "function size"
		ifaces = "interface size"
		fields = "struct size"
	)
	return append([]sample{
		{sizes, "a line over", one("a.go", lines(601)), []string{"a.go:601: the file has 601 lines; the bound is 600"}},
		{sizes, "the last line unended", one("a.go", lines(600)+"//"), []string{"601 lines"}},
		{sizes, "a test", one("a_test.go", lines(601)), []string{"a_test.go:601"}},
		{sizes, "at the bound", map[string]string{"a.go": lines(600), "a.js": lines(700)}, nil},

		{funcs, "a line over", one("a.go", function(81)), []string{"a.go:3: function f has 81 lines; the bound is 80"}},
		{funcs, "a test", one("a_test.go", function(81)), []string{"a_test.go:3"}},
		{funcs, "a method", one("a.go", strings.Replace(function(81), "f()", "(t T) f()", 1)), []string{"function f has 81 lines"}},
		{funcs, "a literal in a variable", one("a.go", strings.Replace(function(81), "func f()", "var f = func()", 1)), []string{"a.go:3: a function literal has 81 lines"}},
		{funcs, "a literal in a function is part of it", one("a.go", strings.Replace(function(90), "println()", "go func() {"+strings.Repeat("\n", 90)+"}()", 1)), []string{"function f has 180 lines"}},
		{funcs, "lines renumbered", one("a.go", strings.Replace(function(81), "println()", "println()\n//line a.go:1", 1)), []string{"82 lines"}},
		{funcs, "at the bound", one("a.go", function(80)), nil},

		{ifaces, "methods", one("a.go", "package p\n\ntype I interface {\n"+count(6, numbered("\tM%d()"))+"}\n"), []string{"a.go:3: interface I has 6 entries; the bound is 5"}},
		{ifaces, "embedded", one("a.go", "package p\n\ntype I interface {\n"+count(4, numbered("\tM%d()"))+"\tJ\n\tK\n}\n"), []string{"interface I has 6"}},
		{ifaces, "a parameter", one("a.go", "package p\n\nfunc f(x interface {\n"+count(6, numbered("\tM%d()"))+"}) {}\n"), []string{"a.go:3: interface (unnamed) has 6"}},
		{ifaces, "at the bound", one("a.go", "package p\n\ntype I interface {\n"+count(3, numbered("\tM%d()"))+"\tJ\n\tK\n}\n"), nil},

		{fields, "fields", one("a.go", "package p\n\ntype S struct {\n"+count(21, numbered("\tf%d int"))+"}\n"), []string{"a.go:3: struct S has 21 fields; the bound is 20"}},
		{fields, "on one line", one("a.go", "package p\n\ntype S struct {\n\tE\n\ta, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t int\n}\n"), []string{"struct S has 21"}},
		{fields, "inside another", one("a.go", "package p\n\ntype S struct {\n\tin struct {\n"+count(21, numbered("\t\tf%d int"))+"\t}\n}\n"), []string{"a.go:4: struct (unnamed) has 21"}},
		{fields, "at the bound", one("a.go", "package p\n\ntype S struct {\n"+count(20, numbered("\tf%d int"))+"}\n"), nil},
	}, append(nameSamples(), varSamples()...)...)
}

func nameSamples() []sample {
	const names = "exported names"
	return []sample{
		{names, "functions", one("engine/a.go", "package p\n"+count(61, numbered("func F%d() {}"))), []string{"engine/a.go:1: package engine exports 61 names; the bound is 60"}},
		{names, "over files", map[string]string{
			"engine/a.go": "package p\n" + count(20, numbered("type T%d int")),
			"engine/b.go": "package p\n" + count(20, numbered("var V%d int")),
			"engine/c.go": "package p\n" + count(21, numbered("const C%d = 1")),
		}, []string{"engine/a.go:1: package engine exports 61"}},
		{names, "constants of a predeclared type", one("engine/a.go", "package p\n\nconst (\n"+count(61, numbered("\tC%d string = \"\""))+")\n"), []string{"exports 61"}},
		{names, "repeated constants without a named type", one("engine/a.go", "package p\n\nconst (\n\tC0 = iota\n"+count(60, numbered("\tC%d"))+")\n"), []string{"exports 61"}},
		{names, "constants after a named one", one("engine/a.go", "package p\n\nconst (\n\tK Kind = 1\n"+count(61, numbered("\tC%d = 1"))+")\n"), []string{"exports 61"}},
		{names, "constants by a predeclared conversion", one("engine/a.go", "package p\n\nconst (\n"+count(61, numbered("\tC%d = int64(1)"))+")\n"), []string{"exports 61"}},
		{names, "at the bound", map[string]string{
			"engine/a.go":         "package p\n" + count(60, numbered("func F%d() {}")) + count(9, numbered("func (T) M%d() {}")) + count(9, numbered("func f%d() {}")),
			"engine/a_windows.go": "package p\n" + count(60, numbered("func F%d() {}")),
			"engine/a_test.go":    "package p\n" + count(9, numbered("func G%d() {}")),
			"journal/a.go":        "package p\n" + count(9, numbered("func F%d() {}")),
		}, nil},
		{names, "the root", one("a.go", "package p\n"+count(63, numbered("func F%d() {}"))), []string{"a.go:1: package . exports 63 names; the bound is 62"}},
		{names, "the root at its bound", one("a.go", "package p\n"+count(62, numbered("func F%d() {}"))), nil},
		{names, "an enumeration", one("engine/a.go", "package p\n\ntype Kind int\n\nconst (\n\tK0 Kind = iota\n"+count(60, numbered("\tK%d"))+")\n\nconst (\n"+count(60, numbered("\tS%d = Name(\"x\")"))+")\n"), nil},
	}
}

func varSamples() []sample {
	const vars = "package variables"
	return []sample{
		{vars, "a table", one("a.go", "package p\n\nvar table = map[string]int{}\n"), []string{"a.go:3: package variable table"}},
		{vars, "in a group", one("a.go", "package p\n\nvar (\n\tErrA = errors.New(\"a\")\n\tmu sync.Mutex\n\tx, y = 1, 2\n)\n"), []string{"a.go:5: package variable mu", "a.go:6: package variable x", "a.go:6: package variable y"}},
		{vars, "a compiled expression", one("a.go", "package p\n\nvar re = regexp.MustCompile(`a`)\n"), []string{"package variable re"}},
		{vars, "a blank without a type", one("a.go", "package p\n\nvar _ = register()\n"), []string{"package variable _"}},
		{vars, "version outside main", one("a.go", "package p\n\nvar version string\n"), []string{"package variable version"}},
		{vars, "a comment that only looks like embed", one("a.go", "package p\n\n// go:embed a.txt\nvar text string\n"), []string{"a.go:4: package variable text"}},
		{vars, "allowed", map[string]string{
			"a.go": `package p

import "errors"

// ErrA is one.
var ErrA = &Error{Code: Invalid}

var errB = errors.New("b")

var errC, errD = fmt.Errorf("c: %w", errB), errors.New("d")

var _ I = (*T)(nil)

//go:embed a.txt
var text string

var (
	//go:embed b.txt
	more []byte
)

const c = 1

func f() { var local = 1; _ = local }
`,
			"a_test.go":      "package p\n\nvar update = flag.Bool(\"update\", false, \"\")\n",
			"cmd/stint/a.go": "package main\n\nvar version = \"dev\"\n",
		}, nil},
	}
}
