package exec

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/stint-dev/stint/internal/proc"
	"github.com/stint-dev/stint/internal/protocol"
)

// Streams of the log, as [stint.Reporter] names them.
const (
	streamOut = "stdout"
	streamErr = "stderr"
)

// tail keeps the last lines of a stream.
type tail struct {
	mu    sync.Mutex
	lines []string
}

const (
	tailLines = 20
	tailWidth = 400 // bytes of one line
)

func (t *tail) add(line []byte) {
	s := string(protocol.WholeRunes(line[:min(len(line), tailWidth)]))
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == tailLines {
		copy(t.lines, t.lines[1:])
		t.lines = t.lines[:tailLines-1]
	}
	t.lines = append(t.lines, s)
}

func (t *tail) last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.lines...)
}

// pump reads a stream to its end, line by line in bounded memory, and returns how
// many bytes came.
func pump(r io.Reader, tee io.Writer, each func(line []byte, size int64)) int64 {
	if tee != nil {
		r = &teeReader{r: r, w: tee}
	}
	count := &countReader{r: r}
	lines := proc.Lines(count, protocol.MaxLogLine)
	for {
		line, err := lines.Next()
		if err != nil {
			return count.n
		}
		each(line.Data, line.Size)
	}
}

// countReader counts what is read.
type countReader struct {
	r io.Reader
	n int64
}

func (c *countReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// teeReader copies what is read. Unlike io.TeeReader it goes on when the copy
// fails: a closed terminal must not lose the log.
type teeReader struct {
	r io.Reader
	w io.Writer
}

func (t *teeReader) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if n > 0 {
		_, _ = t.w.Write(p[:n])
	}
	return n, err
}

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
