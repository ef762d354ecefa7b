package worktree_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/worktree"
)

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// with returns files with some more; one with the content "" is left out.
func with(m map[string]string, pairs ...string) map[string]string {
	m = maps.Clone(m)
	for _, p := range pairs {
		name, content, _ := strings.Cut(p, "=")
		if m[name] = content; content == "" {
			delete(m, name)
		}
	}
	return m
}

// A loop begins with the files of the loop before it, on the branch of its line, and a restart
// with those of the loop that it keeps. The checkout is not touched.
func TestFilesGoWithTheLine(t *testing.T) {
	dir := temp(t)
	repo := checkout(t, dir)
	write(t, filepath.Join(repo, "mine.txt"), "not committed")
	r := open(t, dir)
	f := loop(t, r, at(1, 0, 1, 1), "one=1", "a.txt=changed\n")
	loop(t, r, at(1, 0, 2, 1), "two=2", "one")
	loop(t, r, at(1, 0, 3, 1))
	same(t, "after loop 3", files(t, f.Path), with(first(), "a.txt=changed\n", "two=2"))
	if got := git(t, f.Path, "branch", "--show-current"); got != worktree.Branch(id(1), 0) {
		t.Errorf("on branch %s", got)
	}
	turn := at(1, 1, 2, 1) // restart --from 1
	prepare(t, r, turn)
	same(t, "line 1, loop 2", files(t, f.Path), with(first(), "one=1", "a.txt=changed\n"))
	if got := git(t, f.Path, "branch", "--show-current"); got != worktree.Branch(id(1), 1) {
		t.Errorf("on branch %s", got)
	}
	write(t, filepath.Join(f.Path, "other"), "x")
	commit(t, r, f, turn)
	prepare(t, r, at(1, 2, 2, 1)) // restart --from 1, which line 1 kept of line 0
	same(t, "line 2, loop 2", files(t, f.Path), with(first(), "one=1", "a.txt=changed\n"))
	prepare(t, r, at(1, 3, 1, 1)) // restart --from 0
	same(t, "line 3, loop 1", files(t, f.Path), first())
	same(t, "the checkout", with(files(t, repo)), with(first(), "mine.txt=not committed"))
	if got := git(t, repo, "status", "--porcelain"); got != "?? mine.txt" {
		t.Errorf("the checkout: %s", got)
	}
	if got := git(t, repo, "log", "--format=%an <%ae>|%s|%(trailers:key=Stint-Loop,valueonly,separator=%x2C)", "-1", worktree.Branch(id(1), 0)); got != "stint <stint@localhost>|session 1: loop 2|2" {
		t.Errorf("the newest commit of line 0 is %s", got)
	}
	if strings.Count(git(t, repo, "log", "--format=%h", worktree.Branch(id(1), 0)), "\n") != 2 {
		t.Error("a loop that changed nothing has a commit of its own")
	}
}

// What a loop that broke off left is committed, and the loop begins with the files of the one
// before. After a step it finds them as they were, since that is not done again.
func TestLoopBrokeOff(t *testing.T) {
	dir := temp(t)
	checkout(t, dir)
	r := open(t, dir)
	f := loop(t, r, at(1, 0, 1, 1), "one=1")
	prepare(t, r, at(1, 0, 2, 1))
	write(t, filepath.Join(f.Path, "half"), "half")
	_, note, err := open(t, dir).Prepare(context.Background(), at(1, 0, 2, 2))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "attempt 2", files(t, f.Path), with(first(), "one=1"))
	if !strings.Contains(note, "what loop 2 left behind is in commit ") {
		t.Errorf("the note is %q", note)
	}
	info, err := r.Info(context.Background(), id(1))
	if err != nil || len(info.Left) != 1 || info.Left[0].Loop != 2 {
		t.Fatalf("left behind: %+v, %v", info.Left, err)
	}
	if got := git(t, dir+"/repo", "show", info.Left[0].Ref+":half"); got != "half" {
		t.Errorf("left behind is %q", got)
	}
	write(t, filepath.Join(f.Path, "step"), "done")
	turn := at(1, 0, 2, 3)
	turn.Steps = true
	prepare(t, r, turn)
	same(t, "after a step", files(t, f.Path), with(first(), "one=1", "step=done"))
	if err := r.Park(f); err != nil {
		t.Fatal(err)
	}
	prepare(t, r, at(1, 0, 2, 3))
	same(t, "after a wait", files(t, f.Path), with(first(), "one=1", "step=done"))
	write(t, filepath.Join(f.Path, "step"), "more")
	prepare(t, r, at(1, 1, 2, 1))
	same(t, "on another line", files(t, f.Path), with(first(), "one=1"))
	if got := git(t, dir+"/repo", "show", worktree.Branch(id(1), 0)+":step"); got != "more" {
		t.Errorf("the branch of the line that was left has %q", got)
	}
}

