package notify

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/stint-dev/stint"
)

// Endpoint is where events are sent.
type Endpoint struct {
	Name    string
	URL     string                   // https; http too with AllowPrivate
	Secrets func() ([]string, error) // whsec_ and base64; 1, or 2 while it is changed. Read for each attempt
	Events  []Event                  // empty: all
	Agents  []string                 // empty: sessions of all agents
	// AllowPrivate lets the URL be of this machine or of a private network.
	AllowPrivate bool
}

// check says what is wrong with an endpoint.
func (e *Endpoint) check() error {
	wrong := func(hint, format string, args ...any) error {
		return &stint.Error{Code: stint.Invalid, Op: "notify " + e.Name, Err: fmt.Errorf(format, args...), Hint: hint}
	}
	u, err := url.Parse(e.URL)
	switch {
	case e.Name == "":
		return wrong("", "an endpoint has no name")
	case err != nil || u.Host == "":
		return wrong("for example https://example.org/stint", "%q is no URL", e.URL)
	case u.User != nil:
		return wrong("requests are signed; leave it out", "the URL holds a password")
	case u.Scheme != "https" && (u.Scheme != "http" || !e.AllowPrivate):
		return wrong("http is for endpoints with allow_private", "expected a URL with https, found %q", u.Scheme)
	case e.Secrets == nil:
		return wrong("give whsec_ and base64", "there is no secret to sign with")
	}
	for _, event := range e.Events {
		if !slices.Contains(Events(), event) {
			return wrong("", "there is no event %q; the events are %v", event, Events())
		}
	}
	return nil
}

// wants reports whether an endpoint is told of an event of an agent's session.
func (e *Endpoint) wants(event Event, agent string) bool {
	return (len(e.Events) == 0 || slices.Contains(e.Events, event)) && (len(e.Agents) == 0 || slices.Contains(e.Agents, agent))
}

// Pending is an event that an endpoint has not taken yet.
type Pending struct {
	Event    Event     `json:"event"`
	Session  stint.ID  `json:"session"`
	Seq      stint.Seq `json:"seq"`
	Attempts int       `json:"attempts"`
	Since    time.Time `json:"since"` // the first attempt
	Next     time.Time `json:"next"`
	Error    string    `json:"error"` // of the newest attempt
}

// Parked says who paused an endpoint, when and why.
type Parked struct {
	At     time.Time   `json:"at"`
	By     stint.Actor `json:"by"`
	Reason string      `json:"reason"`
}

// held is what the system journal knows of an endpoint.
type held struct {
	Cursor  string    `json:"cursor"` // all before it was taken, given up, or is pending
	Pending []Pending `json:"pending,omitempty"`
	Failing time.Time `json:"failing,omitzero"` // since when it took nothing
	Paused  *Parked   `json:"paused,omitempty"`
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

// retryAfter is the wait that a response asks for; 0 if it does not.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return min(max(time.Duration(n)*time.Second, 0), longestWait)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), longestWait)
	}
	return 0
}
