package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stint-dev/stint"
)

// Turn is one attempt at a loop, as the worktree of its session sees it.
type Turn struct {
	Session stint.ID
	Name    string // of the session, for people
	At      stint.Position
	Attempt int
	// Steps says that the journal has a step of this loop. It is not done again, so what it wrote
	// has to stay.
	Steps bool
	// Parent tells where a branch comes from, and is asked when it has no files yet; nil: the
	// session is no branch.
	Parent func(ctx context.Context) (Origin, error)
}

// Origin is the end of a loop of another session.
type Origin struct {
	Session    stint.ID
	Line, Loop int
}

// Folder is the worktree of a session.
type Folder struct {
	Path    string
	Session stint.ID
	top     string
	admin   string // what the repository knows of it
}

// Of returns where a path is in the worktree: one below the checkout that the worktree is of is
// below the worktree, any other is as it was.
func (f *Folder) Of(path string) string {
	path = filepath.Clean(path)
	for _, p := range []string{path, resolved(path)} {
		if rel, err := filepath.Rel(f.top, p); err == nil && filepath.IsLocal(rel) {
			return filepath.Join(f.Path, rel)
		}
	}
	return path
}

// resolved is a path without symbolic links, as far as it exists.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	up := filepath.Dir(path)
	if up == path {
		return path
	}
	return filepath.Join(resolved(up), filepath.Base(path))
}

// stage is what happens in a worktree.
type stage string

const (
	moving stage = "moving" // its files are put in place; nothing of anybody is in it
	open   stage = "open"   // a loop is on
	parked stage = "parked" // a loop was left, and goes on with the files as they are
	done   stage = "done"   // a loop came to its end, and its files are committed
)

// mark says how far a worktree is. It lies with what the repository knows of the worktree, where
// no agent that is held to its folder can write.
type mark struct {
	Stage   stage     `json:"stage"`
	Line    int       `json:"line"`
	Loop    int       `json:"loop"`
	Attempt int       `json:"attempt"`
	Base    string    `json:"base"`             // the commit that the loop began with
	Commit  string    `json:"commit,omitempty"` // the loop's, once it is done; while moving, whose files are put in place
	Since   time.Time `json:"since"`
}

const markFile = "stint.json"

func (f *Folder) mark() (m mark, ok bool) {
	b, err := os.ReadFile(filepath.Join(f.admin, markFile))
	ok = err == nil && json.Unmarshal(b, &m) == nil
	return m, ok && m.Stage != ""
}

// setMark replaces the mark as one.
func (f *Folder) setMark(m mark) error {
	m.Since = time.Now().UTC().Truncate(time.Microsecond)
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	path := filepath.Join(f.admin, markFile)
	part, err := os.OpenFile(path+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return failed(err)
	}
	_, err = part.Write(b)
	if err == nil {
		err = part.Sync()
	}
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Rename(path+".part", path)
	}
	return failed(err)
}

// folder returns the worktree of a session, whether it is there or not. One that the repository
// knows stays where it is, also if Spec.Dir is another one by now.
func (r *Repo) folder(session stint.ID) *Folder {
	f := &Folder{Path: filepath.Join(r.spec.Dir, session.String()), Session: session, top: r.top,
		admin: filepath.Join(r.git.common, "worktrees", session.String())}
	if b, err := os.ReadFile(filepath.Join(f.admin, "gitdir")); err == nil {
		if path := filepath.FromSlash(strings.TrimSuffix(string(b), "\n")); filepath.IsAbs(path) && filepath.Base(path) == ".git" {
			f.Path = filepath.Dir(path)
		}
	}
	return f
}

// in runs a git command in the worktree.
func (r *Repo) in(ctx context.Context, f *Folder, args ...string) ([]byte, error) {
	return r.git.run(ctx, command{args: args, admin: f.admin, tree: f.Path})
}

