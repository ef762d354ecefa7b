package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stint-dev/stint"
)

// begin returns the commit that a turn begins with.
func (r *Repo) begin(ctx context.Context, t Turn, k *kept) (string, error) {
	before := t.At.Loop - 1
	if commit, ok := k.of(t.At.Line, before); ok {
		return commit, nil
	}
	if t.Parent != nil {
		p, err := t.Parent(ctx)
		if err != nil {
			return "", err
		}
		of, err := r.kept(ctx, p.Session)
		if err != nil {
			return "", err
		}
		loop := min(before, p.Loop) // its loops are numbered on from the parent's
		if commit, ok := of.of(p.Line, loop); ok {
			return commit, nil
		}
		return "", wrong(stint.NotFound, "stint workspace show "+p.Session.String()+"  lists those that are there",
			"the repository at %s has no files of loop %d of session %s, which this one branches from", r.top, loop, p.Session)
	}
	if before == 0 {
		return r.first(ctx)
	}
	return "", wrong(stint.NotFound, "stint workspace show "+t.Session.String()+"  lists the loops that are there; restart from one of them, or from 0",
		"the repository at %s has no files of loop %d of this session", r.top, before)
}

// create makes the worktree of a session that has none, without a file in it.
func (r *Repo) create(ctx context.Context, f *Folder, t Turn, commit string) error {
	if err := r.aside(f); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return failed(err)
	}
	if _, err := r.git.run(ctx, command{args: []string{"worktree", "add", "--quiet", "--no-checkout", "--detach", "--lock", f.Path, commit}}); err != nil {
		return failed(err)
	}
	// For people whose git says that it is locked. It fails where git chose another name.
	return failed(os.WriteFile(filepath.Join(f.admin, "locked"), []byte("the session "+t.Session.String()+" of stint\n"), 0o600))
}

// aside makes room for a worktree: it removes what a create left that did not come to its end, and
// moves away what has files in it.
func (r *Repo) aside(f *Folder) error {
	if err := os.RemoveAll(f.admin); err != nil {
		return failed(err)
	}
	all, err := os.ReadDir(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return failed(err)
	case len(all) == 0 || len(all) == 1 && all[0].Name() == ".git" && !all[0].IsDir():
		return failed(os.RemoveAll(f.Path))
	}
	return failed(os.Rename(f.Path, f.Path+".found-"+stamp()))
}

// link writes the file by which git finds the repository from within the worktree, for the agent
// and for people. What it said is of no account here.
func (f *Folder) link() error {
	path, want := filepath.Join(f.Path, ".git"), "gitdir: "+filepath.ToSlash(f.admin)+"\n"
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return failed(err)
	case info.IsDir(): // an agent made a repository of its own here
		if err := os.Rename(path, f.Path+".git-"+stamp()); err != nil {
			return failed(err)
		}
	case info.Mode().IsRegular():
		if b, err := os.ReadFile(path); err == nil && string(b) == want {
			return nil
		}
		fallthrough
	default:
		if err := os.Remove(path); err != nil {
			return failed(err)
		}
	}
	return failed(os.WriteFile(path, []byte(want), 0o600))
}

// stamp is a time as part of a name.
func stamp() string { return time.Now().UTC().Format("20060102T150405.000000") }

// move puts the files of a commit in place, as a rule of base, with which the turn begins, and the
// worktree on the branch of the turn's line. Nobody's files are in the worktree any more, or it has
// no folder. It can be begun again after it was cut off anywhere.
func (r *Repo) move(ctx context.Context, f *Folder, t Turn, k *kept, base, commit string) error {
	name, line := branchName(t.Session, t.At.Line), false
	for s := range k.loops {
		line = line || s.line == t.At.Line
	}
	if !line {
		if err := r.free(ctx, name, commit); err != nil {
			return err
		}
	}
	if err := f.setMark(mark{Stage: moving, Line: t.At.Line, Loop: t.At.Loop, Attempt: t.Attempt, Base: base, Commit: commit}); err != nil {
		return err
	}
	if err := os.MkdirAll(f.Path, 0o700); err != nil {
		return failed(err)
	}
	if err := f.link(); err != nil {
		return err
	}
	orders := []string{"update " + name + " " + commit}
	if own := (spot{t.At.Line, t.At.Loop - 1}); k.loops[own] == "" {
		orders = append(orders, "update "+loopRef(t.Session, own.line, own.loop)+" "+base)
	}
	if err := r.refs(ctx, orders...); err != nil {
		return err
	}
	if err := r.onBranch(ctx, f, t.At.Line); err != nil {
		return err
	}
	for _, under := range []string{"rebase-merge", "rebase-apply", "sequencer"} { // an agent may have been in the middle of one
		if err := os.RemoveAll(filepath.Join(f.admin, under)); err != nil {
			return failed(err)
		}
	}
	for _, args := range [][]string{{"reset", "--quiet", "--hard", commit}, {"clean", "--quiet", "--force", "-d"}} {
		if _, err := r.in(ctx, f, args...); err != nil {
			return failed(err)
		}
	}
	return f.setMark(mark{Stage: open, Line: t.At.Line, Loop: t.At.Loop, Attempt: t.Attempt, Base: base})
}

// free refuses a branch that is there and is not at the commit at which it would begin.
func (r *Repo) free(ctx context.Context, name, commit string) error {
	out, err := r.git.run(ctx, command{args: []string{"for-each-ref", "--format=%(objectname)", name}})
	if err != nil {
		return failed(err)
	}
	if has := strings.TrimSpace(string(out)); has != "" && has != commit {
		branch := strings.TrimPrefix(name, "refs/heads/")
		return wrong(stint.Exists, "git branch -m "+branch+" OTHER  makes room", "the repository has a branch %s that is not stint's", branch)
	}
	return nil
}

// lockAge is how old a lock of a session's own has to be to be one that a git which was killed left
// behind: whoever holds the session runs no other git.
const lockAge = 2 * time.Second

// unlock removes the locks that a killed git left on what is the session's alone.
func (r *Repo) unlock(ctx context.Context, f *Folder) error {
	var locks []string
	own, _ := filepath.Glob(filepath.Join(f.admin, "*.lock"))
	locks = append(locks, own...)
	for _, under := range []string{"refs/heads/stint", "refs/stint"} {
		_ = filepath.WalkDir(filepath.Join(r.git.common, filepath.FromSlash(under), f.Session.String()), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(path, ".lock") {
				locks = append(locks, path)
			}
			return nil
		})
	}
	for _, path := range locks {
		info, err := os.Stat(path)
		if err != nil {
			continue // it went by itself
		}
		if left := lockAge - time.Since(info.ModTime()); left > 0 {
			if err := pause(ctx, min(left, lockAge)); err != nil {
				return err
			}
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failed(err)
		}
	}
	return nil
}
