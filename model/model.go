package model

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Model is a language model of some provider.
type Model interface {
	// Name is what people and price tables know the model by, without the provider.
	Name() string
	// Call asks r and returns the whole answer. hear, when not nil, gets pieces of text
	// as they arrive, from the goroutine that called Call; it is for those who watch,
	// and never part of the answer's truth. Call is safe for concurrent use and does not
	// keep or change r. It does not retry.
	//
	// The error is an [*Error], or that of ctx when ctx ended first. There is never both
	// an answer and an error.
	Call(ctx context.Context, r *Request, hear func(Delta)) (*Answer, error)
}

// Delta is a piece of an answer that is still being written.
type Delta struct {
	Text    string
	Thought bool // it belongs to the model's thinking, not to its answer
	Void    bool // everything heard so far is void: the answer begins again
}

// Request is one question to a model. The zero value of a field leaves it to the provider.
type Request struct {
	System    string    `json:"system,omitempty"`
	Messages  []Message `json:"messages"`
	Tools     []Tool    `json:"tools,omitempty"`
	MaxTokens int64     `json:"max_tokens,omitempty"` // of the answer; 0: the provider's default, or 8192 where it wants a figure
	// Temperature is nil for the provider's default, which some models insist on.
	Temperature *float64 `json:"temperature,omitempty"`
	Choice      Choice   `json:"choice,omitzero"`
	Stop        []string `json:"stop,omitempty"` // sequences that end the answer; at most 4 work everywhere
	// Cache marks the stable prefix (system, tools, all but the newest messages) for
	// the provider's prompt cache.
	Cache bool `json:"cache,omitempty"`
	// Schema asks for an answer that is one JSON value of this schema.
	Schema *Schema `json:"schema,omitempty"`
	// Session names who asks, at most 64 characters: the provider's key for routing to a
	// warm cache and for finding abuse. It should tell nothing about a person.
	Session string `json:"session,omitempty"`
}

// Tool is what the model may call.
type Tool struct {
	Name        string          `json:"name"` // 1 to 64 of A-Z a-z 0-9 _ -
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"` // of the arguments, a JSON Schema of type object; nil: no arguments
}

// Schema is the JSON Schema of a structured answer.
type Schema struct {
	Name   string          `json:"name"` // 1 to 64 of A-Z a-z 0-9 _ -
	Schema json.RawMessage `json:"schema"`
}

// Choice says whether the model may or must call tools; the zero value lets it decide.
type Choice struct {
	Mode ChoiceMode `json:"mode,omitempty"`
	Tool string     `json:"tool,omitempty"` // the one to call, with Named
	// Single allows at most one call an answer.
	Single bool `json:"single,omitempty"`
}

// ChoiceMode is how free the model is in calling tools.
type ChoiceMode string

// The modes of a Choice.
const (
	Auto     ChoiceMode = ""         // as it likes
	Never    ChoiceMode = "never"    // no calls
	Required ChoiceMode = "required" // at least one call
	Named    ChoiceMode = "named"    // the tool that Choice.Tool names
)

// Answer is what a model answered, whole.
type Answer struct {
	// Message is the assistant's. It may have no parts (the model said nothing): such a
	// message is not sent again.
	Message Message `json:"message"`
	Stop    Stop    `json:"stop"`
	Reason  string  `json:"reason,omitempty"` // the provider's own word for Stop
	Usage   Usage   `json:"usage"`
	// Wasted is what attempts before this answer had used when they broke, as far as the
	// provider said so; set by [Paced]. It is paid for beside Usage.
	Wasted Usage  `json:"wasted,omitzero"`
	Model  string `json:"model,omitempty"` // what the provider says answered, often a dated name
	ID     string `json:"id,omitempty"`    // the provider's
	// Raw is the response body as it came: its first MiB, and RawSize how much it was.
	Raw     []byte `json:"raw,omitempty"`
	RawSize int64  `json:"raw_size,omitempty"`
}

// Stop says why an answer ended.
type Stop string

// Why an answer ended. Only with [ToolUse] are calls complete and may be executed;
// with any other they were cut off, whatever their arguments look like.
const (
	EndTurn  Stop = "end"      // the model had no more to say
	ToolUse  Stop = "tools"    // it waits for the results of its calls
	Length   Stop = "length"   // MaxTokens were used up
	Window   Stop = "window"   // the context window is full
	Sequence Stop = "sequence" // one of Request.Stop came
	Refusal  Stop = "refusal"  // the model or its provider refused to go on
	Pause    Stop = "pause"    // the provider paused a long turn: send the message back to go on
	Other    Stop = "other"    // see Answer.Reason
)

// Calls are the answer's calls that may be executed, in order: none unless the answer
// stopped for them.
func (a *Answer) Calls() []Call {
	if a.Stop != ToolUse {
		return nil
	}
	return a.Message.Calls()
}

// CutCalls are calls that the end of the answer cut off. They are never executed, and
// each needs a result that says so before the message can be sent again.
func (a *Answer) CutCalls() []Call {
	if a.Stop == ToolUse {
		return nil
	}
	return a.Message.Calls()
}

// Usage is what an answer cost in tokens. The four counts exclude each other, for every
// provider: Input is what was neither read from nor written to a cache. What the
// provider did not report is 0.
type Usage struct {
	Input      int64 `json:"input_tokens,omitempty"`
	Output     int64 `json:"output_tokens,omitempty"` // thinking included
	CacheRead  int64 `json:"cache_read_tokens,omitempty"`
	CacheWrite int64 `json:"cache_write_tokens,omitempty"`
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}

// Wait tells a watcher of [Paced] that a call waits, or, when it is zero, that it goes on.
type Wait struct {
	Until time.Time // when it may go on, as known now; zero when it waits for other calls only
	Ahead int       // calls of the same provider that run or go first
	Err   *Error    // what the provider answered last; nil when another call met it
}

// String is one line for people.
func (w Wait) String() string {
	switch {
	case w == Wait{}:
		return "goes on"
	case !w.Until.IsZero():
		return "the provider asked to wait, until " + w.Until.Format(time.TimeOnly)
	}
	return fmt.Sprintf("waits behind %d other calls of this provider", w.Ahead)
}