// Prepare makes the worktree of a session ready for an attempt at a loop, and returns it: with
// the files of the loop before, on the branch of the line. What else lies in it is committed
// first. An attempt that goes on where one was parked, or after steps that are not done again,
// finds the files as they were left. note tells a person what was done with files that were found;
// it may be empty.
//
// Errors besides those of [Repo]: [stint.NotFound] for a loop whose commit is gone,
// [stint.Exists] for a branch that somebody else made.
func (r *Repo) Prepare(ctx context.Context, t Turn) (f *Folder, note string, err error) {
	f = r.folder(t.Session)
	if err := r.unlock(ctx, f); err != nil {
		return nil, "", err
	}
	k, err := r.kept(ctx, t.Session)
	if err != nil {
		return nil, "", err
	}
	m, known := f.mark()
	again := known && m.Line == t.At.Line && m.Loop == t.At.Loop
	there := false
	if known {
		info, err := os.Stat(f.Path)
		there = err == nil && info.IsDir()
		if !there && !errors.Is(err, fs.ErrNotExist) {
			return nil, "", wrong(stint.Unavailable, "move away what is there, or make it readable", "%s is not a folder that can be used", f.Path)
		}
	}
	if there {
		if err := f.link(); err != nil {
			return nil, "", err
		}
	}
	switch {
	case there && again && m.Stage != moving && (t.Steps || m.Stage == parked && m.Attempt == t.Attempt):
		m.Stage, m.Attempt = open, t.Attempt
		return f, "", f.setMark(m)
	case there && m.Stage == done && m.Line == t.At.Line && m.Loop+1 == t.At.Loop:
		note, err = r.next(ctx, f, t, m)
		return f, note, err
	}
	base := m.Base
	if !again {
		if base, err = r.begin(ctx, t, k); err != nil {
			return nil, "", err
		}
	}
	commit := base
	switch {
	case !known:
		err = r.create(ctx, f, t, base)
	case !there && again && t.Steps:
		if c, ok := k.loops[spot{t.At.Line, t.At.Loop}]; ok { // it had come to its end
			commit = c
		} else {
			note = "the folder was removed in the middle of the loop: what its finished steps wrote is gone"
		}
	case !there:
	case m.Stage == moving && again:
		commit = m.Commit
	case m.Stage != moving:
		note, err = r.leave(ctx, f, t, k, m)
	}
	if err == nil {
		err = r.move(ctx, f, t, k, base, commit)
	}
	return f, note, err
}

// next goes on with the loop after the one that is done. What a person changed meanwhile stays,
// in a commit of its own.
func (r *Repo) next(ctx context.Context, f *Folder, t Turn, m mark) (note string, err error) {
	commit, err := r.snapshot(ctx, f, m.Commit, message(t, "changed before loop "+fmt.Sprint(t.At.Loop)))
	if err != nil {
		return "", err
	}
	if commit != m.Commit {
		note = "files were changed between the loops, and stay: commit " + short(commit)
		if err := r.refs(ctx, "update "+branchName(t.Session, t.At.Line)+" "+commit); err != nil {
			return "", err
		}
		if err := r.onBranch(ctx, f, t.At.Line); err != nil {
			return "", err
		}
	}
	return note, f.setMark(mark{Stage: open, Line: t.At.Line, Loop: t.At.Loop, Attempt: t.Attempt, Base: commit})
}

// leave commits what lies in a worktree that is about to be another loop's.
func (r *Repo) leave(ctx context.Context, f *Folder, t Turn, k *kept, m mark) (note string, err error) {
	at := t
	at.At.Line, at.At.Loop, at.Attempt = m.Line, m.Loop, m.Attempt
	was := m.Commit
	if was == "" {
		was = m.Base
	}
	commit, err := r.snapshot(ctx, f, was, message(at, "left behind by loop "+fmt.Sprint(m.Loop)))
	if err != nil {
		return "", err
	}
	again := m.Line == t.At.Line && m.Loop == t.At.Loop // its own commit is about to be replaced
	if commit == m.Base || commit == m.Commit && !again {
		return "", nil
	}
	ref := ""
	for name, has := range k.left {
		if has == commit {
			ref = name
		}
	}
	for n := 1; ref == ""; n++ {
		if name := leftRef(t.Session, m.Line, m.Loop, n); k.left[name] == "" {
			ref = name
		}
	}
	k.left[ref] = commit
	orders := []string{"update " + ref + " " + commit}
	if m.Line != t.At.Line {
		orders = append(orders, "update "+branchName(t.Session, m.Line)+" "+commit)
	}
	return fmt.Sprintf("what loop %d left behind is in commit %s (%s)", m.Loop, short(commit), ref), r.refs(ctx, orders...)
}

// Commit commits the files of a loop that came to its end, on the branch of its line, and returns
// the commit: where nothing changed the one that the loop began with.
func (r *Repo) Commit(ctx context.Context, f *Folder, t Turn) (string, error) {
	m, ok := f.mark()
	if !ok || m.Line != t.At.Line || m.Loop != t.At.Loop {
		return "", wrong(stint.Conflict, "leave the worktrees to stint while a session runs", "the worktree %s is not at loop %d any more", f.Path, t.At.Loop)
	}
	commit, err := r.snapshot(ctx, f, m.Base, message(t, "loop "+fmt.Sprint(t.At.Loop)))
	if err != nil {
		return "", err
	}
	err = r.refs(ctx, "update "+branchName(t.Session, t.At.Line)+" "+commit, "update "+loopRef(t.Session, t.At.Line, t.At.Loop)+" "+commit)
	if err != nil {
		return "", err
	}
	if err := r.onBranch(ctx, f, t.At.Line); err != nil {
		return "", err
	}
	m.Stage, m.Commit = done, commit
	return commit, f.setMark(m)
}

