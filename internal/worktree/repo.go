package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/stint-dev/stint"
)

// Spec says in which repository the worktrees are, and where they lie.
type Spec struct {
	// Repo is a folder in a checkout of the repository.
	Repo string `json:"repo"`
	// Dir is the folder in which the worktrees are made, each under the id of its session. It has
	// to last as long as the sessions.
	Dir string `json:"dir,omitempty"`
	// Base is what a session begins with, as git names commits; empty: the commit that is checked
	// out in Repo.
	Base string `json:"base,omitempty"`
	// Author is NAME <ADDRESS>, who makes the commits; empty: stint <stint@localhost>.
	Author string `json:"author,omitempty"`
	// Keep is what stays of a session that its agent ended; empty: [KeepAll].
	Keep Keep `json:"keep"`
}

// Keep is what stays of a session that its agent ended.
type Keep string

// What stays of a session.
const (
	KeepAll    Keep = "all"    // the worktree, the branches and the commits
	KeepBranch Keep = "branch" // the branches and the commits
)

// DefaultAuthor makes the commits where nobody else is named.
const DefaultAuthor = "stint <stint@localhost>"

// ParseAuthor splits NAME <ADDRESS>. Anything else, and what git would change, is [stint.Invalid].
func ParseAuthor(s string) (name, address string, err error) {
	m := regexp.MustCompile(`^([^<>\x00-\x1f\x7f]*[^<>\x00-\x20\x7f.,:;"'\\]) <([^<>\x00-\x20\x7f]+)>$`).FindStringSubmatch(s)
	if m == nil || strings.TrimSpace(m[1]) != m[1] || len(s) > 200 {
		return "", "", wrong(stint.Invalid, "write it like "+DefaultAuthor, "%q is not a name and an address", s)
	}
	return m[1], m[2], nil
}

// Repo is a repository in which sessions have worktrees. Its methods may be called from several
// goroutines and processes at once, those that change the worktree of one session by whoever
// holds the session. Errors have a hint; what another git is in the way of, or the disk, is
// [stint.Unavailable].
type Repo struct {
	spec Spec
	top  string // of the checkout in spec.Repo
	git  git
}

// Open finds the repository. A folder that is in none, or in one without a checkout, and a
// missing git are [stint.Invalid].
func Open(ctx context.Context, s Spec) (*Repo, error) {
	if s.Author == "" {
		s.Author = DefaultAuthor
	}
	name, address, err := ParseAuthor(s.Author)
	if err != nil {
		return nil, err
	}
	r := &Repo{spec: s, git: git{dir: s.Repo, author: []string{
		"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + address, "GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + address,
	}}}
	if info, err := os.Stat(s.Repo); err != nil || !info.IsDir() {
		return nil, wrong(stint.Invalid, "correct workspace: {repo: ...}", "there is no folder %s", s.Repo)
	}
	out, err := r.git.run(ctx, command{args: []string{"rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir"}})
	var f *failure
	switch found := lines(out); {
	case errors.As(err, &f) && strings.Contains(f.stderr, "dubious ownership"):
		return nil, wrong(stint.Invalid, "run stint as the user whose repository it is", "the repository at %s is somebody else's", s.Repo)
	case errors.As(err, &f):
		return nil, wrong(stint.Invalid, "git init makes one; workspace: {repo: ...} names another", "%s is not in a checkout of a git repository", s.Repo)
	case err != nil:
		return nil, failed(err)
	case len(found) > 0 && strings.HasPrefix(found[0], "--"): // it repeats what it does not know
		return nil, wrong(stint.Invalid, "install git 2.31 or newer", "this git is too old to give sessions worktrees")
	case len(found) != 2:
		return nil, wrong(stint.Invalid, "move it to a folder with a plain name", "the repository at %s is in a folder whose name has several lines", s.Repo)
	default:
		r.top, r.git.common = filepath.FromSlash(found[0]), filepath.FromSlash(found[1])
	}
	return r, r.unfilter(ctx)
}

