package worktree_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/worktree"
)

// An agent that can write files below its folder, and nothing else, gets no program run by the git
// that stint runs there.
func TestNothingIsRun(t *testing.T) {
	dir := temp(t)
	repo := checkout(t, dir)
	ran := filepath.Join(dir, "ran")
	prog := filepath.Join(dir, "prog")
	write(t, prog, "#!/bin/sh\n(tr '\\0' ' ' </proc/$PPID/cmdline; echo \"$0 $*\") >> '"+ran+"'\ncat\n")
	if err := os.Chmod(prog, 0o755); err != nil {
		t.Fatal(err)
	}
	// The repository's own configuration, which an agent can choose from.
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-commit", "post-commit"} {
		write(t, filepath.Join(repo, ".git", "hooks", hook), "#!/bin/sh\necho "+hook+" >> '"+ran+"'\n")
		if err := os.Chmod(filepath.Join(repo, ".git", "hooks", hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, set := range [][2]string{
		{"filter.x.clean", prog}, {"filter.x.smudge", prog}, {"filter.x.required", "true"}, {"filter.y.process", prog}, {"core.fsmonitor", prog},
		{"diff.x.command", prog}, {"diff.x.textconv", prog}, {"diff.external", prog}, {"commit.gpgSign", "true"}, {"gpg.program", prog},
	} {
		git(t, repo, "config", set[0], set[1])
	}
	write(t, filepath.Join(repo, ".gitattributes"), "*.txt filter=x diff=x\n*.y filter=y\n")
	git(t, repo, "-c", "core.hooksPath="+os.DevNull, "-c", "core.fsmonitor=false", "-c", "filter.x.clean=", "-c", "filter.x.required=false", "add", "--all")
	git(t, repo, "-c", "core.hooksPath="+os.DevNull, "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false", "commit", "--quiet", "--message=attributes")
	if err := os.RemoveAll(ran); err != nil {
		t.Fatal(err)
	}

	r := open(t, dir)
	f := loop(t, r, at(1, 0, 1, 1), "more.txt=x", "more.y=y")
	evil := "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = " + prog + "\n\tworktree = " + f.Path + "\n"
	repository := func(at string) {
		write(t, filepath.Join(at, "HEAD"), "ref: refs/heads/main\n")
		write(t, filepath.Join(at, "config"), evil)
		write(t, filepath.Join(at, "refs", "heads", "main"), strings.TrimSpace(git(t, repo, "rev-parse", "HEAD"))+"\n")
		write(t, filepath.Join(at, "objects", "x"), "")
	}
	turn := at(1, 0, 2, 1)
	prepare(t, r, turn)
	repository(filepath.Join(f.Path, "elsewhere"))
	write(t, filepath.Join(f.Path, ".git"), "gitdir: "+filepath.Join(f.Path, "elsewhere")+"\n") // another repository for the worktree
	repository(filepath.Join(f.Path, "nested", ".git"))                                         // a repository within it
	write(t, filepath.Join(f.Path, "nested", "x"), "x")
	write(t, filepath.Join(f.Path, ".gitmodules"), "[submodule \"nested\"]\n\tpath = nested\n\turl = ext::"+prog+"\n\tupdate = !"+prog+"\n\tignore = none\n")
	commit(t, r, f, turn)
	if _, err := r.Since(context.Background(), id(1), -1, 1); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(ran); err == nil {
		t.Errorf("git ran:\n%s", b)
	}
	// One that is known to the index, as a submodule of the project is.
	turn = at(1, 0, 3, 1)
	prepare(t, r, turn)
	git(t, f.Path, "-c", "core.hooksPath="+os.DevNull, "-c", "core.fsmonitor=false", "update-index", "--add", "--cacheinfo", "160000,"+git(t, repo, "rev-parse", "HEAD")+",nested")
	if err := os.RemoveAll(ran); err != nil { // that was not stint's git
		t.Fatal(err)
	}
	commit(t, r, f, turn)
	write(t, filepath.Join(f.Path, "nested", "x"), "y")
	turn = at(1, 0, 3, 2)
	prepare(t, r, turn)
	commit(t, r, f, turn)
	if err := r.Remove(context.Background(), id(1), true); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(ran); err == nil {
		t.Errorf("git ran:\n%s", b)
	}
}

// Nothing within the worktree can make stint fail or write elsewhere.
func TestHostileNames(t *testing.T) {
	dir := temp(t)
	checkout(t, dir)
	r := open(t, dir)
	turn := at(1, 0, 1, 1)
	turn.Name = "x\n\nStint-Loop: 99\n\x1b[31m\xff" + strings.Repeat("ü", 500)
	f := prepare(t, r, turn)
	names := []string{"new\nline", "-f", ":(exclude)a", "sp ace", "tab\tx", "é", "\xff\xfe", "glob*[a]", "#x", "dir/-r"}
	for _, name := range names {
		write(t, filepath.Join(f.Path, name), name)
	}
	write(t, filepath.Join(dir, "outside"), "outside")
	if err := os.Symlink(dir, filepath.Join(f.Path, "link")); err != nil {
		t.Fatal(err)
	}
	c := commit(t, r, f, turn)
	body := git(t, f.Path, "log", "-1", "--format=%(trailers:key=Stint-Loop,valueonly,separator=%x2C)|%s", c)
	if !strings.HasPrefix(body, "1|x Stint-Loop: 99") || strings.Contains(body, "\x1b") || !utf8.ValidString(body) || len(body) > 300 {
		t.Errorf("the message is %q", body)
	}
	got, err := r.Since(context.Background(), id(1), -1, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, change := range got.Files {
		found[change.Name] = string(change.Kind)
	}
	for _, name := range append(names, "link") {
		if found[name] != "added" {
			t.Errorf("%q is %q", name, found[name])
		}
	}
	prepare(t, r, at(1, 1, 1, 1))
	same(t, "line 1", files(t, f.Path), first())
	prepare(t, r, at(1, 2, 1, 1))
	if b, err := os.ReadFile(filepath.Join(dir, "outside")); err != nil || string(b) != "outside" {
		t.Errorf("what a link points to: %q, %v", b, err)
	}
}

// Files that git ignores, and repositories within the worktree, stay where they are.
func TestWhatIsLeftAlone(t *testing.T) {
	dir := temp(t)
	checkout(t, dir)
	r := open(t, dir)
	f := loop(t, r, at(1, 0, 1, 1), "ignored=i")
	git(t, f.Path, "init", "--quiet", "nested") // without a commit, which git add would refuse
	write(t, filepath.Join(f.Path, "nested", "x"), "x")
	turn := at(1, 0, 2, 1)
	prepare(t, r, turn)
	commit(t, r, f, turn)
	prepare(t, r, at(1, 1, 1, 1))
	for _, name := range []string{"ignored", "nested/x"} {
		if _, err := os.Stat(filepath.Join(f.Path, name)); err != nil {
			t.Error(err)
		}
	}
	if got := git(t, f.Path, "ls-tree", "-r", "--name-only", "HEAD"); strings.Contains(got, "nested") || strings.Contains(got, "ignored\n") {
		t.Errorf("committed: %s", got)
	}
}

func TestAuthors(t *testing.T) {
	for text, good := range map[string]bool{
		worktree.DefaultAuthor: true, "A B <a@b>": true, "Ü <ü@x>": true,
		"": false, "x": false, "<a@b>": false, "A <>": false, "A <a b>": false, "A\n <a@b>": false, "A <a@b> x": false, " A <a@b>": false, "A  <a@b>": false, "A. <a@b>": false,
		"A <a@b\x00>": false, strings.Repeat("x", 200) + " <a@b>": false,
	} {
		name, address, err := worktree.ParseAuthor(text)
		if (err == nil) != good || err != nil && stint.CodeOf(err) != stint.Invalid || good && name+" <"+address+">" != text {
			t.Errorf("%q: %q, %q, %v", text, name, address, err)
		}
	}
}
