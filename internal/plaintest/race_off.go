//go:build !race

package plaintest

// raced says that the race detector watches.
const raced = false
