package worktree

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
)

// Info is what there is of a session's files.
type Info struct {
	Session stint.ID `json:"session"`
	Path    string   `json:"path,omitempty"` // of the worktree; empty: there is none
	Branch  string   `json:"branch,omitempty"`
	Line    int      `json:"line"`
	Loop    int      `json:"loop"`  // that the worktree is at
	Stage   string   `json:"stage"` // open: a loop is on, or broke off; parked; done; moving; empty without a worktree
	// Since is when the worktree came to that stage.
	Since time.Time `json:"since,omitzero"`
	Loops []Kept    `json:"loops"` // in order of line and loop
	Left  []Kept    `json:"left"`  // what was found and is no loop's
}

// Kept is a commit that the repository keeps of a session.
type Kept struct {
	Line   int    `json:"line"`
	Loop   int    `json:"loop"` // at whose end the files were so; the one before a line's first is its beginning
	Commit string `json:"commit"`
	Ref    string `json:"ref"`
}

// Sessions returns the sessions that have a worktree, oldest first.
func (r *Repo) Sessions() ([]stint.ID, error) {
	all, err := os.ReadDir(filepath.Join(r.git.common, "worktrees"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, failed(err)
	}
	var out []stint.ID
	for _, d := range all {
		id, err := stint.ParseID(d.Name())
		if err != nil {
			continue
		}
		if _, ok := r.folder(id).mark(); ok {
			out = append(out, id)
		}
	}
	return out, nil
}

// Info returns what there is of a session's files; a session that has none has none of all.
func (r *Repo) Info(ctx context.Context, session stint.ID) (Info, error) {
	out := Info{Session: session, Loops: []Kept{}, Left: []Kept{}}
	k, err := r.kept(ctx, session)
	if err != nil {
		return out, err
	}
	f := r.folder(session)
	if m, ok := f.mark(); ok {
		out.Path, out.Branch = f.Path, Branch(session, m.Line)
		out.Line, out.Loop, out.Stage, out.Since = m.Line, m.Loop, string(m.Stage), m.Since
	}
	for s, commit := range k.loops {
		out.Loops = append(out.Loops, Kept{s.line, s.loop, commit, loopRef(session, s.line, s.loop)})
	}
	slices.SortFunc(out.Loops, func(a, b Kept) int { return cmp.Or(a.Line-b.Line, a.Loop-b.Loop) })
	for _, name := range slices.Sorted(maps.Keys(k.left)) {
		kept := Kept{Commit: k.left[name], Ref: name}
		where := strings.Split(name[strings.LastIndexByte(name, '/')+1:], "-")
		if len(where) == 3 {
			kept.Line, _ = strconv.Atoi(where[0])
			kept.Loop, _ = strconv.Atoi(where[1])
		}
		out.Left = append(out.Left, kept)
	}
	return out, nil
}

// Remove removes the worktree of a session, which nobody may be at work in. What is not committed
// in it is committed before, but for files that git ignores. Its branches and commits stay, unless
// all is set; then nothing of the session is left. It is no error if there is nothing.
func (r *Repo) Remove(ctx context.Context, session stint.ID, all bool) error {
	f := r.folder(session)
	if err := r.unlock(ctx, f); err != nil {
		return err
	}
	k, err := r.kept(ctx, session)
	if err != nil {
		return err
	}
	m, known := f.mark()
	if _, err := os.Stat(f.Path); known && err == nil {
		if !all && m.Stage != moving {
			t := Turn{Session: session, At: stint.Position{Line: m.Line, Loop: m.Loop + 1}}
			if _, err := r.leave(ctx, f, t, k, m); err != nil {
				return err
			}
		}
	}
	if err := f.remove(); err != nil || !all {
		return err
	}
	out, err := r.git.run(ctx, command{args: []string{"for-each-ref", "--format=delete %(refname)", "refs/stint/" + session.String() + "/", "refs/heads/stint/" + session.String() + "/"}})
	if err != nil || len(out) == 0 {
		return failed(err)
	}
	return r.refs(ctx, lines(out)...)
}

// remove removes the folder, and then what the repository knows of it: cut off in between, the
// folder would be made again.
func (f *Folder) remove() error {
	if _, known := f.mark(); known {
		if err := os.RemoveAll(f.Path); err != nil {
			return failed(err)
		}
	}
	return failed(os.RemoveAll(f.admin))
}
