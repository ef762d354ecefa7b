package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every promise of docs/guarantees.md names tests, and they are there.
func TestGuaranteesNameTheirTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	held := regexp.MustCompile("`([a-z/]+)`: ((?:Test\\w+(?:, )?)+)")
	named, promises := 0, 0
	numbers := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		tests := held.FindAllStringSubmatch(line, -1)
		if strings.HasPrefix(line, "| G") {
			if promises++; tests == nil {
				t.Errorf("a promise without a test: %.80s", line)
			}
			n, _, _ := strings.Cut(line[2:], " ")
			if numbers[n] {
				t.Errorf("two promises are called %s", n)
			}
			numbers[n] = true
		}
		for _, m := range tests {
			for name := range strings.SplitSeq(m[2], ", ") {
				named++
				if !hasTest(t, m[1], name) {
					t.Errorf("%s has no test %s, which docs/guarantees.md names", m[1], name)
				}
			}
		}
	}
	if promises < 12 || named < 60 {
		t.Errorf("%d promises and %d tests were found: the test looks in the wrong place", promises, named)
	}
}

// hasTest reports whether a package has a test of that name.
func hasTest(t *testing.T, pkg, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}

// The links between the documents lead somewhere.
func TestDocumentsLink(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	pages = append(pages, "../../README.md")
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", filepath.Base(page), m[1])
			}
		}
	}
}

// Every document that a program may get is one that the pages describe.
func TestDocumentsNameEverySchema(t *testing.T) {
	name := regexp.MustCompile(`"(stint\.[a-z.]+/\d+)"`)
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var docs strings.Builder
	for _, p := range pages {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		docs.Write(b)
	}
	seen := map[string]bool{}
	err = filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range name.FindAllStringSubmatch(string(b), -1) {
			if !seen[m[1]] && !strings.Contains(docs.String(), "`"+m[1]+"`") && !strings.Contains(docs.String(), `"`+m[1]+`"`) && !strings.Contains(docs.String(), "## "+m[1]) {
				t.Errorf("%s prints %s, and no page of docs says what that is", path, m[1])
			}
			seen[m[1]] = true
		}
		return err
	})
	if err != nil || len(seen) < 40 {
		t.Errorf("%d schemas were found, %v: the test looks in the wrong place", len(seen), err)
	}
}

// Every member that docs/cli-json.md names is one of a document that is written: a contract
// does not go on promising what a change took away.
func TestMembersAreWritten(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli-json.md")
	if err != nil {
		t.Fatal(err)
	}
	members, words := map[string]bool{}, map[string]bool{}
	tag, literal, word := regexp.MustCompile(`json:"(\w+)`), regexp.MustCompile("\"[^\"\n]*\"|`[^`]*`"), regexp.MustCompile(`[a-z][a-z_0-9]*`)
	err = filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range tag.FindAllStringSubmatch(string(b), -1) {
			members[m[1]] = true
		}
		for _, s := range literal.FindAllString(string(b), -1) {
			for _, w := range word.FindAllString(s, -1) {
				words[w] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	code, found := regexp.MustCompile("`[^`]+`"), 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, span := range code.FindAllString(line, -1) {
			for _, w := range word.FindAllString(span, -1) {
				found++
				if !members[w] && !words[w] || strings.Contains(w, "_") && !members[w] {
					t.Errorf("nothing writes %q, which docs/cli-json.md names: %.60s", w, line)
				}
			}
		}
	}
	if found < 1000 {
		t.Errorf("%d names were found: the test looks in the wrong place", found)
	}
}
