package acp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/stint-dev/stint/internal/child"
)

// Settle sets how long a call that begins waits for its question.
func (a *Agent) Settle(d time.Duration) { a.settle = d }

// Calm sets how long a session that was loaded must be quiet before it is prompted.
func (a *Agent) Calm(d time.Duration) { a.calm = d }

// Heard is a step that what an agent said becomes.
type Heard struct {
	Name, Effect, Ask string
	Input             json.RawMessage
	Result            []byte // of a call that came to its end
}

// Hear takes messages of an agent, bodies of session/update and, where they have
// options, of session/request_permission.
func Hear(bodies [][]byte) (text string, heard []Heard) {
	p := &peer{spec: &Spec{Command: []string{"x"}}, feed: newFeed(), log: &child.Log{}, session: "s"}
	for _, b := range bodies {
		var r permissionRequest
		if json.Unmarshal(b, &r) == nil && r.Options != nil && r.Call.ID != "" {
			r.Call.Blocks = r.Call.Content
			p.feed.asked(r.Call.toolCall, &permission{options: r.Options, answer: make(chan acp.RequestPermissionResponse, 1)})
			continue
		}
		_ = p.updated(b)
	}
	for len(p.feed.queue) > 0 {
		e := p.feed.remove(0)
		text += e.text
		if e.part == nil {
			continue
		}
		c := p.feed.take(context.Background(), p.spec, e.part, 0)
		h := Heard{Name: c.Name, Effect: string(c.Effect), Ask: c.Ask, Input: c.Input}
		if o, over, _ := p.feed.state(e.part); over {
			h.Result, _ = json.Marshal(o)
		}
		heard = append(heard, h)
	}
	return text, heard
}

// Envelope is envelope.
func Envelope(b []byte) (json.RawMessage, string) { return envelope(b) }

// Changed is changed.
func Changed(before, after string) (int, int) { return changed(before, after) }

// SameCall reports whether two calls are equal.
func SameCall(name string, a, b []byte) bool {
	return (&call{Name: name, Input: a}).key() == (&call{Name: name, Input: b}).key()
}