// Park notes that a loop was left, and goes on with the files as they are.
func (r *Repo) Park(f *Folder) error {
	m, ok := f.mark()
	if !ok || m.Stage != open {
		return nil
	}
	m.Stage = parked
	return f.setMark(m)
}

// snapshot commits all files of a worktree on top of what is checked out there, which an agent
// may have changed; where nothing differs from that, it is the answer. was is the commit to build
// on where nothing can be told to be checked out.
func (r *Repo) snapshot(ctx context.Context, f *Folder, was, text string) (string, error) {
	tree, err := r.tree(ctx, f, "")
	if err != nil {
		return "", err
	}
	head, has := was, ""
	out, err := r.in(ctx, f, "rev-parse", "HEAD^{commit}", "HEAD^{tree}")
	var bad *failure
	if errors.As(err, &bad) {
		out, err = r.in(ctx, f, "rev-parse", was+"^{commit}", was+"^{tree}")
	}
	if err != nil {
		return "", failed(err)
	}
	if both := lines(out); len(both) == 2 {
		head, has = both[0], both[1]
	}
	if has == tree {
		return head, nil
	}
	out, err = r.git.run(ctx, command{args: []string{"commit-tree", "--no-gpg-sign", "-p", head, "-F", "-", tree}, input: []byte(text)})
	return strings.TrimSpace(string(out)), failed(err)
}

// tree writes all files of a worktree, as the index has them then, and returns what git calls a
// tree. index is used instead of the worktree's own, unless it is empty.
//
// Repositories within the worktree are left out: git would ask them what they are, and their
// configuration can name a program for that.
func (r *Repo) tree(ctx context.Context, f *Folder, index string) (string, error) {
	c := command{admin: f.admin, tree: f.Path, index: index, args: []string{"ls-files", "-z", "-t", "--stage", "--others", "--exclude-standard"}}
	out, err := r.git.run(ctx, c)
	if err != nil {
		return "", failed(err)
	}
	paths := []byte(".\x00")
	for _, path := range within(out) {
		paths = append(paths, ":(exclude,literal,top)"+path+"\x00"...)
	}
	c.args, c.input = []string{"add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"}, paths
	if _, err := r.git.run(ctx, c); err != nil {
		return "", failed(err)
	}
	c.args, c.input = []string{"write-tree"}, nil
	out, err = r.git.run(ctx, c)
	return strings.TrimSpace(string(out)), failed(err)
}

// within returns the repositories that are in a worktree, of what ls-files says: those of the index
// have a mode of their own, others a slash at their end.
func within(out []byte) []string {
	var all []string
	for entry := range strings.SplitSeq(string(out), "\x00") {
		tag, rest, _ := strings.Cut(entry, " ")
		switch mode, path, staged := strings.Cut(rest, "\t"); {
		case tag == "?":
			if path, ok := strings.CutSuffix(rest, "/"); ok {
				all = append(all, path)
			}
		case staged && strings.HasPrefix(mode, "160000 "):
			all = append(all, path)
		}
	}
	return all
}

// refs changes names, all or none.
func (r *Repo) refs(ctx context.Context, orders ...string) error {
	_, err := r.git.run(ctx, command{args: []string{"update-ref", "--stdin"}, input: []byte(strings.Join(orders, "\n") + "\n")})
	var f *failure
	if errors.As(err, &f) && strings.Contains(f.stderr, "'refs/heads/stint'") {
		return wrong(stint.Exists, "git branch -m stint OTHER  makes room", "the repository has a branch stint, and so none can be stint/SESSION/LINE")
	}
	return failed(err)
}

// onBranch makes the branch of a line the one that is checked out, without touching files.
func (r *Repo) onBranch(ctx context.Context, f *Folder, line int) error {
	name := branchName(f.Session, line)
	if b, err := os.ReadFile(filepath.Join(f.admin, "HEAD")); err == nil && strings.TrimSpace(string(b)) == "ref: "+name {
		return nil
	}
	_, err := r.in(ctx, f, "symbolic-ref", "HEAD", name)
	return failed(err)
}

// message is the text of a commit.
func message(t Turn, what string) string {
	name := strings.Join(strings.FieldsFunc(t.Name, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 || r == 0x85 }), " ")
	if rs := []rune(name); len(rs) > 60 {
		name = string(rs[:60])
	}
	if name = strings.TrimSpace(strings.ToValidUTF8(name, "")); name == "" {
		name = t.Session.String()
	}
	return fmt.Sprintf("%s: %s\n\nStint-Session: %s\nStint-Line: %d\nStint-Loop: %d\nStint-Attempt: %d\n", name, what, t.Session, t.At.Line, t.At.Loop, t.Attempt)
}

func short(commit string) string { return commit[:min(len(commit), 12)] }
