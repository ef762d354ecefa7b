//go:build unix

package sqlite

import (
	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// useFdatasync makes SQLite sync with fdatasync(2), as the builds of Linux
// distributions do, instead of fsync(2): both keep the data and the file's size,
// only the latter also waits for timestamps. Where there is none it changes nothing.
func useFdatasync(tls *libc.TLS) { lib.Xmodernc_fdatasync(tls, 1) }