// Each time that a loop breaks off, what it left is kept beside what was left before; the same
// files are kept once.
func TestBrokeOffTwice(t *testing.T) {
	dir := temp(t)
	checkout(t, dir)
	r := open(t, dir)
	f := prepare(t, r, at(1, 0, 1, 1))
	for i, content := range []string{"one", "two", "two"} {
		write(t, filepath.Join(f.Path, "half"), content)
		prepare(t, r, at(1, 0, 1, i+2))
	}
	info, err := r.Info(context.Background(), id(1))
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, k := range info.Left {
		left = append(left, git(t, dir+"/repo", "show", k.Ref+":half"))
	}
	if got := strings.Join(left, " "); got != "one two" && got != "one two two" {
		t.Errorf("left behind: %s", got)
	}
}

// The runner died after the loop's commit and before its checkpoint.
func TestCommittedButNotRecorded(t *testing.T) {
	dir := temp(t)
	checkout(t, dir)
	r := open(t, dir)
	f := loop(t, r, at(1, 0, 1, 1), "one=1")
	prepare(t, r, at(1, 0, 1, 2))
	same(t, "attempt 2", files(t, f.Path), first())
	info, err := r.Info(context.Background(), id(1))
	if err != nil || len(info.Left) != 1 {
		t.Fatalf("left behind: %+v, %v", info.Left, err)
	}
	commit(t, r, f, at(1, 0, 1, 2))
	prepare(t, r, at(1, 0, 2, 1))
	same(t, "loop 2", files(t, f.Path), first())
}

// What a person changes between two loops stays.
func TestPersonHelps(t *testing.T) {
	dir := temp(t)
	checkout(t, dir)
	r := open(t, dir)
	f := loop(t, r, at(1, 0, 1, 1), "one=1")
	write(t, filepath.Join(f.Path, "help"), "help")
	turn := at(1, 0, 2, 1)
	prepare(t, r, turn)
	same(t, "loop 2", files(t, f.Path), with(first(), "one=1", "help=help"))
	write(t, filepath.Join(f.Path, "half"), "half")
	prepare(t, r, at(1, 0, 2, 2))
	same(t, "attempt 2", files(t, f.Path), with(first(), "one=1", "help=help"))
}

// A branch begins with the files of the loop of its parent, and goes its own way.
func TestBranch(t *testing.T) {
	dir := temp(t)
	checkout(t, dir)
	r := open(t, dir)
	parent := loop(t, r, at(1, 0, 1, 1), "one=1")
	loop(t, r, at(1, 0, 2, 1), "two=2")
	asked := 0
	turn := at(2, 0, 2, 1)
	turn.Parent = func(context.Context) (worktree.Origin, error) {
		asked++
		return worktree.Origin{Session: id(1), Line: 0, Loop: 1}, nil
	}
	f := loop(t, r, turn, "branch=b")
	same(t, "the branch", files(t, f.Path), with(first(), "one=1", "branch=b"))
	same(t, "the parent", files(t, parent.Path), with(first(), "one=1", "two=2"))
	turn.At.Line = 1
	prepare(t, r, turn)
	same(t, "the branch from its beginning", files(t, f.Path), with(first(), "one=1"))
	if asked != 1 {
		t.Errorf("the parent was asked for %d times", asked)
	}
	turn.At.Line, turn.At.Loop = 2, 1
	prepare(t, r, turn)
	same(t, "the branch from the beginning of its parent", files(t, f.Path), first())
	turn = at(3, 0, 10, 1)
	turn.Parent = func(context.Context) (worktree.Origin, error) { return worktree.Origin{Session: id(1), Loop: 9}, nil }
	if _, _, err := r.Prepare(context.Background(), turn); stint.CodeOf(err) != stint.NotFound {
		t.Errorf("a branch from a loop that is not there: %v", err)
	}
}

