package jsonx

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// Check reports nil if b is exactly one JSON value after RFC 8259 within lim, else a
// *SyntaxError for the first fault. Besides what the grammar forbids it refuses: a name
// twice in one object, compared after unescaping; invalid UTF-8; a surrogate escape
// without its other half; a byte order mark. Whatever it accepts, encoding/json accepts.
func Check(b []byte, lim Limits) error {
	s := scanner{b: b, Limits: lim}
	if s.Depth <= 0 {
		s.Depth = DefaultDepth
	}
	s.Depth = min(s.Depth, MaxDepth)
	if !s.document() {
		return s.fault.error(b)
	}
	return nil
}

// scanner walks the input once. Its methods take the place of what they read and
// return the place after it, or -1 once fault is set.
type scanner struct {
	Limits
	b     []byte
	names [][]byte // unescaped names of the open objects, up to few of each
	fault failure
}

func (s *scanner) fail(at int, msg string) int {
	s.fault.at, s.fault.msg = at, msg
	return -1
}

func (s *scanner) document() bool {
	if s.Size > 0 && len(s.b) > s.Size {
		s.fail(s.Size, "the input has "+strconv.Itoa(len(s.b))+" bytes, the limit is "+strconv.Itoa(s.Size))
		return false
	}
	if bytes.HasPrefix(s.b, []byte("\xef\xbb\xbf")) {
		s.fail(0, "the input begins with a byte order mark; send UTF-8 without it")
		return false
	}
	i := s.space(0)
	if i == len(s.b) {
		s.fail(i, "the input is empty; one JSON value is needed")
		return false
	}
	if i = s.value(i, 1); i < 0 {
		return false
	}
	if i = s.space(i); i < len(s.b) {
		s.fail(i, "something follows the value; send exactly one")
		return false
	}
	return true
}

