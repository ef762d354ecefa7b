package acp_test

import (
	"flag"
	"os"
	"testing"

	"github.com/stint-dev/stint/internal/proc"
)

var update = flag.Bool("update", false, "write the golden files in testdata anew")

// TestMain lets the test binary be the guard of the processes that it starts, an agent
// that plays a script, and a stint that can be killed.
func TestMain(m *testing.M) {
	proc.MaybeGuard()
	if dir := os.Getenv("FAKE_ACP"); dir != "" {
		os.Exit(fakeAgent(dir))
	}
	if file := os.Getenv("ACP_RUNNER"); file != "" {
		os.Exit(runner(file))
	}
	os.Exit(m.Run())
}
