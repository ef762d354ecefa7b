package guard

import (
	"sync"
	"time"
)

// A source may fail ten times at once and ten times a minute.
const (
	failureEvery = 6 * time.Second
	failureBurst = 10 * failureEvery
	maxSources   = 4096 // those beyond are counted together
)

// failures counts refused credentials by their source. Its zero value is empty.
type failures struct {
	mu   sync.Mutex
	full map[string]time.Time // when all that a source did is forgotten
}

// note counts one failure. It returns how long the source has to wait, 0 while it is
// within its bounds. What comes while it has to wait is not counted.
func (f *failures) note(source string, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full == nil {
		f.full = map[string]time.Time{}
	}
	if _, known := f.full[source]; !known && len(f.full) >= maxSources {
		for s, t := range f.full {
			if !t.After(now) {
				delete(f.full, s)
			}
		}
		if len(f.full) >= maxSources {
			source = "others"
		}
	}
	at := f.full[source]
	if at.Before(now) {
		at = now
	}
	if at = at.Add(failureEvery); at.Sub(now) > failureBurst {
		return at.Sub(now) - failureBurst
	}
	f.full[source] = at
	return 0
}