func (s *scanner) space(i int) int {
	for i < len(s.b) && isSpace(s.b[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t') }

// value reads any value; depth is what an array or object here would have.
func (s *scanner) value(i, depth int) int {
	if i >= len(s.b) {
		return s.fail(i, "the input ends where a value must follow")
	}
	switch c := s.b[i]; c {
	case '"':
		return s.text(i)
	case '{', '[':
		if depth > s.Depth {
			return s.fail(i, "nested deeper than "+strconv.Itoa(s.Depth)+" levels; flatten it")
		}
		if c == '{' {
			return s.object(i, depth)
		}
		return s.array(i, depth)
	case 't':
		return s.word(i, "true")
	case 'f':
		return s.word(i, "false")
	case 'n':
		return s.word(i, "null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return s.number(i)
	case 'N', 'I':
		return s.fail(i, "NaN and Infinity are not JSON; use null or a string")
	case '\'':
		return s.fail(i, "strings are put in double quotes")
	case ',', ']', '}':
		return s.fail(i, "a value is missing before "+strconv.QuoteRune(rune(c)))
	}
	return s.fail(i, "no JSON value begins like this")
}

func (s *scanner) word(i int, w string) int {
	if end := i + len(w); end <= len(s.b) && string(s.b[i:end]) == w {
		return end
	}
	return s.fail(i, "no JSON value begins like this; "+w+" is written in full and in lower case")
}

func (s *scanner) array(i, depth int) int {
	i = s.space(i + 1)
	if i < len(s.b) && s.b[i] == ']' {
		return i + 1
	}
	for n := 0; ; n++ {
		if i = s.value(i, depth+1); i < 0 {
			s.fault.steps = append(s.fault.steps, indexStep(n))
			return -1
		}
		switch i = s.space(i); {
		case i < len(s.b) && s.b[i] == ',':
			i = s.space(i + 1)
		case i < len(s.b) && s.b[i] == ']':
			return i + 1
		default:
			return s.fail(i, "the array goes on with ',' or ends with ']'")
		}
	}
}

func (s *scanner) object(i, depth int) int {
	var large map[string]struct{}
	base := len(s.names)
	i = s.space(i + 1)
	if i < len(s.b) && s.b[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(s.b) || s.b[i] != '"' {
			return s.fail(i, "a member begins with its name in double quotes")
		}
		start := i
		if i = s.text(i); i < 0 {
			return -1
		}
		name := unescape(s.b[start+1 : i-1])
		if s.known(base, &large, name) {
			s.fault.steps = append(s.fault.steps, nameStep(name))
			return s.fail(start, "the name "+quote(name)+" is in this object twice; keep one")
		}
		if i = s.space(i); i >= len(s.b) || s.b[i] != ':' {
			return s.fail(i, "':' must follow the name "+quote(name))
		}
		if i = s.value(s.space(i+1), depth+1); i < 0 {
			s.fault.steps = append(s.fault.steps, nameStep(name))
			return -1
		}
		switch i = s.space(i); {
		case i < len(s.b) && s.b[i] == ',':
			i = s.space(i + 1)
		case i < len(s.b) && s.b[i] == '}':
			s.names = s.names[:base]
			return i + 1
		default:
			return s.fail(i, "the object goes on with ',' or ends with '}'")
		}
	}
}

// few is how many names of one object are compared one by one.
const few = 16

// known reports that the object whose names begin at base has the name already, and
// notes it if not. A larger object gets a map, so that no input is slow.
func (s *scanner) known(base int, large *map[string]struct{}, name []byte) bool {
	if *large != nil {
		n := len(*large)
		(*large)[string(name)] = struct{}{}
		return len(*large) == n
	}
	for _, other := range s.names[base:] {
		if bytes.Equal(other, name) {
			return true
		}
	}
	if s.names = append(s.names, name); len(s.names)-base == few {
		*large = make(map[string]struct{}, 4*few)
		for _, other := range s.names[base:] {
			(*large)[string(other)] = struct{}{}
		}
	}
	return false
}

// text reads a string. Eight bytes at a time are looked at for one that needs care.
func (s *scanner) text(i int) int {
	for i++; ; {
		for i+8 <= len(s.b) {
			if m := special(binary.LittleEndian.Uint64(s.b[i:])); m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		if i >= len(s.b) {
			return s.fail(i, "the input ends inside a string")
		}
		switch c := s.b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = s.escape(i); i < 0 {
				return -1
			}
		case c < 0x20:
			return s.fail(i, "a control character in a string; write it as an escape")
		case c < utf8.RuneSelf:
			i++
		default:
			for i < len(s.b) && s.b[i] >= utf8.RuneSelf {
				r, n := utf8.DecodeRune(s.b[i:])
				if r == utf8.RuneError && n == 1 {
					return s.fail(i, "invalid UTF-8; send UTF-8, or base64 for bytes that are no text")
				}
				i += n
			}
		}
	}
}

// special has the top bit of a byte set where x holds a quote, a backslash, a control
// character or a byte beyond ASCII; the lowest such bit is exact, those above may be not.
func special(x uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	q, e := x^ones*'"', x^ones*'\\'
	return (x | (x-ones*0x20)&^x | (q-ones)&^q | (e-ones)&^e) & tops
}

func (s *scanner) escape(i int) int {
	if i+1 >= len(s.b) {
		return s.fail(len(s.b), "the input ends inside a string")
	}
	switch s.b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
	default:
		return s.fail(i, `no such escape; a backslash itself is written \\`)
	}
	r := hex4(s.b, i)
	switch {
	case r < 0:
		return s.fail(i, `\u takes four hexadecimal digits`)
	case r == 0 && s.NoNUL:
		return s.fail(i, `\u0000 is not allowed here; remove it`)
	case r&^0x3ff == 0xd800:
		if hex4(s.b, i+6)&^0x3ff != 0xdc00 {
			return s.fail(i, "half of a surrogate pair; its other half must follow")
		}
		return i + 12
	case r&^0x3ff == 0xdc00:
		return s.fail(i, "the second half of a surrogate pair without its first")
	}
	return i + 6
}

// hex4 reads the escape \uXXXX at b[i]; -1 if there is none.
func hex4(b []byte, i int) rune {
	if i+6 > len(b) || b[i] != '\\' || b[i+1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range b[i+2 : i+6] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return -1
		}
	}
	return r
}

func (s *scanner) digits(i int) int {
	for i < len(s.b) && s.b[i]-'0' <= 9 {
		i++
	}
	return i
}

func (s *scanner) number(start int) int {
	i := start
	if s.b[i] == '-' {
		i++
	}
	end, exponent := s.digits(i), 0
	if end == i {
		return s.fail(i, "a digit must follow '-'")
	}
	if s.b[i] == '0' && end > i+1 {
		return s.fail(i, "a number has no leading zero")
	}
	i = end
	if i < len(s.b) && s.b[i] == '.' {
		if end = s.digits(i + 1); end == i+1 {
			return s.fail(end, "a digit must follow '.'")
		}
		i = end
	}
	if i < len(s.b) && s.b[i]|0x20 == 'e' {
		if i++; i < len(s.b) && (s.b[i] == '+' || s.b[i] == '-') {
			i++
		}
		if end = s.digits(i); end == i {
			return s.fail(end, "the exponent needs a digit")
		}
		exponent, i = end-i, end
	}
	// 200 digits times 10^99 is finite; only what may be more is converted.
	if s.FiniteNumbers && (exponent > 2 || i-start > 200) {
		if _, err := strconv.ParseFloat(string(s.b[start:i]), 64); err != nil {
			return s.fail(start, "the number is beyond 64-bit floating point; send it as a string")
		}
	}
	return i
}
