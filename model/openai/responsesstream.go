package openai

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/openai/openai-go/v3/packages/ssestream"
	sdk "github.com/openai/openai-go/v3/responses"

	"github.com/stint-dev/stint/internal/modelhttp"
	"github.com/stint-dev/stint/model"
)

// responsesStream builds an answer from events. The items that are done are its truth;
// the pieces before are for those who watch, and for the partial of a stream that broke.
type responsesStream struct {
	x       *modelhttp.Exchange
	hear    func(model.Delta)
	answer  model.Answer
	partial modelhttp.Joiner
	refused bool
	done    bool
}

func (s *responsesStream) read(dec ssestream.Decoder) (*model.Answer, error) {
	for !s.done && dec.Next() {
		ev := dec.Event()
		data := bytes.TrimSpace(ev.Data)
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			break
		}
		if len(data) == 0 {
			continue
		}
		if err := failure(s.x, ev, data, s.partial.String()); err != nil {
			return nil, err
		}
		var e sdk.ResponseStreamEventUnion
		if err := json.Unmarshal(data, &e); err != nil {
			return nil, s.x.Cut(errors.New("an event of the stream cannot be read"), s.partial.String())
		}
		if e.Type == "error" || e.Type == "response.failed" {
			return nil, s.x.Inside(data, s.partial.String())
		}
		s.take(&e)
	}
	if !s.done {
		return nil, s.x.Cut(dec.Err(), s.partial.String())
	}
	return &s.answer, nil
}

func (s *responsesStream) take(e *sdk.ResponseStreamEventUnion) {
	switch e.Type {
	case "response.output_text.delta", "response.refusal.delta":
		s.partial.Add(rawDelta(e))
		s.say(e.Delta, false)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		s.say(e.Delta, true)
	case "response.output_item.done":
		s.item(&e.Item)
	case "response.completed", "response.incomplete":
		s.end(&e.Response)
	}
}

// rawDelta is the delta as it came, with its quotes.
func rawDelta(e *sdk.ResponseStreamEventUnion) string {
	var d struct {
		Delta json.RawMessage `json:"delta"`
	}
	if json.Unmarshal([]byte(e.RawJSON()), &d) != nil {
		return ""
	}
	return string(d.Delta)
}

func (s *responsesStream) say(text string, thought bool) {
	if s.hear != nil && text != "" {
		s.hear(model.Delta{Text: text, Thought: thought})
	}
}

// item takes one that is done. It reads the item's own JSON, since the client's type
// for arguments stands for several kinds of calls.
func (s *responsesStream) item(in *sdk.ResponseOutputItemUnion) {
	var item struct {
		Type      string          `json:"type"`
		CallID    string          `json:"call_id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Content   []struct {
			Type    string          `json:"type"`
			Text    json.RawMessage `json:"text"`
			Refusal json.RawMessage `json:"refusal"`
		} `json:"content"`
	}
	raw := in.RawJSON()
	if json.Unmarshal([]byte(raw), &item) != nil {
		item.Type = "" // kept as it came
	}
	parts := &s.answer.Message.Parts
	switch item.Type {
	case "message":
		for _, c := range item.Content {
			var text modelhttp.Joiner
			text.Add(string(c.Text))
			text.Add(string(c.Refusal))
			s.refused = s.refused || c.Type == "refusal"
			*parts = append(*parts, model.Part{Text: text.String()})
		}
	case "function_call":
		var args modelhttp.Joiner
		args.Add(string(item.Arguments))
		*parts = append(*parts, model.Part{Call: &model.Call{ID: item.CallID, Name: item.Name, Args: model.Args(args.String())}})
	default:
		if raw != "" {
			*parts = append(*parts, model.Part{Opaque: &model.Opaque{Provider: provider, Model: s.x.Model, Data: raw}})
		}
	}
}

func (s *responsesStream) end(r *sdk.Response) {
	s.done = true
	a := &s.answer
	a.ID, a.Model, a.Reason = r.ID, r.Model, string(r.Status)
	d := r.Usage.InputTokensDetails
	a.Usage = usage(r.Usage.InputTokens, r.Usage.OutputTokens, d.CachedTokens, d.CacheWriteTokens)
	a.Stop = model.EndTurn
	if why := r.IncompleteDetails.Reason; why != "" {
		a.Reason, a.Stop = why, model.Other
		switch why {
		case "max_output_tokens":
			a.Stop = model.Length
		case "content_filter":
			a.Stop = model.Refusal
		}
	} else if r.Status == "incomplete" {
		a.Stop = model.Other
	}
	if s.refused {
		a.Stop = model.Refusal
	}
}
