package journal

import (
	"fmt"
	"time"

	"github.com/stint-dev/stint"
)

// The brake: a loop that fails, or kills its runner, over and over is not begun
// again. The figures are systemd's default start limit, stretched to ten minutes.
const (
	maxFailures   = 5
	failureWindow = 10 * time.Minute
	maxDeaths     = 3
)

// Brake reports whether s must not be begun again by itself, and why: five failed
// attempts of one loop within ten minutes, or three runners that died on one
// checkpoint without a finished loop. Drains and fences do not count.
func Brake(s *stint.Session, now time.Time) (why string, on bool) {
	if s.At.Deaths >= maxDeaths {
		return fmt.Sprintf("recovery: %d runners died in loop %d without finishing it", s.At.Deaths, s.Checkpoint.Loop+1), true
	}
	if fs := s.At.Failures; len(fs) >= maxFailures && now.Sub(fs[len(fs)-maxFailures]) <= failureWindow {
		return fmt.Sprintf("recovery: %d failed attempts of loop %d within %v, the last: %s", maxFailures, s.At.Loop, failureWindow, s.At.Error), true
	}
	return "", false
}
