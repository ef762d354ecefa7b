package exec

import (
	"encoding/json"

	"github.com/stint-dev/stint/internal/protocol"
)

// parse reads a line as an agent's.
func parse(line []byte) (*protocol.Message, error) { return protocol.Parse(line) }

// memory is the state of a loop under change.
type memory struct {
	shared *protocol.Memory
	value  json.RawMessage
}

func newMemory(state json.RawMessage) *memory {
	m := protocol.NewMemory(state)
	return &memory{m, m.Value()}
}

func (m *memory) patch(patch []byte, by string) error {
	err := m.shared.Patch(patch, by)
	m.value = m.shared.Value()
	return err
}

func (m *memory) replace(value []byte, by string) error {
	err := m.shared.Replace(value, by)
	m.value = m.shared.Value()
	return err
}
