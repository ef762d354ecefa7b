package exec

import (
	"encoding/json"

	"github.com/stint-dev/stint"
)

// Dir is the agent's working directory.
func (a *Agent) Dir() string { return a.spec.Dir }

// Parse reads a line as an agent's.
func Parse(line []byte) error {
	_, err := parse(line)
	return err
}

// Memory is the state of a loop under change.
type Memory struct{ m *memory }

// NewMemory begins with a state.
func NewMemory(state json.RawMessage) *Memory { return &Memory{newMemory(state)} }

// Patch applies a merge patch of one writer.
func (m *Memory) Patch(patch []byte, by string) error { return m.m.patch(patch, by) }

// Replace sets the state.
func (m *Memory) Replace(value []byte, by string) error { return m.m.replace(value, by) }

// Value is the state now.
func (m *Memory) Value() string { return string(m.m.value) }

// Broken reports that the process kept for a session has said something between
// two loops.
func (a *Agent) Broken(session stint.ID) bool {
	a.mu.Lock()
	p := a.kept[session]
	a.mu.Unlock()
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}
