package bench_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/bench"
	"github.com/stint-dev/stint/store/sqlite"
)

// A page of 50 sessions is less than 100 KB however many there are, and each kind of
// list finds what it should. How long it takes is for stint bench list.
func TestListsOfManySessions(t *testing.T) {
	t.Parallel()
	n := 10_000
	if os.Getenv("STINT_LONG") == "1" {
		n = 100_000
	}
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "stint.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := bench.FillLists(t.Context(), store, n); err != nil {
		t.Fatal(err)
	}
	lists, err := bench.MeasureLists(t.Context(), store, 20, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	items := map[string]int{"filter by a rare label": min(50, n/2_000), "search, few have it": n / 5_000, "search, none has it": 0, "filter by trigger": min(50, n/500),
		"search, in a label": n / 5_000, "filter by agent, status": 0, "filter by labels, none has both": 0}
	for _, q := range lists.Queries {
		want, known := items[q.Name]
		if !known {
			want = 50
		}
		if q.MaxBytes >= 100_000 || q.Items != want {
			t.Errorf("%s: %d items of %d, in up to %d bytes", q.Name, q.Items, want, q.MaxBytes)
		}
	}
	if got := count(t.Context(), t, store, stint.Filter{Text: "NEEDLE-agent"}); got != n/5_000 {
		t.Errorf("%d sessions have the word", got)
	}
}

func count(ctx context.Context, t *testing.T, store stint.Store, f stint.Filter) int {
	t.Helper()
	rows, err := store.Sessions(ctx, f)
	if err != nil {
		t.Fatal(err)
	}
	return len(rows)
}
