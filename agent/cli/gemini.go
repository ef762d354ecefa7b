package cli

import (
	"encoding/json"

	"github.com/stint-dev/stint"
)

// gemini reads "gemini -o stream-json". Its usage counts one turn.
type gemini struct {
	begun map[string]bool
}

type geminiLine struct {
	Type    string          `json:"type"`
	Session string          `json:"session_id"`
	Role    string          `json:"role"`
	Content string          `json:"content"`
	Delta   bool            `json:"delta"`
	Name    string          `json:"tool_name"`
	ID      string          `json:"tool_id"`
	Params  json.RawMessage `json:"parameters"`
	Status  string          `json:"status"`
	Output  string          `json:"output"`
	Message string          `json:"message"`
	Error   struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	Stats struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
		Cached int64 `json:"cached"`
	} `json:"stats"`
}

func (g *gemini) read(line []byte) ([]event, error) {
	var l geminiLine
	if err := object(line, &l); err != nil {
		return nil, err
	}
	if g.begun == nil {
		g.begun = map[string]bool{}
	}
	switch l.Type {
	case "init":
		return []event{{kind: evSession, id: l.Session}}, nil
	case "message":
		if l.Role == "assistant" && l.Content != "" {
			return []event{{kind: evText, text: l.Content, more: l.Delta}}, nil
		}
	case "tool_use":
		g.begun[l.ID] = true
		return []event{{kind: evBegin, id: l.ID, call: newCall(Gemini, l.ID, l.Name, l.Params)}}, nil
	case "tool_result":
		var out []event
		if !g.begun[l.ID] {
			out = append(out, event{kind: evBegin, id: l.ID, call: newCall(Gemini, l.ID, l.Name, l.Params)})
		}
		delete(g.begun, l.ID)
		o := result(l.Output)
		if l.Output == "" {
			o = result(l.Error.Message)
		}
		o.Status, o.Failed = clean(l.Status), l.Status != "success"
		return append(out, event{kind: evEnd, id: l.ID, outcome: o}), nil
	case "error":
		return []event{{kind: evTrouble, text: l.Message + l.Error.Message}}, nil
	case "result":
		if l.Status != "success" {
			return []event{{kind: evFail, text: l.Error.Message}}, nil
		}
		s := l.Stats
		return []event{{kind: evDone, usage: stint.Usage{
			Input: count(s.Input - count(s.Cached)), CacheRead: count(s.Cached), Output: count(s.Output),
		}}}, nil
	}
	return nil, nil
}
