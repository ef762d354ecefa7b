package config

import (
	"errors"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/worktree"
)

// apartMembers are the keys of agents that work on files of this machine.
func (d *decoder) apartMembers(a *Agent) []member {
	return []member{
		{"workspace", func(n *node, path string) { a.Workspace = d.workspace(n, path) }},
	}
}

// apart is what sets sessions apart.
type apart string

const (
	inWorktrees apart = "worktree"
	notApart    apart = "none"
)

// workspace reads a word, or a mapping of what is not as it is without one.
func (d *decoder) workspace(n *node, path string) *worktree.Spec {
	w := &worktree.Spec{Repo: d.dir, Keep: worktree.KeepAll}
	if n.shape == mapping {
		d.section(n, path, "", d.workspaceMembers(w))
		return w
	}
	kind := inWorktrees
	if choose(d, n, path, &kind, inWorktrees, notApart); kind == notApart {
		return nil
	}
	return w
}

func (d *decoder) workspaceMembers(w *worktree.Spec) []member {
	const where = "the path of a folder"
	return []member{
		{"kind", func(n *node, path string) {
			kind := inWorktrees // as long as there is no other
			choose(d, n, path, &kind, inWorktrees)
		}},
		{"repo", func(n *node, path string) {
			if s, ok := d.path(n, path, where); ok {
				w.Repo = s
			}
		}},
		{"dir", func(n *node, path string) {
			if s, ok := d.path(n, path, where); ok {
				w.Dir = s
			}
		}},
		{"base", func(n *node, path string) {
			const what = "a branch, a tag or a commit"
			s, ok := d.oneLine(n, path, what, 200)
			if ok && strings.HasPrefix(s, "-") {
				d.expected(n, path, what, "", "")
			} else if ok {
				w.Base = s
			}
		}},
		{"author", func(n *node, path string) {
			s, ok := d.oneLine(n, path, "a name and an address", 200)
			if !ok {
				return
			}
			var e *stint.Error
			if _, _, err := worktree.ParseAuthor(s); errors.As(err, &e) {
				d.expected(n, path, "a name and an address", "", e.Hint)
				return
			}
			w.Author = s
		}},
		{"keep", func(n *node, path string) { choose(d, n, path, &w.Keep, worktree.KeepAll, worktree.KeepBranch) }},
	}
}
