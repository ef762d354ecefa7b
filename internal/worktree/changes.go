package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stint-dev/stint"
)

// ChangeKind is what became of a file.
type ChangeKind string

// What becomes of a file.
const (
	Added   ChangeKind = "added"
	Changed ChangeKind = "changed"
	Deleted ChangeKind = "deleted"
)

// Change is one file that differs.
type Change struct {
	Name    string     `json:"name"` // from the top of the repository, with slashes; may hold anything but NUL
	Kind    ChangeKind `json:"kind"`
	Added   int        `json:"added"`   // lines; of a binary file 0
	Deleted int        `json:"deleted"` // lines; of a binary file 0
	Binary  bool       `json:"binary,omitempty"`
}

// Changes is how files differ from what they were.
type Changes struct {
	// Known is false where nobody can tell, as without a worktree. Why says then what is missing.
	Known bool   `json:"known"`
	Why   string `json:"why,omitempty"`
	From  string `json:"from,omitempty"` // a commit
	To    string `json:"to,omitempty"`   // a commit; empty: the files as they are now
	// Files is in order of name.
	Files []Change `json:"files"`
}

// unknown is the answer where nothing can be compared.
func unknown(format string, args ...any) Changes {
	return Changes{Why: fmt.Sprintf(format, args...), Files: []Change{}}
}

// Since compares the files of a session as they are now with those at the end of a loop, as a line
// kept it; line -1 is the one that the worktree is on. It changes no file. A nil Repo is that of
// an agent without workspace, whose files stint does not touch and cannot compare.
func (r *Repo) Since(ctx context.Context, session stint.ID, line, loop int) (Changes, error) {
	if r == nil {
		return unknown("the agent has no workspace of its own"), nil
	}
	f := r.folder(session)
	m, ok := f.mark()
	if _, err := os.Stat(f.Path); !ok || err != nil {
		return unknown("the session has no worktree"), nil
	}
	if line < 0 {
		line = m.Line
	}
	k, err := r.kept(ctx, session)
	if err != nil {
		return Changes{}, err
	}
	from, ok := k.of(line, loop)
	if !ok {
		return unknown("the repository has no files of loop %d", loop), nil
	}
	tree, err := r.now(ctx, f)
	if err != nil {
		return Changes{}, err
	}
	return r.compare(ctx, from, tree, "")
}

// Between compares the files at the ends of two loops of a line, or of none with the files as they
// were when the session began. Loops that the repository does not have are [stint.NotFound].
func (r *Repo) Between(ctx context.Context, session stint.ID, line, a, b int) (Changes, error) {
	k, err := r.kept(ctx, session)
	if err != nil {
		return Changes{}, err
	}
	var commits [2]string
	for i, loop := range []int{a, b} {
		var ok bool
		if commits[i], ok = k.of(line, loop); !ok {
			return Changes{}, wrong(stint.NotFound, "stint workspace show "+session.String()+"  lists those that are there", "there are no files of loop %d", loop)
		}
	}
	return r.compare(ctx, commits[0], commits[1], commits[1])
}

// now writes the files of a worktree as they are, without touching what is staged in it.
func (r *Repo) now(ctx context.Context, f *Folder) (string, error) {
	tmp, err := os.MkdirTemp(f.admin, "look-")
	if err != nil {
		return "", failed(err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	index := filepath.Join(tmp, "index")
	b, err := os.ReadFile(filepath.Join(f.admin, "index"))
	if err == nil {
		err = os.WriteFile(index, b, 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", failed(err)
	}
	return r.tree(ctx, f, index)
}

func (r *Repo) compare(ctx context.Context, from, tree, to string) (Changes, error) {
	out, err := r.git.run(ctx, command{args: []string{"diff-tree", "-r", "-z", "--raw", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", from, tree}})
	if err != nil {
		return Changes{}, failed(err)
	}
	files, err := parseChanges(out)
	if err != nil {
		return Changes{}, &stint.Error{Code: stint.Internal, Op: "workspace", Err: err, Hint: "report it, with what git version says"}
	}
	return Changes{Known: true, From: from, To: to, Files: files}, nil
}

// parseChanges reads what git diff-tree -z --raw --numstat prints: a line of modes and a name for
// each file, then a line of counts for each.
func parseChanges(out []byte) ([]Change, error) {
	all := []Change{}
	at := map[string]int{}
	for len(out) > 0 {
		field, rest, ok := bytes.Cut(out, []byte{0})
		if !ok {
			return nil, errors.New("what git says of changed files is cut off")
		}
		out = rest
		if bytes.HasPrefix(field, []byte{':'}) {
			words := strings.Fields(string(field))
			name, rest, ok := bytes.Cut(out, []byte{0})
			if !ok || len(words) != 5 || len(name) == 0 {
				return nil, fmt.Errorf("git says of a changed file %q", field)
			}
			out = rest
			kind := Changed
			switch words[4] {
			case "A":
				kind = Added
			case "D":
				kind = Deleted
			}
			if _, twice := at[string(name)]; twice {
				return nil, fmt.Errorf("git names %q twice", name)
			}
			at[string(name)] = len(all)
			all = append(all, Change{Name: string(name), Kind: kind})
			continue
		}
		counts := strings.SplitN(string(field), "\t", 3)
		if len(counts) != 3 {
			return nil, fmt.Errorf("git counts %q", field)
		}
		i, ok := at[counts[2]]
		if !ok {
			return nil, fmt.Errorf("git counts the lines of %q, which it did not name", counts[2])
		}
		if counts[0] == "-" && counts[1] == "-" {
			all[i].Binary = true
			continue
		}
		added, errA := strconv.ParseUint(counts[0], 10, 31)
		deleted, errD := strconv.ParseUint(counts[1], 10, 31)
		if errA != nil || errD != nil {
			return nil, fmt.Errorf("git counts %q", field)
		}
		all[i].Added, all[i].Deleted = int(added), int(deleted)
	}
	slices.SortFunc(all, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
