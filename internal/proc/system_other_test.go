//go:build !linux

package proc_test

func systemHelper(string) int { return 64 }
