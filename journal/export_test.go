package journal

import "github.com/stint-dev/stint"

// StandsOn and Base32 are for tests from outside.
func StandsOn(rank int) int { return standsOn(rank) }

// Base32 see [StandsOn].
func Base32(b []byte) string { return base32(b) }

// Commitment see [StandsOn].
func Commitment(e *stint.Entry) stint.Hash { return commitment(e) }
