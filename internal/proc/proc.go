// Package proc starts programs and answers for everything they start in turn.
//
// A program started here owns a tree: the program, its children, and every process below those, whether or not they changed
// their session, forked twice or closed their streams. The tree ends as one. It ends when the program exits, when the
// caller kills it, when the context is done, and when the calling process dies.
//
// On Linux a small guard process stands between the caller and the program. It is this same executable, started again (see
// [MaybeGuard]); it is the subreaper of the tree, so orphans come to it and not to the caller or to init, it reaps them, and
// it reads a pipe whose other end only the caller holds, so the death of the caller ends the tree at once. Where a cgroup v2
// directory can be made, the tree also lives in a cgroup of its own and is killed with cgroup.kill (kernel documentation,
// admin-guide/cgroup-v2). Other Unix systems kill the process group; Windows ends a job object.
//
// This contains programs that leave things behind. It is not a boundary against a program that means harm and has the same
// user id: such a program can kill its guard, or ask a service outside the tree to start something for it.
package proc

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Names of the environment variables of this package. The first marks every process of a tree, the second a guard, and the
// third holds the pid of a process that called MaybeGuard.
const (
	markerEnv = "STINT_PROC"
	guardEnv  = "STINT_PROC_GUARD"
	readyEnv  = "STINT_PROC_READY"
)

// ownerEnv is a variable that a guard has as the program has it, so that a process of the tree that cleared its own can still
// be told whose it is.
const ownerEnv = "STINT_SESSION"

const (
	defaultGrace  = 2 * time.Second
	defaultLinger = 200 * time.Millisecond
	// killBudget bounds the killing after the last grace has passed. With the default grace it stays inside the 5 s in which
	// a canceled tree must be gone.
	killBudget = 2500 * time.Millisecond
	// guardBudget bounds the wait for a guard to report that it started the program.
	guardBudget = 10 * time.Second
)

// ErrSpec reports a Spec that cannot be started as written. Errors that wrap it say which field is wrong.
var ErrSpec = errors.New("proc: unusable spec")

// ErrUnsupported reports an operation which the operating system gives no safe way to do.
var ErrUnsupported = errors.New("proc: not supported on this system")

// Mode names the mechanism that holds a tree together.
type Mode int

const (
	// ModeAuto takes the best mechanism that works here: ModeCgroup, else ModeSubreaper, else ModeGroup; ModeJob on Windows.
	ModeAuto Mode = iota
	// ModeCgroup puts the tree into a cgroup v2 of its own, killed by the kernel in one operation. It includes ModeSubreaper.
	ModeCgroup
	// ModeSubreaper finds the tree by descent from the guard. Without a guard it finds it by descent from the program and by
	// the marker in the environment, and misses a process that forked twice and cleared its environment.
	ModeSubreaper
	// ModeGroup kills the process group only. A process that left the group survives.
	ModeGroup
	// ModeJob is a Windows job object.
	ModeJob
)

// String returns the mode in lower case: auto, cgroup, subreaper, group or job.
func (m Mode) String() string {
	names := []string{"auto", "cgroup", "subreaper", "group", "job"}
	if m < 0 || int(m) >= len(names) {
		return fmt.Sprintf("mode(%d)", int(m))
	}
	return names[m]
}

// Stream says what one standard stream of the program is. The zero value is the null device.
type Stream struct {
	// Pipe makes a pipe whose other end the Proc hands out.
	Pipe bool
	// File, when set, is handed to the program as it is. It stays open and stays the caller's.
	File *os.File
}

