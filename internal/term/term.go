// Package term is how stint draws on a terminal: colours and shapes where one is
// there, plain text where not, and nothing that an agent wrote can drive it.
package term

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	xterm "golang.org/x/term"
)

// Style says what may be drawn. The zero Style is plain text.
type Style struct {
	Color bool // ANSI colours
	TTY   bool // a person looks: groups, relative times, ellipses
	Width int  // columns; 0: unknown, do not cut
}

// For says how to draw on w. mode is auto, always or never; NO_COLOR (see
// no-color.org) turns colours off in auto, TERM=dumb too.
func For(w io.Writer, mode string, getenv func(string) string) Style {
	var s Style
	if f, ok := w.(*os.File); ok && xterm.IsTerminal(int(f.Fd())) {
		s.TTY = true
		if width, _, err := xterm.GetSize(int(f.Fd())); err == nil {
			s.Width = width
		}
		s.Color = getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	}
	if cols, err := strconv.Atoi(getenv("COLUMNS")); err == nil && cols > 0 && s.TTY {
		s.Width = cols
	}
	switch mode {
	case "always":
		s.Color = true
	case "never":
		s.Color = false
	}
	return s
}

// Color is one of the few that stint uses.
type Color string

// The colours, as SGR parameters that follow the terminal's own palette, so that
// they are readable on dark and on light.
const (
	Plain  Color = ""
	Bold   Color = "1"
	Dim    Color = "2"
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
	Blue   Color = "34"
	Cyan   Color = "36"
)

// Paint wraps text in a colour, where colours may be drawn.
func (s Style) Paint(c Color, text string) string {
	if !s.Color || c == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// Escape makes data safe to print: control characters (C0 but newline and tab, C1,
// DEL), bidirectional controls and other invisible format characters become \x or
// \u escapes, invalid UTF-8 becomes \x escapes. What an agent wrote can then
// neither move the cursor nor set the clipboard nor turn text around.
func Escape(s string) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x` + hex(uint64(s[i]), 2))
		case !harmful(r):
			b.WriteString(s[i : i+n])
		case r < 0x100:
			b.WriteString(`\x` + hex(uint64(r), 2))
		case r < 0x10000:
			b.WriteString(`\u` + hex(uint64(r), 4))
		default:
			b.WriteString(`\U` + hex(uint64(r), 8))
		}
		i += n
	}
	return b.String()
}

// Line is Escape for text that has to stay on one line.
func Line(s string) string {
	s = Escape(s)
	if !strings.ContainsAny(s, "\n\t") {
		return s
	}
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(s)
}

func clean(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\n' && c != '\t' || c >= 0x7f {
			return !strings.ContainsFunc(s, harmful) && utf8.ValidString(s)
		}
	}
	return true
}

// harmful reports whether r must not reach a terminal as it is.
func harmful(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r):
		return true
	case r == utf8.RuneError:
		return false
	}
	// Cf holds the bidirectional controls, zero width characters, the soft hyphen and
	// the tags; Zl and Zp are line breaks in disguise. The joiners that emoji need
	// stay.
	return r != 0x200d && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

func hex(v uint64, width int) string {
	s := strconv.FormatUint(v, 16)
	return strings.Repeat("0", max(0, width-len(s))) + s
}

// Width is how many columns s takes: two for wide East Asian characters and emoji,
// none for combining marks. s must be free of colours. The locale does not matter,
// so that output is the same everywhere.
func Width(s string) int { return (&runewidth.Condition{}).StringWidth(s) }

// Cut shortens s to at most n columns, with an ellipsis where something was cut; n
// of 0 or less cuts nothing.
func Cut(s string, n int) string {
	if n <= 0 {
		return s
	}
	return (&runewidth.Condition{}).Truncate(s, n, "…")
}

// Pad fills s with spaces to n columns, on the right, or on the left where right
// aligns it.
func Pad(s string, n int, right bool) string {
	fill := n - Width(s)
	if fill <= 0 {
		return s
	}
	if right {
		return strings.Repeat(" ", fill) + s
	}
	return s + strings.Repeat(" ", fill)
}
