package main

import (
	"os"
	"runtime/pprof"

	"github.com/stint-dev/stint"
)

// profile writes a CPU profile to path until the returned function is called; an
// empty path profiles nothing.
func profile(path string) (func(), error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, &stint.Error{Code: stint.Invalid, Op: "profile", Err: err}
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		_ = f.Close()
		return nil, &stint.Error{Code: stint.Internal, Op: "profile", Err: err}
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}
