package plaintest

import "testing"

// It runs in the one build or in the other, and never in none.
func TestInstead(t *testing.T) {
	if Instead(t) {
		if !raced {
			t.Error("another build was asked, and this one has no race detector")
		}
		return
	}
	if raced {
		t.Error("it runs under the race detector")
	}
}
