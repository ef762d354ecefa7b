package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/proc"
)

// process is one CLI at work on one turn.
type process struct {
	spec *Spec
	proc *proc.Proc
	feed *feed
	log  *child.Log
	tail child.Tail
	gone chan struct{} // closed once the whole tree has ended and all it wrote has been read
}

// exit is how a process ended.
type exit struct {
	code   int
	signal string
	killed bool
	stderr []string
}

func (x *exit) how() string {
	switch {
	case x.killed:
		return "was told to end"
	case x.signal != "":
		return "was ended by signal " + x.signal
	case x.code < 0:
		return "ended, nobody knows how"
	}
	return fmt.Sprintf("exited with %d", x.code)
}

// words are what its standard error says of the end: the last line that begins with
// Error, else the last that says something.
func (x *exit) words() string {
	last := ""
	for i := len(x.stderr) - 1; i >= 0; i-- {
		s := strings.TrimSpace(clean(x.stderr[i]))
		if strings.HasPrefix(strings.ToLower(s), "error") {
			return s
		}
		if last == "" {
			last = s
		}
	}
	return last
}

// startProcess starts the CLI with a prompt. The process ends with ctx, which is the
// loop's, and all it started ends with it.
func startProcess(ctx context.Context, spec *Spec, argv, env []string, name, prompt string, log *child.Log) (*process, error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	p, err := proc.Start(own, proc.Spec{
		Argv: argv, Dir: spec.Dir, Env: env, Name: name, Grace: spec.grace(),
		Stdin: proc.Stream{Pipe: true}, Stdout: proc.Stream{Pipe: true}, Stderr: proc.Stream{Pipe: true},
	})
	if err != nil {
		stop()
		cancel()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, child.StartFailure(spec.Dir, argv[0], err)
	}
	faultpoint.Hit(faultpoint.EffectSent)
	c := &process{spec: spec, proc: p, feed: newFeed(), log: log, gone: make(chan struct{})}
	var streams sync.WaitGroup
	go func() { // a CLI that does not read its prompt says so itself
		_, _ = p.Stdin().Write([]byte(prompt))
		p.Stdin().Close()
	}()
	streams.Go(c.read)
	streams.Go(func() {
		child.Pump(p.Stderr(), nil, func(line []byte, size int64) {
			c.tail.Add(line)
			logLine(log, child.Stderr, line, size)
		})
	})
	go func() {
		<-p.Done()
		streams.Wait()
		stop()
		cancel()
		x := p.Wait()
		c.feed.put(event{kind: evExit, exit: &exit{code: x.Code, signal: strings.TrimPrefix(x.Signal, "SIG"), killed: x.Killed, stderr: c.tail.Last()}})
		close(c.gone)
	}()
	return c, nil
}

// read takes the stream to its end. A line that is none of the stream's is logged.
func (c *process) read() {
	r := newReader(c.spec.Protocol)
	lines := proc.Lines(c.proc.Stdout(), maxLine)
	for {
		line, err := lines.Next()
		if err != nil {
			break
		}
		switch {
		case line.Truncated():
			c.log.Notef("a line of %d bytes is left out: at most %d are read", line.Size, maxLine)
			continue
		case len(strings.TrimSpace(string(line.Data))) == 0:
			continue
		}
		events, err := r.read(line.Data)
		if err != nil {
			logLine(c.log, child.Stdout, line.Data[:min(len(line.Data), child.MaxLine)], line.Size)
			continue
		}
		for _, e := range events {
			c.put(e)
		}
	}
	timer := time.NewTimer(silentTime)
	defer timer.Stop()
	select {
	case <-c.proc.Done():
	case <-timer.C:
		c.stop()
	}
}

// logLine logs a line, cleaned; size is its full length.
func logLine(log *child.Log, stream string, line []byte, size int64) {
	text := clean(string(line))
	log.Line(stream, []byte(text), size-int64(len(line))+int64(len(text)))
}

func (c *process) put(e event) {
	e.text, _ = bound(e.text, maxText)
	switch e.kind {
	case evNote:
		c.log.Text("info", e.text)
	case evTrouble:
		c.log.Text("warn", e.text)
		c.feed.put(e)
	case evBegin:
		e.call.Effect = c.spec.effect(e.call)
		c.feed.put(e)
	default:
		c.feed.put(e)
	}
}

// stop ends the process: SIGTERM, and after the grace SIGKILL, for the whole tree.
func (c *process) stop() { c.proc.Terminate(c.spec.grace()) }

// end stops the process and waits until the tree is gone.
func (c *process) end() {
	c.stop()
	<-c.gone
}

// leave gives a CLI whose turn is over the time to write down what it wants to keep.
func (c *process) leave() {
	timer := time.NewTimer(exitTime)
	defer timer.Stop()
	select {
	case <-c.gone:
		return
	case <-timer.C:
		c.log.Notef("the CLI did not exit within %v of the end of its turn and was told to", exitTime)
	}
	c.end()
}

// stopped is the error of a step that ends because the CLI was told to.
func stopped(ctx context.Context, what string) error {
	cause := context.Cause(ctx)
	if cause == nil {
		cause = errors.New("the loop ended")
	}
	var e *stint.Error
	if errors.As(cause, &e) {
		return fmt.Errorf("while %s was under way: %w", what, cause)
	}
	return fmt.Errorf("while %s was under way the CLI was told to end: %w", what, cause)
}
