package proc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

const (
	canCut   = false // pipes have no deadlines; they end with the job
	canSweep = false
)

// MaybeGuard does nothing on Windows, where a job object ends the tree when its last handle closes.
func MaybeGuard() {}

// CanOffline returns an error wrapping ErrUnsupported.
func CanOffline() error { return fmt.Errorf("%w: a network of its own", ErrUnsupported) }

// launchProgram starts the program and puts it into a job object. What the program starts in the moment before that is not
// in the job. The job dies with the caller, who holds the only handle to it.
func launchProgram(_ context.Context, spec Spec, path, marker string, child []*os.File) (handle, error) {
	if spec.Mode != ModeAuto && spec.Mode != ModeJob {
		return handle{}, fmt.Errorf("%w: mode %v; use ModeAuto", ErrUnsupported, spec.Mode)
	}
	if spec.Offline {
		return handle{}, CanOffline()
	}
	job, err := newJob()
	if err != nil {
		return handle{}, err
	}
	env := append(spec.Env, markerEnv+"="+marker)
	process, err := os.StartProcess(path, spec.Argv, &os.ProcAttr{Dir: spec.Dir, Env: env, Files: child})
	if err != nil {
		windows.CloseHandle(job)
		return handle{}, fmt.Errorf("proc: start %s: %w; check the path and that it is executable", path, err)
	}
	var assigned error
	err = process.WithHandle(func(h uintptr) { assigned = windows.AssignProcessToJobObject(job, windows.Handle(h)) })
	if err == nil {
		err = assigned
	}
	if err != nil {
		process.Kill()
		process.Wait()
		windows.CloseHandle(job)
		return handle{}, fmt.Errorf("proc: start %s: put it into a job object: %w; check that jobs may be nested here", path, err)
	}
	var asked atomic.Bool
	over, exit := make(chan struct{}), make(chan Exit, 1)
	go func() {
		x := Exit{Code: -1}
		if state, err := process.Wait(); err == nil {
			x.Code = state.ExitCode()
		}
		x.Killed = asked.Load()
		close(over)
		windows.TerminateJobObject(job, 1)
		windows.CloseHandle(job)
		exit <- x
	}()
	send := func(c command) {
		asked.Store(true)
		go func() {
			select {
			case <-over:
			case <-time.After(c.Grace):
				process.Kill() // the rest follows when it has ended
			}
		}()
	}
	id := Ident{Pid: process.Pid}
	return handle{root: id, guard: id, mode: ModeJob, send: send, exit: exit}, nil
}

func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("proc: create a job object: %w; free some handles", err)
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		windows.CloseHandle(job)
		return 0, fmt.Errorf("proc: limit a job object: %w; check that jobs may be nested here", err)
	}
	return job, nil
}

// resolve finds the program in the caller's PATH, as Windows itself does.
func resolve(name string, _ []string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("proc: %w; install it or correct PATH", err)
	}
	return path, nil
}

// readPipe waits always: what can be cut short is not asked for, because canCut is false.
func readPipe(f *os.File, p []byte, _ bool, _ func(read func() int)) (int, error) { return f.Read(p) }

func unread(*os.File) (int, bool) { return 0, false }

func unreadInput(*os.File) (int, bool) { return 0, false }

func environ(int) []string { return nil }

func sweepCgroups(string) int { return 0 }

func stopEntry(entry) {}
