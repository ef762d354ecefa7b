package arch_test

import (
	"bytes"
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

func habitRules() []rule {
	return []rule{
		{"contexts come from the caller", checkContext},
		{"no init functions", checkInit},
		{"tests do not sleep", checkSleep},
		{"tests do not skip", checkSkip},
		{"no unfinished work in the tree", checkMarkers},
		{"no paths of one machine", checkMachinePaths},
	}
}

func checkContext(t *tree) []finding {
	var found []finding
	for _, f := range t.sources() {
		if f.ast.Name.Name == "main" {
			continue
		}
		for _, id := range uses(f, "context", "Background", "TO"+"DO") {
			found = append(found, finding{
				f.path, t.line(id.Pos()), "context." + id.Name, "only main and tests begin a context",
				"take a context from the caller; to outlive its cancellation use context.WithoutCancel",
			})
		}
	}
	return found
}

func checkInit(t *tree) []finding {
	var found []finding
	for _, f := range t.goFiles() {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				found = append(found, finding{
					f.path, t.line(fn.Pos()), "an init function", "nothing happens at import",
					"let main or the caller set it up",
				})
			}
		}
	}
	return found
}

// testCode reports whether a file is part of a test: by its name, or because
// it is a suite that imports testing.
func testCode(f *file) bool { return f.isTest() || importName(f, "testing") != "" }

func checkSleep(t *tree) []finding {
	var found []finding
	for _, f := range t.goFiles() {
		if !testCode(f) {
			continue
		}
		for _, id := range uses(f, "time", "Sleep") {
			found = append(found, finding{
				f.path, t.line(id.Pos()), "time.Sleep in a test", "a test waits for what it needs",
				"wait on a channel or poll with a deadline; in a synctest bubble wait on <-time.After(d)",
			})
		}
	}
	return found
}

func checkSkip(t *tree) []finding {
	var found []finding
	for _, f := range t.goFiles() {
		if !testCode(f) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && imports(f, x.Name) {
				return true // what a package calls so is its own
			}
			switch sel.Sel.Name {
			case "Skip", "Skipf", "SkipNow":
				found = append(found, finding{
					f.path, t.line(sel.Sel.Pos()), "a test calls " + sel.Sel.Name, "no test is skipped",
					"install what it needs in scripts/setup-test.sh, or give it a build constraint; what needs root runs under STINT_ROOT_RIGS",
				})
			}
			return true
		})
	}
	return found
}

// imports reports whether name is what the file calls a package that it imports.
func imports(f *file, name string) bool {
	return slices.ContainsFunc(f.imports(), func(importPath string) bool { return importName(f, importPath) == name })
}

// checkMarkers looks for the words that stand for work left undone. Recorded
// data and code of others are as they are.
func checkMarkers(t *tree) []finding {
	markers := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`)
	var found []finding
	for _, f := range t.files {
		if isBinary(f.src) || foreign(f.path) {
			continue
		}
		for i, line := range bytes.Split(f.src, []byte("\n")) {
			if m := markers.Find(line); m != nil {
				found = append(found, finding{
					f.path, i + 1, "the word " + string(m), "the tree holds finished work",
					"do it now, or write the limit down where a reader of the documentation will see it",
				})
			}
		}
	}
	return found
}

// foreign reports whether a file was not written here: recorded test data,
// vendored modules and checksums.
func foreign(p string) bool {
	return p == "go.sum" || strings.Contains("/"+p, "/testdata/") || strings.Contains("/"+p, "/vendor/")
}

// checkMachinePaths looks for absolute paths below the folder in which the
// repository is built, in every file, binary ones included.
func checkMachinePaths(t *tree) []finding {
	paths := regexp.MustCompile(`(?:^|[^A-Za-z0-9_./~-])(/wor` + `k/[A-Za-z0-9_.-]+)`)
	var found []finding
	for _, f := range t.files {
		for _, m := range paths.FindAllSubmatchIndex(f.src, -1) {
			found = append(found, finding{
				f.path, 1 + bytes.Count(f.src[:m[2]], []byte("\n")), "the path " + string(f.src[m[2]:m[3]]), "no file depends on the machine it was made on",
				"use a path relative to the repository, or a temporary folder",
			})
		}
	}
	return found
}
