package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/explain"
	"github.com/stint-dev/stint/internal/view"
)

func TestExplain(t *testing.T) {
	d := newDesk(t)
	if out := d.ok("explain"); !strings.Contains(out, "waiting ") || !strings.Contains(out, "step.requested") {
		t.Errorf("stint explain prints\n%s", out)
	}
	if out := d.ok("explain", "exit", "5"); !strings.HasPrefix(out, "5  (exit)\n") {
		t.Errorf("stint explain exit 5 prints\n%s", out)
	}
	var v struct {
		Schema view.Schema
		Items  []explain.Page
	}
	if err := json.Unmarshal([]byte(d.ok("explain", "doubt", "--json")), &v); err != nil || v.Schema != explain.Schema || len(v.Items) != 1 {
		t.Errorf("as JSON: %v %+v", err, v)
	}
	var all struct{ Items []explain.Topic }
	if err := json.Unmarshal([]byte(d.ok("explain", "--json")), &all); err != nil || len(all.Items) != 9 {
		t.Errorf("all pages as JSON: %v, %d topics", err, len(all.Items))
	}
	d.fails(exitNotFound, "there is no page", "explain", "nonsense")
}

// Every exit code of exit.go has a page, and every page its code or a place in a
// later program.
func TestEveryExitCodeHasAPage(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "exit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "exit") {
			return true
		}
		n++
		code := spec.Values[0].(*ast.BasicLit).Value
		if _, err := explain.Find("exit:" + code); err != nil {
			t.Errorf("%s = %s has no page", spec.Names[0].Name, code)
		}
		return true
	})
	if n < 12 {
		t.Errorf("only %d exit codes were found: the test looks in the wrong place", n)
	}
}

// The commands that pages and lists advise are there.
func TestAdvisedCommandsExist(t *testing.T) {
	d := newDesk(t)
	d.run("pay-1", doubts)
	d.run("bad-1", breaks)
	d.run("done-1", works)
	d.run("chat-1", sleeps)
	text := d.ok("show", "pay-1") + d.ok("show", "bad-1") + d.ok("show", "done-1") + d.ok("show", "chat-1")
	for _, topic := range explain.Topics() {
		for _, p := range topic.Pages {
			text += p.Summary + "\n" + p.Text + "\n"
		}
	}
	known := map[string]bool{}
	for _, c := range (&app{}).root().Commands() {
		known[c.Name()] = true
	}
	found := regexp.MustCompile("(?m)(?:`|^ *|Next +|\\?  )stint ([a-z]+)").FindAllStringSubmatch(text, -1)
	if len(found) < 20 {
		t.Errorf("only %d commands were found in\n%s", len(found), text)
	}
	for _, m := range found {
		if !known[m[1]] {
			t.Errorf("there is no command stint %s", m[1])
		}
	}
}
