package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/proc"
)

// Bounds of one git command.
const (
	gitTime   = 10 * time.Minute // a checkout of a large repository on a slow disk
	maxOutput = 256 << 20        // of what is read of it
	maxStderr = 8 << 10          // of what is shown of it
	lockTime  = 10 * time.Second // that another git may hold a lock
	firstWait = 10 * time.Millisecond
	maxWait   = 500 * time.Millisecond
)

// git runs git commands in one repository.
type git struct {
	dir     string   // where the first command looks for the repository
	common  string   // the repository's own folder; empty while it is not known
	author  []string // variables that say who commits
	filters []string // settings that switch off the filters that the repository configures
}

// failure is a git command that ended with an error.
type failure struct {
	command string
	code    int
	stderr  string
}

// Error says which command failed, and git's own words.
func (f *failure) Error() string {
	if f.stderr == "" {
		return fmt.Sprintf("git %s: exit %d", f.command, f.code)
	}
	return "git " + f.command + ": " + f.stderr
}

// locked reports whether another git was in the way.
func (f *failure) locked() bool {
	return strings.Contains(f.stderr, ".lock': File exists") || strings.Contains(f.stderr, "could not lock")
}

// quiet are the settings of every command. What the repository sets otherwise does not count.
func quiet() []string {
	var all []string
	for _, s := range []string{
		"core.hooksPath=" + os.DevNull, "core.fsmonitor=false", "core.editor=false", "core.pager=cat", "core.bare=false",
		"core.filesRefLockTimeout=10000", "core.packedRefsTimeout=10000", "core.sparseCheckout=false", "core.ignoreStat=false",
		"core.fsync=committed,loose-object", "core.fsyncMethod=batch", // a name that is there after a power cut has what it names
		"gc.auto=0", "maintenance.auto=false", "submodule.recurse=false", "protocol.allow=never",
		"commit.gpgSign=false", "commit.template=", "advice.addEmbeddedRepo=false", "log.showSignature=false",
	} {
		all = append(all, "-c", s)
	}
	return all
}

// environ is the whole environment of git. HOME is where a person's list of ignored files is.
func (g *git) environ(index string) []string {
	env := []string{"LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1",
		"GIT_ASKPASS=", "GIT_EDITOR=false", "GIT_PAGER=cat"}
	names := []string{"PATH", "HOME", "TMPDIR", "XDG_CONFIG_HOME"}
	if runtime.GOOS == "windows" {
		names = append(names, "SYSTEMROOT", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE")
	}
	for _, name := range names {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	if index != "" {
		env = append(env, "GIT_INDEX_FILE="+index)
	}
	return append(env, g.author...)
}

// command is one git command. With tree set it works on the worktree there, whose part of the
// repository is admin; nothing that lies in the worktree says where the repository is.
type command struct {
	args  []string
	input []byte
	admin string
	tree  string
	index string // used instead of the worktree's own
}

// run runs a command and returns its output. It waits for locks of others for ten seconds.
func (g *git) run(ctx context.Context, c command) ([]byte, error) {
	deadline := time.Now().Add(lockTime)
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		out, err := g.once(ctx, c)
		var f *failure
		if !errors.As(err, &f) || !f.locked() || time.Now().After(deadline) {
			return out, err
		}
		if err := pause(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

func (g *git) once(ctx context.Context, c command) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	argv := append([]string{"git", "--no-pager"}, quiet()...)
	argv = append(argv, g.filters...)
	dir := g.dir
	switch {
	case c.tree != "":
		argv, dir = append(argv, "--git-dir="+c.admin, "--work-tree="+c.tree), c.tree
	case g.common != "":
		argv, dir = append(argv, "--git-dir="+g.common), g.common
	}
	p, err := proc.Start(ctx, proc.Spec{
		Argv: append(argv, c.args...), Dir: dir, Env: g.environ(c.index), Name: "git", NoGuard: true, // it starts nothing, and a guard costs more than most of them
		Stdin: proc.Stream{Pipe: c.input != nil}, Stdout: proc.Stream{Pipe: true}, Stderr: proc.Stream{Pipe: true},
	})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, proc.ErrSpec):
		return nil, wrong(stint.Invalid, "install git, or put it into the PATH of stint", "git is not in PATH")
	case err != nil:
		return nil, failed(err)
	}
	var out, said []byte
	var streams sync.WaitGroup
	streams.Go(func() { out = drain(p.Stdout(), maxOutput) })
	streams.Go(func() { said = drain(p.Stderr(), maxStderr) })
	if c.input != nil {
		streams.Go(func() {
			_, _ = p.Stdin().Write(c.input) // git says what it misses
			p.Stdin().Close()
		})
	}
	x := p.Wait()
	streams.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case x.Code != 0:
		return out, &failure{c.args[0], x.Code, strings.TrimSpace(string(said))}
	case len(out) >= maxOutput:
		return nil, wrong(stint.Limit, "ignore what need not be kept, in .gitignore", "git %s writes more than %d bytes", c.args[0], maxOutput)
	}
	return out, nil
}

// drain reads a stream to its end and keeps the beginning.
func drain(r io.Reader, most int) []byte {
	b, _ := io.ReadAll(io.LimitReader(r, int64(most)))
	_, _ = io.Copy(io.Discard, r)
	return b
}

// lines splits output into its lines.
func lines(out []byte) []string {
	s := strings.TrimSuffix(string(bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n"))), "\n")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// wrong is an error of this package.
func wrong(code stint.Code, hint, format string, args ...any) *stint.Error {
	e := code.Errorf("workspace", format, args...)
	e.Hint = hint
	return e
}

// failed is the error for a command that did not do what it should, or for a file that could
// not be written. It may be gone at the next attempt, so the loop is tried again.
func failed(err error) error {
	var e *stint.Error
	if err == nil || errors.As(err, &e) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e = &stint.Error{Code: stint.Unavailable, Op: "workspace", Err: err, Hint: "mend what git says; the loop is tried again"}
	var f *failure
	switch {
	case !errors.As(err, &f):
		e.Hint = "check the disk, and that the folder is this user's"
	case f.locked():
		e.Hint = "another git has the lock; if none runs, remove the file that it names"
	case strings.Contains(f.stderr, "Permission denied"):
		e.Hint = "make the file readable, or name it in .gitignore"
	case strings.Contains(f.stderr, "No space left"):
		e.Hint = "make room on the disk"
	}
	return e
}
