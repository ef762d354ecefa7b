package worktree_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/worktree"
)

// fakeLoop is a loop of an engine, as far as the agent needs it.
type fakeLoop struct {
	ses  stint.Session
	logs string
}

func (l *fakeLoop) Session() stint.Session { return l.ses }
func (l *fakeLoop) State() json.RawMessage { return nil }
func (l *fakeLoop) Inbox() []stint.Message { return nil }
func (l *fakeLoop) Do(ctx context.Context, s stint.Step, fn func(context.Context, string) (stint.Result, error)) (stint.Result, error) {
	return fn(ctx, "")
}
func (l *fakeLoop) DoAll(context.Context, []stint.Step, func(context.Context, int, string) (stint.Result, error)) ([]stint.Result, error) {
	return nil, nil
}
func (l *fakeLoop) Progress(string)             {}
func (l *fakeLoop) Log(stream string, p []byte) { l.logs += stream + ": " + string(p) }

func session(n, line, loop, attempt, step int) *fakeLoop {
	return &fakeLoop{ses: stint.Session{ID: id(n), Name: "s", At: stint.Place{Line: line, Loop: loop, Attempt: attempt, Step: step, Open: true}}}
}

// inner is an agent of one folder.
type inner struct {
	folder   string
	do       func(folder string) (stint.Next, error)
	released *[]string
}

func (a *inner) Loop(context.Context, stint.Loop) (stint.Next, error) { return a.do(a.folder) }
func (a *inner) Release(stint.ID)                                     { *a.released = append(*a.released, "release") }
func (a *inner) Close() error                                         { *a.released = append(*a.released, "close"); return nil }

// An agent that is wrapped finds its folder ready, and what it wrote is kept where its loop came to
// its end, or goes on.
func TestWrap(t *testing.T) {
	dir := temp(t)
	repo := checkout(t, dir)
	var do func(folder string) (stint.Next, error)
	var released []string
	made := 0
	a := worktree.Wrap(worktree.Options{
		Spec: worktree.Spec{Repo: filepath.Join(repo, "sub"), Dir: filepath.Join(dir, "trees"), Keep: worktree.KeepBranch},
		Make: func(_ context.Context, f *worktree.Folder) (stint.Agent, error) {
			made++
			return &inner{f.Of(filepath.Join(repo, "sub")), func(folder string) (stint.Next, error) { return do(folder) }, &released}, nil
		},
	})
	ctx := context.Background()
	call := func(l *fakeLoop, f func(folder string) (stint.Next, error)) error {
		t.Helper()
		do = f
		_, err := a.Loop(ctx, l)
		return err
	}
	writes := func(name, content string, then stint.Next, err error) func(string) (stint.Next, error) {
		return func(folder string) (stint.Next, error) {
			write(t, filepath.Join(folder, name), content)
			return then, err
		}
	}
	if err := call(session(1, 0, 1, 1, 0), writes("one", "1", stint.Next{}, nil)); err != nil {
		t.Fatal(err)
	}
	if got := git(t, repo, "show", worktree.Branch(id(1), 0)+":sub/one"); got != "1" {
		t.Errorf("the branch has %q", got)
	}
	sees := func(want string) func(string) (stint.Next, error) {
		return func(folder string) (stint.Next, error) {
			b, err := os.ReadFile(filepath.Join(folder, "half"))
			if got := string(b); got != want || want == "" && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the loop finds %q, %v; want %q", got, err, want)
			}
			return stint.Next{}, errors.New("an attempt that fails")
		}
	}
	_ = call(session(1, 0, 2, 1, 0), writes("half", "parked", stint.Next{}, stint.ErrParked))
	_ = call(session(1, 0, 2, 1, 0), sees("parked"))
	second := session(1, 0, 2, 2, 0)
	_ = call(second, sees(""))
	if !strings.HasPrefix(second.logs, "log: [stint] what loop 2 left behind is in commit ") {
		t.Errorf("the log: %q", second.logs)
	}
	_ = call(session(1, 0, 2, 2, 0), writes("half", "step", stint.Next{}, errors.New("failed")))
	_ = call(session(1, 0, 2, 3, 1), sees("step"))
	if made != 1 || len(released) != 0 {
		t.Errorf("%d agents made, %v", made, released)
	}
	if err := call(session(1, 0, 2, 4, 1), writes("end", "e", stint.Next{End: &stint.End{}}, nil)); err != nil {
		t.Fatal(err)
	}
	a.Release(id(1))
	if strings.Join(released, " ") != "release close" {
		t.Errorf("released: %v", released)
	}
	if exists(filepath.Join(dir, "trees", id(1).String())) {
		t.Error("the worktree of a session that ended is still there")
	}
	if got := git(t, repo, "show", worktree.Branch(id(1), 0)+":sub/end"); got != "e" {
		t.Errorf("the branch has %q", got)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// What no other attempt can mend ends the session; what may be gone by then does not.
func TestWrapFails(t *testing.T) {
	a := worktree.Wrap(worktree.Options{Spec: worktree.Spec{Repo: t.TempDir(), Dir: t.TempDir()}})
	_, err := a.Loop(context.Background(), session(1, 0, 1, 1, 0))
	var steer interface {
		Steer() (after time.Duration, final, definite bool)
	}
	if !errors.As(err, &steer) || stint.CodeOf(err) != stint.Invalid {
		t.Fatalf("%v", err)
	}
	if _, final, _ := steer.Steer(); !final {
		t.Errorf("it is tried again: %v", err)
	}
}
