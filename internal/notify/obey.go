package notify

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// Read returns how the endpoints do by a section of the system journal's state, by name.
// What a server sent since it wrote it last is not in it: some seconds.
func Read(raw json.RawMessage) ([]Status, error) {
	held, err := readHeld(raw)
	if err != nil {
		return nil, err
	}
	all := make([]Status, 0, len(held))
	for _, name := range slices.Sorted(maps.Keys(held)) {
		is := held[name]
		all = append(all, Status{name, is.Failing, is.Paused, is.Pending})
	}
	return all, nil
}

// ResumeVerb is what is asked of an endpoint.
const ResumeVerb = "notify.resume"

// Command is the body of a message to the system journal that asks something of an
// endpoint.
type Command struct {
	Verb     string `json:"verb"`
	Endpoint string `json:"endpoint"`
	Reason   string `json:"reason,omitempty"`
}

// Obey does what a message to the system journal asks, and takes it. known is false for a
// message that is none for endpoints. What cannot be done is recorded with why.
func (n *Notifier) Obey(ctx context.Context, m *stint.Message) (known bool, err error) {
	var c Command
	if json.Unmarshal(m.Body, &c) != nil || !strings.HasPrefix(c.Verb, "notify.") {
		return false, nil
	}
	note := engine.Note{What: c.Verb + ".refused", Name: c.Endpoint, Actor: m.From, Takes: m, Reason: "that is nothing that an endpoint can do"}
	if c.Verb == ResumeVerb {
		switch err := n.Resume(ctx, c.Endpoint, m.From, c.Reason); stint.CodeOf(err) {
		case "":
			note.What, note.Reason = "notify.obeyed", c.Reason
		case stint.NotFound, stint.Conflict:
			note.Reason = err.Error()
		default:
			return true, err
		}
	}
	return true, n.system.Record(ctx, note)
}
