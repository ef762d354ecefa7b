package openai

import (
	"strings"

	"github.com/stint-dev/stint/internal/modelhttp"
	"github.com/stint-dev/stint/model"
)

const noText = "(no text)"

// chatProvider marks opaque blocks of Chat Completions: an object of the members that
// services add to an assistant's message, and want to see again in it.
const chatProvider = "openai.chat"

// noArgs is the schema of a tool that names none.
const noArgs = `{"type":"object","properties":{}}`

// chatBody writes a request that passed Check, for Chat Completions.
func (m *Model) chatBody(r *model.Request) []byte {
	var w modelhttp.Writer
	w.Open('{')
	w.Member("model", m.opts.Model)
	w.Key("messages")
	w.Open('[')
	if r.System != "" {
		chatText(&w, "system", r.System)
	}
	for _, msg := range r.Messages {
		if msg.Role == model.User {
			chatUser(&w, msg.Parts)
		} else {
			chatAssistant(&w, m.opts.Model, msg.Parts)
		}
	}
	w.Close(']')
	if len(r.Tools) > 0 {
		w.Key("tools")
		w.Open('[')
		for _, t := range r.Tools {
			w.Open('{')
			w.Member("type", "function")
			w.Key("function")
			w.Open('{')
			writeTool(&w, t)
			w.Close('}')
			w.Close('}')
		}
		w.Close(']')
		writeChoice(&w, r.Choice, true)
	}
	if r.MaxTokens > 0 && m.old {
		w.Int("max_tokens", r.MaxTokens)
	} else if r.MaxTokens > 0 {
		w.Int("max_completion_tokens", r.MaxTokens)
	}
	if r.Temperature != nil {
		w.Float("temperature", *r.Temperature)
	}
	if len(r.Stop) > 0 {
		w.Key("stop")
		w.Open('[')
		for _, s := range r.Stop {
			w.Text(s)
		}
		w.Close(']')
	}
	if r.Schema != nil {
		w.Key("response_format")
		w.Open('{')
		w.Member("type", "json_schema")
		w.Key("json_schema")
		w.Open('{')
		w.Member("name", r.Schema.Name)
		w.RawMember("schema", string(r.Schema.Schema))
		w.Close('}')
		w.Close('}')
	}
	if r.Cache && r.Session != "" {
		w.Member("prompt_cache_key", r.Session)
	}
	w.Extra(m.extra)
	w.RawMember("stream", "true")
	w.RawMember("stream_options", `{"include_usage":true}`)
	w.Close('}')
	return w.Bytes()
}

func writeTool(w *modelhttp.Writer, t model.Tool) {
	w.Member("name", t.Name)
	if t.Description != "" {
		w.Member("description", t.Description)
	}
	schema := string(t.Schema)
	if schema == "" {
		schema = noArgs
	}
	w.RawMember("parameters", schema)
}

// writeChoice writes tool_choice; nested is the form of Chat Completions.
func writeChoice(w *modelhttp.Writer, c model.Choice, nested bool) {
	switch c.Mode {
	case model.Never:
		w.Member("tool_choice", "none")
	case model.Required:
		w.Member("tool_choice", "required")
	case model.Named:
		w.Key("tool_choice")
		w.Open('{')
		w.Member("type", "function")
		if nested {
			w.Key("function")
			w.Open('{')
		}
		w.Member("name", c.Tool)
		if nested {
			w.Close('}')
		}
		w.Close('}')
	}
	if c.Single {
		w.RawMember("parallel_tool_calls", "false")
	}
}

func chatText(w *modelhttp.Writer, role, text string) {
	w.Open('{')
	w.Member("role", role)
	w.Member("content", text)
	w.Close('}')
}

// chatUser writes a message for each result and one for the texts.
func chatUser(w *modelhttp.Writer, parts []model.Part) {
	var texts []string
	for _, p := range parts {
		if p.Result == nil {
			texts = append(texts, p.Text)
			continue
		}
		w.Open('{')
		w.Member("role", "tool")
		w.Member("tool_call_id", p.Result.Call)
		w.Member("content", p.Result.Text)
		w.Close('}')
	}
	switch len(texts) {
	case 0:
	case 1:
		chatText(w, "user", texts[0])
	default:
		w.Open('{')
		w.Member("role", "user")
		w.Key("content")
		w.Open('[')
		for _, t := range texts {
			w.Open('{')
			w.Member("type", "text")
			w.Member("text", t)
			w.Close('}')
		}
		w.Close(']')
		w.Close('}')
	}
}

func chatAssistant(w *modelhttp.Writer, name string, parts []model.Part) {
	var text strings.Builder
	calls := false
	for _, p := range parts {
		text.WriteString(p.Text)
		calls = calls || p.Call != nil
	}
	w.Open('{')
	w.Member("role", "assistant")
	switch {
	case text.Len() > 0:
		w.Member("content", text.String())
	case !calls:
		w.Member("content", noText)
	}
	for _, p := range parts {
		if !p.Opaque.For(chatProvider, name) {
			continue
		}
		if members, err := modelhttp.ParseExtra([]byte(p.Opaque.Data), "role", "content", "tool_calls"); err == nil {
			w.Extra(members)
		}
	}
	if calls {
		w.Key("tool_calls")
		w.Open('[')
		for _, p := range parts {
			if p.Call == nil {
				continue
			}
			w.Open('{')
			w.Member("id", p.Call.ID)
			w.Member("type", "function")
			w.Key("function")
			w.Open('{')
			w.Member("name", p.Call.Name)
			w.Member("arguments", p.Call.Args.Object())
			w.Close('}')
			w.Close('}')
		}
		w.Close(']')
	}
	w.Close('}')
}
