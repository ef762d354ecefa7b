package arch_test

func docSamples() []sample {
	const (
		pkgs  = "packages are documented"
		names = "exported names are documented"
	)
	return []sample{
		{pkgs, "no comment", map[string]string{"engine/a.go": "package engine", "engine/b.go": "package engine"}, []string{"engine/a.go:1: package engine has no comment"}},
		{pkgs, "a directive only", one("engine/a.go", "//go:generate x\npackage engine"), []string{"engine/a.go:2"}},
		{pkgs, "a licence far above", one("engine/a.go", "// Copyright.\n\npackage engine"), []string{"engine/a.go:3"}},
		{pkgs, "in one of its files", map[string]string{
			"engine/a.go": "package engine", "engine/doc.go": "// Package engine drives.\npackage engine", "journal/a_test.go": "package journal",
		}, nil},

		{names, "function", one("a.go", "package p\n\nfunc F() {}\n"), []string{"a.go:3: function F has no comment"}},
		{names, "a directive only", one("a.go", "package p\n\n//go:noinline\nfunc F() {}\n"), []string{"a.go:4: function F"}},
		{names, "method", one("a.go", "package p\n\nfunc (t *T[A, B]) M() {}\n\nfunc (T) N() {}\n\nfunc (t T[A]) O() {}\n"), []string{"a.go:3: method M", "a.go:5: method N", "a.go:7: method O"}},
		{names, "type", one("a.go", "package p\n\ntype T int\n"), []string{"a.go:3: type T"}},
		{names, "type beside the group's comment", one("a.go", "package p\n\n// Types.\ntype (\n\tT int // not here\n)\n"), []string{"a.go:5: type T"}},
		{names, "method of an interface", one("a.go", "package p\n\n// I is.\ntype I interface {\n\tA()\n\t// B does.\n\tB()\n}\n"), []string{"a.go:5: method of I, A has no comment"}},
		{names, "constant and variable", one("a.go", "package p\n\nconst C = 1\n\nvar (\n\tErrA = 1\n\t// ErrB is.\n\tErrB = 2\n)\n"), []string{"a.go:3: constant C", "a.go:6: variable ErrA"}},
		{names, "documented", map[string]string{
			"a.go": `package p

// F does.
func F() {}

func f() {}

// T is.
type T struct{ Field int }

// M does.
func (t T) M() {}

type t int

func (t) M() {}

type (
	// U is.
	U int
)

// I is.
type I interface{ M() }

// J is.
type J interface {
	I
	A() // A does.
	// B does.
	B()
	c() // c does
}

// The limits.
const (
	C = 1
	D = 2
)

const E = 3 // E is.

var _ I = (*T)(nil)
`,
			"a_test.go": "package p\n\nfunc TestF() {}\n",
		}, nil},
	}
}
