//go:build !faultinject

package engine_test

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// TestClock runs TestAClockThatIsSet in a build whose clock can be moved.
func TestClock(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "test", "-tags", "faultinject", "-count=1", "-v", "-run", "^TestAClockThat", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestAClockThatIsSet ")) || !bytes.Contains(out, []byte("--- PASS: TestAClockThatIsSetWhileNobodyRuns ")) {
		t.Fatalf("%v\n%s", err, out)
	}
}
