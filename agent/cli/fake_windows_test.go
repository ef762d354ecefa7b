package cli_test

import "os/exec"

// detach leaves a process in its job: nothing leaves it.
func detach(*exec.Cmd) {}
