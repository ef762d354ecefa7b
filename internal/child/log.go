package child

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/proc"
)

// MaxLine bounds one line of the log in bytes, its marker included.
const MaxLine = 64 << 10

// Streams of the log, as [stint.Reporter] names them.
const (
	Stdout = "stdout" // standard output
	Stderr = "stderr"
	Logged = "log"
)

// Log passes output on to the loop that is on, up to its limit, many lines at a
// time because each call makes an entry. Between the loops of a kept process it
// holds a little back for the next one, since a Reporter is good only while its
// loop is.
type Log struct {
	mu      sync.Mutex
	to      stint.Reporter // nil: no loop, or one that shows nothing
	on      bool
	left    int64 // bytes that may still be logged
	limit   int64
	full    bool      // a line did not fit, so none is logged any more
	dropped int64     // bytes that are not logged, as the program wrote them
	alive   time.Time // when it was last told of output that is dropped

	stream  string // of batch
	batch   []byte // whole lines that are not passed on yet
	pending bool   // they will be, soon

	held []heldLine
	size int // bytes in held
}

type heldLine struct {
	stream string
	line   []byte
	size   int64
}

const (
	maxHeld   = MaxLine                // held between two loops; what does not fit counts as dropped
	maxBatch  = MaxLine                // passed on at once
	batchTime = 100 * time.Millisecond // the longest that a line waits for others
)

// Attach begins a loop.
func (s *Log) Attach(l stint.Loop, limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to, _ = l.(stint.Reporter)
	s.on, s.left, s.limit = true, limit, limit
	for _, h := range s.held {
		s.pass(h)
	}
	s.held, s.size = nil, 0
}

// Detach ends it, with a line on what was left out. When it returns, the Reporter
// is not used any more.
func (s *Log) Detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	if s.dropped > 0 && s.to != nil {
		s.to.Log(Logged, fmt.Appendf(nil, "[stint] %d bytes of output are not logged: the loop's limit is %d bytes\n", s.dropped, s.limit))
	}
	s.to, s.on, s.full, s.dropped = nil, false, false, 0
}

// Sync passes on what waits, so that it stands before what is recorded next.
func (s *Log) Sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
}

// flush passes the batch on. The caller holds mu.
func (s *Log) flush() {
	if len(s.batch) > 0 && s.to != nil {
		s.to.Log(s.stream, s.batch)
	}
	s.batch = s.batch[:0]
}

// Line adds one line, given without its newline. size is its full length, more than
// len(line) where it was cut on reading.
func (s *Log) Line(stream string, line []byte, size int64) {
	const room = 64 // for the marker and the newline
	kept := line
	if len(kept) > MaxLine-room {
		kept = WholeRunes(kept[:MaxLine-room])
	}
	out := append(make([]byte, 0, len(kept)+room), kept...)
	if cut := size - int64(len(kept)); cut > 0 {
		out = fmt.Appendf(out, " [stint: %d bytes cut]", cut)
	}
	h := heldLine{stream, append(out, '\n'), size + 1}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.on:
		s.pass(h)
	case s.size+len(h.line) > maxHeld:
		s.dropped += h.size
	default:
		s.held = append(s.held, h)
		s.size += len(h.line)
	}
}

// pass hands a line to the loop. Once one did not fit, none does: a log with holes
// misleads. The caller holds mu.
func (s *Log) pass(h heldLine) {
	if s.full || int64(len(h.line)) > s.left {
		s.full = true
		s.dropped += h.size
		if now := time.Now(); s.to != nil && now.Sub(s.alive) > time.Second {
			s.alive = now
			s.flush()
			s.to.Log(h.stream, nil) // an agent that writes is not idle
		}
		return
	}
	s.left -= int64(len(h.line))
	if s.stream != h.stream || len(s.batch)+len(h.line) > maxBatch {
		s.flush()
	}
	s.stream = h.stream
	s.batch = append(s.batch, h.line...)
	if !s.pending {
		s.pending = true
		time.AfterFunc(batchTime, s.later)
	}
}

func (s *Log) later() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = false
	s.flush()
}

// Notef adds a line of stint's own, which no limit holds back.
func (s *Log) Notef(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	if s.to != nil {
		s.to.Log(Logged, fmt.Appendf(nil, "[stint] "+format+"\n", args...))
	}
}

// Text adds a text of the agent, line by line.
func (s *Log) Text(level, text string) {
	prefix := ""
	if level != "info" {
		prefix = level + ": "
	}
	for line := range bytes.Lines([]byte(text)) {
		line = append([]byte(prefix), bytes.TrimRight(line, "\r\n")...)
		s.Line(Logged, line, int64(len(line)))
	}
}

// Progress sets the session's NOW line: one line, cut to 120 characters.
func (s *Log) Progress(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to == nil {
		return
	}
	n, line := 0, OneLine(text)
	for i := range line {
		if n++; n > 120 {
			line = line[:i]
			break
		}
	}
	s.to.Progress(line)
}

// WholeRunes cuts off the beginning of a character at the end of b.
func WholeRunes(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// Tail keeps the last lines of a stream.
type Tail struct {
	mu    sync.Mutex
	lines []string
}

const (
	tailLines = 20
	tailWidth = 400 // bytes of one line
)

// Add takes one line, cut to 400 bytes; of more than 20 the oldest goes.
func (t *Tail) Add(line []byte) {
	s := string(WholeRunes(line[:min(len(line), tailWidth)]))
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == tailLines {
		copy(t.lines, t.lines[1:])
		t.lines = t.lines[:tailLines-1]
	}
	t.lines = append(t.lines, s)
}

// Last returns the lines kept, oldest first.
func (t *Tail) Last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.lines...)
}

// Pump reads a stream to its end, line by line in bounded memory, and returns how
// many bytes came.
func Pump(r io.Reader, tee io.Writer, each func(line []byte, size int64)) int64 {
	if tee != nil {
		r = &teeReader{r: r, w: tee}
	}
	count := &countReader{r: r}
	lines := proc.Lines(count, MaxLine)
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

// OneLine puts a text of several lines on one.
func OneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}
