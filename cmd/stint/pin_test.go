package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPin: a session is pinned to the files that its agent began with. When one of
// them changes, warn says so and goes on, strict refuses, copy runs the copy.
func TestPin(t *testing.T) {
	d := newDesk(t)
	agent := func(version string) string {
		return "read -r line\n" +
			`echo '{"type":"log","text":"` + version + `"}'` + "\n" +
			`echo '{"type":"end","outcome":"wait","wait":{"for":"message"}}'` + "\n"
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("agent.sh", agent("first version"))
	put("stint.yaml", `agents:
  warned: {kind: exec, command: [sh, agent.sh]}
  refused: {kind: exec, command: [sh, agent.sh], pin: strict}
  copied: {kind: exec, command: [sh, agent.sh], pin: copy}
`)
	for _, name := range []string{"warned", "refused", "copied"} {
		d.fails(exitWaits, "", "run", "-q", name, "--name", name)
	}
	put("agent.sh", agent("second version"))
	if out := d.ok("agent", "diff", "warned"); !strings.Contains(out, "agent.sh") {
		t.Errorf("agent diff does not name the file: %s", out)
	}
	for _, c := range []struct {
		name string
		exit int
		has  string
		not  string
	}{
		{"warned", exitWaits, "changed since this session began: agent.sh", "refused"},
		{"refused", exitNotOK, "changed since this session began: agent.sh", "second version"},
		{"copied", exitWaits, "first version", "second version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.fails(c.exit, "", "send", c.name, "more", "--run")
			log := d.ok("logs", c.name)
			if !strings.Contains(log, c.has) || strings.Contains(log, c.not) {
				t.Errorf("the log:\n%s", log)
			}
		})
	}
}
