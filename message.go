package stint

import (
	"encoding/json"
	"time"
)

// MessageKind says what a message asks for.
type MessageKind string

// The kinds of messages. All but prompt and decision are control: they act
// between steps, and on a session that nobody holds as soon as a runner or the
// sender itself takes it up.
const (
	Prompt    MessageKind = "prompt"    // input for the next loop
	Decision  MessageKind = "decision"  // of an approval
	Pause     MessageKind = "pause"     // park at the next step boundary, waiting for the operator; Now cancels the step
	Resume    MessageKind = "resume"    // leave a wait for operator, budget, health, retry or time
	Interrupt MessageKind = "interrupt" // cancel the turn, then wait for a message
	Stop      MessageKind = "stop"      // end as canceled at the next step boundary
	Kill      MessageKind = "kill"      // end as canceled at once
	Restart   MessageKind = "restart"   // begin again from a checkpoint
	Rollback  MessageKind = "rollback"  // go back to a checkpoint and wait for the operator
	Resolve   MessageKind = "resolve"   // settle a step in doubt
	SetLimit  MessageKind = "limit"     // replace limits
)

// Control reports whether k acts between steps rather than at the next loop.
func (k MessageKind) Control() bool { return k != Prompt && k != Decision }

// Message is input from outside, the only way in. It lies in the inbox until the
// session's runner takes it, and its taking is an entry of the journal.
type Message struct {
	ID   string          `json:"id"` // made by the sender; sending one id twice is sending once
	Kind MessageKind     `json:"kind"`
	From Actor           `json:"from"`
	At   time.Time       `json:"at"`             // set by the store
	Data json.RawMessage `json:"data,omitempty"` // the verb's arguments, a journal.Command
	Body []byte          `json:"-"`              // a prompt's text or JSON, byte for byte
}
