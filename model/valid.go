package model

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of names on the wire, in bytes: the smallest that any of the formats sets.
const (
	maxCallID  = 40
	maxName    = 64
	maxSession = 64
)

// Check says what is wrong with r before it is sent: its messages ([Valid]), its tools
// and its schema. The error is an [*Error] of kind [Invalid]. Every Model calls it first.
func (r *Request) Check() error {
	if err := Valid(r.Messages); err != nil {
		return err
	}
	if !utf8.ValidString(r.System) {
		return invalid("system: not UTF-8")
	}
	if len(r.Session) > maxSession {
		return invalid("session: %d bytes, at most %d", len(r.Session), maxSession)
	}
	seen := map[string]bool{}
	for i, t := range r.Tools {
		switch {
		case !okName(t.Name, maxName):
			return invalid("tools[%d]: the name %q is not 1 to %d of A-Z a-z 0-9 _ -", i, t.Name, maxName)
		case seen[t.Name]:
			return invalid("tools[%d]: the name %s is taken", i, t.Name)
		case t.Schema != nil && !isObject(t.Schema):
			return invalid("tools[%d]: the schema of %s is no JSON object", i, t.Name)
		}
		seen[t.Name] = true
	}
	switch {
	case r.Choice.Mode == Named && !seen[r.Choice.Tool]:
		return invalid("choice: there is no tool %q", r.Choice.Tool)
	case r.Choice.Mode == Required && len(r.Tools) == 0:
		return invalid("choice: a call is required and there is no tool")
	case r.Schema != nil && (!okName(r.Schema.Name, maxName) || !isObject(r.Schema.Schema)):
		return invalid("schema: it needs a name of 1 to %d of A-Z a-z 0-9 _ - and a JSON object", maxName)
	}
	return nil
}

// Valid says whether messages can be sent to any provider. The first is the user's, and
// the roles alternate. No message is empty, and no text of the user is blank. Each call
// has an id that is unique in the list, and exactly one result: the message after an
// assistant's calls begins with their results, in their order, before any text. Text is
// UTF-8. The last message may be the assistant's if it has no calls: providers then go
// on with it. The error is an [*Error] of kind [Invalid] that names the place.
func Valid(messages []Message) error {
	if len(messages) == 0 {
		return invalid("messages: there is none")
	}
	ids := map[string]bool{}
	var open []string
	for i, m := range messages {
		want := User
		if i%2 == 1 {
			want = Assistant
		}
		if m.Role != want {
			return invalid("messages[%d]: its role is %q; roles alternate, and the first is %s", i, m.Role, User)
		}
		if len(m.Parts) == 0 {
			return invalid("messages[%d]: it has no parts", i)
		}
		var err error
		if m.Role == User {
			err = validUser(m.Parts, open)
			open = open[:0]
		} else {
			open, err = validAssistant(m.Parts, ids, open)
		}
		if err != nil {
			return invalid("messages[%d]%s", i, err.Error())
		}
	}
	if len(open) > 0 {
		return invalid("messages[%d]: the calls %s have no result", len(messages)-1, strings.Join(open, ", "))
	}
	return nil
}

func validUser(parts []Part, open []string) error {
	for k, p := range parts {
		switch {
		case p.count() != 1:
			return fmt.Errorf(".parts[%d]: it is %d things; a part is exactly one", k, p.count())
		case p.Call != nil || p.Opaque != nil:
			return fmt.Errorf(".parts[%d]: a user's message has texts and results only", k)
		case k < len(open) && (p.Result == nil || p.Result.Call != open[k]):
			return fmt.Errorf(".parts[%d]: the result of call %s belongs here", k, open[k])
		case k >= len(open) && p.Result != nil:
			return fmt.Errorf(".parts[%d]: the result of call %q answers no call of the message before, or comes twice", k, p.Result.Call)
		case p.Result == nil && strings.TrimSpace(p.Text) == "":
			return fmt.Errorf(".parts[%d]: the text is blank", k)
		case !utf8.ValidString(p.Text) || p.Result != nil && !utf8.ValidString(p.Result.Text):
			return fmt.Errorf(".parts[%d]: the text is not UTF-8", k)
		}
	}
	if len(parts) < len(open) {
		return fmt.Errorf(": the calls %s have no result", strings.Join(open[len(parts):], ", "))
	}
	return nil
}

