package stint

import "time"

// Seq is the position of an entry in its session's journal, from 1 without gaps.
type Seq int64

// Kind says what an entry records. Past tense: it happened. "requested": the
// intent, durable before the effect.
type Kind string

// The kinds of entries. What each may follow and what it does to a session is in
// package journal; docs/log-schema.md describes the data of each.
const (
	SessionCreated  Kind = "session.created"
	SessionWaiting  Kind = "session.waiting"
	SessionResumed  Kind = "session.resumed"
	SessionReleased Kind = "session.released" // its runner drained; going on is not a new attempt
	SessionEnded    Kind = "session.ended"
	LeaseLost       Kind = "lease.lost" // its runner died, or did not renew in time; what it was doing is not known
	LineStarted     Kind = "line.started"
	LoopStarted     Kind = "loop.started"
	LoopCompleted   Kind = "loop.completed"
	LoopFailed      Kind = "loop.failed"
	StepRequested   Kind = "step.requested"
	StepCompleted   Kind = "step.completed"
	StepFailed      Kind = "step.failed"
	StepResolved    Kind = "step.resolved"
	MessageTaken    Kind = "message.taken"
	MessageRefused  Kind = "message.refused"
	LimitChanged    Kind = "limit.changed"
	OutputWritten   Kind = "output.written"
	// A person is asked, and the one end that the question came to.
	ApprovalRequested Kind = "approval.requested"
	ApprovalDecided   Kind = "approval.decided"
	ApprovalChanged   Kind = "approval.changed"
	// What was done to the configuration, and triggers that led to no session: in the
	// system journal alone.
	SystemRecorded Kind = "system.recorded"
)

// Actor is who caused an entry: "engine", "agent", "policy", "human:NAME",
// "schedule:NAME", "hook:NAME", "session:ID", "mcp:USER/CLIENT".
type Actor string

// The actors without a name.
const (
	ByEngine Actor = "engine"
	ByAgent  Actor = "agent"
	ByPolicy Actor = "policy"
)

// Entry is one line of a journal. Data is a small JSON object whose members
// depend on Kind. Body is the payload as it was given, never re-serialised: a
// step's result, a message's text, a state or its delta. A Body over 2 KiB is
// replaced by Blob before the entry is hashed. Entries are values; nobody changes their bytes.
type Entry struct {
	Version uint8     `json:"v"`
	Session ID        `json:"session"`
	Seq     Seq       `json:"seq"`
	Epoch   int64     `json:"epoch"`
	Pos     Position  `json:"pos"`
	Kind    Kind      `json:"kind"`
	At      time.Time `json:"at"` // the writer's clock; labels, never orders
	Actor   Actor     `json:"actor"`
	Cause   Seq       `json:"cause,omitempty"` // entry of this journal that led to this one; 0: none
	Data    []byte    `json:"-"`
	Body    []byte    `json:"-"`
	Blob    BlobRef   `json:"blob,omitzero"`
	Salt    [16]byte  `json:"-"` // random; hides erased bytes from guessing
	Erased  bool      `json:"erased,omitempty"`
	Commit  Hash      `json:"-"` // the commitment; kept only where the bytes were erased
	Hash    Hash      `json:"hash"`
}

// BlobRef names a body that lies outside the journal: HMAC-SHA256 of the plain
// bytes under the family's key, so that equal bodies of one family are kept once
// and nobody without the key can tell what a body was.
type BlobRef struct {
	Sum  Hash  `json:"sum"`
	Size int64 `json:"size"`
}

// IsZero reports whether r names nothing.
func (r BlobRef) IsZero() bool { return r == BlobRef{} }
