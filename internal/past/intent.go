package past

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/journal"
)

// Check fills in what a step does not say, and says what is wrong with it: [stint.Invalid],
// or [stint.Limit] for an input that is too long.
func Check(s *stint.Step) error {
	if n := utf8.RuneCountInString(s.Name); n < 1 || n > 200 {
		return stint.Invalid.Errorf("step", "a step's name has 1 to 200 characters, not %d", n)
	}
	if !utf8.ValidString(s.Name) || !utf8.ValidString(string(s.Kind)) {
		return stint.Invalid.Errorf("step", "the name and the kind of a step are UTF-8, which %q (%q) is not", s.Name, s.Kind)
	}
	if s.Kind == "" {
		s.Kind = stint.Custom
	}
	switch s.Effect {
	case "":
		s.Effect = stint.Once
	case stint.Read, stint.Idempotent, stint.Once:
	default:
		return stint.Invalid.Errorf("step "+s.Name, "effect %q is none of read, idempotent, once", s.Effect)
	}
	if len(s.Input) > journal.MaxBody {
		err := stint.Limit.Errorf("step "+s.Name, "the input would be %d bytes; at most %d fit", len(s.Input), journal.MaxBody)
		err.Hint = "keep large content in a file or a database and give the step where it lies"
		return err
	}
	if s.Input != nil {
		if err := jsonx.Check(s.Input, jsonx.Limits{}); err != nil {
			return stint.Invalid.Errorf("step "+s.Name, "the input is not JSON: %v", err)
		}
	}
	if s.Timeout <= 0 {
		s.Timeout = 10 * time.Minute
	}
	return nil
}

// Intent is what is recorded of a checked step before it begins, and what it is told from
// others by.
func Intent(s *stint.Step) journal.StepRequested {
	return journal.StepRequested{Name: s.Name, Kind: s.Kind, Effect: s.Effect, Input: InputSum(s.Input)}
}

// InputSum is the short hash that tells whether two steps have the same input.
func InputSum(in json.RawMessage) string {
	if len(in) == 0 {
		return ""
	}
	sum := sha256.Sum256(in)
	return hex.EncodeToString(sum[:12])
}

// Overlapping is the error of a step that is asked for while another is under way.
func Overlapping(name string) error {
	err := stint.Invalid.Errorf("step "+name, "another step is under way")
	err.Hint = "steps follow each other; give the ones that may overlap to DoAll as a group"
	return err
}

// Describe is an intent for people.
func Describe(r journal.StepRequested) string {
	s := fmt.Sprintf("%s %q (%s)", r.Kind, r.Name, r.Effect)
	if r.Input != "" {
		s += " with input " + r.Input
	}
	return s
}
