//go:build unix

package config_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/config"
)

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
