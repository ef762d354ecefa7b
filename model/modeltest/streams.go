package modeltest

import (
	"fmt"
	"strings"
)

type obj = map[string]any

// usage is the step's, or a fixed one.
func (s *Step) usage() Usage {
	if s.Usage == (Usage{}) {
		return Usage{Input: 10, Output: 5}
	}
	return s.Usage
}

// text is the step's; a step that says nothing else says ok.
func (s *Step) text() string {
	if s.Text == "" && len(s.Tools) == 0 {
		return "ok"
	}
	return s.Text
}

func (messages) stream(s *Step, n int) []string {
	u := s.usage()
	out := []string{event("message_start", obj{"type": "message_start", "message": obj{"id": fmt.Sprintf("msg_%d", n), "type": "message",
		"role": "assistant", "model": "mock-1", "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": obj{"input_tokens": u.Input, "output_tokens": 1, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite}}}),
		event("ping", obj{"type": "ping"})}
	k := 0
	block := func(start obj, kind, member string, parts []string) {
		out = append(out, event("content_block_start", obj{"type": "content_block_start", "index": k, "content_block": start}))
		for _, p := range parts {
			out = append(out, event("content_block_delta", obj{"type": "content_block_delta", "index": k, "delta": obj{"type": kind, member: p}}))
		}
		out = append(out, event("content_block_stop", obj{"type": "content_block_stop", "index": k}))
		k++
	}
	if t := s.text(); t != "" {
		block(obj{"type": "text", "text": ""}, "text_delta", "text", pieces(t))
	}
	for i := range s.Tools {
		c := &s.Tools[i]
		block(obj{"type": "tool_use", "id": c.ID, "name": c.Name, "input": obj{}}, "input_json_delta", "partial_json", pieces(c.args()))
	}
	stop := s.Stop
	if stop == "" {
		stop = "end_turn"
		if len(s.Tools) > 0 {
			stop = "tool_use"
		}
	}
	return append(out,
		event("message_delta", obj{"type": "message_delta", "delta": obj{"stop_reason": stop, "stop_sequence": nil}, "usage": obj{"output_tokens": u.Output}}),
		event("message_stop", obj{"type": "message_stop"}))
}

func (messages) failure(etype string) string {
	return event("error", obj{"type": "error", "error": obj{"type": etype, "message": "scripted"}})
}

func (messages) whole(events []string) int { return len(events) - 1 }

func (chat) stream(s *Step, n int) []string {
	chunk := func(delta obj, finish any) string {
		return event("", obj{"id": fmt.Sprintf("chatcmpl-%d", n), "object": "chat.completion.chunk", "created": 1767225600, "model": "mock-1",
			"choices": []any{obj{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	out := []string{chunk(obj{"role": "assistant", "content": nil}, nil)}
	if t := s.text(); t != "" {
		for _, p := range pieces(t) {
			out = append(out, chunk(obj{"content": p}, nil))
		}
	}
	for i := range s.Tools {
		c := &s.Tools[i]
		out = append(out, chunk(obj{"tool_calls": []any{obj{"index": i, "id": c.ID, "type": "function", "function": obj{"name": c.Name, "arguments": ""}}}}, nil))
		for _, p := range pieces(c.args()) {
			out = append(out, chunk(obj{"tool_calls": []any{obj{"index": i, "function": obj{"arguments": p}}}}, nil))
		}
	}
	finish := map[string]string{"max_tokens": "length", "end_turn": "stop", "tool_use": "tool_calls", "refusal": "content_filter"}[s.Stop]
	if finish == "" {
		finish = "stop"
		if len(s.Tools) > 0 {
			finish = "tool_calls"
		}
	}
	u := s.usage()
	return append(out, chunk(obj{}, finish),
		event("", obj{"id": fmt.Sprintf("chatcmpl-%d", n), "object": "chat.completion.chunk", "created": 1767225600, "model": "mock-1", "choices": []any{},
			"usage": obj{"prompt_tokens": u.Input + u.CacheRead + u.CacheWrite, "completion_tokens": u.Output, "total_tokens": u.Input + u.CacheRead + u.CacheWrite + u.Output,
				"prompt_tokens_details": obj{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite}}}),
		"data: [DONE]\n\n")
}

func (chat) failure(etype string) string {
	return event("", obj{"error": obj{"type": etype, "message": "scripted"}})
}

func (chat) whole(events []string) int { return len(events) - 3 }

func (responses) stream(s *Step, n int) []string {
	id := fmt.Sprintf("resp_%d", n)
	out := []string{event("response.created", obj{"type": "response.created", "response": obj{"id": id, "object": "response", "model": "mock-1", "status": "in_progress", "error": nil, "output": []any{}}})}
	k := 0
	add := func(name string, data obj) {
		data["type"], data["output_index"] = name, k
		out = append(out, event(name, data))
	}
	if t := s.text(); t != "" {
		add("response.output_item.added", obj{"item": obj{"type": "message", "id": "m1", "role": "assistant", "status": "in_progress", "content": []any{}}})
		for _, p := range pieces(t) {
			add("response.output_text.delta", obj{"item_id": "m1", "content_index": 0, "delta": p})
		}
		add("response.output_item.done", obj{"item": obj{"type": "message", "id": "m1", "role": "assistant", "status": "completed",
			"content": []any{obj{"type": "output_text", "text": t, "annotations": []any{}}}}})
		k++
	}
	for i := range s.Tools {
		c := &s.Tools[i]
		item := obj{"type": "function_call", "id": fmt.Sprintf("fc_%d", i), "call_id": c.ID, "name": c.Name, "arguments": "", "status": "in_progress"}
		add("response.output_item.added", obj{"item": item})
		for _, p := range pieces(c.args()) {
			add("response.function_call_arguments.delta", obj{"item_id": item["id"], "delta": p})
		}
		status := "completed"
		if s.Stop == "max_tokens" {
			status = "incomplete"
		}
		add("response.output_item.done", obj{"item": obj{"type": "function_call", "id": item["id"], "call_id": c.ID, "name": c.Name, "arguments": c.args(), "status": status}})
		k++
	}
	name, status, details := "response.completed", "completed", any(nil)
	switch s.Stop {
	case "max_tokens":
		name, status, details = "response.incomplete", "incomplete", obj{"reason": "max_output_tokens"}
	case "refusal":
		name, status, details = "response.incomplete", "incomplete", obj{"reason": "content_filter"}
	}
	u := s.usage()
	return append(out, event(name, obj{"type": name, "response": obj{"id": id, "object": "response", "model": "mock-1", "status": status, "error": nil,
		"incomplete_details": details, "usage": obj{"input_tokens": u.Input + u.CacheRead + u.CacheWrite, "output_tokens": u.Output,
			"input_tokens_details": obj{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite}}}}))
}

func (responses) failure(etype string) string {
	return event("response.failed", obj{"type": "response.failed", "response": obj{"id": "resp_1", "status": "failed",
		"error": obj{"code": strings.TrimSuffix(etype, "_error"), "message": "scripted"}}})
}

func (responses) whole(events []string) int { return len(events) - 1 }
