package main

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
)

// TestCounter stops the program in the middle, runs it again, and again once all
// is done.
func TestCounter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counter.db")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s, err := run(ctx, path)
		if err != nil || s.Status != stint.Pending || s.Totals.Loops != 3 && s.Totals.Loops != 4 {
			t.Fatalf("stopped after a second it gave %s after %d loops, %v", s.Status, s.Totals.Loops, err)
		}
		for range 2 {
			s, err = run(t.Context(), path)
			if err != nil || s.Status != stint.Completed || s.Totals.Loops != 10 || s.Totals.Steps != 10 || s.Totals.Errors != 0 {
				t.Fatalf("run again it gave %s, %+v, %v", s.Status, s.Totals, err)
			}
		}
	})
}
