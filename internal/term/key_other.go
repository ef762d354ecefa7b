//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package term

import (
	"context"
	"errors"
)

// Key would read a key from the terminal of this process; here it always fails.
func Key(context.Context, func(), func(byte) bool) (byte, error) {
	return 0, errors.New("single keys cannot be read on this system")
}
