package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The rules of the real services, each with the strictest reading of those that were
// seen to refuse something.
const (
	idPattern   = `^[a-zA-Z0-9_-]{1,40}$`
	namePattern = `^[a-zA-Z0-9_-]{1,64}$`
)

func matches(pattern, s string) bool { return regexp.MustCompile(pattern).MatchString(s) }

// strict reads JSON into v and refuses members that v does not have.
func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

func object(b []byte) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal(b, &m) == nil && m != nil
}

// messages is the Messages API.
type messages struct{}

type messagesBody struct {
	Model     string          `json:"model"`
	MaxTokens int64           `json:"max_tokens"`
	System    json.RawMessage `json:"system"`
	Messages  []struct {
		Role    string            `json:"role"`
		Content []json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name         string          `json:"name"`
		Description  string          `json:"description"`
		InputSchema  json.RawMessage `json:"input_schema"`
		CacheControl json.RawMessage `json:"cache_control"`
	} `json:"tools"`
	ToolChoice    json.RawMessage `json:"tool_choice"`
	Temperature   *float64        `json:"temperature"`
	StopSequences []string        `json:"stop_sequences"`
	Metadata      json.RawMessage `json:"metadata"`
	OutputConfig  json.RawMessage `json:"output_config"`
	Thinking      json.RawMessage `json:"thinking"`
	Stream        bool            `json:"stream"`
}

type messagesBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
}

func (messages) check(body []byte) string {
	var b messagesBody
	if err := strict(body, &b); err != nil {
		return err.Error()
	}
	switch {
	case b.Model == "" || b.MaxTokens < 1 || !b.Stream:
		return "model, max_tokens and stream are required"
	case len(b.Messages) == 0 || b.Messages[0].Role != "user":
		return "messages: the first message must be user"
	}
	for i, t := range b.Tools {
		if !matches(namePattern, t.Name) || !object(t.InputSchema) {
			return fmt.Sprintf("tools.%d: name or input_schema", i)
		}
	}
	var open []string
	seen := map[string]bool{}
	for i, m := range b.Messages {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			return fmt.Sprintf("messages.%d: role %s, roles must alternate", i, m.Role)
		}
		if len(m.Content) == 0 {
			return fmt.Sprintf("messages.%d: content is empty", i)
		}
		var uses, results []string
		for k, raw := range m.Content {
			var x messagesBlock
			if err := json.Unmarshal(raw, &x); err != nil {
				return err.Error()
			}
			if why := x.check(m.Role, k == len(results)); why != "" {
				return fmt.Sprintf("messages.%d.content.%d: %s", i, k, why)
			}
			switch x.Type {
			case "tool_use":
				if seen[x.ID] {
					return fmt.Sprintf("messages.%d: tool_use ids must be unique", i)
				}
				seen[x.ID] = true
				uses = append(uses, x.ID)
			case "tool_result":
				results = append(results, x.ToolUseID)
			}
		}
		if !slices.Equal(results, open) {
			return fmt.Sprintf("messages.%d: tool_result ids %v do not match tool_use ids %v of the message before", i, results, open)
		}
		open = uses
	}
	if len(open) > 0 {
		return fmt.Sprintf("tool_use ids %v without tool_result", open)
	}
	return ""
}

func (x *messagesBlock) check(role string, leads bool) string {
	switch {
	case x.Type == "text" && strings.TrimSpace(x.Text) == "":
		return "text content blocks must contain non-whitespace text"
	case x.Type == "text":
	case role == "assistant" && x.Type == "tool_use":
		if !matches(idPattern, x.ID) || !matches(namePattern, x.Name) || !object(x.Input) {
			return "tool_use needs an id, a name and an object as input"
		}
	case role == "assistant" && x.Type == "thinking" && x.Signature != "":
	case role == "assistant" && x.Type == "redacted_thinking":
	case role == "user" && x.Type == "tool_result" && leads:
	default:
		return "a block of type " + x.Type + " does not belong here"
	}
	return ""
}

// chat is Chat Completions.
type chat struct{}

