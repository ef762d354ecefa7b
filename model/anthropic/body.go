package anthropic

import (
	"strings"

	"github.com/stint-dev/stint/internal/modelhttp"
	"github.com/stint-dev/stint/model"
)

const cacheMark = `{"type":"ephemeral"}`

// body writes a request that passed Check.
func (m *Model) body(r *model.Request) []byte {
	var w modelhttp.Writer
	w.Open('{')
	w.Member("model", m.opts.Model)
	maxTokens := r.MaxTokens
	if maxTokens <= 0 {
		maxTokens = defaultMaxTokens
	}
	w.Int("max_tokens", maxTokens)
	if r.System != "" {
		w.Key("system")
		w.Open('[')
		writeText(&w, r.System, r.Cache)
		w.Close(']')
	}
	writeMessages(&w, m.opts.Model, r)
	writeTools(&w, r)
	if r.Temperature != nil {
		w.Float("temperature", *r.Temperature)
	}
	if len(r.Stop) > 0 {
		w.Key("stop_sequences")
		w.Open('[')
		for _, s := range r.Stop {
			w.Text(s)
		}
		w.Close(']')
	}
	if r.Session != "" {
		w.Key("metadata")
		w.Open('{')
		w.Member("user_id", r.Session)
		w.Close('}')
	}
	if r.Schema != nil {
		w.Key("output_config")
		w.Open('{')
		w.Key("format")
		w.Open('{')
		w.Member("type", "json_schema")
		w.RawMember("schema", string(r.Schema.Schema))
		w.Close('}')
		w.Close('}')
	}
	w.Extra(m.extra)
	w.RawMember("stream", "true")
	w.Close('}')
	return w.Bytes()
}

func writeText(w *modelhttp.Writer, text string, mark bool) {
	w.Open('{')
	w.Member("type", "text")
	w.Member("text", text)
	if mark {
		w.RawMember("cache_control", cacheMark)
	}
	w.Close('}')
}

func writeMessages(w *modelhttp.Writer, name string, r *model.Request) {
	w.Key("messages")
	w.Open('[')
	for i, m := range r.Messages {
		w.Open('{')
		w.Member("role", string(m.Role))
		w.Key("content")
		w.Open('[')
		if m.Role == model.User {
			mark := r.Cache && i+3 >= len(r.Messages) // the two newest of the user
			for k, p := range m.Parts {
				writeUserPart(w, p, mark && k == len(m.Parts)-1)
			}
		} else {
			writeAssistant(w, name, m.Parts)
		}
		w.Close(']')
		w.Close('}')
	}
	w.Close(']')
}

func writeUserPart(w *modelhttp.Writer, p model.Part, mark bool) {
	if p.Result == nil {
		writeText(w, p.Text, mark)
		return
	}
	w.Open('{')
	w.Member("type", "tool_result")
	w.Member("tool_use_id", p.Result.Call)
	w.Member("content", p.Result.Text)
	if p.Result.Error {
		w.RawMember("is_error", "true")
	}
	if mark {
		w.RawMember("cache_control", cacheMark)
	}
	w.Close('}')
}

func writeAssistant(w *modelhttp.Writer, name string, parts []model.Part) {
	sent := 0
	for _, p := range parts {
		switch {
		case p.Call != nil:
			w.Open('{')
			w.Member("type", "tool_use")
			w.Member("id", p.Call.ID)
			w.Member("name", p.Call.Name)
			w.RawMember("input", p.Call.Args.Object())
			w.Close('}')
		case p.Opaque.For(provider, name):
			w.Raw(p.Opaque.Data)
		case strings.TrimSpace(p.Text) != "":
			writeText(w, p.Text, false)
		default:
			continue
		}
		sent++
	}
	if sent == 0 {
		writeText(w, "(no text)", false)
	}
}

func writeTools(w *modelhttp.Writer, r *model.Request) {
	if len(r.Tools) == 0 {
		return
	}
	w.Key("tools")
	w.Open('[')
	for i, t := range r.Tools {
		w.Open('{')
		w.Member("name", t.Name)
		if t.Description != "" {
			w.Member("description", t.Description)
		}
		schema := string(t.Schema)
		if schema == "" {
			schema = `{"type":"object","properties":{}}`
		}
		w.RawMember("input_schema", schema)
		if r.Cache && r.System == "" && i == len(r.Tools)-1 {
			w.RawMember("cache_control", cacheMark)
		}
		w.Close('}')
	}
	w.Close(']')
	if (r.Choice == model.Choice{}) {
		return
	}
	w.Key("tool_choice")
	w.Open('{')
	switch r.Choice.Mode {
	case model.Never:
		w.Member("type", "none")
	case model.Required:
		w.Member("type", "any")
	case model.Named:
		w.Member("type", "tool")
		w.Member("name", r.Choice.Tool)
	default:
		w.Member("type", "auto")
	}
	if r.Choice.Single && r.Choice.Mode != model.Never {
		w.RawMember("disable_parallel_tool_use", "true")
	}
	w.Close('}')
}
