package exec

import (
	"context"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/protocol"
)

var _ stint.Agent = (*Agent)(nil)

// Agent runs one program for any number of sessions. Its methods may be called
// from several goroutines, Loop and Release of one session one after the other.
type Agent struct {
	spec Spec

	mu     sync.Mutex
	kept   map[stint.ID]*peer
	closed bool
}

// New makes an agent of a valid Spec; see [Spec.Validate] for its error.
func New(s Spec) (*Agent, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if s.Protocol == "" {
		s.Protocol = JSONL
	}
	return &Agent{spec: s, kept: map[stint.ID]*peer{}}, nil
}

// Loop runs the program for one loop. When it returns, the process and all it
// started have ended, unless the agent keeps it for the next loop. It shows output
// through [stint.Reporter], and tells the program more where l implements
// [Recorded] and [Fenced].
//
// Errors: a breach of the protocol, or an exit without an end message (then with
// an [ExitError]), is [stint.Invalid] and fails the attempt; a program that is not
// there or cannot be executed ends the session, with a [StartError] or, under [None],
// with the exit code that a shell has for it; the agent's own errors are passed on as
// it asked. The text of each is one sentence that says what the agent did. After
// [stint.ErrParked] the program is told to leave and then ended.
func (a *Agent) Loop(ctx context.Context, l stint.Loop) (stint.Next, error) {
	if a.spec.Protocol == None {
		return a.command(ctx, l)
	}
	ses := l.Session()
	hello, err := protocol.Greeting(l)
	if err != nil {
		return stint.Next{}, err
	}
	if p := a.take(ses, protocol.Epoch(l)); p != nil {
		next, unheard, err := a.converse(ctx, l, p, hello)
		if !unheard {
			return next, err
		}
		// It died between the loops, where it had nothing to do: no attempt is spent.
	}
	p, err := startPeer(ctx, a.spec, ses, protocol.Epoch(l))
	if err != nil {
		return stint.Next{}, err
	}
	next, _, err := a.converse(ctx, l, p, hello)
	return next, err
}

// converse does one loop with a process. unheard tells that the process ended
// before it had anything of it.
func (a *Agent) converse(ctx context.Context, l stint.Loop, p *peer, hello []byte) (next stint.Next, unheard bool, err error) {
	p.sink.Attach(l, a.spec.outputLimit())
	defer p.sink.Detach()
	stop := context.AfterFunc(ctx, p.stop)
	defer stop()
	d := &driver{talk: newTalk(p, l), loop: l}
	if !p.begin(d.talk) {
		p.retire(0)
		return stint.Next{}, true, nil
	}
	alive := false
	defer func() { // a panic in the loop's Do leaves no process either
		if !alive {
			d.stopNow()
		}
	}()
	next, alive, err = d.run(ctx, hello)
	if alive {
		p.loop = l.Session().At.Loop
		a.keep(p)
	}
	return next, err != nil && ctx.Err() == nil && d.unheard(d.hello), err
}

// take returns the kept process for a loop, out of the agent's hands; nil: there
// is none that the loop could use.
func (a *Agent) take(ses stint.Session, epoch int64) *peer {
	a.mu.Lock()
	p := a.kept[ses.ID]
	delete(a.kept, ses.ID)
	a.mu.Unlock()
	if p == nil {
		return nil
	}
	p.idle.Stop()
	if p.epoch != epoch || p.line != ses.At.Line || p.loop+1 != ses.At.Loop {
		p.retire(releaseTime)
		return nil
	}
	return p
}

// keep holds a process for the session's next loop.
func (a *Agent) keep(p *peer) {
	a.mu.Lock()
	closed := a.closed
	if !closed {
		p.idle = time.AfterFunc(keepIdle, func() { a.forget(p) })
		a.kept[p.session] = p
	}
	a.mu.Unlock()
	if closed {
		p.retire(releaseTime)
	}
}

// forget ends a process that nobody came back for.
func (a *Agent) forget(p *peer) {
	a.mu.Lock()
	mine := a.kept[p.session] == p
	if mine {
		delete(a.kept, p.session)
	}
	a.mu.Unlock()
	if mine {
		p.retire(releaseTime)
	}
}

// Release ends the process kept for a session, if there is one: the engine gives
// the session up. It gets end of file on its input and two seconds, then it is
// killed with all it started; Release returns when that is over.
func (a *Agent) Release(session stint.ID) {
	a.mu.Lock()
	p := a.kept[session]
	delete(a.kept, session)
	a.mu.Unlock()
	if p != nil {
		p.idle.Stop()
		p.retire(releaseTime)
	}
}

// Close ends all kept processes as Release does, all at once. From then on no
// process outlives its loop. Its error is nil.
func (a *Agent) Close() error {
	a.mu.Lock()
	a.closed = true
	var all []*peer
	for id, p := range a.kept {
		all = append(all, p)
		delete(a.kept, id)
	}
	a.mu.Unlock()
	var wait sync.WaitGroup
	for _, p := range all {
		p.idle.Stop()
		wait.Go(func() { p.retire(releaseTime) })
	}
	wait.Wait()
	return nil
}
