package arch_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A finding is one departure from a rule, at a line of a file.
type finding struct {
	file  string
	line  int
	what  string // what was found
	bound string // what the rule allows
	do    string // what to do about it
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s; %s: %s", f.file, f.line, f.what, f.bound, f.do)
}

// A rule is a named function over the parsed tree.
type rule struct {
	name  string
	check func(*tree) []finding
}

// A file is one file of the tree. ast is nil for a file that the go command
// would not read as Go source of this module.
type file struct {
	path string // slash-separated, relative to the root of the module
	src  []byte
	ast  *ast.File
}

func (f *file) dir() string { return path.Dir(f.path) }

func (f *file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// imports returns the import paths of f in the order of the source.
func (f *file) imports() []string {
	all := make([]string, 0, len(f.ast.Imports))
	for _, spec := range f.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			p = spec.Path.Value
		}
		all = append(all, p)
	}
	return all
}

// A tree is a module, parsed. Build constraints are not evaluated: a rule
// sees the files of every platform.
type tree struct {
	module string
	fset   *token.FileSet
	files  []*file
}

// goFiles returns the files that the go command would read.
func (t *tree) goFiles() []*file {
	var all []*file
	for _, f := range t.files {
		if f.ast != nil {
			all = append(all, f)
		}
	}
	return all
}

// sources returns the Go files that are not tests.
func (t *tree) sources() []*file {
	var all []*file
	for _, f := range t.goFiles() {
		if !f.isTest() {
			all = append(all, f)
		}
	}
	return all
}

// dirs returns the folders that hold Go files, sorted, with their files.
func (t *tree) dirs() ([]string, map[string][]*file) {
	by := map[string][]*file{}
	for _, f := range t.goFiles() {
		by[f.dir()] = append(by[f.dir()], f)
	}
	return slices.Sorted(maps.Keys(by)), by
}

// line returns the line of p as it stands in the file. A //line directive
// does not move it.
func (t *tree) line(p token.Pos) int { return t.fset.PositionFor(p, false).Line }

// span returns the number of lines that n covers, both ends included.
func (t *tree) span(n ast.Node) int { return t.line(n.End()) - t.line(n.Pos()) + 1 }

// newTree parses files, which maps a path to its content.
func newTree(module string, files map[string][]byte) (*tree, error) {
	t := &tree{module: module, fset: token.NewFileSet()}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		f := &file{path: p, src: files[p]}
		if isGoSource(p) {
			parsed, err := parser.ParseFile(t.fset, p, f.src, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			f.ast = parsed
		}
		t.files = append(t.files, f)
	}
	return t, nil
}

// isGoSource reports whether the go command would look at the file: it passes
// over testdata and over names that begin with a dot or an underscore.
func isGoSource(p string) bool {
	if !strings.HasSuffix(p, ".go") {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "testdata" || part == "vendor" || strings.HasPrefix(part, ".") || strings.HasPrefix(part, "_") {
			return false
		}
	}
	return true
}

// readModule reads the module that holds the working directory. It walks the
// folders itself and does not ask git: the go command's test cache then knows
// every file that the outcome depends on, and a source archive passes too.
func readModule(t *testing.T) *tree {
	t.Helper()
	root := moduleRoot(t)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^module\s+(\S+)`).FindSubmatch(mod)
	if m == nil {
		t.Fatal("go.mod has no module line")
	}
	files := map[string][]byte{}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if ignored(rel) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		files[rel], err = os.ReadFile(p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := newTree(string(m[1]), files)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod in this folder or above it")
		}
		dir = up
	}
}

// ignored reports whether a path is one that .gitignore keeps out of the
// repository.
func ignored(rel string) bool {
	switch rel {
	case "bin", "dist":
		return true
	}
	switch base := path.Base(rel); base {
	case ".git", ".stint", ".demo", "__pycache__", "node_modules":
		return true
	default:
		return strings.HasSuffix(base, ".db") || strings.Contains(base, ".db-") ||
			strings.HasSuffix(base, ".db.d") || strings.HasSuffix(base, ".test") || strings.HasSuffix(base, ".prof")
	}
}

// isBinary reports whether src looks like something other than text, by the
// measure git uses.
func isBinary(src []byte) bool {
	return bytes.IndexByte(src[:min(len(src), 8000)], 0) >= 0
}

// importName returns the name by which f refers to the package at importPath,
// "." for a dot import and "" when f does not import it.
func importName(f *file, importPath string) string {
	for i, p := range f.imports() {
		if p != importPath {
			continue
		}
		if name := f.ast.Imports[i].Name; name != nil {
			return name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// uses returns where f refers to one of names of the package at importPath,
// called or not, whatever the import is called.
func uses(f *file, importPath string, names ...string) []*ast.Ident {
	pkg := importName(f, importPath)
	if pkg == "" {
		return nil
	}
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = true
	}
	var found []*ast.Ident
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == pkg && wanted[n.Sel.Name] {
				found = append(found, n.Sel)
			}
		case *ast.Ident:
			if pkg == "." && wanted[n.Name] {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}
