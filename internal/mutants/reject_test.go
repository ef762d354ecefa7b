package mutants_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample is a module with a test that sees one of its two functions.
func sample(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/sample\n\ngo 1.26\n",
		"p/p.go": "package p\n\nfunc Max(a, b int) int {\n\tif a > b {\n\t\treturn a\n\t}\n\treturn b\n}\n\nfunc Unseen() int { return 1 }\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\n" +
			"func TestMax(t *testing.T) {\n\tt.Run(\"of two\", func(t *testing.T) {\n\t\tif Max(1, 2) != 2 {\n\t\t\tt.Error(\"no\")\n\t\t}\n\t})\n}\n\n" +
			"func TestRed(t *testing.T) { t.Error(\"red\") }\n",
		"bin/left": "out", ".git/left": "out", "p/left.db-wal": "out",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRigRejects shows that the rig sees a mutant that is not seen, and takes
// nothing else for seen.
func TestRigRejects(t *testing.T) {
	r := newRig(t, sample(t))
	m := func(name, old, new string) mutant {
		return mutant{name: name, file: "p/p.go", edits: one(old, new), why: "it matters", red: by("p", "TestMax")}
	}
	named := func(m mutant, test string) mutant { m.red = by("p", test); return m }
	for _, c := range []struct {
		mutant
		slow bool
		red  string // or
		want string // in the error
	}{
		{m("fails", "a > b", "a < b"), false, "TestMax/of_two", ""},
		{m("panics", "return b", "panic(b)"), true, "TestMax/of_two", ""},
		{m("exits", "return b", "go func() { panic(b) }()\n\tselect {}"), true, "TestMax/of_two", ""},
		{m("survives", "return 1", "return 2"), false, "", "survives"},
		{m("does not compile", "return 1", "return x"), false, "", "does not compile"},
		{m("has moved", "return 3", "return 2"), false, "", "brought up to date"},
		{m("is not one", "return", "panic"), false, "", "brought up to date"},
		{m("is none", "return 1", "return 1"), false, "", "changes nothing"},
		{named(m("nobody looks", "a > b", "a < b"), "TestGone"), true, "", "no test TestGone"},
	} {
		if c.slow && !long() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			outs, err := r.try(t.Context(), &c.mutant)
			switch {
			case c.red != "" && (err != nil || len(outs) != 1 || outs[0].by() != c.red):
				t.Errorf("it is seen by %v, want %s; %v", outs, c.red, err)
			case c.red == "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
		})
	}
	for test, want := range map[string]string{"TestMax": "", "TestRed": "is red: TestRed", "TestGone": "was not run"} {
		r := &rig{dir: r.dir, sound: map[string]error{}}
		err := r.green(t.Context(), []mutant{named(m("", "", ""), test)}, "p")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("of %s, unmutated, it says %v, want %q", test, err, want)
		}
	}
	for _, left := range []string{"bin", ".git", "p/left.db-wal"} {
		if _, err := os.Stat(filepath.Join(r.dir, left)); !os.IsNotExist(err) {
			t.Errorf("%s was copied: %v", left, err)
		}
	}
}
