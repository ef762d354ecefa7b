package cli

import (
	"encoding/json"
	"strings"

	"github.com/stint-dev/stint"
)

// claude reads "claude -p --output-format stream-json --verbose". A message of the
// model comes in as many lines as it has parts, each with the usage of the whole; the
// last line counts the turn.
type claude struct {
	session string
	message string // the newest message, by its id
	told    stint.Usage
	begun   map[string]bool
}

type claudeUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

func (u claudeUsage) usage() stint.Usage {
	return stint.Usage{Input: count(u.Input), Output: count(u.Output), CacheRead: count(u.CacheRead), CacheWrite: count(u.CacheWrite)}
}

type claudeLine struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Session string `json:"session_id"`
	Message struct {
		ID      string          `json:"id"`
		Content json.RawMessage `json:"content"` // a text, or parts
		Usage   *claudeUsage    `json:"usage"`
	} `json:"message"`
	IsError bool         `json:"is_error"`
	Result  string       `json:"result"`
	Errors  []string     `json:"errors"`
	Cost    float64      `json:"total_cost_usd"`
	Usage   *claudeUsage `json:"usage"`
}

type claudePart struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	Call     string          `json:"tool_use_id"`
	Content  json.RawMessage `json:"content"`
	IsError  bool            `json:"is_error"`
}

func (c *claude) read(line []byte) ([]event, error) {
	var l claudeLine
	if err := object(line, &l); err != nil {
		return nil, err
	}
	var out []event
	if l.Session != "" && l.Session != c.session {
		c.session = l.Session
		out = append(out, event{kind: evSession, id: l.Session})
	}
	if c.begun == nil {
		c.begun = map[string]bool{}
	}
	switch l.Type {
	case "assistant":
		if l.Message.Usage != nil && (l.Message.ID == "" || l.Message.ID != c.message) {
			u := l.Message.Usage.usage()
			c.told = c.told.Add(u)
			out = append(out, event{kind: evUsage, id: l.Message.ID, usage: u})
		}
		c.message = l.Message.ID
		for _, p := range parts(l.Message.Content) {
			switch p.Type {
			case "text":
				out = append(out, event{kind: evText, id: l.Message.ID, text: p.Text})
			case "thinking":
				out = append(out, event{kind: evNote, text: "thinking: " + p.Thinking})
			case "tool_use", "server_tool_use", "mcp_tool_use":
				c.begun[p.ID] = true
				out = append(out, event{kind: evBegin, id: p.ID, call: newCall(Claude, p.ID, p.Name, p.Input)})
			default:
				out = append(out, c.ended(p)...)
			}
		}
	case "user":
		for _, p := range parts(l.Message.Content) {
			out = append(out, c.ended(p)...)
		}
	case "result":
		if l.IsError || l.Subtype != "success" {
			text := strings.Join(append(l.Errors, l.Result), " ")
			if l.Subtype != "success" {
				text = l.Subtype + ": " + text
			}
			return append(out, event{kind: evFail, text: text}), nil
		}
		e := event{kind: evDone, text: l.Result, usage: stint.Usage{Cost: dollars(l.Cost)}}
		if l.Usage != nil {
			e.usage = minus(l.Usage.usage(), c.told) // what the messages did not tell
			e.usage.Cost = dollars(l.Cost)
		}
		out = append(out, e)
	}
	return out, nil
}

// ended is the result of a call, if p is one: those of the CLI's own tools come as
// the user's, those of tools that ran elsewhere as the model's.
func (c *claude) ended(p claudePart) []event {
	if p.Call == "" || !strings.HasSuffix(p.Type, "tool_result") {
		return nil
	}
	if !c.begun[p.Call] {
		return nil // of a turn before this one
	}
	delete(c.begun, p.Call)
	o := result(words(p.Content))
	if o.Failed = p.IsError; p.IsError {
		o.Status = "error"
	}
	return []event{{kind: evEnd, id: p.Call, outcome: o}}
}

// parts are those of a message's content.
func parts(content json.RawMessage) []claudePart {
	var ps []claudePart
	if json.Unmarshal(content, &ps) == nil {
		return ps
	}
	var s string
	if json.Unmarshal(content, &s) == nil {
		return []claudePart{{Type: "text", Text: s}}
	}
	return nil
}

// words are those of a result's content; of what is no text its JSON.
func words(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var b strings.Builder
	for _, p := range parts(content) {
		if p.Type == "text" {
			b.WriteString(p.Text)
		} else {
			b.WriteString("[" + p.Type + "]")
		}
	}
	if b.Len() == 0 {
		return string(content)
	}
	return b.String()
}
