package term

import (
	"strconv"
	"strings"
	"unicode"
)

// Command is a command line as a shell would take it, for people to copy.
func Command(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = a
		plain := func(r rune) bool {
			return strings.ContainsRune("-_./=:,@%+~", r) || unicode.IsLetter(r) || unicode.IsDigit(r)
		}
		if a == "" || strings.ContainsFunc(a, func(r rune) bool { return !plain(r) }) {
			words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// Grouped is a number with commas.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
