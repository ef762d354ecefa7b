package notify

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/endpoint"
)

// Endpoint is somebody who is told of events, over one channel.
type Endpoint struct {
	Name    string
	Channel Channel
	Events  []endpoint.Event // empty: all
	Agents  []string         // empty: sessions of all agents
	Remind  endpoint.Remind  // of what a session still waits for; zero: not at all
	Quiet   endpoint.Quiet   // hours in which nothing is sent; zero: there are none
}

// check says what is wrong with an endpoint.
func (e *Endpoint) check() error {
	named := func(err error) error {
		of, ok := errors.AsType[*stint.Error](err)
		if !ok {
			return err
		}
		out := *of
		out.Op = "notify " + e.Name
		return &out
	}
	switch {
	case e.Name == "":
		return named(wrong("", "an endpoint has no name"))
	case e.Channel == nil:
		return named(wrong("give it a URL", "there is no way to reach it"))
	}
	if err := e.Channel.Check(); err != nil {
		return named(err)
	}
	for _, event := range e.Events {
		if !slices.Contains(endpoint.Events(), event) {
			return named(wrong("", "there is no event %q; the events are %v", event, endpoint.Events()))
		}
	}
	return nil
}

// wants reports whether an endpoint is told of what happened to an agent's session.
func (e *Endpoint) wants(what *happened, agent string) bool {
	wait := stint.WaitFor("")
	if what.wait != nil {
		wait = what.wait.For
	}
	return endpoint.Told(e.Events, what.event, what.status, wait) && (len(e.Agents) == 0 || slices.Contains(e.Agents, agent))
}

// Pending is an event that an endpoint has not taken yet.
type Pending struct {
	Event    endpoint.Event `json:"event"`
	Session  stint.ID       `json:"session"`
	Seq      stint.Seq      `json:"seq"`
	Attempts int            `json:"attempts"`
	Since    time.Time      `json:"since"` // the first attempt
	Next     time.Time      `json:"next"`
	Error    string         `json:"error"` // of the newest attempt

	// Of a reminder: which one it is of the wait that began with Seq, or of the question
	// about an order that Seq is, from 1 on; when the wait began, zero for an order; and
	// when the reminder was due.
	Nth     int       `json:"reminder,omitempty"`
	Waiting time.Time `json:"waiting_since,omitzero"`
	Due     time.Time `json:"due,omitzero"`
}

// id is that of the event: the same whenever it is sent.
func (p *Pending) id() string {
	id := eventID(p.Session, p.Seq)
	if p.Nth > 0 {
		id += "_r" + strconv.Itoa(p.Nth)
	}
	return id
}

// Parked says who paused an endpoint, when and why.
type Parked struct {
	At     time.Time   `json:"at"`
	By     stint.Actor `json:"by"`
	Reason string      `json:"reason"`
}

// held is what the system journal knows of an endpoint.
type held struct {
	Cursor string `json:"cursor"` // all before it was taken, given up, or is pending
	// Reminded is until when all reminders that were due are taken, given up, or pending.
	Reminded time.Time `json:"reminded,omitzero"`
	Pending  []Pending `json:"pending,omitempty"`
	Failing  time.Time `json:"failing,omitzero"` // since when it took nothing
	Paused   *Parked   `json:"paused,omitempty"`
}

// Section is the part of the system journal's state that is of endpoints.
const Section = "notify"

// readHeld reads a section of the system journal's state.
func readHeld(raw json.RawMessage) (map[string]held, error) {
	all := map[string]held{}
	if len(raw) == 0 {
		return all, nil
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, stint.Corrupt.Errorf("notify", "what the system journal says of endpoints cannot be read: %v", err)
	}
	return all, nil
}

// When what was not taken is sent again: after 5 s, then four times as long each time, six
// hours at most, a fifth more or less. The last attempt is about a day after the first, but
// for an endpoint that takes nothing at all: that is paused after a while, and loses nothing.
const (
	firstWait   = 5 * time.Second
	longestWait = 6 * time.Hour
	maxAttempts = 11
)

// PauseAfter is for how long an endpoint may take nothing until it is paused.
const PauseAfter = 5 * 24 * time.Hour

// backoff is the wait after so many attempts in vain. random is in [0, 1).
func backoff(attempts int, random float64) time.Duration {
	wait := longestWait
	if attempts < 8 { // beyond, it is the longest
		wait = min(firstWait<<(2*(attempts-1)), longestWait)
	}
	return wait + time.Duration((random-0.5)*0.4*float64(wait))
}
