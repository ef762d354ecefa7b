package cli

import (
	"encoding/json"
	"fmt"

	"github.com/stint-dev/stint"
)

// opencode reads "opencode run --format json". It tells of a call when the call has
// ended, and its turn is over when it exits.
type opencode struct {
	session string
}

type opencodeLine struct {
	Type    string `json:"type"`
	Session string `json:"sessionID"`
	Part    struct {
		ID      string `json:"id"`
		Message string `json:"messageID"`
		Text    string `json:"text"`
		Tool    string `json:"tool"`
		Call    string `json:"callID"`
		State   struct {
			Status   string                     `json:"status"`
			Input    json.RawMessage            `json:"input"`
			Output   string                     `json:"output"`
			Error    string                     `json:"error"`
			Metadata struct{ Exit json.Number } `json:"metadata"`
		} `json:"state"`
		Tokens struct {
			Input     int64                       `json:"input"`
			Output    int64                       `json:"output"`
			Reasoning int64                       `json:"reasoning"`
			Cache     struct{ Read, Write int64 } `json:"cache"`
		} `json:"tokens"`
		Cost float64 `json:"cost"`
	} `json:"part"`
	Error struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
			Status  int    `json:"statusCode"`
		} `json:"data"`
	} `json:"error"`
}

func (o *opencode) read(line []byte) ([]event, error) {
	var l opencodeLine
	if err := object(line, &l); err != nil {
		return nil, err
	}
	var out []event
	if l.Session != "" && l.Session != o.session {
		o.session = l.Session
		out = append(out, event{kind: evSession, id: l.Session})
	}
	p := &l.Part
	switch l.Type {
	case "text":
		out = append(out, event{kind: evText, id: p.Message, text: p.Text})
	case "tool_use":
		c := newCall(OpenCode, p.Call, p.Tool, p.State.Input)
		r := result(p.State.Output)
		if p.State.Status == "error" {
			r = result(p.State.Error)
		}
		r.Status, r.Failed = clean(p.State.Status), p.State.Status == "error"
		r.exited(p.State.Metadata.Exit)
		out = append(out, event{kind: evBegin, id: p.Call, call: c}, event{kind: evEnd, id: p.Call, outcome: r})
	case "step_finish":
		t := p.Tokens
		out = append(out, event{kind: evUsage, usage: stint.Usage{
			Input: count(t.Input), Output: count(t.Output + t.Reasoning),
			CacheRead: count(t.Cache.Read), CacheWrite: count(t.Cache.Write), Cost: dollars(p.Cost),
		}})
	case "reasoning":
		out = append(out, event{kind: evNote, text: "reasoning: " + p.Text})
	case "error":
		text := l.Error.Data.Message
		if text == "" {
			text = l.Error.Name
		}
		if l.Error.Data.Status != 0 {
			text = fmt.Sprintf("%s (status %d)", text, l.Error.Data.Status)
		}
		out = append(out, event{kind: evFail, text: text})
	}
	return out, nil
}
