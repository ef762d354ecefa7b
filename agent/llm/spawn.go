package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/tool"
)

// spawn begins the child that the call asked for whose result is r, in a step of its own:
// those of an answer come behind its group, in the order of the calls.
func (p *pass) spawn(ctx context.Context, got *outcome, r *model.Result) error {
	s := got.spawn
	if got.spawn = nil; s == nil || r.Error {
		return nil
	}
	l, ok := p.l.(stint.Spawner)
	if !ok {
		r.Text, r.Error = errorText("this session cannot begin others"), true
		return nil
	}
	p.step++
	id, err := l.Spawn(ctx, stint.Child{Agent: s.Agent, Name: s.Name, Input: []byte(s.Input)})
	switch {
	case err != nil && definite(err):
		text, _ := tool.Clean([]byte(err.Error()))
		r.Text, r.Error = errorText(text), true
	case err != nil:
		return err
	default:
		r.Text += childText(id)
	}
	return nil
}

// ended is how the model is told of the end of a child; empty for other messages. What a
// child gives may be from anywhere.
func (p *pass) ended(m *stint.Message) string {
	text, name := p.endText(m)
	if text != "" {
		p.taint("the session " + name)
	}
	return text
}

// endText is that text, and what the child was called.
func (p *pass) endText(m *stint.Message) (text, name string) {
	var end struct {
		Session stint.ID     `json:"session"`
		Name    string       `json:"name"`
		Outcome stint.Status `json:"outcome"`
		Reason  string       `json:"reason"`
	}
	if m.Kind != stint.ChildEnd || json.Unmarshal(m.Data, &end) != nil {
		return "", ""
	}
	text = fmt.Sprintf("The session %s (%s) has ended: %s.", end.Name, end.Session, end.Outcome)
	if end.Reason != "" {
		text += " Why: " + end.Reason + "."
	}
	result, replaced := tool.Clean(m.Body)
	if strings.TrimSpace(result) == "" {
		return text + " It gave no result.", end.Name
	}
	return text + " Its result:\n" + tool.Excerpt(tool.Noted(result, replaced), p.a.spec.Context.Excerpt, ""), end.Name
}
