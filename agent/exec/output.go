package exec

import (
	"bytes"
	"errors"
	"io"
)

// errLongLine ends the reading of a protocol line that is over its limit, so that
// one without an end is refused and not swallowed for ever.
var errLongLine = errors.New("the line is too long")

// lineLimit fails once more than limit bytes came without a newline.
type lineLimit struct {
	r     io.Reader
	limit int
	n     int // bytes since the last newline
}

func (l *lineLimit) Read(p []byte) (int, error) {
	if l.n > l.limit {
		return 0, errLongLine
	}
	n, err := l.r.Read(p)
	if i := bytes.LastIndexByte(p[:n], '\n'); i >= 0 {
		l.n = n - i - 1
	} else {
		l.n += n
	}
	return n, err
}
