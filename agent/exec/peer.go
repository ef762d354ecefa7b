package exec

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/proc"
	"github.com/stint-dev/stint/internal/protocol"
)

// peer is one process that speaks the protocol. Three goroutines serve it: one
// reads its lines and gives them to the talk that is on, one reads its log, one
// writes to it, so that neither side can block the other by writing.
type peer struct {
	spec   Spec
	proc   *proc.Proc
	sink   *child.Log
	tail   child.Tail
	queue  chan *outgoing
	silent chan struct{} // closed at the end of its standard output: no message can come any more
	gone   chan struct{} // closed once the whole tree has ended and all it wrote has been read
	mute   chan struct{} // closed when nothing is written to it any more
	cancel context.CancelFunc
	served bool // used by whoever drives it
	lags   bool // used by its reader

	mu     sync.Mutex
	talk   *talk // nil between two loops
	broken bool  // it said something between two loops
	closed bool  // its output ended before it did

	// For a process that is kept: what it may go on with.
	session stint.ID
	epoch   int64
	line    int
	loop    int // the loop that it did last
	idle    *time.Timer
}

// outgoing is a line for the agent.
type outgoing struct {
	line    []byte
	proceed bool
	last    bool       // close its input behind it
	written chan error // gets one value
	sent    atomic.Int64
}

func newOutgoing(line []byte) *outgoing { return &outgoing{line: line, written: make(chan error, 1)} }

// startPeer starts the program; nothing it says is read before begin. The process
// outlives ctx, which only bounds the start; whoever talks to it ends it.
func startPeer(ctx context.Context, spec Spec, ses stint.Session, epoch int64) (*peer, error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	p, err := proc.Start(own, proc.Spec{
		Argv: spec.Command, Dir: spec.Dir, Env: spec.environ(ses, epoch, ""), Name: ses.Name,
		Stdin: proc.Stream{Pipe: true}, Stdout: proc.Stream{Pipe: true}, Stderr: proc.Stream{Pipe: true},
		Grace: spec.grace(), Offline: spec.Offline,
	})
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, spec.startError(err)
	}
	return &peer{spec: spec, proc: p, sink: &child.Log{}, queue: make(chan *outgoing, 1), silent: make(chan struct{}),
		gone: make(chan struct{}), mute: make(chan struct{}), cancel: cancel, session: ses.ID, epoch: epoch, line: ses.At.Line}, nil
}

func (p *peer) serve() {
	var streams sync.WaitGroup
	streams.Go(func() {
		p.read()
		close(p.silent)
	})
	streams.Go(func() {
		child.Pump(p.proc.Stderr(), p.spec.TeeStderr, func(line []byte, size int64) {
			p.tail.Add(line)
			p.sink.Line(child.Stderr, line, size)
		})
	})
	go p.write()
	go func() {
		<-p.proc.Done()
		streams.Wait()
		p.cancel()
		close(p.gone)
	}()
}

// read takes the agent's lines to the end of its output. Once a talk does not want
// more, the rest is read and dropped, so that the process can end.
func (p *peer) read() {
	out := p.proc.Stdout()
	limit := p.spec.lineLimit()
	lines := proc.Lines(&lineLimit{r: out, limit: limit}, limit)
	for {
		line, err := lines.Next()
		if err != nil && !errors.Is(err, errLongLine) {
			return
		}
		p.mu.Lock()
		talk := p.talk
		p.mu.Unlock()
		switch {
		case err != nil:
			_, _ = io.Copy(io.Discard, out)
			return
		case talk != nil:
			talk.take(line, limit)
		default:
			p.between(line)
		}
	}
}

// between takes a line that comes while no loop is on.
func (p *peer) between(line proc.Line) {
	m, err := protocol.Parse(line.Data)
	switch {
	case len(trimSpace(line.Data)) == 0:
	case err == nil && m.Kind == "log":
		p.sink.Text(m.Level, m.Text)
	case err == nil && m.Kind == "progress":
	default:
		p.mu.Lock()
		p.broken = true
		p.mu.Unlock()
	}
}

// write writes what is queued. The write of a process that does not read lasts
// until its input is closed.
func (p *peer) write() {
	defer close(p.mute)
	in := p.proc.Stdin()
	for {
		select {
		case o := <-p.queue:
			n, err := in.Write(o.line)
			o.sent.Store(int64(n))
			if err == nil && o.proceed {
				faultpoint.Hit(faultpoint.EffectSent)
			}
			o.written <- err
			if o.last {
				in.Close()
			}
		case <-p.gone:
			return
		}
	}
}

// catchUp lets the reader of the log come to where the agent was when it wrote the
// line at hand, so that what it logged before stands before what it says. A log that
// is not taken any more, as by a terminal that was stopped, is waited for once. It
// runs on the reader's goroutine.
func (p *peer) catchUp() {
	most := catchUpTime
	if p.lags {
		most = 0
	}
	p.lags = !p.proc.CatchUp(most)
}

// begin gives the following lines to t, and reports false if the process is not
// fit for another loop.
func (p *peer) begin(t *talk) bool {
	if !p.served {
		p.served, p.talk = true, t
		p.serve()
		return true
	}
	select {
	case <-p.silent:
		return false
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		return false
	}
	p.talk = t
	return true
}

// release ends a talk whose process is to be kept.
func (p *peer) release() {
	p.mu.Lock()
	p.talk = nil
	p.mu.Unlock()
}

// stop ends the process: SIGTERM, and after the grace SIGKILL, for the whole tree.
func (p *peer) stop() { p.proc.Terminate(p.spec.grace()) }

// closeInput makes the agent read end of file, and lets go of a write that it does
// not read.
func (p *peer) closeInput() { p.proc.Stdin().Close() }

// retire gives the process until after to end by itself now that its input is at
// its end, then kills it. It returns when the tree is gone, and reports whether it
// had to be killed.
func (p *peer) retire(after time.Duration) (killed bool) {
	p.closeInput()
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-p.gone:
		return false
	case <-timer.C:
	}
	p.proc.Kill()
	<-p.gone
	return true
}

// settle waits for the end of a process whose output has ended, which as a rule
// it is about to meet.
func (p *peer) settle() {
	timer := time.NewTimer(silentTime)
	defer timer.Stop()
	select {
	case <-p.gone:
		return
	case <-timer.C:
	}
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	<-p.gone
}

// exitError describes the end of a process that is gone.
func (p *peer) exitError() *ExitError {
	x := p.proc.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return &ExitError{Code: x.Code, Signal: signalName(x), Closed: p.closed && x.Killed, Stderr: p.tail.Last()}
}
