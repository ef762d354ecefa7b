package exec_test

import "testing"

func fifo(t *testing.T, _ string) {
	t.Helper()
	t.Fatal("the agents of these tests are shell scripts")
}
