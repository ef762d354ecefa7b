package acp

import (
	"context"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
)

var _ stint.Agent = (*Agent)(nil)

// Agent runs one ACP agent for any number of sessions, a process for each that is at
// work. Its methods may be called from several goroutines.
type Agent struct {
	spec   Spec
	settle time.Duration // how long a call that begins waits for its question
	calm   time.Duration // without news of a session that was loaded, before it is prompted
}

// New makes an agent of a valid Spec; see [Spec.Validate] for its error.
func New(s Spec) (*Agent, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return &Agent{spec: s, settle: settleTime, calm: calmTime}, nil
}

// Close is for symmetry with other agents: no process outlives its loop, so there is
// nothing to end. Its error is nil.
func (a *Agent) Close() error { return nil }

// Loop does one prompt turn. When it returns, the agent and all it started have ended.
//
// Errors: a turn that fails fails the attempt, and the next one loads the session where
// it was, or begins anew and tells the agent what was, if it cannot load it; where nobody
// is logged in or the agent cannot be executed, the session ends as failed
// ([stint.Fail]); where too much was asked of a provider it is tried again in 30 s. Each
// has a hint.
func (a *Agent) Loop(ctx context.Context, l stint.Loop) (stint.Next, error) {
	t := &turn{agent: a, spec: &a.spec, loop: l, ses: l.Session(), log: &child.Log{},
		memory: memory{grants: map[string]int{}, refusals: map[string]int{}}}
	if err := t.begin(); err != nil {
		return stint.Next{}, err
	}
	if t.prompt == "" && a.spec.Interactive {
		return stint.Next{Wait: &stint.Wait{For: stint.ForMessage, What: "say something"}}, nil
	}
	t.log.Attach(l, a.spec.outputLimit())
	defer t.log.Detach()
	defer t.end() // a panic leaves no process either
	next, err := t.run(ctx)
	t.over = err == nil
	return next, err
}

// state is what one loop leaves to the next.
type state struct {
	Session string      `json:"session"`        // the agent's id of it
	Turns   int         `json:"turns"`          // that came to their end
	Cost    stint.Money `json:"cost,omitempty"` // what the agent had counted for the session by then
	Said    []exchange  `json:"said,omitempty"` // the newest turns, for an agent that cannot load the session
}

// exchange is one turn as it is told to an agent that begins anew.
type exchange struct {
	You   string `json:"you"` // the prompt
	Agent string `json:"agent"`
}

// looker is implemented by a loop that can tell whether a step had begun in an earlier
// attempt.
type looker interface {
	// Begun reports whether the journal has the intent or the outcome of a step, of a member
	// of a group or of 0, and what a person or a rule said of it since: happened, not, unknown.
	Begun(step, sub int) (begun bool, verdict string)
}

// fenced is implemented by a loop that knows the epoch of its lease.
type fenced interface {
	// Epoch returns the epoch; it is above 0.
	Epoch() int64
}
