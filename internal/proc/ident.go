package proc

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Ident names one process for good: a pid alone may be given to a stranger once its process is gone.
type Ident struct {
	// Pid is the process id.
	Pid int `json:"pid"`
	// Start is the start time in the kernel's unit: clock ticks since boot on Linux, microseconds since 1970 on macOS.
	Start uint64 `json:"start"`
	// Boot is the boot id of the machine on Linux (random(4)), empty elsewhere.
	Boot string `json:"boot,omitempty"`
}

// entry is one row of the process table.
type entry struct {
	pid, ppid int
	start     uint64
	zombie    bool
	kernel    bool // a thread of the kernel
}

// key tells two rows of the table apart within one boot.
type key struct {
	pid   int
	start uint64
}

func (e entry) key() key { return key{e.pid, e.start} }

func (e entry) ident() Ident { return Ident{Pid: e.pid, Start: e.start, Boot: bootID()} }

// is reports whether e is the process that id names.
func (e entry) is(id Ident) bool {
	return e.pid == id.Pid && e.start == id.Start && id.Boot == bootID()
}

// IdentOf returns the identity of a process that exists now. It returns false when there is none, and on systems other than
// Linux and macOS always.
func IdentOf(pid int) (Ident, bool) {
	e, ok := lookup(pid)
	if !ok {
		return Ident{}, false
	}
	return e.ident(), true
}

// Alive reports whether the process still exists and has not ended; one that only waits to be reaped is not alive.
func Alive(id Ident) bool {
	e, ok := lookup(id.Pid)
	return ok && e.is(id) && !e.zombie
}

// Ancestors returns the process and those above it, nearest first. The list is empty for a process that does not exist.
func Ancestors(pid int) []Ident {
	var out []Ident
	for range 4096 { // a bound for a table that changes while it is read
		e, ok := lookup(pid)
		if !ok {
			break
		}
		out = append(out, e.ident())
		if e.ppid == e.pid || e.ppid <= 0 {
			break
		}
		pid = e.ppid
	}
	return out
}

// Descends reports whether the process is root or has it as an ancestor. For a tree of this package pass Proc.Guard, because
// an orphan of the tree has the guard and no longer the program as its ancestor.
func Descends(pid int, root Ident) bool {
	for _, id := range Ancestors(pid) {
		if id == root {
			return true
		}
	}
	return false
}

// MarkerOf returns the marker in the environment a process was started with: the tree that it belongs to. It returns false
// when there is none or it may not be read; Linux only.
func MarkerOf(pid int) (string, bool) {
	for _, v := range environ(pid) {
		if m, ok := strings.CutPrefix(v, markerEnv+"="); ok && validMarker(m) {
			return m, true
		}
	}
	return "", false
}

// Getenv returns a variable of the environment a process was started with. It returns false when it is not there or may not
// be read; Linux only.
func Getenv(pid int, name string) (string, bool) {
	for _, v := range environ(pid) {
		if text, ok := strings.CutPrefix(v, name+"="); ok {
			return text, true
		}
	}
	return "", false
}

// IsGuard reports whether the process stands guard over a tree of this package. It has STINT_SESSION if the program had it
// when it was started. Linux only.
func IsGuard(pid int) bool {
	_, ok := Getenv(pid, guardEnv)
	return ok
}

// KillTree kills the process and all that descend from it, and returns how many it killed. It never signals a process that
// merely got the pid: a stranger there counts as gone. A process of the tree that was orphaned before is not found; Sweep
// finds it. It returns ErrUnsupported where identities are not known, and an error when a process is left after 2.5 s.
func KillTree(id Ident) (int, error) {
	return eradicate(func(e entry) bool { return e.is(id) })
}

// Sweep kills all that is left of the tree with the given marker, its guard and its cgroup included, and returns how many
// processes it killed. It is for the process that takes over after a crash, in which the caller and the guard died at once.
// It errs like KillTree, and returns ErrUnsupported on systems other than Linux.
func Sweep(marker string) (int, error) {
	if !validMarker(marker) {
		return 0, fmt.Errorf("%w: %q is not a marker of a tree", ErrSpec, marker)
	}
	if !canSweep {
		return 0, fmt.Errorf("%w: sweeping by marker", ErrUnsupported)
	}
	if own, _ := MarkerOf(os.Getpid()); own == marker {
		return 0, errInside()
	}
	n := sweepCgroups(marker)
	m, err := eradicate(func(e entry) bool {
		return slices.ContainsFunc(environ(e.pid), func(v string) bool {
			return v == markerEnv+"="+marker || v == guardEnv+"="+marker
		})
	})
	return n + m, err
}

func errInside() error {
	return errors.New("proc: this process belongs to the tree it is to kill; call from outside the tree")
}

// closure returns the entries that seed accepts and all their descendants. Zombies are passed through but not returned.
func closure(table []entry, seed func(entry) bool) []entry {
	children := map[int][]entry{}
	var queue, out []entry
	for _, e := range table {
		children[e.ppid] = append(children[e.ppid], e)
		if seed(e) {
			queue = append(queue, e)
		}
	}
	seen := map[int]bool{}
	for len(queue) > 0 {
		e := queue[0]
		queue = queue[1:]
		if seen[e.pid] {
			continue
		}
		seen[e.pid] = true
		if !e.zombie {
			out = append(out, e)
		}
		queue = append(queue, children[e.pid]...)
	}
	return out
}

// eradicate kills the closure of seed. It stops every member before it kills any, because a member that dies while its
// children are still unknown would orphan them out of reach.
func eradicate(seed func(entry) bool) (int, error) {
	known := map[key]bool{}
	deadline := time.Now().Add(killBudget)
	for {
		alive, err := stopAll(seed, known)
		if err != nil {
			return 0, err
		}
		if len(alive) == 0 {
			return len(known), nil
		}
		for _, e := range alive {
			signalEntry(e, os.Kill)
		}
		if time.Now().After(deadline) {
			return len(known) - len(alive), fmt.Errorf("proc: %d processes do not die, pid %d among them; "+
				"look at their state and wait channel", len(alive), alive[0].pid)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// stopAll stops the closure of seed and known until a look at the table shows nobody new, and returns it.
func stopAll(seed func(entry) bool, known map[key]bool) (alive []entry, err error) {
	for range 64 { // a family that forks this fast is killed in parts
		table, err := processes()
		if err != nil {
			return nil, err
		}
		alive = closure(table, func(e entry) bool { return known[e.key()] || seed(e) })
		fresh := false
		for _, e := range alive {
			if e.pid == os.Getpid() {
				return nil, errInside()
			}
			if !known[e.key()] {
				known[e.key()], fresh = true, true
				stopEntry(e)
			}
		}
		if !fresh {
			break
		}
	}
	return alive, nil
}

// signalEntry signals the process of e and nobody else: os.FindProcess holds it by a pidfd where the system has those, and
// the start time is compared after that.
func signalEntry(e entry, sig os.Signal) {
	p, err := os.FindProcess(e.pid)
	if err != nil {
		return
	}
	defer p.Release()
	if now, ok := lookup(e.pid); ok && now.start == e.start {
		p.Signal(sig)
	}
}
