// Package ident makes session ids.
package ident

import (
	"time"

	"github.com/google/uuid"

	"github.com/stint-dev/stint"
)

// New returns a fresh UUIDv7. Ids made by one process rise even within a
// millisecond. It panics only if the system has no randomness to give.
func New() stint.ID { return stint.ID(uuid.Must(uuid.NewV7())) }

// At returns a fresh id as New would have made it at t, a time after 1970. Those of one
// millisecond are in no order.
func At(t time.Time) stint.ID {
	id := New()
	ms := t.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	return id
}
