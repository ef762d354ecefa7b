package arch_test

import (
	"slices"
	"strings"
	"testing"
)

// rules returns every rule of this package.
func rules() []rule {
	return slices.Concat(layerRules(layers()), budgetRules(), docRules(), habitRules())
}

// TestModule holds the module to the rules.
func TestModule(t *testing.T) {
	module := readModule(t)
	seen := slices.ContainsFunc(module.goFiles(), func(f *file) bool { return f.path == "internal/arch/arch_test.go" })
	if !seen {
		t.Fatal("the walk did not come across this file, so it did not see the module")
	}
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			if found := r.check(module); len(found) > 0 {
				t.Errorf("findings:\n%s", list(found))
			}
		})
	}
}

// list prints findings one a line, each beginning with file:line.
func list(found []finding) string {
	var b strings.Builder
	for _, f := range found {
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}

// A sample is a small module and what a rule says of it: each string of want
// is found in one finding, in order, and there are no others.
type sample struct {
	rule  string
	name  string
	files map[string]string
	want  []string
}

// TestRulesReject shows each rule rejecting a module that breaks it, and
// accepting one that only just does not.
func TestRulesReject(t *testing.T) {
	by := map[string]rule{}
	for _, r := range rules() {
		by[r.name] = r
	}
	rejected, accepted := map[string]bool{}, map[string]bool{}
	for _, s := range slices.Concat(layerSamples(), budgetSamples(), docSamples(), habitSamples()) {
		r, ok := by[s.rule]
		if !ok {
			t.Errorf("sample %q is for a rule that does not exist: %q", s.name, s.rule)
			continue
		}
		if len(s.want) > 0 {
			rejected[s.rule] = true
		} else {
			accepted[s.rule] = true
		}
		t.Run(s.rule+"/"+s.name, func(t *testing.T) {
			got := r.check(parse(t, s.files))
			if len(got) != len(s.want) {
				t.Fatalf("%d findings, want %d:\n%s", len(got), len(s.want), list(got))
			}
			for i, f := range got {
				if !strings.Contains(f.String(), s.want[i]) {
					t.Errorf("finding %d is\n%s\nwant in it\n%s", i+1, f, s.want[i])
				}
				if f.what == "" || f.bound == "" || f.do == "" || f.line == 0 {
					t.Errorf("finding %d leaves something out: %+v", i+1, f)
				}
			}
		})
	}
	for _, r := range rules() {
		if !rejected[r.name] || !accepted[r.name] {
			t.Errorf("rule %q needs a sample it rejects and one it accepts", r.name)
		}
	}
}

// parse makes a module, example.org/m, of the given files.
func parse(t *testing.T, files map[string]string) *tree {
	t.Helper()
	bytes := map[string][]byte{}
	for p, src := range files {
		bytes[p] = []byte(src)
	}
	parsed, err := newTree("example.org/m", bytes)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// one makes a module of one file.
func one(path, src string) map[string]string { return map[string]string{path: src} }

// TestBrokenSourceIsAnError makes sure that what cannot be read is not passed
// over.
func TestBrokenSourceIsAnError(t *testing.T) {
	if _, err := newTree("example.org/m", map[string][]byte{"a.go": []byte("package a\nfunc {")}); err == nil {
		t.Error("a file that does not parse was accepted")
	}
}

func TestIgnored(t *testing.T) {
	for path, want := range map[string]bool{
		".git": true, "bin": true, ".demo": true, "dist": true, "stint.db": true, "x/stint.db-wal": true, "a/__pycache__": true, "stint.db.d": true,
		".ci": false, "internal/bin": false, "store/sqlite/db.go": false, ".golangci.yml": false, "testdata/a.dbx": false,
	} {
		if got := ignored(path); got != want {
			t.Errorf("ignored(%q) = %v, want %v", path, got, want)
		}
	}
}
