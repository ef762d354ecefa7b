package jsonx

import (
	"bytes"
	"unicode/utf8"
)

// cursor walks over bytes that Check has accepted, so it never looks for faults.
type cursor struct {
	b []byte
	i int
}

func (c *cursor) space() {
	for c.i < len(c.b) && isSpace(c.b[c.i]) {
		c.i++
	}
}

// more moves to the next element of the array or object whose opening byte, or whose
// element, the cursor has just passed. Without one it passes the closing byte.
func (c *cursor) more() bool {
	c.space()
	switch c.b[c.i] {
	case ']', '}':
		c.i++
		return false
	case ',':
		c.i++
		c.space()
	}
	return true
}

// name passes a member's name and colon and gives the name as written, with its quotes.
func (c *cursor) name() []byte {
	quoted := c.text()
	c.space()
	c.i++
	c.space()
	return quoted
}

func (c *cursor) text() []byte {
	start := c.i
	for c.i++; c.b[c.i] != '"'; c.i++ {
		if c.b[c.i] == '\\' {
			c.i++
		}
	}
	c.i++
	return c.b[start:c.i]
}

// skip passes one value.
func (c *cursor) skip() {
	for depth := 0; ; {
		switch c.b[c.i] {
		case '"':
			c.text()
		case '{', '[':
			depth++
			c.i++
		case '}', ']':
			depth--
			c.i++
		case ',', ':', ' ', '\t', '\n', '\r':
			c.i++
			continue
		default:
			for c.i < len(c.b) && c.b[c.i] > ' ' && c.b[c.i] != ',' && c.b[c.i] != ']' && c.b[c.i] != '}' {
				c.i++
			}
		}
		if depth == 0 {
			return
		}
	}
}

// unescape gives the text of a checked string without its quotes; it shares memory with
// raw where there are no escapes.
func unescape(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	return appendUnescaped(make([]byte, 0, len(raw)), raw)
}

func appendUnescaped(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		i += 2
		switch c = raw[i-1]; c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r := hex4(raw, i-2)
			i += 4
			if r&^0x3ff == 0xd800 {
				r = 0x10000 + (r-0xd800)<<10 + hex4(raw, i) - 0xdc00
				i += 6
			}
			dst = utf8.AppendRune(dst, r)
			continue
		}
		dst = append(dst, c)
	}
	return dst
}
