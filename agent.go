package stint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Agent is how one loop of a session runs. The engine calls Loop from one
// goroutine a session, many sessions at once, so an Agent keeps what belongs to a
// session in its state.
type Agent interface {
	// Loop does one pass and says how to go on. An error fails the attempt; it is
	// tried again as the retry policy says, unless [Fail] or [Retry] steer it. Code
	// outside a step is run again freely after a crash: effects belong into steps.
	// When ctx ends, return soon: the lease is lost, the session is stopped, or its
	// time is up. A panic is an error that names the loop.
	Loop(ctx context.Context, l Loop) (Next, error)
}

// AgentFunc is a function as an [Agent].
type AgentFunc func(ctx context.Context, l Loop) (Next, error)

// Loop calls f.
func (f AgentFunc) Loop(ctx context.Context, l Loop) (Next, error) { return f(ctx, l) }

// Loop is what an agent sees of its session during one loop. It belongs to the
// goroutine that Loop was called in; only what DoAll calls
// runs concurrently, and that does not call it.
type Loop interface {
	// Session is the session as of this loop's beginning.
	Session() Session
	// State is the checkpoint this loop began from, byte for byte; nil if there is none yet.
	State() json.RawMessage
	// Inbox is the messages taken for this loop, oldest first. Every attempt at a
	// loop sees the same ones; those that come later wait for the next loop.
	Inbox() []Message
	// Do runs fn as a durable step and returns its result. Where the journal already
	// has the step's result, that is returned and fn does not run. key is the
	// idempotency key to hand to the outside: the same over attempts, restarts and
	// machines. ErrParked means: return it. Other errors are fn's own, a [Definite] one
	// in its recorded form; or [Invalid] for a step that breaks a rule; or [Limit] for an
	// input or a result beyond 32 MiB.
	Do(ctx context.Context, s Step, fn func(ctx context.Context, key string) (Result, error)) (Result, error)
	// DoAll runs fn for each of steps as one group, concurrently, and returns the
	// results in the order of steps. The error is the first in that order; one with a
	// method Members() []error has one for each step. A step that asks a person lets
	// the others run; the group then parks.
	DoAll(ctx context.Context, steps []Step, fn func(ctx context.Context, i int, key string) (Result, error)) ([]Result, error)
}

// Reporter is implemented by loops that can show what the agent is doing. Its
// methods may be called from any goroutine while Loop runs.
type Reporter interface {
	// Progress sets the session's NOW line, at most 120 characters; it is shown
	// within a second and not journaled.
	Progress(headline string)
	// Log adds output to the session's log: whole lines of "stdout", "stderr" or
	// "log". It is journaled soon, in order, without waiting for it. p is copied.
	Log(stream string, p []byte)
}

// Spawner is implemented by loops that can begin sessions of their own.
type Spawner interface {
	// Spawn begins a child session and returns its id. It is a step of the loop, and no
	// other runs beside it: where the journal has it, the child that it names is the one.
	// The child runs by itself; the loop waits for its end with [ForChild], and gets it as
	// a message of kind [ChildEnd]. Stop, kill, pause, resume and interrupt of the session
	// reach its children too, and they are canceled when it ends. What a child uses counts
	// against the limits of the session. Errors: [NotFound] for an agent that there is
	// not, [Invalid] for what a session cannot begin with, ErrParked as of Do.
	Spawn(ctx context.Context, c Child) (ID, error)
}

// Child is a session that a loop begins.
type Child struct {
	Agent  string            `json:"agent"`            // by name, as it is defined now
	Name   string            `json:"name,omitempty"`   // empty: the parent's, the agent's and a number, as in triage-1129.worker-1
	Input  []byte            `json:"-"`                // its first message: UTF-8, at most 32 MiB
	Labels map[string]string `json:"labels,omitempty"` // nil: the agent's
	Limits *Limits           `json:"limits,omitempty"` // nil: the agent's
	// Detach lets it go: no control of the parent reaches it, it outlives its parent, and
	// its end is not told. What it uses still counts against the parent's limits.
	Detach bool `json:"detach,omitempty"`
}

// Effect says what doing a step again means.
type Effect string

// The classes of effect. A step without one is [Once].
const (
	Read       Effect = "read"       // run again freely
	Idempotent Effect = "idempotent" // run again with the same key
	Once       Effect = "once"       // never run again by itself: after a crash between intent and result a person is asked
)

// StepKind says what a step is, for those who read the journal.
type StepKind string

// The kinds of steps. A step without one is [Custom].
const (
	Model  StepKind = "model"
	Tool   StepKind = "tool"
	Custom StepKind = "step"
)

