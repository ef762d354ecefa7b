package protocol

import (
	"bytes"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
)

// StreamLog is the stream of what the agent logs by a message, as [stint.Reporter] has it.
const StreamLog = "log"

// MaxLogLine bounds a line of the log in bytes, its marker included.
const MaxLogLine = 64 << 10

// Sink passes output on to the loop that is on, up to its limit, many lines at a
// time because each call makes an entry. Between the loops of a kept process it
// holds a little back for the next one, since a Reporter is good only while its
// loop is.
type Sink struct {
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
	maxHeld   = MaxLogLine             // held between two loops; what does not fit counts as dropped
	maxBatch  = MaxLogLine             // passed on at once
	batchTime = 100 * time.Millisecond // the longest that a line waits for others
)

// Attach begins a loop.
func (s *Sink) Attach(l stint.Loop, limit int64) {
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
func (s *Sink) Detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	if s.dropped > 0 && s.to != nil {
		s.to.Log(StreamLog, fmt.Appendf(nil, "[stint] %d bytes of output are not logged: the loop's limit is %d bytes\n", s.dropped, s.limit))
	}
	s.to, s.on, s.full, s.dropped = nil, false, false, 0
}

// Sync passes on what waits, so that it stands before what is recorded next.
func (s *Sink) Sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
}

// flush passes the batch on. The caller holds mu.
func (s *Sink) flush() {
	if len(s.batch) > 0 && s.to != nil {
		s.to.Log(s.stream, s.batch)
	}
	s.batch = s.batch[:0]
}

// Log adds one line, given without its newline. size is its full length, more than
// len(line) where it was cut on reading.
func (s *Sink) Log(stream string, line []byte, size int64) {
	const room = 64 // for the marker and the newline
	kept := line
	if len(kept) > MaxLogLine-room {
		kept = WholeRunes(kept[:MaxLogLine-room])
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
func (s *Sink) pass(h heldLine) {
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

func (s *Sink) later() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = false
	s.flush()
}

// Notef adds a line of stint's own, which no limit holds back.
func (s *Sink) Notef(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	if s.to != nil {
		s.to.Log(StreamLog, fmt.Appendf(nil, "[stint] "+format+"\n", args...))
	}
}

// Text adds a text of the agent, line by line.
func (s *Sink) Text(level, text string) {
	prefix := ""
	if level != "info" {
		prefix = level + ": "
	}
	for line := range bytes.Lines([]byte(text)) {
		line = append([]byte(prefix), bytes.TrimRight(line, "\r\n")...)
		s.Log(StreamLog, line, int64(len(line)))
	}
}

// Progress shows what the agent is doing, its first 120 characters as one line.
func (s *Sink) Progress(text string) {
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
