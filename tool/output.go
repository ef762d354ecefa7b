package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/stint-dev/stint/internal/jsonx"
)

// MaxText is how many bytes of a tool's output the tools of this module keep.
const MaxText = 8 << 20

// mark stands for what cannot be kept. It is U+FFFD, which people know, and which is
// three bytes in every store.
const mark = "\uFFFD"

func fmtBytes(format string, args ...any) []byte { return fmt.Appendf(nil, format, args...) }

// Clean makes text of the bytes that a tool wrote: each NUL and each run of bytes that
// are not UTF-8 (a lone surrogate is one) becomes U+FFFD, and replaced counts them. All
// else stays, control characters and the six characters \u0000 too. The same bytes give
// the same text always, so what a store keeps does not depend on the store.
func Clean(b []byte) (text string, replaced int) {
	if utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 {
		return string(b), 0
	}
	var out strings.Builder
	out.Grow(len(b) + len(mark))
	broken := false
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			if !broken {
				out.WriteString(mark)
				replaced++
			}
			broken = true
		case r == 0:
			out.WriteString(mark)
			replaced++
			broken = false
		default:
			out.Write(b[:n])
			broken = false
		}
		b = b[n:]
	}
	return out.String(), replaced
}

// CleanJSON does for JSON what [Clean] does for text: escapes of NUL, lone surrogate
// escapes and bytes that are not UTF-8 become \ufffd, and replaced counts them. All else
// stays as it is, digits and spaces too. It does not look whether b is JSON.
func CleanJSON(b []byte) (out json.RawMessage, replaced int) {
	text, replaced := Clean(b)
	if !strings.Contains(text, `\u`) {
		return json.RawMessage(text), replaced
	}
	clean := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			n := strings.IndexByte(text[i:], '\\')
			if n < 0 {
				n = len(text) - i
			}
			clean = append(clean, text[i:i+n]...)
			i += n
			continue
		}
		n, bad := escapeAt(text[i:])
		if bad {
			clean = append(clean, `\ufffd`...)
			replaced++
		} else {
			clean = append(clean, text[i:i+n]...)
		}
		i += n
	}
	return clean, replaced
}

// escapeAt returns the length of the escape at the beginning of s, and whether it stands
// for what cannot be kept.
func escapeAt(s string) (n int, bad bool) {
	r, ok := hexEscape(s)
	if !ok {
		return min(2, len(s)), false
	}
	switch {
	case r >= 0xd800 && r < 0xdc00:
		if low, ok := hexEscape(s[6:]); ok && low >= 0xdc00 && low < 0xe000 {
			return 12, false
		}
		return 6, true
	case r >= 0xdc00 && r < 0xe000, r == 0:
		return 6, true
	}
	return 6, false
}

// hexEscape reads \uXXXX at the beginning of s.
func hexEscape(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[2:6]) {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// Capped is output of a tool that may have been cut.
type Capped struct {
	Bytes   []byte // what was kept: the beginning
	Dropped int64  // bytes after it that were not
}

// Text cleans what was kept and says below it what was replaced and what is missing.
func (c Capped) Text() string {
	b := c.Bytes
	if c.Dropped > 0 {
		b = b[:wholeRunes(b)]
	}
	text, replaced := Clean(b)
	if note := replacedNote(replaced); note != "" {
		text = noted(text, note)
	}
	if c.Dropped > 0 {
		dropped := c.Dropped + int64(len(c.Bytes)-len(b))
		text = noted(text, fmt.Sprintf("[stint: the output was longer; %d bytes after these were not kept]", dropped))
	}
	return text
}

// replacedNote says what marks stand for; "" where there are none.
func replacedNote(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "[stint: one " + mark + " above stands for a NUL or for bytes that are not UTF-8]"
	}
	return fmt.Sprintf("[stint: %d times %s above stands for a NUL or for bytes that are not UTF-8]", n, mark)
}

// Noted returns text with what [Clean] or [CleanJSON] replaced said below it.
func Noted(text string, replaced int) string {
	if note := replacedNote(replaced); note != "" {
		return noted(text, note)
	}
	return text
}

func noted(text, note string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + note
}

// Keep takes what a tool writes: at most limit bytes are kept, the rest is counted. It
// is an io.Writer for one goroutine, and its Write never fails.
type Keep struct {
	limit int
	got   Capped
}

// NewKeep returns a Keep of at most limit bytes; 0 or less is [MaxText].
func NewKeep(limit int) *Keep {
	if limit <= 0 {
		limit = MaxText
	}
	return &Keep{limit: limit}
}

// Write implements io.Writer.
func (k *Keep) Write(p []byte) (int, error) {
	n := min(len(p), k.limit-len(k.got.Bytes))
	k.got.Bytes = append(k.got.Bytes, p[:n]...)
	k.got.Dropped += int64(len(p) - n)
	return len(p), nil
}

// Capped returns what came.
func (k *Keep) Capped() Capped { return k.got }

// Excerpt returns text if it has at most limit bytes, else its beginning and its end
// with a line between them that says what is left out, and how to get it: in words that
// follow "to read it, ". The result has at most limit bytes where limit is 512 or more,
// no character is cut, and the full text stays with the caller.
func Excerpt(text string, limit int, how string) string {
	if len(text) <= limit {
		return text
	}
	if how != "" {
		how, _ = Clean([]byte(how))
		how = "; to read it, " + how[:min(len(how), wholeRunes([]byte(how[:min(len(how), 200)])))]
	}
	// The widest form of the line decides the room, so that its digits do not matter.
	room := max(0, limit-len(fmt.Sprintf("\n[stint: %d of %d bytes are left out here%s]\n", len(text), len(text), how)))
	head := room * 2 / 3
	tail := room - head
	front := text[:wholeRunes([]byte(text[:head]))]
	rest := text[len(text)-tail:]
	for len(rest) > 0 && !utf8.RuneStart(rest[0]) {
		rest = rest[1:]
	}
	left := len(text) - len(front) - len(rest)
	return fmt.Sprintf("%s\n[stint: %d of %d bytes are left out here%s]\n%s", front, left, len(text), how, rest)
}

// wholeRunes returns how much of b to keep so that a character that was cut at its end
// is left out.
func wholeRunes(b []byte) int {
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return len(b) - i
			}
			break
		}
	}
	return len(b)
}

// JSON returns b as the Data of an Output, cleaned, or nil if it is not JSON that all
// readers read alike.
func JSON(b []byte) json.RawMessage {
	clean, _ := CleanJSON(b)
	if jsonx.Check(clean, jsonx.Limits{FiniteNumbers: true}) != nil {
		return nil
	}
	return clean
}
