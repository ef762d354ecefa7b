package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/health"
	"github.com/stint-dev/stint/model"
)

// version of the state's form.
const version = 1

// memory is the small members of a state.
type memory struct {
	V          int          `json:"v"`
	Task       string       `json:"task,omitempty"`       // what the session was told first, maybe cut
	Said       string       `json:"said,omitempty"`       // the newest message after it, for the judge
	Taint      string       `json:"taint,omitempty"`      // what brought content from outside into the transcript
	Idle       bool         `json:"idle,omitempty"`       // there is nothing to do until somebody says something
	Paused     bool         `json:"paused,omitempty"`     // the last loop ended with a pause of the health rules
	Cuts       int          `json:"cuts,omitempty"`       // answers in a row that the output limit cut
	Unfinished int          `json:"unfinished,omitempty"` // ends of turn in a row without finish
	Rounds     int          `json:"rounds,omitempty"`     // answers that the judge did not pass
	Used       int64        `json:"used,omitempty"`       // tokens of the transcript as the model reported them; 0: not known
	UsedAt     int          `json:"used_at,omitempty"`    // bytes of the transcript that those are
	Long       []long       `json:"long,omitempty"`       // where excerpted results lie, the newest last
	Watch      health.Watch `json:"watch,omitzero"`

	Recalled map[string]int `json:"recalled,omitempty"` // calls that the record answered, by their key
}

// long is where the whole of an excerpted result lies.
type long struct {
	Call string `json:"call"`
	Line int    `json:"line"`
	Loop int    `json:"loop"`
	Step int    `json:"step"`
	Sub  int    `json:"sub"`
}

// maxLong is how many of them are remembered.
const maxLong = 128

func (l long) position() stint.Position {
	return stint.Position{Line: l.Line, Loop: l.Loop, Step: l.Step, Sub: l.Sub}
}

// transcript is messages with their encoded form, kept side by side so that neither is
// made again of the other.
type transcript struct {
	msgs []model.Message
	raw  []byte // the messages' JSON with commas between
	at   []int  // where each begins in raw
}

// last is the newest message's role; empty without one.
func (t *transcript) last() model.Role {
	if len(t.msgs) == 0 {
		return ""
	}
	return t.msgs[len(t.msgs)-1].Role
}

// put adds a message whose JSON is enc.
func (t *transcript) put(m model.Message, enc []byte) {
	if len(t.raw) > 0 {
		t.raw = append(t.raw, ',')
	}
	t.at = append(t.at, len(t.raw))
	t.raw = append(t.raw, enc...)
	t.msgs = append(t.msgs, m)
}

// add appends parts to the newest message, or a new message where that is another's.
func (t *transcript) add(r model.Role, parts ...model.Part) error {
	if len(parts) == 0 {
		return nil
	}
	m := model.Message{Role: r, Parts: parts}
	if t.last() == r {
		n := len(t.msgs) - 1
		m.Parts = append(slices.Clip(t.msgs[n].Parts), parts...)
		t.msgs, t.raw, t.at = t.msgs[:n], t.raw[:max(0, t.at[n]-1)], t.at[:n]
	}
	enc, err := stint.Marshal(m)
	if err != nil {
		return err
	}
	t.put(m, enc)
	return nil
}

// say adds texts of the user's side.
func (t *transcript) say(texts ...string) error {
	parts := make([]model.Part, len(texts))
	for i, s := range texts {
		parts[i].Text = s
	}
	return t.add(model.User, parts...)
}

// from is the bytes of the messages from the i-th on.
func (t *transcript) from(i int) int {
	if i >= len(t.at) {
		return 0
	}
	return len(t.raw) - t.at[i]
}

// readState takes a state apart.
func readState(state json.RawMessage) (memory, *transcript, error) {
	var s struct {
		memory

		Messages json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(state, &s); err != nil {
		return memory{}, nil, err
	}
	if s.V != version {
		return memory{}, nil, fmt.Errorf("it has version %d", s.V)
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(s.Messages, &raws); err != nil {
		return memory{}, nil, err
	}
	t := &transcript{raw: make([]byte, 0, len(s.Messages)), msgs: make([]model.Message, 0, len(raws)), at: make([]int, 0, len(raws))}
	for i, raw := range raws {
		var m model.Message
		if err := json.Unmarshal(raw, &m); err != nil {
			return memory{}, nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
		t.put(m, raw)
	}
	return s.memory, t, nil
}

// writeState puts a state together.
func writeState(m *memory, t *transcript) (json.RawMessage, error) {
	head, err := stint.Marshal(m)
	if err != nil {
		return nil, err
	}
	const mid, end = `,"messages":[`, "]}"
	out := make([]byte, 0, len(head)+len(mid)+len(t.raw)+len(end))
	out = append(append(out, head[:len(head)-1]...), mid...)
	return append(append(out, t.raw...), end...), nil
}

// cache holds what states were taken apart to, by session. What it gives it no longer
// has, so a transcript has one owner.
type cache struct {
	mu    sync.Mutex
	held  map[stint.ID]cached
	bytes int
}

type cached struct {
	state json.RawMessage
	mem   memory
	t     *transcript
}

// Bounds of the cache: sessions, and bytes of their states.
const (
	maxCached      = 1024
	maxCachedBytes = 64 << 20
)

// take returns what the state was taken apart to, if it is exactly the one that is held.
func (c *cache) take(id stint.ID, state json.RawMessage) (memory, *transcript, bool) {
	c.mu.Lock()
	got, ok := c.held[id]
	c.drop(id)
	c.mu.Unlock()
	if !ok || !bytes.Equal(got.state, state) {
		return memory{}, nil, false
	}
	return got.mem, got.t, true
}

func (c *cache) put(id stint.ID, state json.RawMessage, m memory, t *transcript) {
	if len(state) > maxCachedBytes/16 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(id)
	for other := range c.held {
		if len(c.held) < maxCached && c.bytes+len(state) <= maxCachedBytes {
			break
		}
		c.drop(other)
	}
	if c.held == nil {
		c.held = map[stint.ID]cached{}
	}
	c.held[id] = cached{state, m, t}
	c.bytes += len(state)
}

func (c *cache) drop(id stint.ID) {
	c.bytes -= len(c.held[id].state)
	delete(c.held, id)
}
