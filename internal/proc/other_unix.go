//go:build unix && !linux

package proc

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// canSweep says that descendants and markers can be found.
const canSweep = false

func becomeSubreaper() error { return ErrUnsupported }

func guardPath() (string, error) { return os.Executable() }

func sysAttr(foreground bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: !foreground} }

func intoCgroup(*syscall.SysProcAttr, *os.File) {}

func offline(*syscall.SysProcAttr) error {
	return fmt.Errorf("%w: a network of its own", ErrUnsupported)
}

func closeOnExec() {
	syscall.CloseOnExec(controlFD)
	syscall.CloseOnExec(statusFD)
}

func dup2(from, to int) { unix.Dup2(from, to) }

// hasEnded cannot be known here without reaping.
func hasEnded(int) bool { return false }

// awaitRoot waits for the program and reaps it.
func (t *tree) awaitRoot() { t.reap(t.root.pid, 0) }

func environ(int) []string { return nil }

func children() []int { return nil }

func makeCgroup(string) (string, *os.File, error) {
	return "", nil, fmt.Errorf("%w: cgroups", ErrUnsupported)
}

func killCgroup(string) {}

func removeCgroup(string, time.Time) {}

func cgroupMembers(string) map[int]bool { return nil }

func sweepCgroups(string) int { return 0 }
