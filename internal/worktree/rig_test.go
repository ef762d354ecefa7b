package worktree_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/worktree"
)

// T is what the tests need of testing.T and rapid.T.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// git runs git as a person would, and returns what it prints.
func git(t T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=p", "GIT_AUTHOR_EMAIL=p@x", "GIT_COMMITTER_NAME=p", "GIT_COMMITTER_EMAIL=p@x")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q in %s: %v\n%s", args, dir, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func write(t T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatalf("%v", err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatalf("%v", err)
	}
}

// checkout makes a repository with one commit.
func checkout(t T, dir string) string {
	t.Helper()
	repo := filepath.Join(dir, "repo")
	write(t, filepath.Join(repo, "a.txt"), "a\n")
	write(t, filepath.Join(repo, "sub", "b.txt"), "b\n")
	write(t, filepath.Join(repo, ".gitignore"), "ignored\n")
	git(t, repo, "init", "--quiet", "--initial-branch=main")
	git(t, repo, "add", "--all")
	git(t, repo, "commit", "--quiet", "--message=first")
	return repo
}

// first are the files of checkout.
func first() map[string]string {
	return map[string]string{"a.txt": "a\n", "sub/b.txt": "b\n", ".gitignore": "ignored\n"}
}

func temp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// id makes the id of the n-th session.
func id(n int) stint.ID {
	return stint.ID{0x01, 0x92, 0, 0, byte(n >> 16), byte(n >> 8), 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, byte(n)}
}

func at(n, line, loop, attempt int) worktree.Turn {
	return worktree.Turn{Session: id(n), Name: fmt.Sprintf("session %d", n), At: stint.Position{Line: line, Loop: loop}, Attempt: attempt}
}

func open(t T, dir string) *worktree.Repo {
	t.Helper()
	r, err := worktree.Open(context.Background(), worktree.Spec{Repo: filepath.Join(dir, "repo"), Dir: filepath.Join(dir, "trees")})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return r
}

func prepare(t T, r *worktree.Repo, turn worktree.Turn) *worktree.Folder {
	t.Helper()
	f, _, err := r.Prepare(context.Background(), turn)
	if err != nil {
		t.Fatalf("prepare line %d loop %d: %v", turn.At.Line, turn.At.Loop, err)
	}
	return f
}

func commit(t T, r *worktree.Repo, f *worktree.Folder, turn worktree.Turn) string {
	t.Helper()
	c, err := r.Commit(context.Background(), f, turn)
	if err != nil {
		t.Fatalf("commit line %d loop %d: %v", turn.At.Line, turn.At.Loop, err)
	}
	return c
}

// loop does a loop that writes files, each NAME=CONTENT, or NAME to remove it.
func loop(t T, r *worktree.Repo, turn worktree.Turn, files ...string) *worktree.Folder {
	t.Helper()
	f := prepare(t, r, turn)
	for _, file := range files {
		name, content, write1 := strings.Cut(file, "=")
		if write1 {
			write(t, filepath.Join(f.Path, name), content)
		} else if err := os.Remove(filepath.Join(f.Path, name)); err != nil {
			t.Fatalf("%v", err)
		}
	}
	commit(t, r, f, turn)
	return f
}

// files reads what is in a folder, but for .git at its top.
func files(t T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == filepath.Join(dir, ".git") && d.IsDir():
			return fs.SkipDir
		case path == filepath.Join(dir, ".git"):
			return nil
		}
		rel, _ := filepath.Rel(dir, path)
		switch {
		case d.IsDir():
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			all[filepath.ToSlash(rel)] = "-> " + to
			return err
		default:
			b, err := os.ReadFile(path)
			all[filepath.ToSlash(rel)] = string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return all
}

func same(t T, what string, got, want map[string]string) {
	t.Helper()
	if a, b := listed(got), listed(want); a != b {
		t.Fatalf("%s: the files are\n%swant\n%s", what, a, b)
	}
}

func listed(m map[string]string) string {
	var b bytes.Buffer
	for _, name := range sortedKeys(m) {
		fmt.Fprintf(&b, "  %q: %q\n", name, m[name])
	}
	return b.String()
}

// command runs a program that may fail.
func command(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}
