package bench

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/stint-dev/stint/store/sqlite"
)

// Waiters is what sessions cost that wait for a message, while an engine serves
// their store. Sizes of memory are proportional resident ones, 0 where the system
// cannot tell.
type Waiters struct {
	Sessions        int     `json:"sessions"`
	FillS           float64 `json:"fill_s"`        // until all waited
	EmptyMB         float64 `json:"empty_mb"`      // with an empty store
	RSSMB           float64 `json:"rss_mb"`        // of the process that ran them until they waited
	OverMB          float64 `json:"over_mb"`       // by which that is more than with an empty store
	IdleCPUPct      float64 `json:"idle_cpu_pct"`  // of one processor, in that process
	EmptyCPUPct     float64 `json:"empty_cpu_pct"` // the same with an empty store
	AfterMB         float64 `json:"restarted_mb"`  // of a process that found them waiting
	AfterOverMB     float64 `json:"restarted_over_mb"`
	AfterCPUPct     float64 `json:"restarted_cpu_pct"`
	BytesPerSession float64 `json:"bytes_per_session"`
}

// WaitersOptions say what [MeasureWaiters] does. All but Say are required.
type WaitersOptions struct {
	Dir      string // for an empty store to compare with
	Path     string // of the store in which sessions wait
	Sessions int
	Settle   time.Duration // that the process which ran them may tidy up before it counts as idle
	For      time.Duration // that each process is looked at
	Say      Say
}

// MeasureWaiters lets a child start sessions that come to wait for a message, and
// looks at it once it has nothing to do; then at one that was started after that.
func MeasureWaiters(ctx context.Context, self Self, o WaitersOptions) (Waiters, error) {
	out := Waiters{Sessions: o.Sessions}
	empty, err := whileIdle(ctx, self, filepath.Join(o.Dir, "empty.db"), o.For, nil)
	if err != nil {
		return out, err
	}
	before, err := fileSize(ctx, o.Path)
	if err != nil {
		return out, err
	}
	ran, err := whileIdle(ctx, self, o.Path, o.For, func(p *process) error {
		p.say = o.Say
		begun := time.Now()
		_, err := p.call(command{Do: doWait, N: o.Sessions})
		out.FillS = time.Since(begun).Seconds()
		if err == nil {
			_, err = p.call(command{Do: doMeasure, D: o.Settle})
		}
		return err
	})
	if err != nil {
		return out, err
	}
	after, err := fileSize(ctx, o.Path)
	if err != nil {
		return out, err
	}
	later, err := whileIdle(ctx, self, o.Path, o.For, nil)
	if err != nil {
		return out, err
	}
	out.BytesPerSession = float64(after-before) / float64(o.Sessions)
	out.EmptyMB, out.RSSMB, out.AfterMB = empty.RSSMB, ran.RSSMB, later.RSSMB
	out.OverMB, out.AfterOverMB = ran.RSSMB-empty.RSSMB, later.RSSMB-empty.RSSMB
	out.EmptyCPUPct, out.IdleCPUPct, out.AfterCPUPct = empty.CPUPct, ran.CPUPct, later.CPUPct
	return out, nil
}

// whileIdle starts a child, lets it do something, and looks at it for d.
func whileIdle(ctx context.Context, self Self, path string, d time.Duration, first func(*process) error) (reply, error) {
	p, err := self.start(ctx, site{Path: path, Concurrency: 64}, nil)
	if err != nil {
		return reply{}, err
	}
	defer p.kill()
	if _, _, err := p.answer("ready"); err != nil {
		return reply{}, err
	}
	if first == nil {
		first = func(p *process) error { // what it did to start is not part of it
			_, err := p.call(command{Do: doMeasure, D: d / 5})
			return err
		}
	}
	if err := first(p); err != nil {
		return reply{}, err
	}
	r, err := p.call(command{Do: doMeasure, D: d})
	if err != nil {
		return reply{}, err
	}
	return r, p.end()
}

// fileSize is what the store at path takes; one that is not there is made.
func fileSize(ctx context.Context, path string) (n int64, err error) {
	st, err := sqlite.Open(ctx, sqlite.Options{Path: path})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	return size(ctx, st)
}
