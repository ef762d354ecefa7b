package exec_test

import (
	"flag"
	"os"
	"testing"

	"github.com/stint-dev/stint/internal/proc"
)

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

// TestMain lets the test binary be the guard of the processes that it starts, and
// the programs that shell and Python are too slow for.
func TestMain(m *testing.M) {
	proc.MaybeGuard()
	if len(os.Args) > 2 && os.Args[1] == "program" {
		os.Exit(program(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}
