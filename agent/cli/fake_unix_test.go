//go:build unix

package cli_test

import (
	"os/exec"
	"syscall"
)

// detach gives a process a session of its own.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
