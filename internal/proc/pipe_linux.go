package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

const fionread = unix.TIOCINQ // the same number under another name

// unreadInput returns what is in a pipe, seen from its writing end: the count is the pipe's, and it stays when all readers
// are gone.
func unreadInput(f *os.File) (int, bool) { return unread(f) }
