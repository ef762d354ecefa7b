package cases_test

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// TestClockOfSchedules runs the tests of schedules whose clock is moved, in a build in
// which it can be.
func TestClockOfSchedules(t *testing.T) {
	t.Parallel()
	lives := "30"
	if long() {
		lives = "1000"
	}
	for _, name := range []string{"TestMovedSchedules", "TestClockFarAhead", "TestMovedLives"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it builds
			cmd := exec.CommandContext(t.Context(), "go", "test", "-tags", "faultinject", "-count=1", "-v", "-run", "^"+name+"$", ".", "-rapid.checks", lives)
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
			out, err := cmd.CombinedOutput()
			if err != nil || !bytes.Contains(out, []byte("--- PASS: "+name+" ")) {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}
