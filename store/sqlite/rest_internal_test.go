package sqlite

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
)

// TestRest: once nothing was written for a while, nothing is kept that only speed
// needs, and the store works on as before.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "stint.db")})
		if err != nil {
			t.Fatal(err)
		}
		kept := func() (n int) {
			for range readers {
				c := <-s.pool
				if c != nil {
					n++
				}
				s.pool <- c
			}
			return n
		}
		for round := range 2 {
			if _, err := s.Claim(t.Context(), stint.Claim{Holder: "r1", Max: 1, TTL: time.Minute}); err != nil {
				t.Fatal(err)
			}
			s.wal.dirty.Store(true)
			s.wal.kick <- struct{}{}
			if _, err := s.Unread(t.Context(), "r1"); err != nil {
				t.Fatal(err)
			}
			if kept() != 1 {
				t.Fatalf("round %d: %d connections, want one that reads", round, kept())
			}
			<-time.After(2*walIdle + time.Second)
			synctest.Wait()
			if n := kept(); n != 0 {
				t.Errorf("round %d: %d connections are kept", round, n)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
