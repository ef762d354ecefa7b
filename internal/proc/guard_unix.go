//go:build unix

package proc

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// File descriptors of a guard besides the program's 0, 1 and 2.
const (
	controlFD = 3 // plan and commands come in; its end means that the caller is gone
	statusFD  = 4 // events go out
)

// event goes from the guard to the caller: first Started or Failed, then Exit.
type event struct {
	Started *started
	Failed  *failure
	Exit    *Exit
}

type started struct {
	Root, Guard Ident
	Mode        Mode
}

type failure struct {
	Errno int // zero when the demanded mode is not to be had
	Text  string
}

func (f *failure) err() error {
	if f.Errno != 0 {
		return syscall.Errno(f.Errno)
	}
	return fmt.Errorf("%w (%s)", ErrUnsupported, f.Text)
}

// MaybeGuard turns this process into a guard if it was started as one, and then does not return. Otherwise it notes that
// this executable can be a guard and returns. Call it before anything else in main, and in TestMain. In a process that did
// not call it Start uses no guard, so that an executable which knows nothing of guards is never started a second time.
func MaybeGuard() {
	if _, ok := os.LookupEnv(guardEnv); ok {
		os.Exit(runGuard())
	}
	os.Setenv(readyEnv, strconv.Itoa(os.Getpid()))
}

// runGuard is the whole life of a guard. It keeps its OS thread, because the parent-death signal of the program is tied to
// the thread that started it (prctl(2), PR_SET_PDEATHSIG).
func runGuard() int {
	runtime.LockOSThread()
	for _, fd := range []int{controlFD, statusFD} {
		var st syscall.Stat_t
		if err := syscall.Fstat(fd, &st); err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFIFO {
			fmt.Fprintf(os.Stderr, "%s is set, but this process was not started as a guard; unset it\n", guardEnv)
			return 125
		}
	}
	closeOnExec()
	absorbSignals()
	in, out := gob.NewDecoder(os.NewFile(controlFD, "control")), gob.NewEncoder(os.NewFile(statusFD, "status"))
	var p plan
	if in.Decode(&p) != nil {
		return 1 // the caller is gone already
	}
	t, err := startTree(p, []uintptr{0, 1, 2}, true)
	releaseStreams()
	if err != nil {
		f := failure{Text: err.Error()}
		if errno := syscall.Errno(0); !errors.Is(err, ErrUnsupported) && errors.As(err, &errno) {
			f.Errno = int(errno)
		}
		out.Encode(event{Failed: &f})
		return 1
	}
	self, _ := IdentOf(os.Getpid())
	out.Encode(event{Started: &started{Root: t.root.ident(), Guard: self, Mode: t.mode}})
	commands := make(chan command)
	go func() {
		defer close(commands)
		for {
			var c command
			if in.Decode(&c) != nil {
				return
			}
			commands <- c
		}
	}()
	x := t.supervise(commands, p.Linger)
	out.Encode(event{Exit: &x})
	return 0
}

// absorbSignals keeps the guard alive through what is meant for the program or for the caller: the terminal's keys, and the
// SIGTERM that a service manager sends to every process. They are caught and not ignored, because a program inherits what is
// ignored. What was ignored before stays so.
func absorbSignals() {
	sink := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTSTP,
		syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM} {
		if !signal.Ignored(s) {
			signal.Notify(sink, s)
		}
	}
}

// releaseStreams lets go of the program's streams, so that they end with the tree, and of the directory.
func releaseStreams() {
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		for fd := range 3 {
			dup2(int(null.Fd()), fd)
		}
		null.Close()
	}
	os.Chdir("/")
}

// launchProgram starts the program under a guard, or directly when there is to be none or none can be started.
func launchProgram(ctx context.Context, spec Spec, path, marker string, child []*os.File) (handle, error) {
	if spec.Mode < ModeAuto || spec.Mode > ModeGroup {
		return handle{}, fmt.Errorf("%w: mode %v; use ModeAuto", ErrUnsupported, spec.Mode)
	}
	p := plan{Path: path, Argv: spec.Argv, Env: spec.Env, Dir: spec.Dir, Name: spec.Name, Marker: marker, Mode: spec.Mode,
		Foreground: spec.Foreground, Offline: spec.Offline, Linger: spec.Linger}
	if !spec.NoGuard && os.Getenv(readyEnv) == strconv.Itoa(os.Getpid()) {
		g, err := newGuard(p, child)
		if err == nil {
			return g.begin(ctx, p)
		}
	}
	return startDirect(p, child)
}

