package trigger_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/store/sqlite"
)

// BenchmarkDeliveries is how fast 128 clients with connections that are kept are told 202,
// clients and server in one process.
func BenchmarkDeliveries(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
		def  hook.Definition
	}{
		{"1KiB", 1 << 10, hook.Definition{Scheme: hook.GitHub}},
		{"20KB", 20_000, hook.Definition{Scheme: hook.GitHub}},
		{"1KiB-signed-id", 1 << 10, hook.Definition{Scheme: hook.Standard}},
		{"1KiB-keyed", 1 << 10, hook.Definition{Scheme: hook.GitHub, Key: "body.key"}},
		{"1KiB-concurrency", 1 << 10, hook.Definition{Scheme: hook.GitHub, Limits: hook.Limits{Concurrency: 1 << 30}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, err := sqlite.Open(b.Context(), sqlite.Options{Path: filepath.Join(b.TempDir(), "stint.db")})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			d := &desk{TB: b, store: s}
			d.open()
			defer d.close()
			t := d.target(c.def)
			agent := listener()
			t.Request = func() (engine.Request, error) { return engine.Request{Agent: agent}, nil }
			d.recv.Set([]trigger.Target{t})
			server := httptest.NewServer(d.mux)
			defer server.Close()
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
			defer client.CloseIdleConnections()
			var n atomic.Int64
			b.SetParallelism(128 / runtime.GOMAXPROCS(0))
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := n.Add(1)
					body := fmt.Sprintf(`{"key":"k%d","n":%d,"x":%q}`, i%100, i, strings.Repeat("a", c.size-40))
					headers := gitHub(fmt.Sprint(i), body)
					if c.def.Scheme == hook.Standard {
						headers = standard(b, fmt.Sprint(i), body, time.Now())
					}
					req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, server.URL+"/hooks/h", strings.NewReader(body))
					if err != nil {
						b.Error(err)
						return
					}
					for k, v := range headers {
						req.Header.Set(k, v)
					}
					resp, err := client.Do(req)
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					if resp.StatusCode != 202 {
						b.Errorf("got %d", resp.StatusCode)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
		})
	}
}
