//go:build unix

package proc

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// plan is what a guard is told. It is sent as a gob, since strings of the system need not be UTF-8.
type plan struct {
	Path       string
	Argv, Env  []string
	Dir        string
	Name       string
	Marker     string
	Mode       Mode
	Foreground bool
	Offline    bool
	Linger     time.Duration
}

// tree is a program with all that descends from it, seen by the process that is its parent: the guard, or the caller itself
// when there is no guard. It is used by one goroutine.
type tree struct {
	mode       Mode
	root       entry
	marker     string
	cgroup     string // directory; empty for none
	guarded    bool   // every process below this one belongs to the tree
	foreground bool
	wake       chan os.Signal // something may have ended
	ended      chan struct{}  // without a guard: closed when root has ended but is not reaped
	reaped     bool
	status     syscall.WaitStatus
	seen       map[key]bool // without a guard: members met so far
}

// startTree starts the program. Without ModeAuto it fails when the mode is not to be had.
func startTree(p plan, files []uintptr, guarded bool) (*tree, error) {
	t := &tree{mode: p.Mode, marker: p.Marker, guarded: guarded, foreground: p.Foreground,
		wake: make(chan os.Signal, 1), ended: make(chan struct{}), seen: map[key]bool{}}
	if guarded {
		signal.Notify(t.wake, syscall.SIGCHLD)
	}
	if p.Mode != ModeGroup {
		if err := t.prepare(guarded); err != nil {
			return nil, err
		}
	}
	sys, err := p.attr()
	if err != nil {
		return nil, err
	}
	attr := &syscall.ProcAttr{Dir: p.Dir, Env: append(p.Env, markerEnv+"="+p.Marker), Files: files, Sys: sys}
	pid := 0
	if t.mode == ModeAuto || t.mode == ModeCgroup {
		dir, f, err := makeCgroup("stint-" + p.Name + "-" + p.Marker)
		if err == nil {
			outside := *sys
			intoCgroup(attr.Sys, f)
			pid, err = syscall.ForkExec(p.Path, p.Argv, attr)
			f.Close()
			if t.cgroup = dir; err != nil {
				removeCgroup(dir, time.Now().Add(100*time.Millisecond))
				t.cgroup, attr.Sys = "", &outside
			}
		}
		if err != nil && t.mode == ModeCgroup {
			return nil, err
		}
	}
	if pid == 0 {
		// A refused cgroup and a refused program look alike, so the second attempt gives the error that counts.
		var err error
		if pid, err = syscall.ForkExec(p.Path, p.Argv, attr); err != nil {
			return nil, err
		}
	}
	switch {
	case t.cgroup != "":
		t.mode = ModeCgroup
	case t.mode == ModeAuto:
		t.mode = ModeSubreaper
	}
	// The program is not reaped yet, so its row is there even if it has already ended.
	var ok bool
	if t.root, ok = lookup(pid); !ok {
		t.root = entry{pid: pid}
	}
	return t, nil
}

// attr is how the program is started.
func (p *plan) attr() (*syscall.SysProcAttr, error) {
	sys := sysAttr(p.Foreground)
	if !p.Offline {
		return sys, nil
	}
	return sys, offline(sys)
}

// CanOffline returns nil where Spec.Offline works for this user, else an error wrapping ErrUnsupported.
func CanOffline() error { return offline(&syscall.SysProcAttr{}) }

// prepare makes orphans come to this process if it is a guard.
func (t *tree) prepare(guarded bool) error {
	err := ErrUnsupported
	if canSweep {
		if err = nil; guarded {
			err = becomeSubreaper()
		}
	}
	if err != nil && t.mode == ModeAuto {
		t.mode, err = ModeGroup, nil
	}
	return err
}

// supervise returns when the tree is gone. Commands may come until then; their end counts as a command to kill.
func (t *tree) supervise(commands <-chan command, linger time.Duration) Exit {
	var end, poll <-chan time.Time
	var deadline time.Time
	killed, now := false, false
	for !now {
		gone := t.gone()
		if gone && t.empty() {
			break
		}
		if gone && end == nil {
			end = time.After(linger)
		}
		if gone && !t.guarded {
			poll = time.After(20 * time.Millisecond) // the end of a stranger's child wakes nobody
		}
		select {
		case c, ok := <-commands:
			killed = killed || !t.gone()
			if now = !ok || c.Kill; now {
				break
			}
			t.signal(syscall.SIGTERM)
			if at := time.Now().Add(c.Grace); deadline.IsZero() || at.Before(deadline) {
				deadline, end = at, time.After(c.Grace)
			}
		case <-end:
			now = true
		case <-t.wake:
		case <-poll:
		}
	}
	left := t.destroy()
	x := Exit{Code: -1, Killed: killed, Left: left}
	switch {
	case !t.reaped:
	case t.status.Exited():
		x.Code = t.status.ExitStatus()
	case t.status.Signaled():
		x.Signal = unix.SignalName(t.status.Signal())
	}
	return x
}

