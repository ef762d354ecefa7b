package http

import (
	"bufio"
	"errors"
	"io"
)

// Errors of a response that is larger than it may be.
var (
	errLongLine = errors.New("a line is too long")
	errMuch     = errors.New("the response is too large")
)

// lineReader splits a response into lines in bounded memory.
type lineReader struct {
	r    *bufio.Reader
	max  int   // bytes of a line, its newline included
	left int64 // bytes of the response
	buf  []byte
}

func newLineReader(r io.Reader, line int, whole int64) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, min(line, 64<<10)), max: line, left: whole}
}

// next returns a line without its newline, valid until the next call. ended is false for
// a last one that had none. An error comes without the part of a line before it, but for
// that of a line that is too long, which comes with its beginning.
func (l *lineReader) next() (line []byte, ended bool, err error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if l.left -= int64(len(part)); l.left < 0 {
			return nil, false, errMuch
		}
		if len(l.buf)+len(part) > l.max {
			return append(l.buf, part[:l.max-len(l.buf)]...), false, errLongLine
		}
		l.buf = append(l.buf, part...)
		switch {
		case err == nil:
			return l.buf[:len(l.buf)-1], true, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(l.buf) > 0:
			return l.buf, false, nil
		default:
			return nil, false, err
		}
	}
}