// unfilter switches off the filters of the repository's configuration: a file of an agent could
// choose one.
func (r *Repo) unfilter(ctx context.Context) error {
	out, err := r.git.run(ctx, command{args: []string{"config", "--null", "--name-only", "--get-regexp", `^filter\.`}})
	var f *failure
	if errors.As(err, &f) && f.code == 1 && f.stderr == "" {
		return nil // there are none
	}
	if err != nil {
		return failed(err)
	}
	seen := map[string]bool{}
	for key := range strings.SplitSeq(string(out), "\x00") {
		i := strings.LastIndexByte(key, '.')
		if i < len("filter.") || strings.ContainsRune(key, '=') || seen[key[:i]] {
			continue
		}
		seen[key[:i]] = true
		for _, s := range []string{".clean=", ".smudge=", ".process=", ".required=false"} {
			r.git.filters = append(r.git.filters, "-c", key[:i]+s)
		}
	}
	return nil
}

// Top returns the folder of the checkout that the sessions leave alone.
func (r *Repo) Top() string { return r.top }

// Names of what is kept of a session.
func branchName(session stint.ID, line int) string {
	return fmt.Sprintf("refs/heads/stint/%s/%d", session, line)
}

func loopRef(session stint.ID, line, loop int) string {
	return fmt.Sprintf("refs/stint/%s/%d/%d", session, line, loop)
}

func leftRef(session stint.ID, line, loop, n int) string {
	return fmt.Sprintf("refs/stint/%s/left/%d-%d-%d", session, line, loop, n)
}

// Branch is the branch of a line of a session.
func Branch(session stint.ID, line int) string {
	return strings.TrimPrefix(branchName(session, line), "refs/heads/")
}

// spot is a line and a loop.
type spot struct{ line, loop int }

// kept is what the repository has of a session.
type kept struct {
	loops map[spot]string // commits
	left  map[string]string
}

// of returns the commit with which loop+1 begins on a line: that of the loop on the line itself,
// else on the newest line below it, from which it was kept.
func (k *kept) of(line, loop int) (commit string, ok bool) {
	for ; line >= 0; line-- {
		if commit, ok = k.loops[spot{line, loop}]; ok {
			return commit, true
		}
	}
	return "", false
}

// kept reads what the repository has of a session.
func (r *Repo) kept(ctx context.Context, session stint.ID) (*kept, error) {
	prefix := "refs/stint/" + session.String() + "/"
	out, err := r.git.run(ctx, command{args: []string{"for-each-ref", "--format=%(objectname) %(refname)", prefix}})
	if err != nil {
		return nil, failed(err)
	}
	k := &kept{loops: map[spot]string{}, left: map[string]string{}}
	for _, l := range lines(out) {
		commit, name, _ := strings.Cut(l, " ")
		line, loop, _ := strings.Cut(strings.TrimPrefix(name, prefix), "/")
		if line == "left" {
			k.left[name] = commit
			continue
		}
		a, errA := strconv.Atoi(line)
		b, errB := strconv.Atoi(loop)
		if errA == nil && errB == nil {
			k.loops[spot{a, b}] = commit
		}
	}
	return k, nil
}

// first is the commit that a session without anything of its own begins with. It is asked of
// the checkout, which may be a worktree itself.
func (r *Repo) first(ctx context.Context) (string, error) {
	name := r.spec.Base
	if name == "" {
		name = "HEAD"
	}
	here := git{dir: r.top}
	out, err := here.run(ctx, command{args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}"}})
	var f *failure
	switch {
	case errors.As(err, &f) && r.spec.Base != "":
		return "", wrong(stint.Invalid, "correct workspace: {base: ...}", "the repository at %s has no commit %q", r.top, r.spec.Base)
	case errors.As(err, &f):
		return "", wrong(stint.Invalid, "git commit makes one", "the repository at %s has no commit yet", r.top)
	}
	return strings.TrimSpace(string(out)), failed(err)
}
