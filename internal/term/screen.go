package term

import (
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	xterm "golang.org/x/term"
)

// IsTerminal reports whether v is a file that is a terminal.
func IsTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && xterm.IsTerminal(int(f.Fd()))
}

// Screen writes to a terminal what stays, and below it one line that is drawn again in
// place. It knows nothing of what others write there meanwhile. Its methods may be
// called from any goroutine; they return no errors, since a terminal that is gone has
// nobody to be told.
type Screen struct {
	w     io.Writer
	style Style
	size  func() int // columns now; 0: unknown

	mu     sync.Mutex
	text   string // the unfinished line of what is streamed
	color  Color  // of text
	status string
	shown  []int // columns of the lines that are redrawn, the lowest last
	closed bool
}

// NewScreen returns the screen of a terminal. size says how many columns it has now, 0
// where that is not known; nil asks w, which is a file then.
func NewScreen(w io.Writer, style Style, size func() int) *Screen {
	if size == nil {
		size = func() int {
			if f, ok := w.(*os.File); ok {
				if width, _, err := xterm.GetSize(int(f.Fd())); err == nil {
					return width
				}
			}
			return style.Width
		}
	}
	return &Screen{w: w, style: style, size: size}
}

// Write prints whole lines that are safe, above the line that is redrawn; text that is
// being streamed ends there. It implements [io.Writer].
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.erase(&b)
	s.endText(&b)
	b.Write(p)
	s.draw(&b)
	return len(p), nil
}

// Stream goes on with a text of anybody's: it is made safe and broken into lines that
// fit. Another colour begins a new line.
func (s *Screen) Stream(c Color, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.erase(&b)
	if c != s.color {
		s.endText(&b)
		s.color = c
	}
	s.text += strings.ReplaceAll(Escape(strings.ReplaceAll(text, "\r\n", "\n")), "\t", "    ")
	for {
		line, rest, whole := strings.Cut(s.text, "\n")
		first, more := breakLine(line, s.Columns())
		switch {
		case more != "":
			s.text = more
			if whole {
				s.text += "\n" + rest
			}
		case whole:
			s.text = rest
		default:
			s.draw(&b)
			return
		}
		b.WriteString(s.style.Paint(c, strings.TrimRight(first, " ")) + "\n")
	}
}

// Status sets the line that is redrawn; it must be safe. Empty removes it.
func (s *Screen) Status(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line == s.status {
		return
	}
	var b strings.Builder
	s.erase(&b)
	s.status = line
	s.draw(&b)
}

// Ask puts a question in the place of what is redrawn, and keeps everything else from
// the terminal until the returned function is called with what was answered. Where
// nothing is redrawn, it begins a line of its own: the key that led to it was shown.
func (s *Screen) Ask(question string) (answered func(string)) {
	s.mu.Lock()
	var b strings.Builder
	if len(s.shown) == 0 {
		b.WriteByte('\n')
	}
	s.erase(&b)
	s.endText(&b)
	_, _ = io.WriteString(s.w, b.String()+question)
	return func(answer string) {
		defer s.mu.Unlock()
		var b strings.Builder
		b.WriteString(answer + "\n")
		s.draw(&b)
	}
}

// Close ends the text and removes the line that is redrawn; Write still works.
func (s *Screen) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.erase(&b)
	s.endText(&b)
	s.closed = true
	_, _ = io.WriteString(s.w, b.String())
}

// Columns is what a line may take now: the last column stays empty, where terminals
// differ in what they do next.
func (s *Screen) Columns() int {
	n := s.size()
	if n <= 0 {
		n = 80
	}
	return max(n-1, 8)
}

// erase removes what is redrawn. A terminal that became narrower has broken its lines.
func (s *Screen) erase(b *strings.Builder) {
	if len(s.shown) == 0 {
		return
	}
	rows, width := 0, s.Columns()+1
	for _, n := range s.shown {
		rows += max(1, (n+width-1)/width)
	}
	b.WriteByte('\r')
	if rows > 1 {
		b.WriteString("\x1b[" + strconv.Itoa(rows-1) + "A")
	}
	b.WriteString("\x1b[J")
	s.shown = nil
}

// endText ends the line of what is streamed.
func (s *Screen) endText(b *strings.Builder) {
	if s.text != "" {
		b.WriteString(s.style.Paint(s.color, strings.TrimRight(s.text, " ")) + "\n")
		s.text = ""
	}
}

// draw writes b and what is redrawn.
func (s *Screen) draw(b *strings.Builder) {
	if !s.closed {
		width := s.Columns()
		add := func(c Color, text string) {
			if text == "" {
				return
			}
			if len(s.shown) > 0 {
				b.WriteByte('\n')
			}
			text = Cut(strings.TrimRight(text, " "), width)
			b.WriteString(s.style.Paint(c, text))
			s.shown = append(s.shown, Width(text))
		}
		add(s.color, s.text)
		add(Dim, s.status)
	}
	if b.Len() > 0 {
		_, _ = io.WriteString(s.w, b.String())
	}
}

// breakLine splits a line that is longer than n columns, behind a space where there is
// one. What is left of it begins with no space.
func breakLine(line string, n int) (first, rest string) {
	if len(line) <= 16*n && Width(line) <= n { // a longer one would be measured again and again
		return line, ""
	}
	space, at := 0, 0
	for i := range line {
		if i > 0 && Width(line[:i]) > n {
			break
		}
		at = i
		if i > 0 && line[i-1] == ' ' {
			space = i
		}
	}
	if at == 0 { // one character is wider than the line
		for i := range line {
			if at = i; i > 0 {
				break
			}
		}
	}
	switch {
	case at == 0:
		return line, ""
	case line[at] == ' ': // what is behind it did not fit, it did
		return line[:at], strings.TrimLeft(line[at:], " ")
	case space > 0:
		return line[:space], strings.TrimLeft(line[space:], " ")
	}
	return line[:at], line[at:]
}
