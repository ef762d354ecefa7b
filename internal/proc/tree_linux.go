package proc

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kernelThread is PF_KTHREAD of the kernel's linux/sched.h.
const kernelThread = 0x00200000

// canSweep says that descendants and markers can be found.
const canSweep = true

func becomeSubreaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// guardPath names this executable in a way that holds when the file was replaced by an upgrade.
func guardPath() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Readlink(self); err == nil {
		return self, nil
	}
	return os.Executable()
}

func sysAttr(foreground bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: !foreground, Pdeathsig: syscall.SIGKILL}
}

func intoCgroup(attr *syscall.SysProcAttr, dir *os.File) {
	attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
}

// offline makes a start put the program into a network namespace of its own, whose only device is a loopback that is down.
// Whoever may not make one makes it in a user namespace in which they are who they were (user_namespaces(7)). Whether that
// is allowed here only a try tells.
func offline(attr *syscall.SysProcAttr) error {
	attr.Cloneflags |= syscall.CLONE_NEWNET
	if tryClone(attr) == nil {
		return nil
	}
	attr.Cloneflags |= syscall.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	if err := tryClone(attr); err != nil {
		return fmt.Errorf("%w: a network of its own: %w", ErrUnsupported, err)
	}
	return nil
}

// tryClone makes a process as attr says, which then ends because there is no program without a name.
func tryClone(attr *syscall.SysProcAttr) error {
	_, err := syscall.ForkExec("", []string{""}, &syscall.ProcAttr{Sys: attr})
	if errors.Is(err, syscall.ENOENT) {
		return nil
	}
	return err
}

// closeOnExec keeps from the program whatever descriptors the caller itself had inherited.
func closeOnExec() {
	syscall.CloseOnExec(controlFD)
	syscall.CloseOnExec(statusFD)
	unix.CloseRange(statusFD+1, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

func dup2(from, to int) { unix.Dup3(from, to, 0) }

// hasEnded reports whether a child has ended, and leaves it to be reaped.
func hasEnded(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

// awaitRoot waits until the program has ended, and leaves it to be reaped: until then its pid and group are its own.
func (t *tree) awaitRoot() {
	for {
		if err := unix.Waitid(unix.P_PID, t.root.pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return
		}
	}
}

func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(b))
}

// lookup reads one row of the process table.
func lookup(pid int) (entry, bool) {
	if pid <= 0 {
		return entry{}, false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return entry{}, false
	}
	return parseStat(pid, b)
}

// parseStat reads proc_pid_stat(5). The second field may hold anything, so the count begins after its last parenthesis.
func parseStat(pid int, b []byte) (entry, bool) {
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 20 {
		return entry{}, false
	}
	e := entry{pid: pid}
	var errs [4]error
	var threads int
	var flags uint64
	e.ppid, errs[0] = strconv.Atoi(f[1])
	flags, errs[1] = strconv.ParseUint(f[6], 10, 64)
	threads, errs[2] = strconv.Atoi(f[17])
	e.start, errs[3] = strconv.ParseUint(f[19], 10, 64)
	e.kernel = flags&kernelThread != 0
	// A process whose first thread has ended shows the state of a zombie while its other threads go on.
	e.zombie = f[0] == "X" || f[0] == "Z" && threads <= 1
	return e, errors.Join(errs[:]...) == nil
}

// processes reads the process table.
func processes() ([]entry, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("proc: read the process table: %w; mount proc on /proc", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("proc: read the process table: %w; mount proc on /proc", err)
	}
	var out []entry
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if e, ok := lookup(pid); ok {
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// environ returns the environment a process was started with, nothing if that may not be read. In the middle of execve a
// process shows neither environment nor arguments, so an empty answer counts only when it was given three times by a process
// that has arguments.
func environ(pid int) []string {
	dir := "/proc/" + strconv.Itoa(pid)
	empty := 0
	for range 100 {
		b, err := os.ReadFile(dir + "/environ")
		if err != nil {
			return nil
		}
		if len(b) > 0 {
			return strings.Split(string(b), "\x00")
		}
		if e, ok := lookup(pid); !ok || e.zombie || e.kernel {
			return nil
		}
		if args, _ := os.ReadFile(dir + "/cmdline"); len(args) > 0 {
			empty++
		}
		if empty == 3 {
			return nil
		}
		<-time.After(time.Millisecond)
	}
	return nil
}

// children returns the children of this process, zombies included. A kernel without CONFIG_PROC_CHILDREN makes it slow.
func children() []int {
	files, _ := filepath.Glob("/proc/self/task/*/children")
	var out []int
	for _, f := range files {
		b, _ := os.ReadFile(f)
		for _, w := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(w); err == nil {
				out = append(out, pid)
			}
		}
	}
	if len(files) == 0 {
		table, _ := processes()
		for _, e := range table {
			if e.ppid == os.Getpid() {
				out = append(out, e.pid)
			}
		}
	}
	return out
}
