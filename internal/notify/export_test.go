package notify

import (
	"net/http"
	"time"
)

// Through sends what is for an endpoint over t, and not over the network.
func (n *Notifier) Through(t func(*Endpoint) http.RoundTripper) { n.client = t }

// Backoff is the wait after so many attempts in vain.
func Backoff(attempts int, random float64) time.Duration { return backoff(attempts, random) }

// MaxAttempts is how often an event is sent.
const MaxAttempts = maxAttempts

// MaxPending is how many events may wait.
const MaxPending = maxPending
