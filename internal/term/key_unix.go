//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package term

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Key reads the first key that want accepts from the terminal of this process, without
// waiting for Enter and without showing what is typed; what was typed before is dropped.
// Keys that send signals go on doing so. It ends with ctx, and fails where there is no
// terminal, or where it belongs to another process now. ready is called in the same
// goroutine once the terminal hands out keys. It is as it was when Key returns.
func Key(ctx context.Context, ready func(), want func(byte) bool) (byte, error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	undo, err := unbuffered(f)
	if err != nil {
		return 0, errors.Join(err, f.Close())
	}
	ready()
	key, failed := make(chan byte, 1), make(chan error, 1)
	go func() {
		var b [1]byte
		for ctx.Err() == nil {
			if _, err := f.Read(b[:]); err != nil {
				failed <- err
				return
			}
			if want(b[0]) {
				key <- b[0]
				return
			}
		}
	}()
	var k byte
	select {
	case k = <-key:
	case err = <-failed:
	case <-ctx.Done():
		err = ctx.Err()
		_ = f.SetReadDeadline(time.Now()) // where that is not possible the reader stays behind
	}
	return k, errors.Join(err, undo(), f.Close())
}

// unbuffered makes the terminal hand out keys as they come.
func unbuffered(f *os.File) (undo func() error, err error) {
	c, err := f.SyscallConn() // Fd would make reads that nothing can end
	if err != nil {
		return nil, err
	}
	var was unix.Termios
	change := func(how uint, t *unix.Termios) (failed error) {
		err := c.Control(func(fd uintptr) { failed = unix.IoctlSetTermios(int(fd), how, t) })
		return errors.Join(err, failed)
	}
	var failed error
	err = c.Control(func(fd uintptr) {
		group, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP)
		switch {
		case err != nil:
			failed = err
		case group != unix.Getpgrp(): // to change it now would stop this process
			failed = fmt.Errorf("the terminal belongs to process group %d", group)
		default:
			var now *unix.Termios
			if now, failed = unix.IoctlGetTermios(int(fd), get); failed == nil {
				was = *now
			}
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	t := was
	t.Lflag &^= unix.ICANON | unix.ECHO
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return func() error { return change(set, &was) }, change(setFlush, &t)
}
