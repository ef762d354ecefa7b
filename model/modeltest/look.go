package modeltest

import (
	"encoding/json"
	"strings"
)

// look implements format.
func (messages) look(body []byte) (turns int, quiet bool) {
	var b struct {
		Messages []struct{ Role string }
		Choice   struct{ Type string } `json:"tool_choice"`
	}
	if json.Unmarshal(body, &b) != nil {
		return 0, false
	}
	for _, m := range b.Messages {
		if m.Role == "assistant" {
			turns++
		}
	}
	return turns, b.Choice.Type == "none"
}

// look implements format.
func (chat) look(body []byte) (turns int, quiet bool) {
	var b struct {
		Messages []struct{ Role string }
		Choice   json.RawMessage `json:"tool_choice"`
	}
	if json.Unmarshal(body, &b) != nil {
		return 0, false
	}
	for _, m := range b.Messages {
		if m.Role == "assistant" {
			turns++
		}
	}
	return turns, string(b.Choice) == `"none"`
}

// look implements format. An answer is the items between two of the other side.
func (responses) look(body []byte) (turns int, quiet bool) {
	var b struct {
		Input  []struct{ Type, Role string }
		Choice json.RawMessage `json:"tool_choice"`
	}
	if json.Unmarshal(body, &b) != nil {
		return 0, false
	}
	inside := false
	for _, x := range b.Input {
		theirs := x.Role != "user" && !strings.HasSuffix(x.Type, "_output")
		if theirs && !inside {
			turns++
		}
		inside = theirs
	}
	return turns, string(b.Choice) == `"none"`
}