func validAssistant(parts []Part, ids map[string]bool, open []string) ([]string, error) {
	for k, p := range parts {
		switch {
		case p.count() != 1:
			return nil, fmt.Errorf(".parts[%d]: it is %d things; a part is exactly one", k, p.count())
		case p.Result != nil:
			return nil, fmt.Errorf(".parts[%d]: results are the user's", k)
		case !utf8.ValidString(p.Text):
			return nil, fmt.Errorf(".parts[%d]: the text is not UTF-8", k)
		case p.Opaque != nil && (p.Opaque.Provider == "" || !json.Valid([]byte(p.Opaque.Data))):
			return nil, fmt.Errorf(".parts[%d]: an opaque block names its provider and is JSON", k)
		case p.Call == nil:
			continue
		case !okName(p.Call.ID, maxCallID):
			return nil, fmt.Errorf(".parts[%d]: the call's id %q is not 1 to %d of A-Z a-z 0-9 _ -", k, p.Call.ID, maxCallID)
		case ids[p.Call.ID]:
			return nil, fmt.Errorf(".parts[%d]: the call's id %s is taken", k, p.Call.ID)
		case !okName(p.Call.Name, maxName):
			return nil, fmt.Errorf(".parts[%d]: the tool's name %q is not 1 to %d of A-Z a-z 0-9 _ -", k, p.Call.Name, maxName)
		}
		ids[p.Call.ID] = true
		open = append(open, p.Call.ID)
	}
	return open, nil
}

// count is how many things a part is.
func (p *Part) count() int {
	n := 0
	for _, set := range []bool{p.Text != "", p.Call != nil, p.Result != nil, p.Opaque != nil} {
		if set {
			n++
		}
	}
	return n
}

// Settle makes an answer to r fit to be sent after r's messages. An id of a call that is
// missing, taken or not made of A-Z a-z 0-9 _ - in at most 40 bytes is replaced by one
// that follows from the messages alone: call_1, call_2, counted over the list. A tool's
// name with other characters gets _ in their place, so that a call of a tool that there
// is not can be answered like any other. Parts without anything are dropped. A Model
// calls it on every answer; the parts are changed in place.
func (r *Request) Settle(m *Message) {
	taken := map[string]bool{}
	n := 0
	for _, old := range r.Messages {
		for _, p := range old.Parts {
			if p.Call != nil {
				taken[p.Call.ID] = true
				n++
			}
		}
	}
	kept := m.Parts[:0]
	for _, p := range m.Parts {
		if p.count() == 0 {
			continue
		}
		p.Text = strings.ToValidUTF8(p.Text, "\uFFFD")
		if c := p.Call; c != nil {
			n++
			for k := n; !okName(c.ID, maxCallID) || taken[c.ID]; k++ {
				c.ID = "call_" + strconv.Itoa(k)
			}
			taken[c.ID] = true
			c.Name = settleName(c.Name)
		}
		kept = append(kept, p)
	}
	m.Parts = kept
}

func settleName(s string) string {
	if okName(s, maxName) {
		return s
	}
	b := []byte(s[:min(len(s), maxName)])
	for i, c := range b {
		if !okByte(c) {
			b[i] = '_'
		}
	}
	if len(b) == 0 {
		return "unnamed"
	}
	return string(b)
}

func okName(s string, limit int) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for i := range len(s) {
		if !okByte(s[i]) {
			return false
		}
	}
	return true
}

func okByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func isObject(b []byte) bool {
	return strings.HasPrefix(trim(string(b)), "{") && json.Valid(b)
}

func invalid(format string, args ...any) *Error {
	return &Error{Kind: Invalid, Message: fmt.Sprintf(format, args...)}
}
