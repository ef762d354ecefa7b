//go:build !unix

package sqlite

import "modernc.org/libc"

// useFdatasync does nothing: this system has its own way to sync a file.
func useFdatasync(*libc.TLS) {}
