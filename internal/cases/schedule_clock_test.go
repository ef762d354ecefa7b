package cases_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// clocked is the tests of this package in a build whose clock can be moved, made when
// the first of them is run.
var clocked struct {
	once sync.Once
	dir  string
	err  error
}

// inClocked runs a test in that build.
func inClocked(t *testing.T, name string, args ...string) {
	t.Helper()
	clocked.once.Do(func() {
		if clocked.dir, clocked.err = os.MkdirTemp("", "stint-cases-clock-"); clocked.err != nil {
			return
		}
		cmd := exec.Command("go", "test", "-c", "-tags", "faultinject", "-vet=off", "-ldflags=-s -w", "-o", filepath.Join(clocked.dir, "cases.test"), ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if b, err := cmd.CombinedOutput(); err != nil {
			clocked.err = fmt.Errorf("go test -c: %w\n%s", err, b)
		}
	})
	if clocked.err != nil {
		t.Fatal(clocked.err)
	}
	args = append([]string{"-test.v", "-test.timeout=10m", "-test.run=^" + name + "$"}, args...)
	out, err := exec.CommandContext(t.Context(), filepath.Join(clocked.dir, "cases.test"), args...).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+name+" ")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

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
			t.Parallel()
			inClocked(t, name, "-rapid.checks="+lives)
		})
	}
}
