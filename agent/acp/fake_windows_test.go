package acp_test

import (
	"os"
	"os/exec"
)

// detach does nothing: a job object keeps all descendants.
func detach(*exec.Cmd) {}

// running reports that a process exists.
func running(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}
