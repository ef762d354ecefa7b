package bench_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stint-dev/stint/internal/bench"
)

// A flood is what it is said to be, and an answer that is not right is seen.
func TestFloodHook(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(seen bool, n int) int
		wrong  int
	}{
		"a server that takes all":   {func(bool, int) int { return http.StatusAccepted }, 100},
		"one that refuses all":      {func(bool, int) int { return http.StatusUnauthorized }, 900},
		"one that takes what comes": {func(seen bool, _ int) int { return map[bool]int{true: http.StatusOK, false: http.StatusAccepted}[seen] }, 100},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			ids := map[string]int{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				id := r.Header.Get("Webhook-Id")
				code := c.answer(ids[id] > 0, len(ids))
				ids[id]++
				w.WriteHeader(code)
			}))
			defer server.Close()
			f, err := bench.FloodHook(t.Context(), server.URL, 1000, 100, 8)
			if err != nil {
				t.Fatal(err)
			}
			if f.Good != 700 || f.Wrong != c.wrong || f.P99ms <= 0 || f.P99ms > f.MaxMS {
				t.Errorf("got %+v, want 700 good ones and %d wrong answers", f, c.wrong)
			}
			if len(ids) != 800 { // what is forged or stale has an id of its own
				t.Errorf("%d ids", len(ids))
			}
		})
	}
	if _, err := bench.FloodHook(t.Context(), "http://127.0.0.1:1/", 10, 5, 1); err == nil {
		t.Error("a body of 5 bytes is taken")
	}
}
