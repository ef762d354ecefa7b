package journal

// StandsOn and Base32 are for tests from outside.
func StandsOn(rank int) int { return standsOn(rank) }

// Base32 see [StandsOn].
func Base32(b []byte) string { return base32(b) }
