package bench_test

import (
	"path/filepath"
	"testing"

	"github.com/stint-dev/stint/internal/bench"
	"github.com/stint-dev/stint/store/sqlite"
)

// A branch of a long session stores its rows and its first entry; the state that branches of
// one loop share is there once, and many of them take as much as the first. How long one takes
// is for stint bench branch.
func TestBranchesAreSmall(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "stint.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	b, err := bench.MeasureBranches(t.Context(), store, 400, 200, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if b.StateBytes != 4096 || b.Bytes > 2500+float64(b.StateBytes)/100 || b.Later > 1.2*b.Bytes || b.RollBytes > 1500 {
		t.Errorf("%+v", b)
	}
}
