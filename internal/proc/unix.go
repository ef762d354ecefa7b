//go:build unix

package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// canCut says that a waiting read of a pipe can be interrupted.
const canCut = true

// readPipe reads what is in the pipe. Where there is nothing, it waits for it, or reads as zero bytes. took is called at
// the moment of each read, with a reader of the file descriptor.
func readPipe(f *os.File, p []byte, wait bool, took func(read func() int)) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	n, result := 0, error(nil)
	err = raw.Read(func(fd uintptr) bool {
		took(func() int {
			for {
				if n, result = syscall.Read(int(fd), p); result != syscall.EINTR {
					return max(n, 0)
				}
			}
		})
		return !wait || result != syscall.EAGAIN
	})
	switch {
	case err != nil:
		return 0, err
	case result == syscall.EAGAIN:
		return 0, nil
	case result != nil:
		return 0, result
	}
	return n, nil
}

// resolve finds the program in the PATH of the environment it will run in. Relative entries of PATH are passed over, since
// they would make the choice of program depend on the working directory.
func resolve(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	list, has := "", false
	for _, v := range env {
		if p, ok := strings.CutPrefix(v, "PATH="); ok {
			list, has = p, true
		}
	}
	if !has {
		return "", fmt.Errorf("%w: %q has no slash and Env has no PATH: %w; give a path or add PATH", ErrSpec, name, fs.ErrNotExist)
	}
	found := fs.ErrNotExist
	for _, dir := range filepath.SplitList(list) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, name)
		fi, err := os.Stat(path)
		switch {
		case err != nil || fi.IsDir():
		case fi.Mode()&0o111 == 0:
			found = fs.ErrPermission
		default:
			return path, nil
		}
	}
	return "", fmt.Errorf("proc: %q in PATH %q: %w; install it or correct PATH", name, list, found)
}

// startError adds what to do about a program that did not start.
func startError(path string, err error) error {
	remedy := "see execve(2)"
	switch {
	case errors.Is(err, ErrUnsupported):
		remedy = "use ModeAuto, and no Offline"
	case errors.Is(err, fs.ErrNotExist):
		remedy = "check the path, and for a script the interpreter named in its first line"
	case errors.Is(err, fs.ErrPermission):
		remedy = "make it executable and check that its file system is not mounted noexec"
	case errors.Is(err, syscall.ENOEXEC):
		remedy = "it is not a program for this machine; a script needs a first line such as #!/bin/sh"
	case errors.Is(err, syscall.E2BIG):
		remedy = "arguments and environment are too large; pass data by standard input"
	case errors.Is(err, syscall.EAGAIN):
		remedy = "a limit on processes is reached; raise it or run fewer at once"
	}
	return fmt.Errorf("proc: start %s: %w; %s", path, err, remedy)
}

// marked reports whether the process was started with the marker in its environment.
func marked(pid int, marker string) bool {
	m, ok := MarkerOf(pid)
	return ok && m == marker
}
