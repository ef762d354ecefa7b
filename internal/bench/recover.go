package bench

import (
	"context"

	"github.com/stint-dev/stint"
)

// Recovery is how long sessions are down when their runner is killed.
type Recovery struct {
	Sessions   int     `json:"sessions"`
	Loops      int     `json:"loops"`          // each session had completed
	FillS      float64 `json:"fill_s"`         // until all were inside a step for the first time
	ReadyMS    float64 `json:"ready_ms"`       // from the exec of the second process until it serves
	AllMS      float64 `json:"all_running_ms"` // from its exec until all sessions are inside the step again
	CPUMS      float64 `json:"cpu_ms"`         // processor time that it took for that; 0: the system cannot tell
	StepsAgain int64   `json:"steps_again"`    // steps with a durable result that ran again all the same
	RSSMB      float64 `json:"rss_mb"`         // of the second process, all sessions running
}

// MeasureRecovery lets a child drive n sessions at path until all are inside a
// step, kills it, and starts a second one. In the end all sessions complete.
func MeasureRecovery(ctx context.Context, self Self, path string, n, loops int, say Say) (Recovery, error) {
	at := site{Path: path, Concurrency: n, Loops: loops}
	out := Recovery{Sessions: n, Loops: loops}
	first, err := self.start(ctx, at, say)
	if err != nil {
		return out, err
	}
	defer first.kill()
	if _, _, err := first.answer("ready"); err != nil {
		return out, err
	}
	if err := first.ask(command{Do: doBlock, N: n}); err != nil {
		return out, err
	}
	_, full, err := first.answer(doBlock)
	if err != nil {
		return out, err
	}
	out.FillS = full.Seconds()
	first.kill()

	second, err := self.start(ctx, at, say)
	if err != nil {
		return out, err
	}
	defer second.kill()
	if err := second.ask(command{Do: doInside, N: n}); err != nil {
		return out, err
	}
	_, ready, err := second.answer("ready")
	if err != nil {
		return out, err
	}
	again, all, err := second.answer(doInside)
	if err != nil {
		return out, err
	}
	out.ReadyMS, out.AllMS, out.CPUMS = ms(ready), ms(all), again.CPUMS
	used, err := second.call(command{Do: doMeasure})
	if err != nil {
		return out, err
	}
	out.RSSMB = used.RSSMB
	done, err := second.call(command{Do: doFinish, N: n})
	if err != nil {
		return out, err
	}
	if out.StepsAgain = done.Again; done.N != n {
		return out, stint.Internal.Errorf("bench", "%d sessions completed, not %d", done.N, n)
	}
	return out, second.end()
}
