package bench

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/stint-dev/stint"
)

// Cold is how long a process takes from its exec until it is of use.
type Cold struct {
	Runs       int     `json:"runs"`
	ReadyP50ms float64 `json:"ready_p50_ms"` // until it serves the store
	ReadyMaxMS float64 `json:"ready_max_ms"`
	FirstP50ms float64 `json:"first_session_p50_ms"` // until a session of one loop has ended
	FirstMaxMS float64 `json:"first_session_max_ms"`
	RSSMB      float64 `json:"rss_mb"`      // then, in the last run
	StoreBytes int64   `json:"store_bytes"` // before the last run
}

// MeasureCold starts a child runs times, each on a new store in dir, or on the one
// at path if that is set.
func MeasureCold(ctx context.Context, self Self, dir, path string, runs int) (Cold, error) {
	out := Cold{Runs: runs}
	var ready, first []float64
	for range runs {
		at := path
		if at == "" {
			d, err := os.MkdirTemp(dir, "cold-")
			if err != nil {
				return out, &stint.Error{Code: stint.Unavailable, Op: "bench", Err: err}
			}
			at = filepath.Join(d, "stint.db")
		}
		if info, err := os.Stat(at); err == nil {
			out.StoreBytes = info.Size()
		}
		r, f, err := out.run(ctx, self, at)
		if err != nil {
			return out, err
		}
		ready, first = append(ready, ms(r)), append(first, ms(f))
	}
	out.ReadyP50ms, out.ReadyMaxMS = spread(ready)
	out.FirstP50ms, out.FirstMaxMS = spread(first)
	return out, nil
}

func (c *Cold) run(ctx context.Context, self Self, path string) (ready, first time.Duration, err error) {
	p, err := self.start(ctx, site{Path: path, Concurrency: 16}, nil)
	if err != nil {
		return 0, 0, err
	}
	defer p.kill()
	if err := p.ask(command{Do: doFirst}); err != nil {
		return 0, 0, err
	}
	if _, ready, err = p.answer("ready"); err != nil {
		return 0, 0, err
	}
	if _, first, err = p.answer(doFirst); err != nil {
		return 0, 0, err
	}
	r, err := p.call(command{Do: doMeasure})
	if err != nil {
		return 0, 0, err
	}
	c.RSSMB = r.RSSMB
	return ready, first, p.end()
}