// Spec describes one program to start. It is not changed by Start.
type Spec struct {
	// Argv is the program and its arguments; no shell reads it. A name without a slash is looked up in the PATH of Env.
	Argv []string
	// Dir is the working directory; empty means the caller's.
	Dir string
	// Env is the whole environment, each entry NAME=value. Nothing is inherited; one marker variable, STINT_PROC, is added.
	Env []string
	// Name appears in the name of the cgroup and in the guard's arguments. Characters outside [a-zA-Z0-9-] are replaced; at
	// most 32 are kept.
	Name string
	// Stdin, Stdout and Stderr are the standard streams.
	Stdin, Stdout, Stderr Stream
	// Grace is the time between SIGTERM and SIGKILL when the context ends. Zero means 2 s. A tree is gone at most 2.5 s
	// after its grace has passed.
	Grace time.Duration
	// Linger is the time the rest of the tree may take to end by itself after the program exited, as a tee at the end of
	// a pipeline does. Zero means 200 ms, a negative value none.
	Linger time.Duration
	// Foreground leaves the program in the caller's process group and session, so that it may use the terminal and the
	// terminal's interrupt key reaches it. Otherwise it has its own group, and with a guard no controlling terminal.
	Foreground bool
	// NoGuard starts the program directly. Then the death of the caller kills the program itself (Linux only) and what it
	// left behind stays until Sweep. Start does the same when this process never called MaybeGuard.
	NoGuard bool
	// Offline gives the tree a network of its own in which there is nobody: no connection, also none to this machine, is
	// possible. What lies in the file system, such as a socket with a path, is still there. Start fails with
	// ErrUnsupported where CanOffline does.
	Offline bool
	// Mode demands one mechanism; Start fails when it is not to be had. ModeAuto takes the best.
	Mode Mode
}

// Exit is how a program and its tree ended.
type Exit struct {
	// Code is the exit status, or -1 when a signal ended the program or the status is unknown.
	Code int
	// Signal names the signal that ended the program, as in SIGKILL; empty when it exited.
	Signal string
	// Killed is true when Kill, Terminate, the context or the end of the caller came before the program's end.
	Killed bool
	// Left counts the processes of the tree that could not be killed in time, as happens in an uninterruptible system call.
	Left int
	// Lost is true when the guard died before it could report; the tree was then killed, and Code is -1.
	Lost bool
}

// command goes from the caller to whatever supervises the tree.
type command struct {
	Kill  bool
	Grace time.Duration
}

// handle is what the platform returns for a started program. exit yields one value; send never blocks for long.
type handle struct {
	root, guard Ident
	mode        Mode
	send        func(command)
	exit        <-chan Exit
}

// Proc is a started program. Its methods may be called from any goroutine; each stream has one user at a time.
type Proc struct {
	h              handle
	marker         string
	stdin          *os.File
	stdout, stderr *output
	done           chan struct{}
	exit           Exit
	unread         int // bytes of the input; -1: nobody knows
}

// Start starts a program. When ctx ends, the tree gets SIGTERM and after Spec.Grace SIGKILL. It returns an error wrapping
// ErrSpec for a bad Spec, one wrapping fs.ErrNotExist or fs.ErrPermission when the program cannot be executed, and the
// context's error when that ended first.
func Start(ctx context.Context, spec Spec) (*Proc, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := spec.check(); err != nil {
		return nil, err
	}
	path, err := resolve(spec.Argv[0], spec.Env)
	if err != nil {
		return nil, err
	}
	s := stdio{}
	defer s.closeChild()
	if err := s.open(spec); err != nil {
		s.closeOurs()
		return nil, err
	}
	spec.Name = cleanName(spec.Name)
	spec.Env = cleanEnv(spec.Env)
	marker := newMarker()
	h, err := launchProgram(ctx, spec, path, marker, s.child)
	if err != nil {
		s.closeOurs()
		return nil, err
	}
	p := &Proc{h: h, marker: marker, stdin: s.stdin, stdout: s.stdout, stderr: s.stderr, done: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { p.Terminate(spec.Grace) })
	go func() {
		p.exit = <-h.exit
		stop()
		p.endStreams()
		close(p.done)
	}()
	return p, nil
}

// check fills in defaults and refuses what cannot be started.
func (s *Spec) check() error {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return fmt.Errorf("%w: Argv is empty; name a program", ErrSpec)
	}
	for _, v := range slices.Concat(s.Argv, s.Env, []string{s.Dir}) {
		if strings.ContainsRune(v, 0) {
			return fmt.Errorf("%w: a NUL byte in %q; remove it", ErrSpec, v)
		}
	}
	for _, v := range s.Env {
		if i := strings.IndexByte(v, '='); i <= 0 {
			return fmt.Errorf("%w: an entry of Env has no name and '='; write NAME=value", ErrSpec)
		}
	}
	for _, st := range []Stream{s.Stdin, s.Stdout, s.Stderr} {
		if st.Pipe && st.File != nil {
			return fmt.Errorf("%w: a stream is both Pipe and File; choose one", ErrSpec)
		}
	}
	if s.Dir != "" {
		if fi, err := os.Stat(s.Dir); err != nil {
			return fmt.Errorf("%w: working directory: %w; create it or correct Dir", ErrSpec, err)
		} else if !fi.IsDir() {
			return fmt.Errorf("%w: working directory %s is not a directory", ErrSpec, s.Dir)
		}
	}
	if s.Grace <= 0 {
		s.Grace = defaultGrace
	}
	if s.Linger == 0 {
		s.Linger = defaultLinger
	}
	s.Linger = max(s.Linger, 0)
	return nil
}

