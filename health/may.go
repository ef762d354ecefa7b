package health

import "strings"

// A check tells, much quicker than a regular expression does, that a text has none of its
// matches. It is true for every text that has one, and may be for others.
type check func(s string) bool

// with is for matches that contain one of some pieces.
func with(pieces ...string) check {
	return func(s string) bool {
		for _, p := range pieces {
			if strings.Contains(s, p) {
				return true
			}
		}
		return false
	}
}

// both is for matches that pass two checks.
func both(a, b check) check { return func(s string) bool { return a(s) && b(s) } }

// run is for matches with n bytes of a kind, one after the other.
func run(n int, kind func(c byte) bool) check {
	return func(s string) bool {
		have := 0
		for i := range len(s) {
			if !kind(s[i]) {
				have = 0
			} else if have++; have == n {
				return true
			}
		}
		return false
	}
}

// at is for matches with a byte whose neighbourhood is right.
func at(c byte, right func(s string, i int) bool) check {
	return func(s string) bool {
		for from := 0; ; {
			n := strings.IndexByte(s[from:], c)
			if n < 0 {
				return false
			}
			if right(s, from+n) {
				return true
			}
			from += n + 1
		}
	}
}

// either is for matches that pass one of two checks.
func either(a, b check) check { return func(s string) bool { return a(s) || b(s) } }

func digit(c byte) bool { return '0' <= c && c <= '9' }

func hexDigit(c byte) bool { return digit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

func digitAt(s string, i int) bool { return i >= 0 && i < len(s) && digit(s[i]) }

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func blank(c byte) bool { return c == ' ' || c == '\t' }

// between: digits on both sides, as in a date.
func between(s string, i int) bool { return digitAt(s, i-1) && digitAt(s, i+1) }

// beforeClock: a colon before the minutes of a time with seconds.
func beforeClock(s string, i int) bool {
	return digitAt(s, i+1) && digitAt(s, i+2) && i+3 < len(s) && s[i+3] == ':'
}

// beforePort: a colon behind a host and before two digits.
func beforePort(s string, i int) bool {
	return i > 0 && (s[i-1] == 't' || s[i-1] == ']' || digit(s[i-1])) && digitAt(s, i+1) && digitAt(s, i+2)
}

// spans is for a number with one of some units, behind at most so many blanks and before
// the end of a word. The units are of letters, ASCII but for the first.
func spans(blanks int, units ...string) check {
	known := map[string]bool{}
	for _, u := range units {
		known[u] = true
	}
	return func(s string) bool {
		for i := range len(s) {
			if !digit(s[i]) {
				continue
			}
			k := i + 1
			for n := 0; n < blanks && k < len(s) && blank(s[k]); n++ {
				k++
			}
			end := k
			if strings.HasPrefix(s[k:], "µ") || strings.HasPrefix(s[k:], "μ") {
				end += len("µ")
			}
			for end < len(s) && letter(s[end]) {
				end++
			}
			if known[s[k:end]] && (end == len(s) || !digit(s[end]) && s[end] != '_') {
				return true
			}
		}
		return false
	}
}

// numbered is for a number behind a word that has one of some endings of three letters, in
// large or small ones, with a quote, blanks and a separator between.
func numbered(endings ...string) check {
	return func(s string) bool {
		for i := 1; i < len(s); i++ {
			if !digit(s[i]) || digit(s[i-1]) {
				continue
			}
			k := blanksBefore(s, i)
			if k > 0 && strings.IndexByte("=:#", s[k-1]) >= 0 {
				k = blanksBefore(s, k-1)
			}
			if k > 0 && (s[k-1] == '"' || s[k-1] == '\'') {
				k--
			}
			for _, e := range endings {
				if k >= len(e) && strings.EqualFold(s[k-len(e):k], e) {
					return true
				}
			}
		}
		return false
	}
}

// blanksBefore is where the blanks before i begin.
func blanksBefore(s string, i int) int {
	for i > 0 && blank(s[i-1]) {
		i--
	}
	return i
}

// squeeze makes one blank of each run of blanks and carriage returns.
func squeeze(s string) string {
	white := func(c byte) bool { return blank(c) || c == '\r' }
	i := 0 // up to here it is as it shall be
	for i < len(s) && !(white(s[i]) && (s[i] != ' ' || i+1 < len(s) && white(s[i+1]))) {
		i++
	}
	if i == len(s) {
		return s
	}
	b := append(make([]byte, 0, len(s)), s[:i]...)
	for i < len(s) {
		if !white(s[i]) {
			b = append(b, s[i])
			i++
			continue
		}
		for i < len(s) && white(s[i]) {
			i++
		}
		b = append(b, ' ')
	}
	return string(b)
}