// Step describes an effect before it happens. When a loop is begun again, the
// same call must describe the same step: another name, kind or input is a
// divergence, and the session waits for a person with both sides shown.
type Step struct {
	Name   string          `json:"name"` // 1 to 200 characters of UTF-8, shown to people: "github.list_issues"
	Kind   StepKind        `json:"kind"`
	Effect Effect          `json:"effect"`
	Input  json.RawMessage `json:"input,omitempty"` // JSON, at most 32 MiB; journaled with the step
	// Timeout bounds one execution; 0: ten minutes. A Once step that runs into it is in doubt.
	Timeout time.Duration `json:"-"`
	// Alone keeps a member of a group from running beside others: it begins when those
	// before it have ended, and those behind it wait for it. Its intent is recorded when
	// it begins and not with the group's, so a crash leaves no step in doubt that had
	// not begun.
	Alone bool `json:"-"`
	// Ask, if set, asks a person before the step begins, in one line: what a yes allows,
	// or what is to be answered. The session waits as a row, and the loop is begun again
	// with the decision, which belongs to exactly this step and its input: for another
	// one at the same place the question is invalidated and a new one asked. A no is the
	// step's result, a [Definite] error of code [Denied] with the person's words.
	Ask string `json:"-"`
	// Why is one line beside Ask: the rule that asks.
	Why string `json:"-"`
	// Answer is the JSON Schema, at most 32 KiB, of what is answered to Ask where more
	// than a yes or no is wanted. The answer is then the step's result, as it came, and
	// the function of the step is not called.
	Answer json.RawMessage `json:"-"`
	// Hold is how long the agent keeps its process for the decision: Do waits so long
	// before it parks the session. The lease is kept, the session is shown as waiting.
	// DoAll does not wait.
	Hold time.Duration `json:"-"`
	// Reserve is the most that the step may use. Where it would pass a limit of tokens or
	// money, the step is not begun; until its result is recorded it counts as used, and
	// for good if that never comes. Zero reserves nothing.
	Reserve Usage `json:"-"`
	// Approve is the tool's own word on whether a person is asked, "always" or "never", for a
	// policy to weigh; empty: none. Tainted says that what led to the step came from outside.
	Approve string `json:"-"`
	Tainted bool   `json:"-"`
	// Edit, if set, allows a person who says yes to change the input. It is called with the
	// new one before the function of the step, and also where the step is answered from the
	// journal; from the goroutine that Loop was called in.
	Edit func(input json.RawMessage) `json:"-"`
	// Yields passes the step over once somebody has interrupted the loop: if it has no
	// outcome then, it is not begun any more and is not asked about, and its outcome is a
	// [Definite] error of code [Denied] that says who it was. So what a model asked for
	// is not done when a person said no to its turn.
	Yields bool `json:"-"`
}

// Result is what a step gave.
type Result struct {
	Data  json.RawMessage // JSON, at most 32 MiB; nil is stored as null
	Usage Usage
}

// Next is how a loop ended well. One that cannot be recorded (a value that is not JSON
// or too large, an outcome or a wait that there is not) is a failed attempt of the loop
// instead, and the error names the member.
type Next struct {
	// State is what the next loop starts from: JSON, at most 32 MiB. nil keeps the
	// state as it is.
	State json.RawMessage
	// Wait parks the session; nil goes on with the next loop at once. Its Since and Step
	// are the engine's. A wait for a time or a retry needs Until.
	Wait *Wait
	// End ends the session with this loop; it wins over Wait.
	End *End
	// Headline is one line on what changed, for lists.
	Headline string
}

// End is how a session ends.
type End struct {
	Outcome Status          // Completed, Failed or Stopped; empty: Completed
	Reason  string          // one line, at most 1,000 bytes; longer ones are cut
	Result  json.RawMessage // JSON, at most 32 MiB
}

// Do runs fn as a durable step whose result is a Go value, stored as JSON. A value
// that JSON cannot hold is [Invalid] and names the path to it. What fn returned is
// read back from its JSON, so a first run and a replay get the same; numbers in an
// any are a [json.Number], with the digits that the journal has.
func Do[T any](ctx context.Context, l Loop, s Step, fn func(ctx context.Context, key string) (T, error)) (T, error) {
	var out T
	res, err := l.Do(ctx, s, func(ctx context.Context, key string) (Result, error) {
		v, err := fn(ctx, key)
		if err != nil {
			return Result{}, err
		}
		b, err := Marshal(v)
		if err != nil {
			return Result{}, Definite(Fail(fmt.Errorf("the result of %s: %w", s.Name, err)))
		}
		return Result{Data: b}, nil
	})
	if err != nil {
		return out, err
	}
	dec := json.NewDecoder(bytes.NewReader(res.Data))
	dec.UseNumber() // an any holds the digits that the journal has
	if err := dec.Decode(&out); err != nil {
		return out, &Error{Code: Invalid, Op: "step " + s.Name, Err: err,
			Hint: "the journaled result no longer fits the Go type; change the type back, or restart from before this step"}
	}
	return out, nil
}
