package bench

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/store/sqlite"
)

// Growth is what sessions of some length take on the disk.
type Growth struct {
	Loops           int     `json:"loops"`
	Grow            int     `json:"grow"` // bytes by which the state grows each loop
	Sessions        int     `json:"sessions"`
	BytesPerSession float64 `json:"bytes_per_session"` // by which the file grew, after a checkpoint
	BytesPerStep    float64 `json:"bytes_per_step"`
	Payload         float64 `json:"payload_per_session"` // bytes handed in: results, and what each loop adds to the state
	Ratio           float64 `json:"stored_per_payload"`
	Double          float64 `json:"bytes_at_double"` // a session, with twice the loops
	DoubleRatio     float64 `json:"double_ratio"`    // 2: it grows as the session does
}

// MeasureGrowth runs sessions of each of the lengths, total loops in all, and as
// many sessions of twice that length, on stores of their own in dir. No two bodies
// are equal.
func MeasureGrowth(ctx context.Context, dir string, lengths []int, total, grow int, say Say) ([]Growth, error) {
	var out []Growth
	for _, loops := range lengths {
		g := Growth{Loops: loops, Grow: grow, Sessions: max(1, total/loops)}
		w := Workload{Sessions: g.Sessions, Loops: loops, Effect: stint.Idempotent, Grow: grow, Unique: true}
		w.Concurrency = min(g.Sessions, 8)
		var err error
		for _, of := range []*float64{&g.BytesPerSession, &g.Double} {
			if say != nil {
				say("growth: %d sessions of %d loops", w.Sessions, w.Loops)
			}
			path := filepath.Join(dir, "growth-"+strconv.Itoa(len(out))+"-"+strconv.Itoa(w.Loops)+".db")
			if *of, err = stored(ctx, path, w); err != nil {
				return out, err
			}
			w.Loops *= 2
		}
		w.Loops = loops
		g.Payload = float64(newPlay(w).payload())
		g.BytesPerStep = g.BytesPerSession / float64(loops*StepsPerLoop)
		g.Ratio, g.DoubleRatio = g.BytesPerSession/g.Payload, g.Double/g.BytesPerSession
		out = append(out, g)
	}
	return out, nil
}

// stored is how many bytes a session of w takes in a new store.
func stored(ctx context.Context, path string, w Workload) (n float64, err error) {
	st, err := sqlite.Open(ctx, sqlite.Options{Path: path})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	row, err := Run(ctx, st, w)
	return row.BytesPerSession, err
}
