// Command stint runs AI agents as sessions: bounded units of work with a journal,
// a status and checkpoints, which survive the death of whatever runs them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // a machine without a table of zones has this one

	"github.com/stint-dev/stint/internal/proc"
)

// version is set by the linker.
var version = "dev"

func main() {
	proc.MaybeGuard() // a copy of this binary may stand guard over an agent's processes
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup has it ignored
		signal.Notify(signals, syscall.SIGHUP)
	}
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, getwd: os.Getwd}
	go func() {
		for s := range signals {
			a.signal(s, cancel)
		}
	}()
	code := a.run(ctx, os.Args[1:])
	cancel()
	os.Exit(code)
}
