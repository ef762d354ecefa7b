package cases_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/bench"
)

// peak is the most memory that the server had up to now, in bytes.
func (v *server) peak() (n int) {
	v.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.run.cmd.Process.Pid))
	if err != nil {
		v.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	if _, err := fmt.Sscanf(rest, "%d kB", &n); err != nil {
		v.t.Fatalf("%v in %s", err, b)
	}
	return n << 10
}

// TestB05MemoryIsFlat: who sends without an end, in chunks and several at once, costs the
// server its limit and not what he sends (NousResearch/hermes-agent#58536).
func TestB05MemoryIsFlat(t *testing.T) {
	t.Parallel()
	v := hooked(t, "", "open: {agent: keep, scheme: none}").serves()
	v.takes(202, "open", sized(1<<20), nil)
	before := v.peak()
	const senders, size = 4, 128 << 20
	parts := append([]string{post("open", headers{"Transfer-Encoding": "chunked"})}, chunked(strings.Repeat("x", size))...)
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			if got := v.piped(parts...); len(got) != 1 || got[0] != 413 {
				t.Errorf("got %d", got)
			}
		})
	}
	wg.Wait()
	if more := v.peak() - before; more > 48<<20 {
		t.Errorf("%d senders of %d MiB cost %d MiB", senders, size>>20, more>>20)
	} else {
		t.Logf("%d senders of %d MiB cost %d MiB", senders, size>>20, more>>20)
	}
}

// TestH01MemoryIsFlat: lists of very many sessions cost the server no more the longer they
// are asked for (kirodotdev/KiroCrew#2552).
func TestH01MemoryIsFlat(t *testing.T) {
	t.Parallel()
	n, _ := many()
	v := filled(t, func(store stint.Store) error { return bench.FillLists(t.Context(), store, n) }).serves("--no-run")
	ask := func(times int) {
		t.Helper()
		for range times {
			for _, query := range []string{"limit=20", "limit=500", "limit=20&status=failed", "limit=20&text=needle", "limit=20&label=customer%3Dc-7"} {
				v.gets("/v1/sessions?" + query)
			}
		}
	}
	ask(10)
	before := v.peak()
	ask(50)
	if more := v.peak() - before; more > 32<<20 {
		t.Errorf("250 lists cost %d MiB more than the first 50", more>>20)
	}
}
