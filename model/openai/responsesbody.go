package openai

import (
	"github.com/stint-dev/stint/internal/modelhttp"
	"github.com/stint-dev/stint/model"
)

// provider marks opaque items as those of Responses.
const provider = "openai.responses"

// responsesBody writes a request that passed Check, for Responses. Nothing is stored at
// the provider: the messages are the only memory, and reasoning comes encrypted.
func (m *Model) responsesBody(r *model.Request) []byte {
	var w modelhttp.Writer
	w.Open('{')
	w.Member("model", m.opts.Model)
	if r.System != "" {
		w.Member("instructions", r.System)
	}
	w.Key("input")
	w.Open('[')
	for _, msg := range r.Messages {
		if msg.Role == model.User {
			inputUser(&w, msg.Parts)
		} else {
			inputAssistant(&w, m.opts.Model, msg.Parts)
		}
	}
	w.Close(']')
	if len(r.Tools) > 0 {
		w.Key("tools")
		w.Open('[')
		for _, t := range r.Tools {
			w.Open('{')
			w.Member("type", "function")
			writeTool(&w, t)
			w.RawMember("strict", "false") // strict wants schemas of a form that few tools have
			w.Close('}')
		}
		w.Close(']')
		writeChoice(&w, r.Choice, false)
	}
	if r.MaxTokens > 0 {
		w.Int("max_output_tokens", r.MaxTokens)
	}
	if r.Temperature != nil {
		w.Float("temperature", *r.Temperature)
	}
	if r.Schema != nil {
		w.Key("text")
		w.Open('{')
		w.Key("format")
		w.Open('{')
		w.Member("type", "json_schema")
		w.Member("name", r.Schema.Name)
		w.RawMember("schema", string(r.Schema.Schema))
		w.RawMember("strict", "false")
		w.Close('}')
		w.Close('}')
	}
	if r.Cache && r.Session != "" {
		w.Member("prompt_cache_key", r.Session)
	}
	w.RawMember("include", `["reasoning.encrypted_content"]`)
	w.Extra(m.extra)
	w.RawMember("store", "false")
	w.RawMember("stream", "true")
	w.Close('}')
	return w.Bytes()
}

func inputMessage(w *modelhttp.Writer, role model.Role, kind string, texts ...string) {
	if len(texts) == 0 {
		return
	}
	w.Open('{')
	w.Member("type", "message")
	w.Member("role", string(role))
	w.Key("content")
	w.Open('[')
	for _, t := range texts {
		w.Open('{')
		w.Member("type", kind)
		w.Member("text", t)
		w.Close('}')
	}
	w.Close(']')
	w.Close('}')
}

func inputUser(w *modelhttp.Writer, parts []model.Part) {
	var texts []string
	for _, p := range parts {
		if p.Result == nil {
			texts = append(texts, p.Text)
			continue
		}
		w.Open('{')
		w.Member("type", "function_call_output")
		w.Member("call_id", p.Result.Call)
		w.Member("output", p.Result.Text)
		w.Close('}')
	}
	inputMessage(w, model.User, "input_text", texts...)
}

// inputAssistant writes texts before calls: an answer with a call in the middle would put
// a message between the call and its output. Opaque items stay before what they led to.
func inputAssistant(w *modelhttp.Writer, name string, parts []model.Part) {
	sent := false
	for calls := range 2 {
		for _, p := range parts {
			if (p.Call != nil) != (calls == 1) {
				continue
			}
			switch {
			case p.Call != nil:
				w.Open('{')
				w.Member("type", "function_call")
				w.Member("call_id", p.Call.ID)
				w.Member("name", p.Call.Name)
				w.Member("arguments", p.Call.Args.Object())
				w.Close('}')
			case p.Opaque.For(provider, name):
				w.Raw(p.Opaque.Data)
			case p.Text != "":
				inputMessage(w, model.Assistant, "output_text", p.Text)
			default:
				continue
			}
			sent = sent || p.Opaque == nil
		}
	}
	if !sent {
		inputMessage(w, model.Assistant, "output_text", noText)
	}
}
