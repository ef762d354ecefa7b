package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/view"
)

// maxPrompt bounds a prompt or a message that comes over the protocol, in bytes.
const maxPrompt = 1 << 20

// writeVerbs are the tools that add something. Neither is idempotent by itself: it is with
// a key of the caller's, and hints are of the tool, not of a call.
func (s *Server) writeVerbs() []verb {
	return []verb{
		{name: "start_session", title: "Start a session", output: outputSchema[sessionAfter], call: typed(s.startSession),
			about: "Create a session of an agent that list_agents names. It is durable when the answer comes; a runner then takes it up. With dedupe, " +
				"asking again with the same key leads to the same session, so that a call whose answer was lost can be repeated. The structure is stint.session/1.",
			input: `{"type": "object", "additionalProperties": false, "required": ["agent", "prompt"], "properties": {
	"agent": {"type": "string", "minLength": 1, "maxLength": 300},
	"prompt": {"type": "string", "description": "what it is to do, text or JSON, at most 1 MiB; may be empty"},
	"name": {"type": "string", "maxLength": 100, "description": "of the session; the agent's name and the day without it"},
	"labels": {"type": "object", "maxProperties": 64, "additionalProperties": {"type": "string"}},
	"dedupe": {"type": "string", "minLength": 1, "maxLength": 255, "description": "a key of yours: the id of what the session is made for"}}}`},
		{name: "send_message", title: "Send a message", output: outputSchema[sessionAfter], call: typed(s.sendMessage),
			about: "Put a message into a session's inbox. Its next loop gets it; a session that waits for a message is woken. It decides no approval. " +
				"With id, sending the same again changes nothing. The structure is stint.session/1, the session as it stands.",
			input: `{"type": "object", "additionalProperties": false, "required": ["session", "text"], "properties": {` + sessionInput + `,
	"text": {"type": "string", "minLength": 1, "description": "text or JSON, at most 1 MiB"},
	"id": {"type": "string", "minLength": 1, "maxLength": 200, "description": "a key of yours, so that a call whose answer was lost can be repeated"}}}`},
	}
}

// sessionAfter is stint.session/1: a session after something was done to it.
type sessionAfter struct {
	view.Session
	Found bool   `json:"found"` // the same was asked for before: nothing was made anew
	Note  string `json:"note"`  // what it waits for now, and the command that runs it
	Cut   []cut  `json:"cut,omitempty"`
}

func (s *Server) startSession(ctx context.Context, client string, in struct {
	Agent, Prompt, Name, Dedupe string
	Labels                      map[string]string
}) (answer, error) {
	if err := tooLong("prompt", in.Prompt); err != nil {
		return answer{}, err
	}
	made, err := s.b.Starter.Start(ctx, Request{Agent: in.Agent, Prompt: in.Prompt, Name: in.Name, Labels: in.Labels, Dedupe: in.Dedupe, Actor: s.b.Actor(client)})
	if err != nil {
		return answer{}, err
	}
	row, err := s.b.Source.Session(ctx, made.ID)
	if err != nil {
		return answer{}, err
	}
	word := "is recorded"
	if made.Found {
		word = "was recorded before, with the same key"
	}
	return after(&row, made.Found, word), nil
}

func (s *Server) sendMessage(ctx context.Context, client string, in struct{ Session, Text, ID string }) (answer, error) {
	if err := tooLong("text", in.Text); err != nil {
		return answer{}, err
	}
	row, _, err := s.find(ctx, in.Session, time.Now())
	if err != nil {
		return answer{}, err
	}
	m := stint.Message{ID: messageID(in.ID), Kind: stint.Prompt, From: s.b.Actor(client), Body: []byte(in.Text)}
	if err := m.Check(); err != nil {
		return answer{}, err
	}
	if err := s.b.Sender.Send(ctx, row.Session.ID, m); err != nil {
		if errors.Is(err, stint.Conflict) && row.Session.Status.Ended() {
			e := stint.Conflict.Errorf("", "%s (%s): the session has ended: %s", row.Session.Name, row.Short, row.Session.Status)
			e.Hint = fmt.Sprintf("start_session begins another; a person can begin this one again: stint restart %s --say TEXT --run", row.Short)
			return answer{}, e
		}
		return answer{}, err
	}
	if row, err = s.b.Source.Session(ctx, row.Session.ID); err != nil {
		return answer{}, err
	}
	return after(&row, false, "has the message"), nil
}

// messageID is the id of a message in the inbox. What clients choose has a name space of
// its own: the ids of decisions are known beforehand, and a message under such an id
// would keep a person from deciding.
func messageID(chosen string) string {
	if chosen == "" {
		return ident.New().String()
	}
	return "mcp:" + chosen
}

func tooLong(what, text string) error {
	if len(text) <= maxPrompt {
		return nil
	}
	e := stint.Limit.Errorf(what, "it has %d bytes; at most %d fit", len(text), maxPrompt)
	e.Hint = "keep large content in a file and name it in the text"
	return e
}

// after is the answer about a session to which something was done.
func after(row *stint.Row, found bool, word string) answer {
	status, _ := row.Status()
	note := fmt.Sprintf("%s (%s) %s; it is %s", row.Session.Name, row.Short, word, view.StatusWord(row))
	switch {
	case row.Live:
		note += " on " + row.Lease.Holder
	case status == stint.Pending, row.Unread > 0 && row.Session.WokenBy(stint.Prompt):
		note += fmt.Sprintf(", and goes on when a runner takes it up. To run it here: stint resume %s --run", row.Short)
	case !status.Ended() && row.Unread > 0:
		note += "; its next loop gets the message"
	}
	return answer{sessionAfter{Session: view.NewSession(row, time.Now()), Found: found, Note: note}, note + "\n"}
}
