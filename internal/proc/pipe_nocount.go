//go:build unix && !linux && !darwin

package proc

import "os"

func unread(*os.File) (int, bool) { return 0, false }
