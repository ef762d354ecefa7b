package engine

import (
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
)

// pulse is the signs of life of a session: what it is doing, and when it did
// something last. Its methods may be called from any goroutine.
type pulse struct {
	mu      sync.Mutex
	line    string
	at      time.Time
	dirty   bool // line changed since the last beat
	touched time.Time
}

// set changes the line that says what the agent is doing.
func (p *pulse) set(line string) {
	p.mu.Lock()
	p.line, p.at, p.dirty, p.touched = clip(line, 120), faultpoint.Now(), true, time.Now()
	p.mu.Unlock()
}

// touch notes a sign of life.
func (p *pulse) touch() {
	p.mu.Lock()
	p.touched = time.Now()
	p.mu.Unlock()
}

// silent is how long there was no sign of life.
func (p *pulse) silent() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.touched)
}

// beat returns l with the line, and whether that changed since the beat before.
func (p *pulse) beat(l stint.Lease) (stint.Lease, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.Now, l.NowAt = p.line, p.at
	dirty := p.dirty
	p.dirty = false
	return l, dirty
}
