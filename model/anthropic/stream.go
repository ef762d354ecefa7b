package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"

	"github.com/stint-dev/stint/internal/modelhttp"
	"github.com/stint-dev/stint/model"
)

// stream builds an answer from its events.
type stream struct {
	x      *modelhttp.Exchange
	hear   func(model.Delta)
	answer model.Answer
	blocks []*block
	stop   string
	done   bool
}

// block is one block of content, as far as it came.
type block struct {
	index     int64
	start     sdk.ContentBlockStartEventContentBlockUnion
	text      modelhttp.Joiner
	args      modelhttp.Joiner
	thinking  modelhttp.Joiner
	signature modelhttp.Joiner
	pieces    int
	citations []json.RawMessage
}

func (s *stream) read(dec ssestream.Decoder) (*model.Answer, error) {
	err := s.events(dec)
	if err != nil {
		if e := model.AsError(err); e != nil {
			e.Usage = s.answer.Usage
		}
		return nil, err
	}
	return s.finish(), nil
}

// events takes all events up to the one that makes the answer whole.
func (s *stream) events(dec ssestream.Decoder) error {
	for !s.done && dec.Next() {
		ev := dec.Event()
		data := bytes.TrimSpace(ev.Data)
		if len(data) == 0 {
			continue
		}
		var head struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(data, &head); err != nil {
			return s.x.Cut(errors.New("an event of the stream is not JSON"), s.partial())
		}
		if ev.Type == "error" || head.Type == "error" {
			return s.x.Inside(data, s.partial())
		}
		if head.Type == "ping" {
			continue
		}
		var e sdk.MessageStreamEventUnion
		if err := json.Unmarshal(data, &e); err != nil {
			return s.x.Cut(errors.New("an event of the stream cannot be read"), s.partial())
		}
		if err := s.take(&e); err != nil {
			return s.x.Cut(err, s.partial())
		}
	}
	if !s.done {
		return s.x.Cut(dec.Err(), s.partial())
	}
	return nil
}

func (s *stream) take(e *sdk.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		s.answer.ID, s.answer.Model = e.Message.ID, e.Message.Model
		u := e.Message.Usage
		s.answer.Usage = model.Usage{Input: u.InputTokens, Output: u.OutputTokens,
			CacheRead: u.CacheReadInputTokens, CacheWrite: u.CacheCreationInputTokens}
	case "content_block_start":
		if e.ContentBlock.RawJSON() == "" {
			return errors.New("a block began without saying what it is")
		}
		b := &block{index: e.Index, start: e.ContentBlock}
		b.text.Add(e.ContentBlock.JSON.Text.Raw())
		b.thinking.Add(e.ContentBlock.JSON.Thinking.Raw())
		b.signature.Add(e.ContentBlock.JSON.Signature.Raw())
		s.blocks = append(s.blocks, b)
	case "content_block_delta":
		return s.piece(e)
	case "message_delta":
		s.stop = string(e.Delta.StopReason)
		s.usage(&e.Usage)
	case "message_stop":
		s.done = true
	}
	return nil
}

// usage takes the counts that came: they are totals, and what is missing stays.
func (s *stream) usage(u *sdk.MessageDeltaUsage) {
	to := &s.answer.Usage
	for _, c := range []struct {
		valid bool
		from  int64
		to    *int64
	}{
		{u.JSON.InputTokens.Valid(), u.InputTokens, &to.Input},
		{u.JSON.OutputTokens.Valid(), u.OutputTokens, &to.Output},
		{u.JSON.CacheReadInputTokens.Valid(), u.CacheReadInputTokens, &to.CacheRead},
		{u.JSON.CacheCreationInputTokens.Valid(), u.CacheCreationInputTokens, &to.CacheWrite},
	} {
		if c.valid {
			*c.to = c.from
		}
	}
}

func (s *stream) piece(e *sdk.MessageStreamEventUnion) error {
	var b *block
	for _, have := range s.blocks {
		if have.index == e.Index {
			b = have
		}
	}
	if b == nil {
		return errors.New("a piece came for a block that was never begun")
	}
	b.pieces++
	d := &e.Delta
	switch d.Type {
	case "text_delta":
		b.text.Add(d.JSON.Text.Raw())
		s.say(model.Delta{Text: d.Text})
	case "thinking_delta":
		b.thinking.Add(d.JSON.Thinking.Raw())
		s.say(model.Delta{Text: d.Thinking, Thought: true})
	case "signature_delta":
		b.signature.Add(d.JSON.Signature.Raw())
	case "input_json_delta":
		b.args.Add(d.JSON.PartialJSON.Raw())
	case "citations_delta":
		b.citations = append(b.citations, json.RawMessage(d.JSON.Citation.Raw()))
	}
	return nil
}

func (s *stream) say(d model.Delta) {
	if s.hear != nil && d.Text != "" {
		s.hear(d)
	}
}

func (s *stream) partial() string {
	var b strings.Builder
	for _, blk := range s.blocks {
		b.WriteString(blk.text.String())
	}
	return b.String()
}

func (s *stream) finish() *model.Answer {
	a := &s.answer
	a.Message.Role = model.Assistant
	for _, b := range s.blocks {
		a.Message.Parts = append(a.Message.Parts, b.part(s.x.Model))
	}
	a.Reason, a.Stop = s.stop, stopOf(s.stop)
	calls := len(a.Message.Calls())
	if a.Stop == model.EndTurn && calls > 0 {
		a.Stop = model.ToolUse // gateways that say end_turn for everything
	}
	if a.Stop == model.ToolUse && calls == 0 {
		a.Stop = model.EndTurn
	}
	return a
}

func (b *block) part(name string) model.Part {
	switch b.start.Type {
	case "text":
		return model.Part{Text: b.text.String()}
	case "tool_use":
		args := b.args.String()
		if args == "" { // gateways that send the arguments whole, with the beginning
			if raw := b.start.JSON.Input.Raw(); raw != "{}" && raw != "null" {
				args = raw
			}
		}
		return model.Part{Call: &model.Call{ID: b.start.ID, Name: b.start.Name, Args: model.Args(args)}}
	}
	return model.Part{Opaque: &model.Opaque{Provider: provider, Model: name, Data: b.whole()}}
}

// whole is the block's JSON with the pieces that came for it.
func (b *block) whole() string {
	start := b.start.RawJSON()
	if b.pieces == 0 {
		return start
	}
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(start), &m) != nil {
		return start
	}
	set := func(name, s string) {
		if s == "" {
			return
		}
		var w modelhttp.Writer
		w.Text(s)
		m[name] = w.Bytes()
	}
	set("text", b.text.String())
	set("thinking", b.thinking.String())
	set("signature", b.signature.String())
	if args := b.args.String(); json.Valid([]byte(args)) {
		m["input"] = json.RawMessage(args)
	}
	if len(b.citations) > 0 {
		if c, err := json.Marshal(b.citations); err == nil {
			m["citations"] = c
		}
	}
	out, err := json.Marshal(m)
	if err != nil {
		return start
	}
	return string(out)
}

func stopOf(reason string) model.Stop {
	switch reason {
	case "end_turn":
		return model.EndTurn
	case "tool_use":
		return model.ToolUse
	case "max_tokens":
		return model.Length
	case "stop_sequence":
		return model.Sequence
	case "refusal":
		return model.Refusal
	case "pause_turn":
		return model.Pause
	case "model_context_window_exceeded":
		return model.Window
	}
	return model.Other
}
