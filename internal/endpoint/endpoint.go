// Package endpoint says who is told of what happens to sessions, over which channel, and
// when: the definitions of stint.yaml, without what sends anything.
package endpoint

import "time"

// Definition is an endpoint of stint.yaml. Of URL, Exec and SMTP one is there.
type Definition struct {
	Name    string   `json:"name"`
	URL     string   `json:"url,omitempty"`
	Secrets []string `json:"secret,omitempty"` // of URL: references, of whsec_ and base64: 1, or 2 while it is changed
	Private bool     `json:"allow_private,omitempty"`
	Exec    *Exec    `json:"exec,omitempty"`
	SMTP    *SMTP    `json:"smtp,omitempty"`
	Events  []Event  `json:"events,omitempty"` // sorted; nil: all
	Agents  []string `json:"agents,omitempty"` // sorted; nil: of all
	Remind  Remind   `json:"remind,omitzero"`
	Urgent  bool     `json:"urgent,omitempty"` // told in quiet hours too
}

// Exec is a program that is told.
type Exec struct {
	Command []string          `json:"command"`       // run in the folder of the file
	Env     map[string]string `json:"env,omitempty"` // literal, "env:NAME" or "file:PATH"
	Timeout time.Duration     `json:"timeout_ns"`
}

// SMTP is a relay that takes mails.
type SMTP struct {
	Host     string   `json:"host"`           // it may have any address: nobody but the file names it
	Port     int      `json:"port,omitempty"` // 0: 587, or 465 with [Implicit]
	TLS      TLS      `json:"tls"`
	User     string   `json:"user,omitempty"`     // empty: no login
	Password string   `json:"password,omitempty"` // a reference
	From     string   `json:"from"`               // an address, with or without a name
	To       []string `json:"to"`                 // addresses; one mail goes to all of them
	Link     string   `json:"link,omitempty"`     // of a session, with {session} for its id
}

// TLS is how a connection to a relay is kept private.
type TLS string

// The ways.
const (
	StartTLS TLS = "starttls" // from a command on, without which nothing is sent
	Implicit TLS = "implicit" // from the first byte
	NoTLS    TLS = "none"     // not at all, to this machine only
)

// Event is what an endpoint is told of, and the type of what it gets.
type Event string

// The events.
const (
	Created Event = "session.created"
	Waiting Event = "session.waiting" // for a person, but for an approval: that is Asked
	Asked   Event = "approval.requested"
	Ended   Event = "session.ended" // completed, stopped or canceled
	Failed  Event = "session.failed"
)

// Groups of events, by what they mean to people.
const (
	NeedsYou Event = "needs-you" // Asked, and Waiting where only a person's act helps, see [NeedsPerson]
	BadEnd   Event = "bad-end"   // Failed, and Ended where it was stopped
)

// What is told without being listed: whoever is told of something else may get it.
const (
	Reminder Event = "session.reminder" // it still waits for the same
	Sample   Event = "stint.sample"     // somebody tries whether a channel works; nothing happened
)

// Events lists what an endpoint may be told of.
func Events() []Event { return []Event{Created, Waiting, Asked, Ended, Failed, NeedsYou, BadEnd} }

// DefaultExec is a program of which only the needful is said.
func DefaultExec() Exec { return Exec{Timeout: 30 * time.Second} }

// DefaultSMTP is a relay of which only the needful is said.
func DefaultSMTP() SMTP { return SMTP{TLS: StartTLS} }
