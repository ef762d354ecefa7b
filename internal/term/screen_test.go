package term_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint/internal/term"
)

// glass is a terminal of some columns: it acts on what a Screen may write, and complains
// of everything else.
type glass struct {
	cols int
	rows [][]string // by cell; the second of a wide character is empty
	r, c int
	bad  string
}

func (g *glass) Write(p []byte) (int, error) {
	s := string(p)
	for s != "" {
		switch {
		case strings.HasPrefix(s, "\x1b["):
			end := strings.IndexFunc(s[2:], unicode.IsLetter) + 2
			n := 1
			switch arg := s[2:end]; s[end] {
			case 'A':
				_, _ = fmt.Sscan(arg, &n)
				if g.r -= n; g.r < 0 {
					g.bad = "above the first row"
				}
			case 'J':
				g.rows = g.rows[:g.r+1]
				g.rows[g.r] = g.rows[g.r][:min(g.c, len(g.rows[g.r]))]
			case 'm':
			default:
				g.bad = fmt.Sprintf("%q", s[:end+1])
			}
			s = s[end+1:]
		case s[0] == '\r':
			g.c, s = 0, s[1:]
		case s[0] == '\n': // as a terminal does it that is not raw
			g.r, g.c, s = g.r+1, 0, s[1:]
		default:
			r := []rune(s)[0]
			g.put(r)
			s = s[len(string(r)):]
		}
		for len(g.rows) <= g.r {
			g.rows = append(g.rows, nil)
		}
	}
	return len(p), nil
}

func (g *glass) put(r rune) {
	w := term.Width(string(r))
	if w == 0 && !unicode.In(r, unicode.Mn) || unicode.IsControl(r) {
		g.bad = fmt.Sprintf("the character %U", r)
	}
	if g.c+w > g.cols {
		g.bad = fmt.Sprintf("a line of more than %d columns", g.cols)
	}
	for len(g.rows) <= g.r {
		g.rows = append(g.rows, nil)
	}
	row := g.rows[g.r]
	for len(row) < g.c {
		row = append(row, " ")
	}
	if w == 0 {
		row[g.c-1] += string(r)
		return
	}
	g.rows[g.r] = append(row[:g.c], string(r))
	for range w - 1 {
		g.rows[g.r] = append(g.rows[g.r], "")
	}
	g.c += w
}

// String is what stands on the glass.
func (g *glass) String() string {
	var b strings.Builder
	for _, row := range g.rows {
		b.WriteString(strings.TrimRight(strings.Join(row, ""), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

func newGlass(cols int) (*glass, *term.Screen) {
	g := &glass{cols: cols, rows: [][]string{nil}}
	return g, term.NewScreen(g, term.Style{TTY: true, Color: true}, func() int { return g.cols })
}

func TestScreen(t *testing.T) {
	g, s := newGlass(20)
	check := func(what, want string) {
		t.Helper()
		if got := g.String(); got != want || g.bad != "" {
			t.Errorf("%s: %s\n--- got\n%s\n--- want\n%s", what, g.bad, got, want)
		}
	}
	s.Status("loop 1 · 0s")
	check("a status", "loop 1 · 0s")
	_, _ = io.WriteString(s, "a line\n")
	check("a line above it", "a line\nloop 1 · 0s")
	s.Stream(term.Plain, "The fox\njumps over t")
	check("text", "a line\nThe fox\njumps over t\nloop 1 · 0s")
	s.Stream(term.Plain, "he lazy dog and")
	check("more text", "a line\nThe fox\njumps over the lazy\ndog and\nloop 1 · 0s")
	s.Status("a status that is too long for this")
	check("a long status", "a line\nThe fox\njumps over the lazy\ndog and\na status that is t…")
	s.Stream(term.Dim, "a thought")
	check("another colour", "a line\nThe fox\njumps over the lazy\ndog and\na thought\na status that is t…")
	g.cols = 12 // the terminal breaks the lines that are there
	g.rows, g.r, g.c = [][]string{nil}, 0, 0
	_, _ = io.WriteString(g, "a line\nThe fox\njumps over t\nhe lazy\ndog and\na thought\na status tha\nt is t…")
	s.Status("loop 2")
	check("a narrower terminal", "a line\nThe fox\njumps over t\nhe lazy\ndog and\na thought\nloop 2")
	_, _ = io.WriteString(s, "another\n")
	check("a line ends the text", "a line\nThe fox\njumps over t\nhe lazy\ndog and\na thought\nanother\nloop 2")
	s.Stream(term.Plain, "\x1b[2J漢字漢字漢字漢字")
	check("what drives terminals, and wide characters", "a line\nThe fox\njumps over t\nhe lazy\ndog and\na thought\nanother\n"+`\x1b[2J漢字`+"\n漢字漢字漢\n字\nloop 2")
	s.Close()
	check("the end", "a line\nThe fox\njumps over t\nhe lazy\ndog and\na thought\nanother\n"+`\x1b[2J漢字`+"\n漢字漢字漢\n字")
	_, _ = io.WriteString(s, "then\n")
	s.Status("nobody sees it")
	if got := g.String(); !strings.HasSuffix(got, "\n字\nthen") || g.bad != "" {
		t.Errorf("after the end: %s\n%s", g.bad, got)
	}
}

// A question keeps everything else from the screen until it is answered.
func TestScreenAsk(t *testing.T) {
	g, s := newGlass(40)
	s.Status("loop 1")
	s.Stream(term.Plain, "half a li")
	answered := s.Ask("stop? ")
	if got := g.String(); got != "half a li\nstop?" {
		t.Errorf("the question stands as\n%s", got)
	}
	var others sync.WaitGroup
	for _, write := range []func(){func() { s.Status("loop 2") }, func() { _, _ = io.WriteString(s, "a line\n") }} {
		others.Go(write)
	}
	answered("no")
	others.Wait()
	if got := g.String(); got != "half a li\nstop? no\na line\nloop 2" || g.bad != "" {
		t.Errorf("%s\n%s", g.bad, got)
	}
}

// However a text is cut into pieces, and however often the line below is redrawn, the
// same stands on the screen, and all of the text.
func TestScreenPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols := rapid.IntRange(10, 40).Draw(t, "columns")
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "word", " ", " ", "  ", "\n", "\n", "漢字", "e\u0301", "\t", "\x1b[31m", "\r\n", "\u202e", strings.Repeat("long", 20)}), 0, 60).Draw(t, "text"), "")
		whole, s := newGlass(cols)
		s.Stream(term.Plain, text)
		s.Close()
		pieces, s := newGlass(cols)
		for rest := []rune(text); len(rest) > 0; {
			n := rapid.IntRange(1, min(len(rest), 12)).Draw(t, "piece")
			if n < len(rest) && rest[n-1] == '\r' {
				n++ // a line end is never cut
			}
			s.Stream(term.Plain, string(rest[:n]))
			rest = rest[n:]
			s.Status(rapid.SampledFrom([]string{"", "now", "a long line of what is being done"}).Draw(t, "status"))
		}
		s.Close()
		if got, want := pieces.String(), whole.String(); got != want || pieces.bad+whole.bad != "" {
			t.Fatalf("%s %s\n--- in pieces\n%s\n--- at once\n%s", pieces.bad, whole.bad, got, want)
		}
		squeeze := func(s string) string { return strings.Join(strings.FieldsFunc(s, unicode.IsSpace), "") }
		if got, want := squeeze(whole.String()), squeeze(term.Escape(strings.ReplaceAll(text, "\r\n", "\n"))); got != want {
			t.Fatalf("of the text %q\nthere is %q", want, got)
		}
	})
}
