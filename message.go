package stint

import (
	"encoding/json"
	"time"
	"unicode/utf8"
)

// MessageKind says what a message asks for.
type MessageKind string

// The kinds of messages. All but prompt, decision and child are control: they act
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
	BranchOff MessageKind = "branch"    // a new session at a checkpoint: of one that somebody has to be asked about first
	Resolve   MessageKind = "resolve"   // settle a step in doubt
	SetLimit  MessageKind = "limit"     // replace limits
	ChildEnd  MessageKind = "child"     // a child session ended; its parent's next loop gets it in the inbox
)

// Control reports whether k acts between steps rather than at the next loop.
func (k MessageKind) Control() bool { return k != Prompt && k != Decision && k != ChildEnd }

// Input reports whether k is input for the next loop.
func (k MessageKind) Input() bool { return k == Prompt || k == ChildEnd }

// Message is input from outside, the only way in. It lies in the inbox until the
// session's runner takes it, and its taking is an entry of the journal.
type Message struct {
	ID   string          `json:"id"` // made by the sender; sending one id twice is sending once
	Kind MessageKind     `json:"kind"`
	From Actor           `json:"from"`
	At   time.Time       `json:"at"`             // set by the store
	Data json.RawMessage `json:"data,omitempty"` // the verb's arguments, a journal.Command
	Body []byte          `json:"-"`              // a prompt's text or JSON, byte for byte
	To   ID              `json:"-"`              // in a batch's Sends: the session that it is for
	Keys []Key           `json:"-"`              // made durable with it; one that is there already with the same digest: the message has come
}

// Bounds of what names a message and its sender, in bytes, and of the arguments of a
// prompt, which has its body besides.
const (
	maxMessageID  = 255
	maxActor      = 200
	maxPromptData = 16 << 10
)

// Check says what is wrong with m apart from what its kind asks: an id has 1 to 255
// bytes, a sender at most 200, both valid UTF-8; the Data of a prompt has at most 16
// KiB. The error is [Invalid]. A message that does not pass is refused when the
// session's runner takes it, so a sender asks first.
func (m *Message) Check() error {
	switch {
	case m.ID == "" || len(m.ID) > maxMessageID || !utf8.ValidString(m.ID):
		return Invalid.Errorf("message", "its id has %d bytes; an id is 1 to %d bytes of UTF-8", len(m.ID), maxMessageID)
	case !m.Kind.Control() && len(m.Data) > maxPromptData:
		return Invalid.Errorf("message", "its data has %d bytes beside its body; at most %d fit", len(m.Data), maxPromptData)
	}
	return m.From.Check()
}

// Check says whether a can stand in an entry: at most 200 bytes of valid UTF-8, or
// nothing at all. The error is [Invalid].
func (a Actor) Check() error {
	if len(a) > maxActor || !utf8.ValidString(string(a)) {
		return Invalid.Errorf("actor", "the name of who acts has %d bytes; it is at most %d bytes of UTF-8", len(a), maxActor)
	}
	return nil
}
