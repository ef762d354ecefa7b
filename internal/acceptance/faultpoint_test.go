//go:build linux

package acceptance_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stint-dev/stint/internal/faultpoint"
)

// points reads the names of all crash points from the package that declares them, but for
// those that only a server meets: internal/trigger and TestServerIsKilled see to them.
func points(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(bin.root, "internal", "faultpoint", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				if !v.Names[0].IsExported() {
					continue
				}
				name, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				if kind, _, _ := strings.Cut(name, "."); kind != "hook" && kind != "schedule" {
					all = append(all, name)
				}
			}
		}
	}
	return all
}

const (
	workAgent = "work loops=3"
	bulkAgent = "bulk loops=6 steps=1000 size=1900" // enough for the WAL to be copied back
)

// visits are the visits of a point at which stint is killed.
func visits(point string) []int {
	switch {
	case point == faultpoint.InCheckpoint, point == faultpoint.InMigration:
		return []int{1}
	case !long():
		return []int{1, 4}
	}
	var all []int
	for n := 1; n <= 30; n++ {
		all = append(all, n)
	}
	return all
}

// TestCrashPoints kills stint at every point that the code marks, at several of its
// visits, again while it recovers, and looks at what is left.
func TestCrashPoints(t *testing.T) {
	t.Parallel()
	want := map[string]course{workAgent: undisturbed(t, nil, workAgent), bulkAgent: undisturbed(t, nil, bulkAgent)}
	log := filepath.Join(t.TempDir(), "hit")
	all := points(t)
	if len(all) < 15 {
		t.Fatalf("only %d points were found: %v", len(all), all)
	}
	deaths := map[string]*atomic.Int32{}
	t.Run("at", func(t *testing.T) {
		for _, point := range all {
			agent := workAgent
			if point == faultpoint.InCheckpoint {
				agent = bulkAgent
			}
			deaths[point] = new(atomic.Int32)
			for _, n := range visits(point) {
				t.Run(fmt.Sprintf("%s:%d", point, n), func(t *testing.T) {
					t.Parallel()
					if crashAt(t, log, agent, point, n, want[agent]) {
						deaths[point].Add(1)
					}
				})
			}
		}
	})
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	hit := strings.Fields(string(b))
	for _, point := range all {
		if !slices.Contains(hit, point) {
			t.Errorf("%s was never hit", point)
		}
		if deaths[point].Load() == 0 {
			t.Errorf("no workload died at %s", point)
		}
	}
}

// crashAt runs agent, with a death at a visit of a point and then another while it
// is resumed, and reports whether the first took place.
func crashAt(t *testing.T, log, agent, point string, visit int, want course) bool {
	s := newSite(t, nil, agent)
	s.keep()
	a := newAcks()
	faulty := func(n int) *site { return s.with(fmt.Sprintf("STINT_FAULT=%s:%d", point, n), "STINT_FAULT_LOG="+log) }
	died := false
	try := func(s *site, args ...string) {
		t.Helper()
		r := s.start(s.command(bin.fault, args...)).wait(patience)
		if r.signal == syscall.SIGKILL {
			died = true
		} else if r.code != 0 && r.code != 6 {
			t.Errorf("%s", r)
		}
		a.told(r.out)
	}
	verb := "run"
	if point == faultpoint.BeforeClaim || visit%2 == 0 { // a session that waits for a runner
		verb = "start"
	}
	try(faulty(visit), verb, mode(agent), "--json", "-p", "topic;")
	all := s.sound(a)
	if len(all) == 0 { // it died before there was a session
		s.went("run", mode(agent), "--json", "-p", "topic;")
		all = s.list()
	}
	id := all[0].ID
	if all[0].Status == "pending" {
		try(faulty(1), "resume", id, "--run", "--json")
		s.sound(a)
	}
	if v := s.bring(id, waits); waits(v) {
		r := s.start(faulty(1).command(bin.fault, "send", id, theWord)).wait(patience)
		if v := s.show(id); r.code == 0 && v.Unread != 1 {
			t.Errorf("send said that all is well, and there are %d messages\n%s", v.Unread, r)
		}
		if s.show(id).Unread == 0 {
			s.must("send", id, theWord)
		}
		try(faulty(visit), "resume", id, "--run", "--json")
		s.sound(a)
	}
	v := s.finish(id)
	s.sound(a)
	s.honest(id)
	s.same(v, want)
	return died
}

// waits reports whether a session waits for a message that nobody has sent.
func waits(v session) bool { return v.Waiting != nil && v.Waiting.For == "message" && v.Unread == 0 }
