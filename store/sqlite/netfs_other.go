//go:build !linux && !darwin

package sqlite

import (
	"path/filepath"
	"strings"
)

// networkFS returns "share" for a path that names another machine, "" otherwise.
func networkFS(dir string) string {
	if strings.HasPrefix(filepath.VolumeName(dir), `\\`) {
		return "share"
	}
	return ""
}
