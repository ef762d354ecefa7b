//go:build unix

package acp_test

import (
	"os/exec"
	"syscall"
)

// detach gives a process a session of its own.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// running reports that a process exists.
func running(pid int) bool { return syscall.Kill(pid, 0) == nil }
