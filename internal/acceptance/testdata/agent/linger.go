package main

import (
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// linger stays for a minute. Number 2 does so in a child of its own, whose parent
// ends at once.
func linger() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	which := os.Args[2]
	if which == "2" {
		c := exec.Command(os.Args[0], "linger", "child")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			warn(err)
		}
		return
	}
	if which == "child" {
		which = "2"
	}
	if err := enlist(); err != nil {
		warn(err)
	}
	if err := mark("lingers" + which); err != nil {
		warn(err)
	}
	time.Sleep(time.Minute)
	_, _ = os.Stderr.WriteString("lingered " + strconv.Itoa(os.Getpid()) + "\n")
}
