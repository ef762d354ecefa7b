package notify

import (
	"crypto/x509"
	"net"
	"net/http"
	"time"
)

// Through sends requests over t, and not over the network.
func (w *Webhook) Through(t http.RoundTripper) *Webhook {
	w.transport = t
	return w
}

// Backoff is the wait after so many attempts in vain.
func Backoff(attempts int, random float64) time.Duration { return backoff(attempts, random) }

// MaxAttempts is how often an event is sent.
const MaxAttempts = maxAttempts

// MaxPending is how many events may wait.
const MaxPending = maxPending

// NewNotification is a message as it is sent.
func NewNotification(id string, m Message) (*Notification, error) { return newNotification(id, m) }

// Trust has a channel take a certificate, and no other; nil: those of the system.
func (m *Mail) Trust(c *x509.Certificate) *Mail {
	m.roots = nil
	if c != nil {
		m.roots = x509.NewCertPool()
		m.roots.AddCert(c)
	}
	return m
}

// Letter is the mail that a notification is.
func (m *Mail) Letter(n *Notification) ([]byte, error) { return m.letter(n) }

// OfThisMachine reports whether what is sent to an address stays on this machine.
func OfThisMachine(a net.Addr) bool { return ofThisMachine(a) }
