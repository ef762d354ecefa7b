package arch_test

import (
	"go/ast"
	"go/token"
)

func docRules() []rule {
	return []rule{
		{"packages are documented", checkPackageDocs},
		{"exported names are documented", checkDocs},
	}
}

func checkPackageDocs(t *tree) []finding {
	var found []finding
	dirs, by := t.dirs()
	for _, d := range dirs {
		var first *file
		documented := false
		for _, f := range by[d] {
			if f.isTest() {
				continue
			}
			if first == nil {
				first = f
			}
			documented = documented || f.ast.Doc.Text() != ""
		}
		if first != nil && !documented {
			found = append(found, finding{
				first.path, t.line(first.ast.Package), "package " + d + " has no comment", "every package has one",
				"write above the package clause what it is for and what it leaves to others",
			})
		}
	}
	return found
}

// checkDocs wants a comment on every exported type, function, method,
// constant and variable. A group's comment serves its constants and variables;
// a field needs none beside its type's. The method of a one-method interface
// is described by the interface.
func checkDocs(t *tree) []finding {
	var found []finding
	for _, f := range t.sources() {
		need := func(id *ast.Ident, what string, docs ...*ast.CommentGroup) {
			if !id.IsExported() {
				return
			}
			for _, d := range docs {
				if d.Text() != "" {
					return
				}
			}
			found = append(found, finding{
				f.path, t.line(id.Pos()), what + " " + id.Name + " has no comment", "every exported name has one",
				"say what it does, its units and bounds, who may call it when, and which errors it returns",
			})
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				switch {
				case d.Recv == nil:
					need(d.Name, "function", d.Doc)
				case exportedReceiver(d.Recv):
					need(d.Name, "method", d.Doc)
				}
			case *ast.GenDecl:
				needInGroup(d, need)
			}
		}
	}
	return found
}

func needInGroup(d *ast.GenDecl, need func(id *ast.Ident, what string, docs ...*ast.CommentGroup)) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			docs := []*ast.CommentGroup{spec.Doc}
			if !d.Lparen.IsValid() {
				docs = append(docs, d.Doc)
			}
			need(spec.Name, "type", docs...)
			it, ok := spec.Type.(*ast.InterfaceType)
			if !ok || !spec.Name.IsExported() || it.Methods.NumFields() < 2 {
				continue
			}
			for _, m := range it.Methods.List {
				for _, id := range m.Names {
					need(id, "method of "+spec.Name.Name+",", m.Doc, m.Comment)
				}
			}
		case *ast.ValueSpec:
			what := "variable"
			if d.Tok == token.CONST {
				what = "constant"
			}
			for _, id := range spec.Names {
				need(id, what, d.Doc, spec.Doc, spec.Comment)
			}
		}
	}
}

func exportedReceiver(recv *ast.FieldList) bool {
	for _, field := range recv.List {
		for e := field.Type; ; {
			switch x := e.(type) {
			case *ast.StarExpr:
				e = x.X
			case *ast.ParenExpr:
				e = x.X
			case *ast.IndexExpr:
				e = x.X
			case *ast.IndexListExpr:
				e = x.X
			case *ast.Ident:
				return x.IsExported()
			default:
				return false
			}
		}
	}
	return false
}
