package mcp

import (
	"context"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stint-dev/stint"
)

// take returns a link that takes calls, and starts one if there is none. The caller
// gives it back.
func (s *Server) take(ctx context.Context) (*link, error) {
	for {
		s.mu.Lock()
		if s.closed || s.life.Err() != nil {
			s.mu.Unlock()
			return nil, stint.Unavailable.Errorf("mcp server "+s.spec.Name, "it is closed")
		}
		if l := s.link; l != nil {
			l.calls++
			s.mu.Unlock()
			return l, nil
		}
		if pause := time.Until(s.next); pause > 0 {
			deaths := s.deaths
			s.mu.Unlock()
			return nil, stint.Retry(pause, &stint.Error{Code: stint.Unavailable, Op: "mcp server " + s.spec.Name,
				Err: fmt.Errorf("it died %d times in a row and is not started again yet", deaths), Hint: "look at what it wrote"})
		}
		running := s.starting
		if running == nil {
			running = make(chan struct{})
			s.starting = running
			s.mu.Unlock()
			l, err := s.start(context.WithoutCancel(ctx))
			s.mu.Lock()
			s.starting = nil
			switch {
			case err != nil:
				s.died()
			case s.closed:
				s.retire(l)
			case !l.retired: // it may have died already
				s.link = l
			}
			close(running)
			s.mu.Unlock()
			if err != nil {
				return nil, s.unavailable(err)
			}
			continue
		}
		s.mu.Unlock()
		select {
		case <-running:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// died notes a death: the first restart is at once, the others come slower and slower.
// The mutex is held.
func (s *Server) died() {
	s.deaths++
	pause := time.Duration(0)
	if s.deaths > 1 {
		pause = min(time.Second<<min(s.deaths-2, 10), maxPause)
	}
	s.next = time.Now().Add(pause)
}

// start connects and lists the tools. It is not the caller's to cancel, since others may
// wait for it; it has its own time.
func (s *Server) start(ctx context.Context) (l *link, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.StartTimeout, fmt.Errorf("it was not ready within %v", s.opts.StartTimeout))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(s.life, func() { stop(errClosed) })()
	l = &link{gone: make(chan struct{})}
	var transport mcp.Transport
	if s.ready.Transport == Stdio {
		l.program, err = startProgram(s.life, s.ready, s.log)
		transport = l.program
	} else {
		transport, l.base, err = remote(s.ready)
	}
	if err != nil {
		return nil, err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "stint", Version: "1"}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{}, // no roots, no sampling, no elicitation
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			s.mu.Lock()
			l.stale = true
			s.mu.Unlock()
		},
	})
	l.session, err = client.Connect(ctx, transport, nil)
	if err == nil {
		l.tools, err = list(ctx, l.session)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if l.program != nil {
			select { // one that died says why
			case <-l.program.proc.Done():
				err = fmt.Errorf("%w: %s", err, l.program.epitaph())
			case <-time.After(tellTime):
			}
		}
		l.end()
		return nil, err
	}
	s.links.Go(func() {
		_ = l.session.Wait()
		close(l.gone)
		s.mu.Lock()
		if !l.retired {
			s.died()
			s.retire(l)
		}
		s.mu.Unlock()
	})
	return l, nil
}

// retire lets a link take no more calls, and ends it if it has none. The mutex is held.
func (s *Server) retire(l *link) {
	if s.link == l {
		s.link = nil
	}
	first := !l.retired
	l.retired = true
	if first && l.calls == 0 {
		s.links.Go(l.end)
	}
}

// giveBack ends the use of a link. One on which a call had no answer is retired, and if it
// was the last call, it is waited for until all of it is gone.
func (s *Server) giveBack(l *link, unanswered bool) {
	s.mu.Lock()
	l.calls--
	if unanswered && l.program != nil && !l.retired {
		l.retired = true
		if s.link == l {
			s.link = nil
		}
	}
	last := l.retired && l.calls == 0
	s.mu.Unlock()
	if last {
		if unanswered && l.program != nil {
			l.program.cancelTold()
		}
		l.end()
	}
}

// end closes the connection and what is behind it. It may be called again.
func (l *link) end() {
	if l.program != nil {
		l.program.end()
	}
	if l.session != nil {
		_ = l.session.Close()
	}
	if l.base != nil {
		l.base.CloseIdleConnections()
	}
}
