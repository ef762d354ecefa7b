package worktree_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint/internal/worktree"
)

// course is what a session should find: the files at the end of each loop that its line kept.
type course struct {
	n       int
	line    int
	ends    []map[string]string // of loop 0, which is the beginning, and on
	begin   map[string]string   // of the loop that is on
	attempt int                 // at it; 0: none is on
	parent  func(context.Context) (worktree.Origin, error)
	own     int // the loop that a branch goes on from
}

func (c *course) turn(steps bool) worktree.Turn {
	t := at(c.n, c.line, len(c.ends), c.attempt)
	t.Steps, t.Parent = steps, c.parent
	return t
}

// scribble changes files at random, and returns what is there then.
func scribble(t *rapid.T, f *worktree.Folder, label string) map[string]string {
	for i := range rapid.IntRange(0, 3).Draw(t, label) {
		name := rapid.SampledFrom([]string{"a.txt", "sub/b.txt", "x", "y/z", "deep/er/w"}).Draw(t, fmt.Sprint(label, i))
		content := rapid.SampledFrom([]string{"", "1\n", "2\n", "3"}).Draw(t, fmt.Sprint(label, i, " content"))
		path := filepath.Join(f.Path, filepath.FromSlash(name))
		if content == "" {
			_ = os.Remove(path)
			continue
		}
		write(t, path, content)
	}
	return files(t, f.Path)
}

// world is sessions of one repository.
type world struct {
	t        *rapid.T
	dir      string
	sessions []*course
}

// begin begins an attempt, in another process as far as git can tell, and looks what is there.
func (w *world) begin(c *course, want map[string]string, steps bool) *worktree.Folder {
	f := prepare(w.t, open(w.t, w.dir), c.turn(steps))
	same(w.t, fmt.Sprintf("session %d, line %d, loop %d, attempt %d", c.n, c.line, len(c.ends), c.attempt), files(w.t, f.Path), want)
	return f
}

// end lets the loop that is on come to its end.
func (w *world) end(c *course, f *worktree.Folder, steps bool, label string) {
	end := scribble(w.t, f, label)
	commit(w.t, open(w.t, w.dir), f, c.turn(steps))
	c.ends, c.attempt, c.begin = append(c.ends, end), 0, nil
}

// try begins the next attempt at a loop.
func (w *world) try(c *course) *worktree.Folder {
	if c.attempt == 0 {
		c.begin = c.ends[len(c.ends)-1]
	}
	c.attempt++
	return w.begin(c, c.begin, false)
}

func (w *world) act(act string, c *course, label string) {
	switch act {
	case "loop":
		w.end(c, w.try(c), false, label)
	case "crash":
		scribble(w.t, w.try(c), label)
	case "step", "park":
		f := w.try(c)
		left := scribble(w.t, f, label)
		if act == "step" {
			c.attempt++
		} else if err := open(w.t, w.dir).Park(f); err != nil {
			w.t.Fatalf("%v", err)
		}
		w.begin(c, left, act == "step")
		w.end(c, f, act == "step", label+" then")
	case "help": // a person changes files between two loops
		f := &worktree.Folder{Path: filepath.Join(w.dir, "trees", id(c.n).String())}
		if c.attempt > 0 || len(c.ends) < 2 || !exists(f.Path) {
			return
		}
		c.begin, c.attempt = scribble(w.t, f, label), 1
		w.begin(c, c.begin, false)
	case "restart":
		if len(c.ends) == 1 && c.attempt == 0 {
			return // it has not begun
		}
		from := rapid.IntRange(c.own, len(c.ends)-1).Draw(w.t, label+" from")
		c.line, c.attempt, c.ends = c.line+1, 0, c.ends[:from+1:from+1]
		w.try(c)
	case "branch":
		if len(c.ends) == 1 || len(w.sessions) > 3 {
			return
		}
		o := worktree.Origin{Session: id(c.n), Line: c.line, Loop: rapid.IntRange(0, len(c.ends)-1).Draw(w.t, label+" from")}
		if c.parent != nil && o.Loop < c.own {
			return // its parent has the files of that loop
		}
		b := &course{n: w.sessions[0].n + len(w.sessions), ends: slices.Clone(c.ends[:o.Loop+1]), own: o.Loop}
		b.parent = func(context.Context) (worktree.Origin, error) { return o, nil }
		w.sessions = append(w.sessions, b)
		w.try(b)
	case "remove":
		if c.attempt > 0 {
			return
		}
		if err := open(w.t, w.dir).Remove(context.Background(), id(c.n), false); err != nil {
			w.t.Fatalf("%v", err)
		}
	}
}

// Whatever happens to sessions, each loop begins with the files that it has to.
func TestEveryLoopBeginsRight(t *testing.T) {
	rounds, bad := 0, false
	dir := temp(t)
	checkout(t, dir)
	rapid.Check(t, func(t *rapid.T) {
		rounds++
		if rounds > 5 && !bad && os.Getenv("STINT_LONG") != "1" {
			return // each starts a hundred programs
		}
		good := false
		defer func() { bad = bad || !good }()
		w := &world{t, dir, []*course{{n: 1000 * rounds, ends: []map[string]string{first()}}}}
		for i := range rapid.IntRange(4, 10).Draw(t, "acts") {
			label := fmt.Sprint(i)
			c := rapid.SampledFrom(w.sessions).Draw(t, label+" session")
			w.act(rapid.SampledFrom([]string{"loop", "loop", "crash", "step", "park", "help", "restart", "branch", "remove"}).Draw(t, label+" act"), c, label)
		}
		same(t, "the checkout", files(t, filepath.Join(dir, "repo")), first())
		good = true
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
