package past

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/stint-dev/stint"
)

// Spawned is the result of the step that begins a child.
type Spawned struct {
	Session stint.ID `json:"session"`
	Name    string   `json:"name"`
}

// SpawnStep is the step that begins a child; its intent has Child set. An input that is not
// UTF-8 is [stint.Invalid].
func SpawnStep(c *stint.Child) (stint.Step, error) {
	if !utf8.Valid(c.Input) {
		return stint.Step{}, stint.Invalid.Errorf("spawn", "the input of the child is not UTF-8")
	}
	input, err := stint.Marshal(struct {
		*stint.Child

		Input string `json:"input,omitempty"`
	}{c, string(c.Input)})
	return stint.Step{Name: "spawn " + c.Agent, Effect: stint.Idempotent, Input: input}, err
}

// ChildOf is the child that a result names.
func ChildOf(result json.RawMessage) (stint.ID, error) {
	var out Spawned
	if err := json.Unmarshal(result, &out); err != nil {
		return stint.ID{}, stint.Corrupt.Errorf("spawn", "the recorded result names no session: %v", err)
	}
	return out.Session, nil
}
