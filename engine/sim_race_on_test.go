//go:build race

package engine_test

// raced says that the race detector watches, which makes everything ten times slower.
const raced = true
