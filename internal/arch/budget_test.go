package arch_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// The size budget. The bounds come from reading Go code bases of this kind:
// those that stay below them can be read in a sitting.
const (
	maxFileLines        = 600
	maxFuncLines        = 80
	maxInterfaceEntries = 5
	maxStructFields     = 20
	maxExportedNames    = 60
	maxRootNames        = 62 // of the vocabulary, which all others speak and none can move out of
)

func budgetRules() []rule {
	return []rule{
		{"file size", checkFileLines},
		{"function size", checkFuncLines},
		{"interface size", checkInterfaces},
		{"struct size", checkStructs},
		{"exported names", checkExportedNames},
		{"package variables", checkPackageVars},
	}
}

func checkFileLines(t *tree) []finding {
	var found []finding
	for _, f := range t.goFiles() {
		n := bytes.Count(f.src, []byte("\n"))
		if len(f.src) > 0 && f.src[len(f.src)-1] != '\n' {
			n++
		}
		if n > maxFileLines {
			found = append(found, finding{
				f.path, n, fmt.Sprintf("the file has %d lines", n), fmt.Sprintf("the bound is %d", maxFileLines),
				"split it by subject",
			})
		}
	}
	return found
}

func checkFuncLines(t *tree) []finding {
	var found []finding
	for _, f := range t.goFiles() {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			var what string
			switch n := n.(type) {
			case *ast.FuncDecl:
				what = "function " + n.Name.Name
			case *ast.FuncLit: // one that stands outside any function
				what = "a function literal"
			default:
				return true
			}
			if lines := t.span(n); lines > maxFuncLines {
				found = append(found, finding{
					f.path, t.line(n.Pos()), fmt.Sprintf("%s has %d lines", what, lines), fmt.Sprintf("the bound is %d", maxFuncLines),
					"name its parts and make them functions",
				})
			}
			return false // what is inside is shorter
		})
	}
	return found
}

func checkInterfaces(t *tree) []finding {
	var found []finding
	eachType(t, func(f *file, label string, n ast.Expr) {
		it, ok := n.(*ast.InterfaceType)
		if !ok {
			return
		}
		if entries := it.Methods.NumFields(); entries > maxInterfaceEntries {
			found = append(found, finding{
				f.path, t.line(it.Pos()), fmt.Sprintf("interface %s has %d entries", label, entries),
				fmt.Sprintf("the bound is %d, an embedded interface counts as one", maxInterfaceEntries),
				"compose it of smaller interfaces named after what their user does",
			})
		}
	})
	return found
}

func checkStructs(t *tree) []finding {
	var found []finding
	eachType(t, func(f *file, label string, n ast.Expr) {
		st, ok := n.(*ast.StructType)
		if !ok {
			return
		}
		if fields := st.Fields.NumFields(); fields > maxStructFields {
			found = append(found, finding{
				f.path, t.line(st.Pos()), fmt.Sprintf("struct %s has %d fields", label, fields), fmt.Sprintf("the bound is %d", maxStructFields),
				"group the fields that change together into a struct of their own",
			})
		}
	})
	return found
}

// eachType calls fn for each struct and interface in the Go files, with the
// declared name or "(unnamed)".
func eachType(t *tree, fn func(f *file, label string, n ast.Expr)) {
	for _, f := range t.goFiles() {
		labels := map[ast.Expr]string{}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				labels[n.Type] = n.Name.Name
			case *ast.StructType:
				fn(f, label(labels, n), n)
			case *ast.InterfaceType:
				fn(f, label(labels, n), n)
			}
			return true
		})
	}
}

func label(labels map[ast.Expr]string, n ast.Expr) string {
	if l := labels[n]; l != "" {
		return l
	}
	return "(unnamed)"
}

func checkExportedNames(t *tree) []finding {
	var found []finding
	dirs, by := t.dirs()
	for _, d := range dirs {
		names := map[string]bool{} // a name that several platforms declare is one name
		var first *file
		for _, f := range by[d] {
			if f.isTest() {
				continue
			}
			if first == nil {
				first = f
			}
			for _, n := range exportedNames(f) {
				names[n] = true
			}
		}
		most := maxExportedNames
		if d == "." {
			most = maxRootNames
		}
		if len(names) > most {
			found = append(found, finding{
				first.path, t.line(first.ast.Package), fmt.Sprintf("package %s exports %d names", d, len(names)),
				fmt.Sprintf("the bound is %d, constants of a named type do not count", most),
				"unexport what only this package uses, or move a subject out; it exports " + strings.Join(slices.Sorted(maps.Keys(names)), " "),
			})
		}
	}
	return found
}

// exportedNames lists the exported package-level names of f, without methods
// and without the constants of named types, which are read as one list.
func exportedNames(f *file) []string {
	var all []string
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id.IsExported() {
				all = append(all, id.Name)
			}
		}
	}
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			named := false
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name)
				case *ast.ValueSpec:
					if d.Tok == token.CONST {
						named = ofNamedType(spec, named)
					}
					if !named {
						add(spec.Names...)
					}
				}
			}
		}
	}
	return all
}

// ofNamedType reports whether a constant has a named type: declared, by a
// conversion, or repeated from the line before.
func ofNamedType(spec *ast.ValueSpec, before bool) bool {
	switch {
	case spec.Type != nil:
		return isNamedType(spec.Type)
	case len(spec.Values) == 0:
		return before
	}
	conv, ok := spec.Values[0].(*ast.CallExpr)
	return ok && isNamedType(conv.Fun)
}

// isNamedType reports whether e names a type that Go does not predeclare.
func isNamedType(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return types.Universe.Lookup(e.Name) == nil
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		return ok && x.Name != "unsafe"
	}
	return false
}

func checkPackageVars(t *tree) []finding {
	var found []finding
	for _, f := range t.sources() {
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				spec := spec.(*ast.ValueSpec)
				if embeds(g.Doc) || embeds(spec.Doc) {
					continue
				}
				for i, id := range spec.Names {
					if !allowedVar(f, spec, i) {
						found = append(found, finding{
							f.path, t.line(id.Pos()), "package variable " + id.Name,
							"only error sentinels, //go:embed files, `var _ I = ...` guards and the linker's main.version may be package variables",
							"make it a field, a parameter, a constant, or a function that returns the table",
						})
					}
				}
			}
		}
	}
	return found
}

func allowedVar(f *file, spec *ast.ValueSpec, i int) bool {
	name := spec.Names[i].Name
	switch {
	case name == "_":
		return spec.Type != nil
	case strings.HasPrefix(name, "Err"):
		return true
	case name == "version" && f.ast.Name.Name == "main":
		return true // set by go build -ldflags "-X main.version=..."
	case i >= len(spec.Values):
		return false
	}
	call, ok := spec.Values[i].(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && (x.Name == "errors" && sel.Sel.Name == "New" || x.Name == "fmt" && sel.Sel.Name == "Errorf")
}

func embeds(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, c := range doc.List {
		if strings.HasPrefix(c.Text, "//go:embed ") {
			return true
		}
	}
	return false
}
