package protocol

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/jsonx"
)

// Recorded is implemented by a loop that can tell which of its steps have finished in
// an earlier attempt.
type Recorded interface {
	// Recorded returns a JSON object for each, in order: step, sub, name, kind,
	// effect, and result or error.
	Recorded() []json.RawMessage
}

// Fenced is implemented by a loop that knows the epoch of its lease.
type Fenced interface {
	// Epoch returns the epoch; it is above 0.
	Epoch() int64
}

// Epoch is the epoch of a loop's lease; 0 where it does not know.
func Epoch(l stint.Loop) int64 {
	if f, ok := l.(Fenced); ok {
		return f.Epoch()
	}
	return 0
}

// Greeting is the line that begins a loop.
func Greeting(l stint.Loop) ([]byte, error) {
	ses := l.Session()
	g := loopLine{
		Type: "loop", V: 1, Line: ses.At.Line, Loop: ses.At.Loop, Attempt: ses.At.Attempt, Epoch: Epoch(l),
		Session: sessionPart{ID: ses.ID.String(), Name: ses.Name, Agent: ses.Agent.Name, Labels: ses.Labels},
		State:   l.State(), Inbox: inboxParts(l.Inbox()), Steps: []json.RawMessage{},
	}
	if g.Session.Labels == nil {
		g.Session.Labels = map[string]string{}
	}
	if r, ok := l.(Recorded); ok {
		if steps := r.Recorded(); steps != nil {
			g.Steps = steps
		}
	}
	return encode(g)
}

// Proceed is the line that lets the agent do a step; at is its place, as "3.2".
func Proceed(id int64, key, at string) ([]byte, error) {
	return encode(proceedLine{Type: "proceed", ID: id, Key: key, Step: at})
}

// Recall is the line that answers a step with what the journal has: a result, or the
// error that it came to.
func Recall(id int64, result json.RawMessage, err error) ([]byte, error) {
	if err != nil {
		return encode(failureLine{Type: "result", ID: id, Error: err.Error(), Definite: Definite(err), Cached: true})
	}
	return encode(resultLine{Type: "result", ID: id, Result: result, Cached: true})
}

// Park is the line that tells the agent of a step that it must not go on.
func Park(id int64, reason string) ([]byte, error) {
	return encode(parkLine{Type: "park", ID: id, Reason: reason})
}

// Lines of stint, in the order in which their members are written.
type (
	loopLine struct {
		Type    string            `json:"type"`
		V       int               `json:"v"`
		Session sessionPart       `json:"session"`
		Line    int               `json:"line"`
		Loop    int               `json:"loop"`
		Attempt int               `json:"attempt"`
		Epoch   int64             `json:"epoch"`
		State   json.RawMessage   `json:"state"`
		Inbox   []inboxPart       `json:"inbox"`
		Steps   []json.RawMessage `json:"steps"`
	}
	sessionPart struct {
		ID     string            `json:"id"`
		Name   string            `json:"name"`
		Agent  string            `json:"agent"`
		Labels map[string]string `json:"labels"`
	}
	inboxPart struct {
		ID     string            `json:"id"`
		Kind   stint.MessageKind `json:"kind"`
		From   stint.Actor       `json:"from"`
		At     string            `json:"at"`
		Child  json.RawMessage   `json:"child,omitempty"`
		Body   json.RawMessage   `json:"body,omitempty"`
		Text   *string           `json:"text,omitempty"`
		Base64 *string           `json:"base64,omitempty"`
	}
	proceedLine struct {
		Type string `json:"type"`
		ID   int64  `json:"id"`
		Key  string `json:"key"`
		Step string `json:"step"`
	}
	resultLine struct {
		Type   string          `json:"type"`
		ID     int64           `json:"id"`
		Result json.RawMessage `json:"result"`
		Cached bool            `json:"cached"`
	}
	failureLine struct {
		Type     string `json:"type"`
		ID       int64  `json:"id"`
		Error    string `json:"error"`
		Definite bool   `json:"definite,omitempty"`
		Cached   bool   `json:"cached"`
	}
	parkLine struct {
		Type   string `json:"type"`
		ID     int64  `json:"id"`
		Reason string `json:"reason"`
	}
)

// encode writes v as one line. Raw JSON in it loses its white space and nothing else.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, stint.Internal.Errorf("", "a line for the agent: %w", err)
	}
	return buf.Bytes(), nil
}

func inboxParts(inbox []stint.Message) []inboxPart {
	parts := make([]inboxPart, len(inbox))
	for i, m := range inbox {
		p := inboxPart{ID: m.ID, Kind: m.Kind, From: m.From, At: m.At.UTC().Format(time.RFC3339Nano), Child: ended(&m)}
		switch {
		case jsonx.Check(m.Body, jsonx.Limits{}) == nil:
			p.Body = m.Body
		case p.Child != nil && len(m.Body) == 0:
			p.Body = json.RawMessage("null")
		case utf8.Valid(m.Body):
			s := string(m.Body)
			p.Text = &s
		default:
			s := base64.StdEncoding.EncodeToString(m.Body)
			p.Base64 = &s
		}
		parts[i] = p
	}
	return parts
}
