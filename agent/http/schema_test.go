package http_test

import (
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestTranscriptFitsSchema holds both sides of the transcript to the one schema that there
// is for messages, whatever carries them.
func TestTranscriptFitsSchema(t *testing.T) {
	const file = "../../docs/exec-protocol.schema.json"
	c := jsonschema.NewCompiler()
	sides := map[string]*jsonschema.Schema{}
	for side, def := range map[string]string{"> ": "toAgent", "< ": "toStint"} {
		schema, err := c.Compile(file + "#/$defs/" + def)
		if err != nil {
			t.Fatal(err)
		}
		sides[side] = schema
	}
	text, err := os.ReadFile("testdata/loop.txt")
	if err != nil {
		t.Fatal(err)
	}
	id := "01jd0f3kx6ewx8ts2gt4hg1m5r"
	fixed := strings.NewReplacer(`"SESSION"`, `"`+id+`"`, `"TIME"`, `"2026-03-02T09:30:00Z"`).Replace(string(text))
	checked := 0
	for line := range strings.Lines(fixed) {
		if len(line) < 3 || line[2] != '{' {
			continue
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(line[2:]))
		if err != nil {
			t.Fatal(err)
		}
		if err := sides[line[:2]].Validate(value); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		checked++
	}
	if checked < 25 {
		t.Errorf("only %d messages are in the transcript", checked)
	}
}
