package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A hook that is wrong is told at its character, and one that is sound is counted.
func TestValidateHooks(t *testing.T) {
	t.Parallel()
	d := promptDesk(t)
	path := filepath.Join(d.dir, "hooks.yaml")
	write := func(when string) {
		t.Helper()
		text := "agents: {a: {kind: exec, command: [a]}}\nhooks:\n  deploys: {agent: a, scheme: none, when: '" + when + "'}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`event == "deploy"`)
	if got := d.ok("agent", "validate", path); !strings.Contains(got, "sound: 1 agent, 1 hook\n") {
		t.Error(got)
	}
	var out struct {
		Schema        string
		Agents, Hooks int
	}
	if err := json.Unmarshal([]byte(d.ok("agent", "validate", "--json", path)), &out); err != nil {
		t.Fatal(err)
	}
	if out.Schema != "stint.validate/1" || out.Agents != 1 || out.Hooks != 1 {
		t.Errorf("got %+v", out)
	}
	write(`evnt == "deploy"`)
	d.fails(exitInvalid, "hooks.yaml:3:43: hooks.deploys.when: unknown name evnt", "agent", "validate", path)
}
