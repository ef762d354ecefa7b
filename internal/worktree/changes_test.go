package worktree_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/worktree"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// What changed since the end of a loop is told as it is in the files, staged or not, and nothing
// is touched by asking.
func TestSince(t *testing.T) {
	dir := temp(t)
	checkout(t, dir)
	r := open(t, dir)
	ctx := context.Background()
	f := loop(t, r, at(1, 0, 1, 1), "one=1\n2\n3\n", "bin=\x00\x01")
	prepare(t, r, at(1, 0, 2, 1))
	for name, content := range map[string]string{"one": "1\nx\n3\n4\n", "bin": "\x00\x02", "new file": "n\n", "ignored": "i"} {
		write(t, filepath.Join(f.Path, name), content)
	}
	if err := os.Remove(filepath.Join(f.Path, "sub", "b.txt")); err != nil {
		t.Fatal(err)
	}
	git(t, f.Path, "add", "one")
	before := git(t, f.Path, "status", "--porcelain")
	got, err := r.Since(ctx, id(1), -1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if now := git(t, f.Path, "status", "--porcelain"); now != before {
		t.Errorf("the status was\n%s\nand is\n%s", before, now)
	}
	got.From = ""
	b, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "since.json", append(b, '\n'))
	commit(t, r, f, at(1, 0, 2, 1))
	if c, err := r.Between(ctx, id(1), 0, 1, 2); err != nil || len(c.Files) != len(got.Files) {
		t.Errorf("between the loops: %+v, %v", c, err)
	}
	if c, err := r.Between(ctx, id(1), 0, 2, 2); err != nil || len(c.Files) != 0 || !c.Known {
		t.Errorf("a loop and itself: %+v, %v", c, err)
	}
	if _, err := r.Between(ctx, id(1), 0, 1, 7); stint.CodeOf(err) != stint.NotFound {
		t.Errorf("a loop that is not there: %v", err)
	}
	for name, ask := range map[string]func() (worktree.Changes, error){
		"an agent without a workspace": func() (worktree.Changes, error) { return (*worktree.Repo)(nil).Since(ctx, id(1), 0, 1) },
		"a session without a worktree": func() (worktree.Changes, error) { return r.Since(ctx, id(2), 0, 1) },
		"a loop without a commit":      func() (worktree.Changes, error) { return r.Since(ctx, id(1), 0, 9) },
	} {
		if c, err := ask(); err != nil || c.Known || c.Why == "" || c.Files == nil {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
	}
}
