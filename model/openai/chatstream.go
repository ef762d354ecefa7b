package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/stint-dev/stint/internal/modelhttp"
	"github.com/stint-dev/stint/model"
)

// chatStream builds an answer from chunks.
type chatStream struct {
	x       *modelhttp.Exchange
	hear    func(model.Delta)
	answer  model.Answer
	text    modelhttp.Joiner
	refusal modelhttp.Joiner
	thought modelhttp.Joiner
	named   string // the member that the thoughts came in
	calls   []*chatCall
	at      map[int64]*chatCall // the newest call of each index
	finish  string
}

type chatCall struct {
	id, name string
	args     modelhttp.Joiner
}

// failure looks for an error in an event: one under "error" that is not null, or the
// event's own name.
func failure(x *modelhttp.Exchange, ev ssestream.Event, data []byte, partial string) error {
	var head struct {
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return x.Cut(errors.New("an event of the stream is not JSON"), partial)
	}
	if len(head.Error) > 0 && string(head.Error) != "null" || ev.Type == "error" {
		return x.Inside(data, partial)
	}
	return nil
}

func (s *chatStream) read(dec ssestream.Decoder) (*model.Answer, error) {
	for dec.Next() {
		ev := dec.Event()
		data := bytes.TrimSpace(ev.Data)
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			break
		}
		if len(data) == 0 {
			continue
		}
		if err := failure(s.x, ev, data, s.text.String()); err != nil {
			return nil, err
		}
		var c sdk.ChatCompletionChunk
		if err := json.Unmarshal(data, &c); err != nil {
			return nil, s.x.Cut(errors.New("an event of the stream cannot be read"), s.text.String())
		}
		s.take(&c)
	}
	if s.finish == "" {
		return nil, s.x.Cut(dec.Err(), s.text.String())
	}
	return s.whole(), nil
}

func (s *chatStream) take(c *sdk.ChatCompletionChunk) {
	if c.ID != "" {
		s.answer.ID = c.ID
	}
	if c.Model != "" {
		s.answer.Model = c.Model
	}
	if u := c.Usage; u.JSON.PromptTokens.Valid() || u.JSON.CompletionTokens.Valid() {
		d := u.PromptTokensDetails
		s.answer.Usage = usage(u.PromptTokens, u.CompletionTokens, d.CachedTokens, d.CacheWriteTokens)
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // only one is asked for
		}
		d := &choice.Delta
		s.text.Add(d.JSON.Content.Raw())
		s.refusal.Add(d.JSON.Refusal.Raw())
		s.say(d.Content, false)
		s.say(d.Refusal, false)
		for _, name := range []string{"reasoning_content", "reasoning"} {
			f, ok := d.JSON.ExtraFields[name]
			var thought string
			if ok && json.Unmarshal([]byte(f.Raw()), &thought) == nil && thought != "" {
				s.named = name
				s.thought.Add(f.Raw())
				s.say(thought, true)
				break
			}
		}
		for i := range d.ToolCalls {
			s.piece(&d.ToolCalls[i])
		}
		if choice.FinishReason != "" {
			s.finish = choice.FinishReason
			s.x.Hurry(afterFinish)
		}
	}
}

// usage makes counts that exclude each other.
func usage(in, out, read, write int64) model.Usage {
	return model.Usage{Input: max(in-read-write, 0), Output: out, CacheRead: read, CacheWrite: write}
}

func (s *chatStream) say(text string, thought bool) {
	if s.hear != nil && text != "" {
		s.hear(model.Delta{Text: text, Thought: thought})
	}
}

// piece adds a piece of a call to the call that it belongs to: by its index, unless an
// id says that another call begins; without an index, to the newest.
func (s *chatStream) piece(d *sdk.ChatCompletionChunkChoiceDeltaToolCall) {
	var c *chatCall
	if d.JSON.Index.Valid() {
		c = s.at[d.Index]
	} else if len(s.calls) > 0 {
		c = s.calls[len(s.calls)-1]
	}
	fresh := c == nil || d.ID != "" && c.id != "" && d.ID != c.id ||
		d.ID == "" && !d.JSON.Index.Valid() && d.Function.Name != "" && c.name != ""
	if fresh {
		c = &chatCall{}
		s.calls = append(s.calls, c)
		if s.at == nil {
			s.at = map[int64]*chatCall{}
		}
		s.at[d.Index] = c
	}
	if d.ID != "" {
		c.id = d.ID
	}
	if c.name == "" {
		c.name = d.Function.Name
	}
	c.args.Add(d.Function.JSON.Arguments.Raw())
}

func (s *chatStream) whole() *model.Answer {
	a := &s.answer
	refusal := s.refusal.String()
	var parts []model.Part
	if thought := s.thought.String(); thought != "" {
		var w modelhttp.Writer
		w.Open('{')
		w.Member(s.named, strings.ToValidUTF8(thought, "\uFFFD"))
		w.Close('}')
		parts = append(parts, model.Part{Opaque: &model.Opaque{Provider: chatProvider, Model: s.x.Model, Data: string(w.Bytes())}})
	}
	parts = append(parts, model.Part{Text: s.text.String()}, model.Part{Text: refusal}) // empty ones go when the answer is settled
	for _, c := range s.calls {
		parts = append(parts, model.Part{Call: &model.Call{ID: c.id, Name: c.name, Args: model.Args(c.args.String())}})
	}
	a.Message.Parts = parts
	a.Reason, a.Stop = s.finish, model.Other
	switch s.finish {
	case "stop":
		a.Stop = model.EndTurn
	case "tool_calls", "function_call":
		a.Stop = model.ToolUse
	case "length":
		a.Stop = model.Length
	case "content_filter":
		a.Stop = model.Refusal
	}
	if refusal != "" {
		a.Stop = model.Refusal
	}
	return a
}
