package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stint-dev/stint"
)

// Approve says whether a person is asked before a tool is called.
type Approve string

// The answers that a tool's configuration can give. The empty value leaves it to the
// policy.
const (
	Always Approve = "always" // ask each time
	Never  Approve = "never"  // do not ask, whatever the built-in rules say
)

// Tool is one thing that an agent can call. It is a value; its Schema is not changed by
// anybody.
type Tool struct {
	// Name is what the model calls it by: 1 to 64 of a-z, A-Z, 0-9, _ and -, the
	// characters that every provider takes.
	Name string
	// Description tells the model what it does and when to use it.
	Description string
	// Schema is a JSON Schema of the arguments, an object always. nil: any object.
	Schema json.RawMessage
	// Effect is what calling it again means; empty is [stint.Once].
	Effect stint.Effect
	// Parallel allows it to run beside other calls of the same answer.
	Parallel bool
	// Timeout bounds one call; 0 leaves it to the step.
	Timeout time.Duration
	// Approve overrides the policy that asks a person first.
	Approve Approve
	// Taints says that its output comes from outside, and may be written to mislead the
	// model: what is decided after it is tainted.
	Taints bool
	// Poll says that calling it again and again is how it is meant, so that health rules
	// have patience with it.
	Poll bool
	// Source says for people where it comes from: "exec", "mcp docs". It may be empty.
	Source string
	// Caller does the call.
	Caller Caller
}

// Step describes a call of the tool to the engine. Its input is args, byte for byte.
func (t Tool) Step(args json.RawMessage) stint.Step {
	return stint.Step{Name: t.Name, Kind: stint.Tool, Effect: t.Class(), Input: args, Timeout: t.Timeout}
}

// Class is the tool's Effect, with [stint.Once] for an empty one.
func (t Tool) Class() stint.Effect {
	if t.Effect == "" {
		return stint.Once
	}
	return t.Effect
}

// Caller does what a tool is for. Its method may be called from many goroutines.
type Caller interface {
	// Call does one call with arguments that [Set.Check] has accepted. It returns soon
	// after ctx ends. The documentation of the package says what its errors mean.
	Call(ctx context.Context, c Call) (Output, error)
}

// CallerFunc is a function as a [Caller].
type CallerFunc func(ctx context.Context, c Call) (Output, error)

// Call calls f.
func (f CallerFunc) Call(ctx context.Context, c Call) (Output, error) { return f(ctx, c) }

// Call is one call of a tool.
type Call struct {
	Args     json.RawMessage // a JSON object, the bytes that are stored
	Key      string          // idempotency key of the step; the same when it is done again
	Session  stint.ID
	Name     string         // the session's name, for people
	Position stint.Position // of the step
	Epoch    int64          // fencing token of the lease that the call is made under
}

// Output is what a call gave. Its JSON form is what a step records.
type Output struct {
	// Text is what the model reads: valid UTF-8 without NUL. It is whole; [Excerpt] cuts it.
	Text string `json:"text"`
	// Data is the result as JSON, where the tool has it in that form.
	Data json.RawMessage `json:"data,omitempty"`
	// Error says that the tool itself failed. It is a result, and the model goes on from it.
	Error bool `json:"error,omitempty"`
	// Wait parks the session before the model is asked again.
	Wait *stint.Wait `json:"wait,omitempty"`
	// Spawn begins a child session, which the agent does once the answer's other calls are
	// done; its id stands behind Text then.
	Spawn *Spawn `json:"spawn,omitempty"`
	// Result ends the session with this result; nil goes on.
	Result json.RawMessage `json:"result,omitempty"`
}

// Spawn is a child session that a call asks for.
type Spawn struct {
	Agent string `json:"agent"`
	Name  string `json:"name,omitempty"`
	Input string `json:"input"`
}

// Asker is implemented by callers whose calls are questions to a person. An agent asks
// before the step of such a call begins; with an answer the step has its result, and
// Call is not called. Both methods give the same for the same arguments, and may be
// called from many goroutines.
type Asker interface {
	// Question is what a call with args asks. An error is the call's result, and nobody
	// is asked.
	Question(args json.RawMessage) (Question, error)
	// Answer makes the call's output of what the person answered. [stint.Invalid] for an
	// answer that q does not take, with a text for that person.
	Answer(q Question, answer json.RawMessage) (Output, error)
}

// Question is asked of a person.
type Question struct {
	Text   string
	Schema json.RawMessage // of the answer, never nil and at most 32 KiB; see [stint.Step]
}

// Errorf makes the Output of a tool that failed, with a text for the model.
func Errorf(format string, args ...any) Output {
	text, _ := Clean(fmtBytes(format, args...))
	return Output{Text: text, Error: true}
}

// NotBegun returns err as one of a call that did nothing: a program that the system
// would not start for now, a server that could not be reached. Nothing is in doubt, and
// the call may be tried again.
func NotBegun(err error) error { return notBegun{err} }

type notBegun struct{ error }

// NotBegun is what the engine asks an error for.
func (notBegun) NotBegun() bool { return true }

// Unwrap returns the cause.
func (n notBegun) Unwrap() error { return n.error }
