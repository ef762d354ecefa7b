//go:build unix

package config_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stint-dev/stint/internal/config"
)

// A text is not read from a pipe, which nobody may ever write to.
func TestNoPipes(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "stint.yaml")
	write(t, path, "agents: {a: {kind: llm, model: openai/x, instructions: {file: pipe}}}")
	if _, err := config.Load(path); err == nil || !strings.Contains(err.Error(), "it is no plain file") {
		t.Errorf("got %v", err)
	}
}

// The example's program runs with an empty environment, as stint runs it.
func TestExampleRuns(t *testing.T) {
	f, err := config.Parse("stint.yaml", []byte(config.Example()))
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range f.Agents {
		cmd := exec.Command(a.Command[0], a.Command[1:]...)
		cmd.Env = []string{}
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Count(string(out), "\n") != 2 {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