// destroy kills until nothing is left or the budget is used up, and returns the number of those left.
func (t *tree) destroy() int {
	deadline := time.Now().Add(killBudget)
	left := 0
	for pause := time.Millisecond; !t.gone() || !t.empty(); pause = min(2*pause, 20*time.Millisecond) {
		if time.Now().After(deadline) {
			left = max(len(t.members()), 1)
			break
		}
		t.kill()
		select {
		case <-t.wake:
		case <-time.After(pause):
		}
	}
	if t.cgroup != "" {
		removeCgroup(t.cgroup, deadline)
	}
	if !t.guarded && t.gone() && !t.reaped {
		t.reap(t.root.pid, 0)
	}
	return left
}

// gone reports whether the program itself has ended.
func (t *tree) gone() bool {
	if t.guarded {
		t.reapAll()
		return t.reaped
	}
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

// empty reports whether nothing of the tree is left. It is asked when the program has ended. A guard has a child as long as
// anything is left, because it is the subreaper of the tree.
func (t *tree) empty() bool {
	if t.guarded {
		return t.reapAll()
	}
	if t.mode == ModeGroup {
		if !t.foreground {
			t.killGroup() // on Linux the program is not reaped yet and keeps the number taken
		}
		return true
	}
	return len(t.members()) == 0
}

// reapAll reaps all children of a guard that have ended and reports whether there are none left.
func (t *tree) reapAll() bool {
	for {
		if t.mode == ModeGroup && !t.foreground && !t.reaped && hasEnded(t.root.pid) {
			t.killGroup() // before reaping, while the number cannot be anyone else's
		}
		pid, err := t.reap(-1, syscall.WNOHANG)
		if t.mode == ModeGroup && !t.foreground && !canSweep && err == nil && pid == t.root.pid {
			t.killGroup() // where one cannot look before reaping, at once after it
		}
		if err != nil {
			return errors.Is(err, syscall.ECHILD)
		}
		if pid == 0 {
			return false
		}
	}
}

// reap waits for a process and keeps the status if it is the program.
func (t *tree) reap(pid, flags int) (int, error) {
	for {
		var ws syscall.WaitStatus
		got, err := syscall.Wait4(pid, &ws, flags, nil)
		if err == syscall.EINTR {
			continue
		}
		if err == nil && got == t.root.pid && (ws.Exited() || ws.Signaled()) {
			t.reaped, t.status = true, ws
		}
		return got, err
	}
}

// members returns the living processes of the tree.
func (t *tree) members() []entry {
	table, err := processes()
	if err != nil {
		return nil
	}
	self := os.Getpid()
	if t.guarded {
		return closure(table, func(e entry) bool { return e.ppid == self && e.pid != self })
	}
	in := cgroupMembers(t.cgroup)
	found := closure(table, func(e entry) bool {
		return e.pid == t.root.pid && e.start == t.root.start || in[e.pid] || t.seen[e.key()] || marked(e.pid, t.marker)
	})
	for _, e := range found {
		t.seen[e.key()] = true
	}
	for _, e := range table {
		// As process 1 of a container, or a subreaper for reasons of its own, this process inherits the orphans.
		if e.zombie && e.ppid == self && e.pid != t.root.pid && t.seen[e.key()] {
			t.reap(e.pid, syscall.WNOHANG)
		}
	}
	return found
}

// signal sends sig to every member.
func (t *tree) signal(sig syscall.Signal) {
	if t.mode == ModeGroup {
		t.signalGroup(sig)
		return
	}
	for _, e := range t.members() {
		signalEntry(e, sig)
	}
}

// kill sends SIGKILL to everything that can be found now.
func (t *tree) kill() {
	if t.mode == ModeGroup {
		t.killGroup()
		return
	}
	killCgroup(t.cgroup)
	for _, e := range t.members() {
		signalEntry(e, syscall.SIGKILL)
	}
	if !t.guarded {
		return
	}
	// A chain of processes that fork and exit outruns a look at the whole table. Its newest link is an orphan, so it is a
	// child of the guard, and those are found quickly. Only the guard reaps them, so their pids are theirs.
	for range 100 {
		for _, pid := range children() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if t.reapAll() {
			return
		}
	}
}

func (t *tree) killGroup() { t.signalGroup(syscall.SIGKILL) }

// signalGroup signals the program's group, or in the foreground, where the group is the caller's, the program.
func (t *tree) signalGroup(sig syscall.Signal) {
	if t.foreground {
		syscall.Kill(t.root.pid, sig)
		return
	}
	syscall.Kill(-t.root.pid, sig)
}

func stopEntry(e entry) { signalEntry(e, syscall.SIGSTOP) }
