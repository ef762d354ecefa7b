package worktree

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/stint-dev/stint"
)

// Options say how sessions get their worktrees.
type Options struct {
	Spec
	// Make makes the agent that works in a folder. What it returns is released, and closed if it can
	// be, when the session is given up.
	Make func(ctx context.Context, f *Folder) (stint.Agent, error)
	// Origin tells on which line of the parent the loop was that a branch comes from.
	Origin func(ctx context.Context, p stint.Parent) (line int, err error)
}

// Agent is an agent each of whose sessions works in a worktree of its own. Its methods may be called
// from several goroutines, Loop and Release of one session one after the other.
type Agent struct {
	opt Options

	mu   sync.Mutex
	repo *Repo
	at   map[stint.ID]*worker
}

// worker is the agent of one session.
type worker struct {
	stint.Agent
	folder *Folder
	ended  bool // it ended the session
}

var _ stint.Agent = (*Agent)(nil)

// Wrap makes the agent. It looks at nothing yet.
func Wrap(o Options) *Agent { return &Agent{opt: o, at: map[stint.ID]*worker{}} }

// Loop prepares the worktree of the session, lets the session's agent do its loop there, and
// commits what that wrote once it came to its end. Errors: those of the agent; those of [Open],
// [Repo.Prepare] and [Repo.Commit], which end the session where no other attempt can mend them.
func (a *Agent) Loop(ctx context.Context, l stint.Loop) (stint.Next, error) {
	next, err := a.loop(ctx, l)
	var e *stint.Error
	if errors.As(err, &e) && e.Op == "workspace" && e.Code != stint.Unavailable {
		err = stint.Fail(err)
	}
	return next, err
}

func (a *Agent) loop(ctx context.Context, l stint.Loop) (stint.Next, error) {
	r, err := a.open(ctx)
	if err != nil {
		return stint.Next{}, err
	}
	t := a.turn(l.Session())
	f, note, err := r.Prepare(ctx, t)
	if err != nil {
		return stint.Next{}, err
	}
	if to, ok := l.(stint.Reporter); ok && note != "" {
		to.Log("log", []byte("[stint] "+note+"\n"))
	}
	w, err := a.worker(ctx, f)
	if err != nil {
		return stint.Next{}, err
	}
	next, err := w.Loop(ctx, l)
	if err == nil {
		_, err = r.Commit(ctx, f, t)
	}
	if err != nil {
		if errors.Is(err, stint.ErrParked) || ctx.Err() != nil {
			_ = r.Park(f) // else the loop begins with the files of the one before
		}
		return stint.Next{}, err
	}
	w.ended = next.End != nil
	return next, nil
}

// open finds the repository, once.
func (a *Agent) open(ctx context.Context) (*Repo, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.repo != nil {
		return a.repo, nil
	}
	r, err := Open(ctx, a.opt.Spec)
	if err == nil {
		a.repo = r
	}
	return r, err
}

func (a *Agent) turn(s stint.Session) Turn {
	t := Turn{Session: s.ID, Name: s.Name, At: stint.Position{Line: s.At.Line, Loop: s.At.Loop}, Attempt: s.At.Attempt, Steps: s.At.Step > 0}
	if p := s.Parent; p.Branch && a.opt.Origin != nil {
		t.Parent = func(ctx context.Context) (Origin, error) {
			line, err := a.opt.Origin(ctx, p)
			return Origin{p.Session, line, p.Loop}, err
		}
	}
	return t
}

// worker returns the agent of a session, made for the folder where that is now.
func (a *Agent) worker(ctx context.Context, f *Folder) (*worker, error) {
	a.mu.Lock()
	w := a.at[f.Session]
	a.mu.Unlock()
	if w != nil && w.folder.Path == f.Path {
		return w, nil
	}
	if w != nil {
		a.Release(f.Session)
	}
	inner, err := a.opt.Make(ctx, f)
	if err != nil {
		return nil, err
	}
	w = &worker{Agent: inner, folder: f}
	a.mu.Lock()
	a.at[f.Session] = w
	a.mu.Unlock()
	return w, nil
}

// Release ends what is held for a session: the engine gives it up.
func (a *Agent) Release(session stint.ID) {
	a.mu.Lock()
	w := a.at[session]
	delete(a.at, session)
	a.mu.Unlock()
	if w == nil {
		return
	}
	w.close()
	if m, ok := w.folder.mark(); ok && w.ended && a.opt.Keep == KeepBranch && m.Stage == done {
		_ = w.folder.remove() // what stays is in nobody's way
	}
}

func (w *worker) close() {
	if x, ok := w.Agent.(interface{ Release(stint.ID) }); ok {
		x.Release(w.folder.Session)
	}
	if x, ok := w.Agent.(io.Closer); ok {
		_ = x.Close()
	}
}

// Close ends what is held for all sessions. Its error is nil.
func (a *Agent) Close() error {
	a.mu.Lock()
	all := a.at
	a.at = map[stint.ID]*worker{}
	a.mu.Unlock()
	for _, w := range all {
		w.close()
	}
	return nil
}
