//go:build linux || darwin

package main

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// limitFiles makes writes beyond so many bytes of a file fail, as on a full disk.
func limitFiles() error {
	text := os.Getenv("RECEIVER_FULL")
	if text == "" {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n})
}