// startDirect starts and supervises in this process.
func startDirect(p plan, child []*os.File) (handle, error) {
	var t *tree
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for the parent-death signal, as in runGuard
		defer runtime.UnlockOSThread()
		var err error
		t, err = startTree(p, []uintptr{child[0].Fd(), child[1].Fd(), child[2].Fd()}, false)
		result <- err
		if err == nil {
			t.awaitRoot()
			close(t.ended)
			t.wake <- syscall.SIGCHLD
		}
	}()
	if err := <-result; err != nil {
		return handle{}, startError(p.Path, err)
	}
	commands, over, exit := make(chan command), make(chan struct{}), make(chan Exit, 1)
	go func() {
		x := t.supervise(commands, p.Linger)
		close(over)
		exit <- x
	}()
	send := func(c command) {
		go func() {
			select {
			case commands <- c:
			case <-over:
			}
		}()
	}
	id := t.root.ident()
	return handle{root: id, guard: id, mode: t.mode, send: send, exit: exit}, nil
}

// guard is the caller's side of a guard process.
type guard struct {
	process *os.Process
	control *os.File
	status  *os.File
	mu      sync.Mutex // one writer of control at a time
	out     *gob.Encoder
	in      *gob.Decoder
	marker  string
	asked   atomic.Bool // to kill
	over    chan struct{}
}

func newGuard(p plan, child []*os.File) (*guard, error) {
	exe, err := guardPath()
	if err != nil {
		return nil, err
	}
	controlR, controlW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer controlR.Close()
	statusR, statusW, err := os.Pipe()
	if err != nil {
		controlW.Close()
		return nil, err
	}
	defer statusW.Close()
	process, err := os.StartProcess(exe, []string{"stint-guard", p.Name}, &os.ProcAttr{
		Env:   append(owner(p.Env), guardEnv+"="+p.Marker),
		Files: []*os.File{child[0], child[1], child[2], controlR, statusW},
		Sys:   &syscall.SysProcAttr{Setsid: !p.Foreground},
	})
	if err != nil {
		controlW.Close()
		statusR.Close()
		return nil, err
	}
	return &guard{process: process, control: controlW, status: statusR, out: gob.NewEncoder(controlW),
		in: gob.NewDecoder(statusR), marker: p.Marker, over: make(chan struct{})}, nil
}

// owner returns what of a program's environment its guard has too.
func owner(env []string) (out []string) {
	for _, v := range env {
		if strings.HasPrefix(v, ownerEnv+"=") {
			out = append(out, v)
		}
	}
	return out
}

// begin sends the plan and waits for the program to be started.
func (g *guard) begin(ctx context.Context, p plan) (handle, error) {
	first := make(chan event, 1)
	go func() {
		var ev event
		if g.out.Encode(p) == nil {
			g.in.Decode(&ev)
		}
		first <- ev
	}()
	var ev event
	var err error
	select {
	case ev = <-first:
		if ev.Failed != nil {
			g.retire()
			return handle{}, startError(p.Path, ev.Failed.err())
		}
		if ev.Started == nil {
			err = errors.New("proc: the guard ended before it started the program; look for what kills processes here, " +
				"and check that main calls MaybeGuard first")
		}
	case <-time.After(guardBudget):
		err = fmt.Errorf("proc: the guard did not start the program within %v; is the machine overloaded?", guardBudget)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		g.destroy(Ident{})
		return handle{}, err
	}
	s := ev.Started
	exit := make(chan Exit, 1)
	go func() { exit <- g.await(s.Root) }()
	return handle{root: s.Root, guard: s.Guard, mode: s.Mode, send: g.send, exit: exit}, nil
}

// send hands a command to the guard. A guard that does not obey in time, because something stopped it, is killed: then the
// tree is destroyed from here.
func (g *guard) send(c command) {
	g.asked.Store(true)
	go func() {
		g.mu.Lock()
		g.out.Encode(c) // an error means that the guard is gone, which await sees
		g.mu.Unlock()
		select {
		case <-g.over:
		case <-time.After(c.Grace + killBudget + 500*time.Millisecond):
			g.process.Kill()
		}
	}()
}

// await returns how the program ended and reaps the guard.
func (g *guard) await(root Ident) Exit {
	var ev event
	if err := g.in.Decode(&ev); err != nil || ev.Exit == nil {
		return Exit{Code: -1, Lost: true, Killed: g.asked.Load(), Left: g.destroy(root)}
	}
	g.retire()
	return *ev.Exit
}

// retire ends a guard that has nothing more to do; its own way out may be slow.
func (g *guard) retire() {
	g.process.Kill()
	g.process.Wait()
	close(g.over)
	g.control.Close()
	g.status.Close()
}

// destroy ends a guard that is of no use and what it started, and returns the number of processes known to be left. The
// tree goes first, while its orphans still have the guard as their parent, and again after the guard, who may have been
// about to start the program.
func (g *guard) destroy(root Ident) int {
	left := 0
	note := func(_ int, err error) {
		if err != nil && !errors.Is(err, ErrUnsupported) {
			left = 1
		}
	}
	Sweep(g.marker)
	g.retire()
	note(Sweep(g.marker))
	if root.Pid != 0 {
		note(KillTree(root))
	}
	return left
}
