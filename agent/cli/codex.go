package cli

import (
	"encoding/json"

	"github.com/stint-dev/stint"
)

// codex reads "codex exec --json". Its usage counts the whole session, over all of
// its turns.
type codex struct {
	open map[string]bool // items that were told to have begun
}

type codexLine struct {
	Type   string          `json:"type"`
	Thread string          `json:"thread_id"`
	Item   json.RawMessage `json:"item"`
	Usage  struct {
		Input      int64 `json:"input_tokens"`
		Cached     int64 `json:"cached_input_tokens"`
		CacheWrite int64 `json:"cache_write_input_tokens"`
		Output     int64 `json:"output_tokens"`
	} `json:"usage"`
	Error   struct{ Message string } `json:"error"`
	Message string                   `json:"message"`
}

type codexItem struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Message string          `json:"message"`
	Status  string          `json:"status"`
	Command string          `json:"command"`
	Output  string          `json:"aggregated_output"`
	Exit    json.Number     `json:"exit_code"`
	Changes json.RawMessage `json:"changes"`
	Server  string          `json:"server"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"arguments"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
	Query   string          `json:"query"`
}

func (c *codex) read(line []byte) ([]event, error) {
	var l codexLine
	if err := object(line, &l); err != nil {
		return nil, err
	}
	switch l.Type {
	case "thread.started":
		return []event{{kind: evSession, id: l.Thread}}, nil
	case "item.started", "item.updated", "item.completed":
		return c.item(l.Type, l.Item)
	case "turn.completed":
		u := l.Usage
		return []event{{kind: evDone, whole: true, usage: stint.Usage{
			Input:     count(u.Input - count(u.Cached) - count(u.CacheWrite)),
			CacheRead: count(u.Cached), CacheWrite: count(u.CacheWrite), Output: count(u.Output),
		}}}, nil
	case "turn.failed":
		return []event{{kind: evFail, text: l.Error.Message}}, nil
	case "error":
		return []event{{kind: evTrouble, text: l.Message}}, nil
	}
	return nil, nil
}

func (c *codex) item(step string, raw json.RawMessage) ([]event, error) {
	var it codexItem
	if err := object(raw, &it); err != nil {
		return nil, err
	}
	if c.open == nil {
		c.open = map[string]bool{}
	}
	switch it.Type {
	case "agent_message":
		if step == "item.completed" {
			return []event{{kind: evText, id: it.ID, text: it.Text}}, nil
		}
		return nil, nil
	case "reasoning", "todo_list", "error":
		if step != "item.completed" {
			return nil, nil
		}
		text := it.Text + it.Message
		if it.Type == "todo_list" {
			text = string(raw)
		}
		return []event{{kind: evNote, text: it.Type + ": " + text}}, nil
	}
	began := c.open[it.ID]
	var out []event
	known := false
	switch it.Type {
	case "command_execution", "file_change", "mcp_tool_call", "web_search":
		known = true
	}
	switch {
	case step == "item.started", step == "item.completed" && !began && known:
		c.open[it.ID] = true
		name, input := it.describe(raw)
		out = append(out, event{kind: evBegin, id: it.ID, call: newCall(Codex, it.ID, name, input)})
		began = true
	}
	if step == "item.completed" && began {
		delete(c.open, it.ID)
		out = append(out, event{kind: evEnd, id: it.ID, outcome: it.outcome()})
	}
	return out, nil
}

// describe is the name and the arguments of a call. An item of a kind that is not
// known here, as a later codex may have, is a call of that name.
func (it *codexItem) describe(raw json.RawMessage) (string, json.RawMessage) {
	object := func(k string, v any) json.RawMessage {
		b, err := stint.Marshal(map[string]any{k: v})
		if err != nil {
			return nil
		}
		return b
	}
	switch it.Type {
	case "command_execution":
		return it.Type, object("command", clean(it.Command))
	case "file_change":
		return it.Type, object("changes", it.Changes)
	case "web_search":
		return it.Type, object("query", clean(it.Query))
	case "mcp_tool_call":
		return it.Server + "." + it.Tool, it.Args
	}
	return it.Type, raw
}

func (it *codexItem) outcome() outcome {
	text := it.Output
	for _, part := range []json.RawMessage{it.Result, it.Error} {
		if len(part) > 0 && string(part) != "null" {
			text += string(part)
		}
	}
	o := result(text)
	o.Status = clean(it.Status)
	o.Failed = it.Status == "failed" || it.Status == "declined"
	o.exited(it.Exit)
	return o
}
