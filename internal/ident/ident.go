// Package ident makes session ids.
package ident

import (
	"github.com/google/uuid"

	"github.com/stint-dev/stint"
)

// New returns a fresh UUIDv7. Ids made by one process rise even within a
// millisecond. It panics only if the system has no randomness to give.
func New() stint.ID { return stint.ID(uuid.Must(uuid.NewV7())) }