type chatBody struct {
	Model               string          `json:"model"`
	Messages            []chatMessage   `json:"messages"`
	Tools               []chatTool      `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	ParallelToolCalls   *bool           `json:"parallel_tool_calls"`
	MaxTokens           int64           `json:"max_tokens"`
	MaxCompletionTokens int64           `json:"max_completion_tokens"`
	Temperature         *float64        `json:"temperature"`
	Stop                []string        `json:"stop"`
	ResponseFormat      json.RawMessage `json:"response_format"`
	PromptCacheKey      string          `json:"prompt_cache_key"`
	SafetyIdentifier    string          `json:"safety_identifier"`
	Stream              bool            `json:"stream"`
	StreamOptions       json.RawMessage `json:"stream_options"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []chatCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	Reasoning  string          `json:"reasoning_content"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (chat) check(body []byte) string {
	var b chatBody
	if err := strict(body, &b); err != nil {
		return err.Error()
	}
	if b.Model == "" || len(b.Messages) == 0 || !b.Stream {
		return "model, messages and stream are required"
	}
	for i, t := range b.Tools {
		if t.Type != "function" || !matches(namePattern, t.Function.Name) || !object(t.Function.Parameters) {
			return fmt.Sprintf("tools[%d]: type, name or parameters", i)
		}
	}
	var open []string
	for i, m := range b.Messages {
		if m.Role == "tool" {
			if len(open) == 0 || m.ToolCallID != open[0] {
				return fmt.Sprintf("messages[%d]: tool message answers no open tool call", i)
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			return fmt.Sprintf("messages[%d]: tool calls %v unanswered", i, open)
		}
		empty := len(m.Content) == 0 || string(m.Content) == "null" || string(m.Content) == `""` || string(m.Content) == "[]"
		switch {
		case m.Role == "assistant":
			if empty && len(m.ToolCalls) == 0 {
				return fmt.Sprintf("messages[%d]: neither content nor tool_calls", i)
			}
			for _, c := range m.ToolCalls {
				if !matches(idPattern, c.ID) || slices.Contains(open, c.ID) || !matches(namePattern, c.Function.Name) ||
					c.Type != "function" || !object([]byte(c.Function.Arguments)) {
					return fmt.Sprintf("messages[%d]: tool call %s: id, name or arguments", i, c.ID)
				}
				open = append(open, c.ID)
			}
		case m.Role != "user" && (m.Role != "system" || i > 0) || empty || len(m.ToolCalls) > 0:
			return fmt.Sprintf("messages[%d]: role %s, or no content", i, m.Role)
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("tool calls %v unanswered at the end", open)
	}
	return ""
}

// responses is the Responses API.
type responses struct{}

type responsesBody struct {
	Model             string          `json:"model"`
	Instructions      string          `json:"instructions"`
	Input             []responsesItem `json:"input"`
	Tools             []responsesTool `json:"tools"`
	ToolChoice        json.RawMessage `json:"tool_choice"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls"`
	MaxOutputTokens   int64           `json:"max_output_tokens"`
	Temperature       *float64        `json:"temperature"`
	Text              json.RawMessage `json:"text"`
	Include           []string        `json:"include"`
	PromptCacheKey    string          `json:"prompt_cache_key"`
	SafetyIdentifier  string          `json:"safety_identifier"`
	Store             *bool           `json:"store"`
	Stream            bool            `json:"stream"`
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    *string         `json:"output"`
	ID        string          `json:"id"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

func (responses) check(body []byte) string {
	var b responsesBody
	if err := strict(body, &b); err != nil {
		return err.Error()
	}
	if b.Model == "" || len(b.Input) == 0 || !b.Stream || b.Store == nil || *b.Store {
		return "model, input, stream and store false are required"
	}
	for i, t := range b.Tools {
		if t.Type != "function" || !matches(namePattern, t.Name) || !object(t.Parameters) {
			return fmt.Sprintf("tools[%d]: type, name or parameters", i)
		}
	}
	var open []string
	for i, x := range b.Input {
		switch x.Type {
		case "message":
			if len(open) > 0 || len(x.Content) == 0 || string(x.Content) == `""` || string(x.Content) == "[]" {
				return fmt.Sprintf("input[%d]: a message while calls %v are unanswered, or without content", i, open)
			}
		case "function_call":
			if !matches(idPattern, x.CallID) || slices.Contains(open, x.CallID) || !matches(namePattern, x.Name) || !object([]byte(x.Arguments)) {
				return fmt.Sprintf("input[%d]: call_id, name or arguments", i)
			}
			open = append(open, x.CallID)
		case "function_call_output":
			if len(open) == 0 || x.CallID != open[0] || x.Output == nil {
				return fmt.Sprintf("input[%d]: output for no open call", i)
			}
			open = open[1:]
		case "reasoning":
			if x.ID == "" || x.Encrypted == "" || i+1 == len(b.Input) {
				return fmt.Sprintf("input[%d]: reasoning without its encrypted content or without what follows it", i)
			}
		default:
			return fmt.Sprintf("input[%d]: type %q", i, x.Type)
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("calls %v unanswered at the end", open)
	}
	return ""
}
