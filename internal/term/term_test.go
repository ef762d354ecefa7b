package term_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stint-dev/stint/internal/term"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":               "plain\ttext\n",
		"caf\u00e9 ◐ 漢字":              "caf\u00e9 ◐ 漢字",
		"\x1b]52;c;ZXZpbA==\x07":      `\x1b]52;c;ZXZpbA==\x07`,
		"\x1b]8;;http://x\x1b\\a":     `\x1b]8;;http://x\x1b\a`,
		"bell\x07 del\x7f c1\u009b2J": `bell\x07 del\x7f c1\x9b2J`,
		"a\u202eb\u2066c\u200b":       `a\u202eb\u2066c\u200b`,
		"bad\xff\xfe":                 `bad\xff\xfe`,
		"tag\U000e0041":               `tag\U000e0041`,
		"line\u2028sep":               `line\u2028sep`,
	} {
		if got := term.Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
	if got := term.Line("a\nb\tc"); got != `a\nb\tc` {
		t.Errorf("Line = %q", got)
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("\x1b[2J")
	f.Fuzz(func(t *testing.T, s string) {
		out := term.Escape(s)
		if !utf8.ValidString(out) {
			t.Fatalf("not UTF-8: %q", out)
		}
		for _, r := range out {
			if (r < 0x20 && r != '\n' && r != '\t') || (r >= 0x7f && r < 0xa0) || strings.ContainsRune("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", r) {
				t.Fatalf("%U came through in %q", r, out)
			}
		}
	})
}

func TestStyle(t *testing.T) {
	none := func(string) string { return "" }
	if s := term.For(&bytes.Buffer{}, "auto", none); s.Color || s.TTY {
		t.Errorf("a buffer is no terminal: %+v", s)
	}
	if s := term.For(&bytes.Buffer{}, "always", none); s.Paint(term.Red, "x") != "\x1b[31mx\x1b[0m" {
		t.Error("always paints")
	}
	if s := (term.Style{}); s.Paint(term.Red, "x") != "x" {
		t.Error("the zero style is plain")
	}
}

func TestColumns(t *testing.T) {
	if w := term.Width("a漢e\u0301"); w != 4 {
		t.Errorf("Width = %d, want 4", w)
	}
	if got := term.Cut("abcdef", 4); got != "abc…" {
		t.Errorf("Cut = %q", got)
	}
	if got := term.Cut("漢字漢字", 5); got != "漢字…" {
		t.Errorf("Cut = %q", got)
	}
	if got := term.Pad("ab", 4, true) + "|" + term.Pad("ab", 4, false) + "|"; got != "  ab|ab  |" {
		t.Errorf("Pad = %q", got)
	}
}
