package wire

import "github.com/stint-dev/stint"

// Prefix is where the routes are; each is a POST of one of the names below.
const Prefix = "/v1/store/"

// The routes, each with what it takes and what it answers.
const (
	Session  = "session"  // One, stint.Row
	Sessions = "sessions" // Filter, Rows
	Entries  = "entries"  // Range, Journal
	Inbox    = "inbox"    // One, Messages
	Keys     = "keys"     // Like, Ledger
	Blob     = "blob"     // Body, the bytes
	Send     = "send"     // Delivery, Done
	Settle   = "settle"   // One, Done
	State    = "state"    // Section, Held
	Answer   = "answer"   // Asked, Recorded
)

// One names a session.
type One struct {
	Session stint.ID `json:"session"`
}

// Rows are sessions. A server answers with fewer than were asked for where they are many:
// More says that there may be others behind the last.
type Rows struct {
	Rows []stint.Row `json:"rows"`
	More bool        `json:"more,omitempty"`
}

// Journal is entries, in order; for More see [Rows]. Of a range of the last ones, the others
// come before the first.
type Journal struct {
	Entries []Entry `json:"entries"`
	More    bool    `json:"more,omitempty"`
}

// Messages are what an inbox has.
type Messages struct {
	Messages []Message `json:"messages"`
}

// Like says which keys are asked for, as [stint.Reader] takes it.
type Like struct {
	Like  Key `json:"like"`
	Limit int `json:"limit,omitempty" minimum:"0"`
}

// Ledger is keys; for More see [Rows].
type Ledger struct {
	Keys []Key `json:"keys"`
	More bool  `json:"more,omitempty"`
}

// Body names a body that lies outside the journal.
type Body struct {
	Family stint.ID      `json:"family"`
	Ref    stint.BlobRef `json:"ref"`
}

// Delivery is a message and the session that it is for; without one it is for the server
// itself. The sender is who sends the request, whatever From says.
type Delivery struct {
	Session stint.ID `json:"session,omitzero"`
	Message Message  `json:"message"`
}

// Done is the answer where there is nothing to say.
type Done struct{}

// Section names a part of what a server's own journal comes to.
type Section struct {
	Section string `json:"section" minLength:"1" maxLength:"100"`
}

// Held is that part, JSON; nothing where there is none.
type Held struct {
	State []byte `json:"state,omitempty"`
}

// Asked names a message to the server itself.
type Asked struct {
	Message string `json:"message" minLength:"1" maxLength:"255"`
}

// Recorded is what became of it. Nothing has, until Done.
type Recorded struct {
	Done   bool   `json:"done"`
	What   string `json:"what,omitempty"`
	Name   string `json:"name,omitempty"`
	Reason string `json:"reason,omitempty"`
	Data   []byte `json:"data,omitempty"`
}
