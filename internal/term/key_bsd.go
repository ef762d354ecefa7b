//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package term

import "golang.org/x/sys/unix"

const (
	get      = unix.TIOCGETA
	set      = unix.TIOCSETA
	setFlush = unix.TIOCSETAF
)
