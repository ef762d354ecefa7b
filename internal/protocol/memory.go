package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/jsonx"
)

// Memory is the state as the loop changes it, and who changed what. One goroutine at a
// time uses it.
type Memory struct {
	value   json.RawMessage
	changed bool
	wrote   map[string]string  // by path (RFC 6901): who wrote the value there as a whole
	inside  map[string][]owner // by path: the first two who wrote something inside the value there
}

// owner is a writer and a path that it wrote.
type owner struct{ by, path string }

// NewMemory begins with the state of the loop's checkpoint; nil: none yet.
func NewMemory(state json.RawMessage) *Memory {
	return &Memory{value: bytes.Clone(state), wrote: map[string]string{}, inside: map[string][]owner{}}
}

// Patch applies an RFC 7396 merge patch of one writer. Two writers of one value are a
// [stint.Conflict] that names it; a state beyond 32 MiB is [stint.Limit].
func (m *Memory) Patch(patch []byte, by string) error {
	keys, err := jsonx.Keys(patch)
	if err != nil {
		return err
	}
	for _, path := range keys {
		if err := m.claim(path, by); err != nil {
			return err
		}
	}
	value, err := jsonx.Merge(m.value, patch)
	if err != nil {
		return err
	}
	return m.set(value)
}

// Replace sets the whole state, by the same rules.
func (m *Memory) Replace(value []byte, by string) error {
	if err := m.claim("", by); err != nil {
		return err
	}
	return m.set(value)
}

// Value is the state now; nil: there is none yet.
func (m *Memory) Value() json.RawMessage { return m.value }

// Changed is the state now, or nil if it is as the loop began.
func (m *Memory) Changed() json.RawMessage {
	if !m.changed {
		return nil
	}
	return m.value
}

func (m *Memory) set(value []byte) error {
	if len(value) > MaxValue {
		return stint.Limit.Errorf("", "the state has %d bytes; it has at most 32 MiB", len(value))
	}
	m.value, m.changed = value, true
	return nil
}

// claim notes that by writes the value at path as a whole. It is a conflict where
// somebody else wrote there, something inside it, or something that it lies in.
func (m *Memory) claim(path, by string) error {
	if other, ok := m.wrote[path]; ok && other != by {
		return conflict(path, other, by)
	}
	for _, in := range m.inside[path] {
		if in.by != by {
			return conflict(in.path, in.by, by)
		}
	}
	for above := range parents(path) {
		if other, ok := m.wrote[above]; ok && other != by {
			return conflict(path, other, by)
		}
	}
	m.wrote[path] = by
	for above := range parents(path) {
		known := func(o owner) bool { return o.by == by }
		if in := m.inside[above]; len(in) < 2 && !slices.ContainsFunc(in, known) {
			m.inside[above] = append(in, owner{by, path})
		}
	}
	return nil
}

// parents yields the paths above a JSON Pointer, the nearest first and "" last.
func parents(path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for path != "" {
			path = path[:strings.LastIndexByte(path, '/')]
			if !yield(path) {
				return
			}
		}
	}
}

func conflict(path, first, second string) error {
	if path == "" {
		path = "the whole state"
	}
	return &stint.Error{Code: stint.Conflict,
		Err:  fmt.Errorf("%s and %s both write %s in one loop", writer(first), writer(second), path),
		Hint: "let one of them write it, give each a key of its own, or put them into two loops; " + specHint}
}

func writer(by string) string {
	if by == "" {
		return "the agent itself"
	}
	return "writer " + strconv.Quote(Clip(by, 60))
}
