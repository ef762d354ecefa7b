package exec_test

import (
	"errors"
	"testing"

	"github.com/stint-dev/stint"
)

// TestWhatWasToldToProceedHasBegun: a program that was told to proceed and dies, breaks
// the protocol or takes too long may have done what it was told. Its error never says
// that nothing began, or the step would be done again without anybody's word.
func TestWhatWasToldToProceedHasBegun(t *testing.T) {
	t.Parallel() // it mostly waits
	const told = `echo '{"type":"step","id":1,"name":"charge"}'; read -r go; `
	for name, script := range map[string]string{
		"it exits":            `exit 4`,
		"it is killed":        `kill -KILL $$`,
		"it says what is not": `echo garbage; exec sleep 100`,
		"it goes silent":      `exec >&-; exec sleep 100`,
		"it takes too long":   `exec sleep 100`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var err error
			if name == "it takes too long" {
				_, _, err = overtime(t, told+begins+script, nil)
			} else {
				_, err = loop(t, sh(t, told+script, nil), newLoop(3))
			}
			if !errors.Is(err, stint.ErrParked) {
				t.Fatalf("the loop gave %v, and the step is in doubt", err)
			}
			var n interface{ NotBegun() bool }
			if errors.As(err, &n) && n.NotBegun() {
				t.Errorf("the error says that the step did not begin: %v", err)
			}
		})
	}
}
