package protocol

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/jsonx"
)

// readSpawn reads the announcement of a child session, which is a step that stint does
// itself.
func readSpawn(f *fields) *Call {
	c := &Call{ID: f.id(), Answers: make(chan Answer, 1), Child: &stint.Child{}}
	agent, ok := f.text("agent")
	if !ok || agent == "" {
		f.faultf("agent", "must be the name of an agent")
	}
	c.Child.Agent = agent
	c.Child.Name, _ = f.text("name")
	c.Child.Detach = f.flag("detach")
	if input, ok := f.member("input"); ok {
		c.Child.Input = input
		var s string
		if input[0] == '"' && json.Unmarshal(input, &s) == nil {
			c.Child.Input = []byte(s)
		}
	}
	if labels, ok := f.member("labels"); ok && (labels[0] != '{' || json.Unmarshal(labels, &c.Child.Labels) != nil) {
		f.faultf("labels", "must be an object of strings")
	}
	c.Child.Limits = readLimits(f)
	// What the step is known by where an agent has to declare it again.
	c.Step = stint.Step{Name: "spawn " + agent, Effect: stint.Idempotent, Input: c.Child.Input}
	return c
}

// readLimits reads the limits of a child; nil: those of its agent.
func readLimits(f *fields) *stint.Limits {
	in, ok := f.object("limits")
	if !ok {
		return nil
	}
	l := &stint.Limits{}
	seconds, _ := in.whole("wall_s", 0, int64(365*24*time.Hour/time.Second))
	l.Wall = time.Duration(seconds) * time.Second
	l.Tokens, _ = in.whole("tokens", 0, maxID)
	for name, n := range map[string]*int{"loops": &l.Loops, "steps": &l.Steps, "tool_calls": &l.ToolCalls, "children": &l.Children} {
		v, _ := in.whole(name, 0, 1<<31-1)
		*n = int(v)
	}
	if cost, ok := in.text("cost"); ok {
		if err := l.Cost.UnmarshalText([]byte(cost)); err != nil || l.Cost < 0 {
			in.faultf("cost", `must be an amount of dollars in a string, like "0.21"`)
		}
	}
	if in.err != nil && f.err == nil {
		f.err = in.err
	}
	return l
}

// Spawn begins the child that c announces and returns what its result says.
func Spawn(ctx context.Context, l stint.Loop, c *Call) (json.RawMessage, error) {
	s, ok := l.(stint.Spawner)
	if !ok {
		return nil, stint.Definite(stint.Invalid.Errorf("", "this session cannot spawn others"))
	}
	id, err := s.Spawn(ctx, *c.Child)
	if err != nil {
		return nil, err
	}
	return stint.Marshal(struct {
		Session stint.ID `json:"session"`
	}{id})
}

// ended is what the inbox says of the child that a message is from; nil: it is no such
// message.
func ended(m *stint.Message) json.RawMessage {
	if m.Kind != stint.ChildEnd || jsonx.Check(m.Data, jsonx.Limits{}) != nil {
		return nil
	}
	return m.Data
}
