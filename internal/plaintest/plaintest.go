// Package plaintest runs tests without the race detector, which makes them ten times
// slower: those of one goroutine and very many steps, in which it can find nothing, and
// those that show that a check rejects what is broken, where the check runs under the
// detector in another test.
package plaintest

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// Instead runs the test that calls it in a build of its package without the race
// detector, all of its subtests and in the same environment, and reports whether it did:
// then the test has nothing left to do, and has failed if that one failed. In such a
// build it does nothing. Only a test function may call it, before anything else.
func Instead(t *testing.T) bool {
	t.Helper()
	if !raced {
		return false
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-race=false", "-vet=off", "-count=1", "-v", "-timeout=1h", "-run", "^"+t.Name()+"$", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name()+" ")) {
		t.Errorf("%v: %v\n%s", cmd.Args, err, out)
	}
	return true
}
