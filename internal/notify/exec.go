package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/stint-dev/stint/internal/child"
	"github.com/stint-dev/stint/internal/proc"
	"github.com/stint-dev/stint/tool"
)

// Exec is a channel that starts a program, which gets the message as JSON on its input, and
// nobody's environment but a few plain variables, Env, and STINT_NOTIFICATION, which
// is the notification's id. It has taken the message when it ends with 0. With 75, which is
// EX_TEMPFAIL of sysexits.h, and when its time is up, it gets the message again; any other
// end is a refusal for good. The first line of what it prints says why. It is gone, with
// all that it started, when Send returns.
type Exec struct {
	Command []string      // the program and its arguments; no shell reads it
	Dir     string        // where it runs, and where a relative name of it begins
	Timeout time.Duration // 0: 30 s
	// Env is variables of the program, those first that nobody else may see; read for each
	// attempt. nil: there are none.
	Env func() (secrets, plain map[string]string, err error)
}

var _ Channel = (*Exec)(nil)

const (
	// execTimeout is how long a program may take if nothing else is said.
	execTimeout = 30 * time.Second
	// execGrace is how long it may take to end after its time is up.
	execGrace = 2 * time.Second
	// tempFail is the exit code EX_TEMPFAIL of sysexits.h: not now, but later.
	tempFail = 75
)

// Check says what is wrong with the command.
func (x *Exec) Check() error {
	if len(x.Command) == 0 || x.Command[0] == "" {
		return wrong("name the program and its arguments", "there is no command")
	}
	return nil
}

// Send starts the program. One that cannot be started is tried again: nothing is lost over
// a program that is being replaced.
func (x *Exec) Send(ctx context.Context, n *Notification) (Answer, error) {
	env, secrets := map[string]string{}, map[string]string(nil)
	if x.Env != nil {
		var plain map[string]string
		var err error
		if secrets, plain, err = x.Env(); err != nil {
			return Answer{}, errors.New("a secret of its environment cannot be read")
		}
		maps.Copy(env, plain)
		maps.Copy(env, secrets)
	}
	env["STINT_NOTIFICATION"] = n.ID
	timeout := cmp.Or(x.Timeout, execTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("its time of %v was up", timeout))
	defer cancel()
	p, err := proc.Start(ctx, proc.Spec{Argv: x.Command, Dir: x.Dir, Env: child.List(child.Variables(nil, env)), Name: "notify", Grace: execGrace,
		Stdin: proc.Stream{Pipe: true}, Stdout: proc.Stream{Pipe: true}, Stderr: proc.Stream{Pipe: true}})
	if err != nil {
		return Answer{}, child.StartFailure(x.Dir, x.Command[0], err)
	}
	var out, errs string
	var streams sync.WaitGroup
	streams.Go(func() { out = firstLine(p.Stdout()) })
	streams.Go(func() { errs = firstLine(p.Stderr()) })
	streams.Go(func() {
		_, _ = p.Stdin().Write(n.Body) // a program need not read it
		p.Stdin().Close()
	})
	end := p.Wait()
	streams.Wait()
	says := oneLine(tool.Redact(cmp.Or(out, errs), secrets))
	switch {
	case end.Killed:
		return Answer{}, errors.New(cmp.Or(says, context.Cause(ctx).Error()))
	case end.Lost:
		return Answer{}, errors.New("nobody knows how it ended: its guard was killed")
	case end.Signal != "":
		return Answer{Final: true}, errors.New(cmp.Or(says, "it was ended by "+end.Signal))
	case end.Code != 0:
		return Answer{Status: end.Code, Final: end.Code != tempFail}, errors.New(cmp.Or(says, fmt.Sprintf("it ended with %d", end.Code)))
	}
	return Answer{Said: says}, nil
}

// firstLine reads a stream to its end, and returns the first line with something in it.
func firstLine(r io.Reader) string {
	first, lines := "", proc.Lines(r, 4*maxSaid)
	for {
		line, err := lines.Next()
		if err != nil {
			return first
		}
		if first == "" {
			first = oneLine(string(line.Data))
		}
	}
}
