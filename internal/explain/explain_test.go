package explain_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/explain"
	"github.com/stint-dev/stint/internal/term"
)

var update = flag.Bool("update", false, "write testdata anew; read the difference before you commit it")

// constants returns the values of the string constants of a type of the root
// package, read from its source so that a new one cannot be forgotten.
func constants(t *testing.T, typ string) []string {
	t.Helper()
	files, err := filepath.Glob("../../*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("the root package is not there", err)
	}
	var all []string
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				if id, ok := v.Type.(*ast.Ident); !ok || id.Name != typ {
					continue
				}
				for _, x := range v.Values {
					text, err := strconv.Unquote(x.(*ast.BasicLit).Value)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, text)
				}
			}
		}
	}
	return all
}

func TestEveryConstantHasAPage(t *testing.T) {
	for _, c := range []struct {
		typ, topic string
		least      int
	}{{"Code", "error", 10}, {"Status", "status", 7}, {"WaitFor", "wait", 9}, {"Kind", "kind", 17}, {"Effect", "effect", 3}, {"MessageKind", "message", 11}} {
		values := constants(t, c.typ)
		if len(values) < c.least {
			t.Errorf("only %d constants of %s were found: the test looks in the wrong place", len(values), c.typ)
		}
		for _, v := range values {
			pages, err := explain.Find(c.topic + ":" + v)
			if err != nil || len(pages) != 1 || pages[0].Topic != c.topic {
				t.Errorf("%s %q has no page of its own under %s: %v", c.typ, v, c.topic, err)
			}
		}
	}
}

func TestPages(t *testing.T) {
	keys := map[string]bool{}
	for _, topic := range explain.Topics() {
		if topic.Name == "" || topic.About == "" || len(topic.Pages) == 0 {
			t.Errorf("a topic without a name, a sentence or pages: %+v", topic)
		}
		for _, p := range topic.Pages {
			switch {
			case keys[p.Topic+":"+p.Key]:
				t.Errorf("two pages on %s:%s", p.Topic, p.Key)
			case p.Summary == "" || strings.Contains(p.Summary, "\n") || !strings.HasSuffix(p.Summary, ".") && !strings.HasSuffix(p.Summary, "`."):
				t.Errorf("%s:%s: the first paragraph is no sentence on one line: %q", p.Topic, p.Key, p.Summary)
			case strings.Contains(p.Summary+p.Text, "\t"):
				t.Errorf("%s:%s has tabs", p.Topic, p.Key)
			}
			keys[p.Topic+":"+p.Key] = true
		}
	}
	files, err := fs.Glob(explainDir(), "*.md")
	if err != nil || len(files) != len(explain.Topics()) {
		t.Errorf("%d files and %d topics: %v", len(files), len(explain.Topics()), err)
	}
}

func explainDir() fs.FS { return os.DirFS("pages") }

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		code string
		want []string // topic:key of the pages
	}{
		{"fenced", []string{"error:fenced"}},
		{"FENCED", []string{"error:fenced"}},
		{"5", []string{"exit:5"}},
		{"exit 5", []string{"exit:5"}},
		{"exit:5", []string{"exit:5"}},
		{"waiting:doubt", []string{"wait:doubt"}},
		{"pending:interrupted", []string{"status:interrupted"}},
		{"limit", []string{"error:limit", "message:limit", "word:limit"}},
		{"step.failed", []string{"kind:step.failed"}},
		{"effect", []string{"effect:read", "effect:idempotent", "effect:once"}},
		{"effects", []string{"effect:read", "effect:idempotent", "effect:once"}},
	} {
		pages, err := explain.Find(c.code)
		var got []string
		for _, p := range pages {
			got = append(got, p.Topic+":"+p.Key)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("Explain(%q) = %q, want %q: %v", c.code, got, c.want, err)
		}
	}
	for code, hint := range map[string]string{"fencd": "did you mean fenced?", "zzzzzzzz": "stint explain lists", "": "stint explain lists"} {
		_, err := explain.Find(code)
		if stint.CodeOf(err) != stint.NotFound || !strings.Contains(err.(*stint.Error).Hint, hint) {
			t.Errorf("Explain(%q): %v", code, err)
		}
	}
}

func TestWritePages(t *testing.T) {
	var out bytes.Buffer
	if err := explain.WriteTopics(&out, term.Style{TTY: true, Width: 80}); err != nil {
		t.Fatal(err)
	}
	pages, err := explain.Find("doubt")
	if err != nil {
		t.Fatal(err)
	}
	if err := explain.Write(&out, term.Style{}, pages); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/explain.txt", out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/explain.txt")
	if err != nil || !bytes.Equal(want, out.Bytes()) {
		t.Errorf("testdata/explain.txt differs (%v); -update rewrites it, after you have understood why\n--- got\n%s--- want\n%s", err, out.Bytes(), want)
	}
}
