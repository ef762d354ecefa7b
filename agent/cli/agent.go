package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
)

var _ stint.Agent = (*Agent)(nil)

// Agent runs one CLI for any number of sessions. Its methods may be called from
// several goroutines.
type Agent struct {
	spec   Spec
	gather time.Duration // how long a call waits for others that begin with it
}

// New makes an agent of a valid Spec; see [Spec.Validate] for its error.
func New(s Spec) (*Agent, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return &Agent{spec: s, gather: gatherTime}, nil
}

// Close is for symmetry with other agents: no process outlives its loop, so there is
// nothing to end. Its error is nil.
func (a *Agent) Close() error { return nil }

// Loop does one turn of the CLI. When it returns, the CLI and all it started have
// ended.
//
// Errors: a turn that fails fails the attempt, and the next one resumes the CLI where
// it was; where nobody is logged in, where the CLI does not know the session any more
// or cannot be executed, the session ends as failed ([stint.Fail]); where too much was
// asked of a provider it is tried again when that says, or in 30 s. Each has a hint.
func (a *Agent) Loop(ctx context.Context, l stint.Loop) (stint.Next, error) {
	t := &turn{agent: a, spec: &a.spec, loop: l, ses: l.Session(), log: &child.Log{}}
	if err := t.begin(); err != nil {
		return stint.Next{}, err
	}
	if t.prompt == "" && a.spec.Interactive {
		return stint.Next{Wait: &stint.Wait{For: stint.ForMessage, What: "say something"}}, nil
	}
	t.log.Attach(l, a.spec.outputLimit())
	defer t.log.Detach()
	defer t.stop()
	return t.run(ctx)
}

// state is what one loop leaves to the next.
type state struct {
	Resume string      `json:"resume"`        // the CLI's id of the session
	Turns  int         `json:"turns"`         // that came to their end
	Told   stint.Usage `json:"told,omitzero"` // what the CLI had counted for the session by then, where it counts on
}

// recorded is implemented by a loop that can tell which of its steps have an outcome
// from an earlier attempt.
type recorded interface {
	// Recorded returns a JSON object for each, in order, with step and sub among its members.
	Recorded() []json.RawMessage
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
