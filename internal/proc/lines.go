package proc

import (
	"bufio"
	"errors"
	"io"
)

// MinLine is the smallest limit a LineReader accepts, in bytes.
const MinLine = 16

// Line is one line of output.
type Line struct {
	// Data is the line without its newline, at most the limit of the reader. It is valid until the next call of Next.
	Data []byte
	// Size is the length of the whole line in bytes, without its newline.
	Size int64
	// Unterminated is true for a last line that had no newline: the program may have ended within it.
	Unterminated bool
}

// Truncated reports whether the line was longer than the limit, so that Data is only its beginning.
func (l Line) Truncated() bool { return l.Size > int64(len(l.Data)) }

// LineReader splits a stream into lines in bounded memory. It has one user at a time.
type LineReader struct {
	r    *bufio.Reader
	max  int
	data []byte
	err  error
}

// Lines returns a reader of the lines of r. A line longer than limit bytes is cut to its beginning and the rest of it is
// read and dropped, so a stream without newlines needs no more memory than limit and a fixed buffer. A limit below MinLine
// counts as MinLine.
func Lines(r io.Reader, limit int) *LineReader {
	limit = max(limit, MinLine)
	return &LineReader{r: bufio.NewReaderSize(r, min(limit, 64<<10)), max: limit}
}

// Next returns the next line. It returns io.EOF after the last one, or the error of the stream after the bytes that came
// before it.
func (lr *LineReader) Next() (Line, error) {
	if lr.err != nil {
		return Line{}, lr.err
	}
	lr.data = lr.data[:0]
	var size int64
	for {
		part, err := lr.r.ReadSlice('\n')
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		size += int64(len(part))
		lr.keep(part)
		switch {
		case ended:
			return Line{Data: lr.data, Size: size}, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		lr.err = err
		if size == 0 {
			return Line{}, err
		}
		return Line{Data: lr.data, Size: size, Unterminated: true}, nil
	}
}

// keep appends what still fits. It grows the buffer by hand, because append may allocate more than the limit.
func (lr *LineReader) keep(part []byte) {
	part = part[:min(len(part), lr.max-len(lr.data))]
	if need := len(lr.data) + len(part); need > cap(lr.data) {
		grown := make([]byte, len(lr.data), min(lr.max, max(need, 2*cap(lr.data))))
		copy(grown, lr.data)
		lr.data = grown
	}
	lr.data = append(lr.data, part...)
}
