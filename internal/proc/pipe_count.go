//go:build linux || darwin

package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// unread returns how many bytes are in a pipe (ioctl_pipe(2), FIONREAD).
func unread(f *os.File) (int, bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, false
	}
	n, counted := 0, false
	err = raw.Control(func(fd uintptr) {
		var err error
		n, err = unix.IoctlGetInt(int(fd), fionread)
		counted = err == nil
	})
	return n, err == nil && counted
}
