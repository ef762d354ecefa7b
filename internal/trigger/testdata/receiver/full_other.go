//go:build !linux && !darwin

package main

// limitFiles does nothing where there is no such limit.
func limitFiles() error { return nil }