// Pid returns the process id of the program. It may be reused once Done is closed.
func (p *Proc) Pid() int { return p.h.root.Pid }

// Ident identifies the program beyond the reuse of its pid. Record it to find the program after a crash.
func (p *Proc) Ident() Ident { return p.h.root }

// Guard identifies the process from which the whole tree descends: the guard, or the program when there is none. Use it with
// Descends; an orphan of the tree no longer descends from the program itself.
func (p *Proc) Guard() Ident { return p.h.guard }

// Marker returns the random text that every process of the tree carries in its environment, for Sweep.
func (p *Proc) Marker() string { return p.marker }

// Mode returns the mechanism in force.
func (p *Proc) Mode() Mode { return p.h.mode }

// Stdin returns the writing end of the program's input, or nil when Spec did not ask for a pipe. The caller closes it; it is
// closed at the latest when the tree has ended, and a blocked Write then returns an error.
func (p *Proc) Stdin() io.WriteCloser {
	if p.stdin == nil {
		return nil
	}
	return p.stdin
}

// Stdout returns the reading end of the program's output, or nil when Spec did not ask for a pipe. Reading ends with io.EOF
// after all that the tree wrote, even when a process outside the tree still holds the pipe. At io.EOF it is closed.
func (p *Proc) Stdout() io.ReadCloser { return p.stdout.reader() }

// Stderr is like Stdout for the program's error stream.
func (p *Proc) Stderr() io.ReadCloser { return p.stderr.reader() }

// CatchUp waits until the reader of Stderr is through with what the program has written to it so far: it has read that and
// come back for more. It gives up after most, and then returns false; it waits for nothing where the system does not tell
// what is in a pipe. Call it to bring what was written on two streams into one order; not from the reader of Stderr itself.
func (p *Proc) CatchUp(most time.Duration) bool {
	if p.stderr == nil {
		return true
	}
	done := p.stderr.caughtUp()
	select {
	case <-done:
		return true
	default:
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// Unread returns, once the tree has ended, how many bytes that were written to Stdin nobody has read. It returns false where
// that is not known: without a pipe, when Stdin was closed before, and on systems other than Linux.
func (p *Proc) Unread() (int, bool) {
	<-p.done
	return max(p.unread, 0), p.unread >= 0
}

// Done is closed when the tree has ended and been reaped.
func (p *Proc) Done() <-chan struct{} { return p.done }

// Wait returns how the program ended, once the whole tree has. It does not wait for the streams to be read.
func (p *Proc) Wait() Exit {
	<-p.done
	return p.exit
}

// Kill ends the whole tree with SIGKILL and returns at once; Done tells when it is over. A second call changes nothing.
func (p *Proc) Kill() { p.h.send(command{Kill: true}) }

// Terminate sends SIGTERM to every process of the tree, and SIGKILL to those left after grace. It returns at once. Of two
// calls the one that ends sooner decides. With a grace of zero or less it is Kill. Windows has no SIGTERM: it waits out the
// grace for the program to end by itself.
func (p *Proc) Terminate(grace time.Duration) {
	p.h.send(command{Kill: grace <= 0, Grace: max(grace, 0)})
}

// endStreams runs when the tree is gone: whoever still uses a stream is released.
func (p *Proc) endStreams() {
	p.unread = -1
	if p.stdin != nil {
		if n, ok := unreadInput(p.stdin); ok {
			p.unread = n
		}
		p.stdin.Close()
	}
	p.stdout.end()
	p.stderr.end()
}

func newMarker() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}

func validMarker(m string) bool {
	b, err := hex.DecodeString(m)
	return err == nil && len(b) == 16
}

func cleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '-'
	}, name)
	if name == "" {
		return "program"
	}
	return name[:min(len(name), 32)]
}

// cleanEnv drops the variables of this package, which would make a program that is itself stint believe it is a guard.
func cleanEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == markerEnv || name == guardEnv || name == readyEnv
	})
}