// A worktree that is removed comes again, from what is committed.
func TestFolderIsRemoved(t *testing.T) {
	dir := temp(t)
	checkout(t, dir)
	r := open(t, dir)
	f := loop(t, r, at(1, 0, 1, 1), "one=1")
	remove := func(path string) {
		t.Helper()
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	remove(f.Path)
	prepare(t, r, at(1, 0, 2, 1))
	same(t, "loop 2", files(t, f.Path), with(first(), "one=1"))
	remove(filepath.Join(dir, "repo", ".git", "worktrees", id(1).String())) // git worktree prune
	write(t, filepath.Join(f.Path, "half"), "half")
	prepare(t, r, at(1, 0, 2, 2))
	same(t, "attempt 2", files(t, f.Path), with(first(), "one=1"))
	aside, _ := filepath.Glob(f.Path + ".found-*")
	if len(aside) != 1 {
		t.Fatalf("moved aside: %q", aside)
	}
	same(t, "moved aside", files(t, aside[0]), with(first(), "one=1", "half=half"))
	if err := r.Remove(context.Background(), id(1), false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there", f.Path)
	}
	prepare(t, r, at(1, 0, 2, 3))
	same(t, "attempt 3", files(t, f.Path), with(first(), "one=1"))
	write(t, filepath.Join(f.Path, "half"), "other")
	if err := r.Remove(context.Background(), id(1), false); err != nil {
		t.Fatal(err)
	}
	info, err := r.Info(context.Background(), id(1))
	if err != nil || len(info.Left) != 1 || info.Path != "" {
		t.Fatalf("%+v, %v", info, err)
	}
	if err := r.Remove(context.Background(), id(1), true); err != nil {
		t.Fatal(err)
	}
	if got := git(t, filepath.Join(dir, "repo"), "for-each-ref", "--format=%(refname)"); got != "refs/heads/main" {
		t.Errorf("left in the repository:\n%s", got)
	}
	if got := git(t, filepath.Join(dir, "repo"), "worktree", "list"); strings.Contains(got, "\n") {
		t.Errorf("worktrees:\n%s", got)
	}
}

// What an agent does with git in its worktree does not bring the next loop off its branch.
func TestAgentUsesGit(t *testing.T) {
	dir := temp(t)
	checkout(t, dir)
	r := open(t, dir)
	turn := at(1, 0, 1, 1)
	f := prepare(t, r, turn)
	write(t, filepath.Join(f.Path, "own"), "own")
	git(t, f.Path, "switch", "--quiet", "--create", "feature")
	git(t, f.Path, "add", "--all")
	git(t, f.Path, "commit", "--quiet", "--message=mine")
	write(t, filepath.Join(f.Path, "more"), "more")
	c := commit(t, r, f, turn)
	if got := git(t, f.Path, "branch", "--show-current"); got != worktree.Branch(id(1), 0) {
		t.Errorf("on branch %s", got)
	}
	if got := git(t, f.Path, "rev-parse", "feature"); got != git(t, f.Path, "rev-parse", c+"^") {
		t.Error("the agent's own commit is not below that of the loop")
	}
	if got := git(t, f.Path, "status", "--porcelain"); got != "" {
		t.Errorf("status: %s", got)
	}
	// In the middle of a rebase with a conflict, and away from any branch.
	turn = at(1, 0, 2, 1)
	prepare(t, r, turn)
	write(t, filepath.Join(f.Path, "more"), "x")
	git(t, f.Path, "commit", "--all", "--quiet", "--message=x")
	git(t, f.Path, "switch", "--quiet", "--detach", "HEAD^")
	write(t, filepath.Join(f.Path, "more"), "y")
	git(t, f.Path, "commit", "--all", "--quiet", "--message=y")
	if out, err := command(f.Path, "git", "-c", "user.name=x", "-c", "user.email=x", "rebase", worktree.Branch(id(1), 0)); err == nil {
		t.Fatalf("there is no conflict: %s", out)
	}
	prepare(t, r, at(1, 0, 2, 2))
	same(t, "attempt 2", files(t, f.Path), with(first(), "own=own", "more=more"))
	if got := git(t, f.Path, "status"); strings.Contains(got, "rebase") || !strings.Contains(got, "clean") {
		t.Errorf("status: %s", got)
	}
}

// What a git that was killed left locked does not stop the session.
func TestLocksOfTheDead(t *testing.T) {
	dir := temp(t)
	repo := checkout(t, dir)
	r := open(t, dir)
	loop(t, r, at(1, 0, 1, 1), "one=1")
	old := time.Now().Add(-time.Hour)
	var locks []string
	for _, name := range []string{"worktrees/" + id(1).String() + "/index.lock", "worktrees/" + id(1).String() + "/HEAD.lock",
		"refs/heads/stint/" + id(1).String() + "/0.lock", "refs/stint/" + id(1).String() + "/0/2.lock"} {
		path := filepath.Join(repo, ".git", filepath.FromSlash(name))
		write(t, path, "")
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		locks = append(locks, path)
	}
	begun := time.Now()
	loop(t, r, at(1, 0, 2, 1), "two=2")
	if d := time.Since(begun); d > 10*time.Second { // so long it waits for the lock of one that lives
		t.Errorf("it waited for %v", d)
	}
	for _, path := range locks {
		if exists(path) {
			t.Errorf("%s is still there", path)
		}
	}
}

// Several sessions of one repository, each with a process of its own as far as git can tell.
func TestAtOnce(t *testing.T) {
	dir := temp(t)
	checkout(t, dir)
	var all sync.WaitGroup
	errs := make(chan error, 100)
	for n := 1; n <= 6; n++ {
		all.Go(func() {
			r, err := worktree.Open(context.Background(), worktree.Spec{Repo: filepath.Join(dir, "repo"), Dir: filepath.Join(dir, "trees")})
			for i := 1; i <= 3 && err == nil; i++ {
				var f *worktree.Folder
				if f, _, err = r.Prepare(context.Background(), at(n, 0, i, 1)); err != nil {
					break
				}
				if err = os.WriteFile(filepath.Join(f.Path, "n"), []byte{byte('0' + n), byte('0' + i)}, 0o644); err == nil {
					_, err = r.Commit(context.Background(), f, at(n, 0, i, 1))
				}
			}
			errs <- err
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	for n := 1; n <= 6; n++ {
		if got := git(t, filepath.Join(dir, "repo"), "show", worktree.Branch(id(n), 0)+":n"); got != string([]byte{byte('0' + n), '3'}) {
			t.Errorf("session %d has %q", n, got)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	dir := temp(t)
	repo := checkout(t, dir)
	ctx := context.Background()
	empty := filepath.Join(dir, "empty")
	write(t, filepath.Join(empty, "x"), "")
	git(t, dir, "init", "--quiet", "unborn")
	git(t, dir, "init", "--quiet", "--bare", "bare.git")
	for _, c := range []struct {
		name string
		spec worktree.Spec
		say  string
	}{
		{"no folder", worktree.Spec{Repo: filepath.Join(dir, "none")}, "there is no folder"},
		{"no repository", worktree.Spec{Repo: empty}, "is not in a checkout of a git repository"},
		{"bare", worktree.Spec{Repo: filepath.Join(dir, "bare.git")}, "is not in a checkout of a git repository"},
		{"no commit", worktree.Spec{Repo: filepath.Join(dir, "unborn")}, "has no commit yet"},
		{"no base", worktree.Spec{Repo: repo, Base: "v9"}, `has no commit "v9"`},
		{"a base that is a flag", worktree.Spec{Repo: repo, Base: "--all"}, `has no commit "--all"`},
		{"author", worktree.Spec{Repo: repo, Author: "nobody"}, "is not a name and an address"},
	} {
		c.spec.Dir = filepath.Join(dir, "trees")
		r, err := worktree.Open(ctx, c.spec)
		if err == nil {
			_, _, err = r.Prepare(ctx, at(1, 0, 1, 1))
		}
		var e *stint.Error
		if !errors.As(err, &e) || e.Code != stint.Invalid || e.Hint == "" || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	r := open(t, dir)
	git(t, repo, "branch", worktree.Branch(id(1), 0), "HEAD")
	write(t, filepath.Join(repo, "a.txt"), "2")
	git(t, repo, "commit", "--all", "--quiet", "--message=second")
	if _, _, err := r.Prepare(ctx, at(1, 0, 1, 1)); stint.CodeOf(err) != stint.Exists {
		t.Errorf("a branch of somebody else: %v", err)
	}
	if _, _, err := r.Prepare(ctx, at(2, 0, 7, 1)); stint.CodeOf(err) != stint.NotFound {
		t.Errorf("a loop whose files are gone: %v", err)
	}
	git(t, repo, "branch", "--delete", "--force", worktree.Branch(id(1), 0))
	git(t, repo, "branch", "stint")
	if _, _, err := r.Prepare(ctx, at(3, 0, 1, 1)); stint.CodeOf(err) != stint.Exists || !strings.Contains(err.Error(), "branch stint") {
		t.Errorf("a branch in the way: %v", err)
	}
	write(t, filepath.Join(dir, "old", "git"), "#!/bin/sh\necho --path-format=absolute\necho /x\necho .git\n")
	if err := os.Chmod(filepath.Join(dir, "old", "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", filepath.Join(dir, "old")+string(os.PathListSeparator)+path)
	if _, err := worktree.Open(ctx, worktree.Spec{Repo: repo}); stint.CodeOf(err) != stint.Invalid || !strings.Contains(err.Error(), "too old") {
		t.Errorf("with an old git: %v", err)
	}
	t.Setenv("PATH", empty)
	if _, err := worktree.Open(ctx, worktree.Spec{Repo: repo}); stint.CodeOf(err) != stint.Invalid || !strings.Contains(err.Error(), "git is not in PATH") {
		t.Errorf("without git: %v", err)
	}
}
