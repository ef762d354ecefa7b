package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stint-dev/stint"
)

const (
	day         = 24 * time.Hour
	maxDuration = 3650 * day // ten years; longer is a mistake
	maxSize     = 1 << 30
	maxText     = 64 << 10 // of one argument or value; Linux takes 128 KiB
)

// What a value must look like, in the words of messages.
const (
	aDuration = "a duration such as 90s, 5m, 1h or 2d"
	aSize     = "a size such as 512KiB, 1MiB, 10MB or a number of bytes"
	anAmount  = "an amount of dollars such as 5.00"
	aVariable = "the name of an environment variable, letters, digits and _"
	aLabel    = "a label of 1 to 63 letters, digits, '.', '_', '-' and '/'"
)

// MaxLabels is how many labels a session has at most.
const MaxLabels = 64

// maxLabelText is how many characters the text of a label has at most.
const maxLabelText = 256

// isLabel reports whether a label can be called key.
func isLabel(key string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$`).MatchString(key)
}

// CheckLabel tells whether a session can have the label key with that text: the rule for
// labels in the file and on a command line. The error is [stint.Invalid] and says what
// is wrong; the text itself is in it only where that is harmless.
func CheckLabel(key, text string) error {
	fail := func(hint, format string, args ...any) error {
		return &stint.Error{Code: stint.Invalid, Op: "label", Hint: hint, Err: fmt.Errorf(format, args...)}
	}
	if !isLabel(key) {
		return fail("a label is key=text, like team=platform", "expected "+aLabel+", which begins with a letter or a digit, found %q", clip(key, 64))
	}
	why := badText(text)
	if why == "" {
		why = badLine(text, maxLabelText)
	}
	switch {
	case why != "":
		return fail(fmt.Sprintf("give one line of text, of 1 to %d characters", maxLabelText), "the text of %s %s", key, why)
	case secretPattern().MatchString(text):
		return fail("keep it outside: labels are kept in the journal and shown in lists", "the text of %s looks like a secret", key)
	}
	return nil
}

// parseDuration reads what Go's time.ParseDuration does, without a sign, and days
// of 24 hours. why says what is wrong with it, for a message.
func parseDuration(s string) (d time.Duration, why string) {
	rest := s
	for rest != "" {
		n := strings.IndexFunc(rest, unicode.IsLetter)
		if n <= 0 || !digits(rest[:n]) {
			return 0, "no unit"
		}
		unit := rest[n:]
		if end := strings.IndexFunc(unit, func(r rune) bool { return !unicode.IsLetter(r) }); end >= 0 {
			unit = unit[:end]
		}
		scale, name := time.Duration(1), unit
		if unit == "d" {
			scale, name = 24, "h"
		}
		part, err := time.ParseDuration(rest[:n] + name)
		switch {
		case err != nil && strings.Contains(err.Error(), "unknown unit"):
			return 0, "the units are d, h, m, s, ms, us and ns"
		case err != nil || part > maxDuration/scale || d+part*scale > maxDuration:
			return 0, "it is more than ten years"
		}
		d += part * scale
		rest = rest[n+len(unit):]
	}
	if s == "" {
		return 0, "no unit"
	}
	if d <= 0 {
		return 0, "it is not more than zero"
	}
	return d, ""
}

// digits reports whether s is a decimal number without sign or exponent.
func digits(s string) bool {
	whole, frac, dot := strings.Cut(s, ".")
	all := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	return all(whole) && (!dot || all(frac))
}

// formatDuration is the shortest form in hours, minutes and seconds: "1h", "1m30s".
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// parseSize reads a number of bytes, with a decimal (kB, MB, GB) or a binary
// (KiB, MiB, GiB) unit or none.
func parseSize(s string) (n int64, why string) {
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(s)
	}
	if end == 0 {
		return 0, "no number"
	}
	var unit int64
	switch s[end:] {
	case "", "B":
		unit = 1
	case "kB", "KB":
		unit = 1e3
	case "MB":
		unit = 1e6
	case "GB":
		unit = 1e9
	case "KiB":
		unit = 1 << 10
	case "MiB":
		unit = 1 << 20
	case "GiB":
		unit = 1 << 30
	default:
		return 0, "the units are B, kB, MB, GB, KiB, MiB and GiB, without a blank before them"
	}
	n, err := strconv.ParseInt(s[:end], 10, 64)
	if err != nil || n > maxSize/unit {
		return 0, "it is more than 1GiB"
	}
	if n == 0 {
		return 0, "it is not more than zero"
	}
	return n * unit, ""
}

// formatSize is the form with the largest unit that leaves a whole number.
func formatSize(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1e9, "GB"}, {1 << 20, "MiB"}, {1e6, "MB"}, {1 << 10, "KiB"}, {1e3, "kB"}} {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// nameRule is what an agent's name must look like. Names end up in paths, in
// flags and in what people type, so they hold nothing that means something there.
const nameRule = "a name has 1 to 64 characters of a-z, 0-9, '.', '_' and '-', and begins with a letter or a digit"

// badName says what is wrong with a name, "" if nothing is.
func badName(name string) string {
	if name == "" {
		return "is empty"
	}
	if n := utf8.RuneCountInString(name); n > 64 {
		return fmt.Sprintf("has %d characters", n)
	}
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		switch {
		case letter, i > 0 && (r == '.' || r == '_' || r == '-'):
		case r >= 'A' && r <= 'Z':
			return "has capital letters"
		case i == 0 && r < 0x80:
			return fmt.Sprintf("begins with %q", r)
		case r < 0x80:
			return fmt.Sprintf("has %q in it", r)
		default:
			return fmt.Sprintf("has %+q in it, which is not an ASCII letter", r)
		}
	}
	return ""
}

// isVariable reports whether name is one that every system takes for an
// environment variable.
func isVariable(name string) bool {
	other := func(r rune) bool { return !letter(r) }
	return name != "" && len(name) <= 255 && (name[0] < '0' || name[0] > '9') && !strings.ContainsFunc(name, other)
}

// ours reports whether stint sets the variable for the programs it starts.
func ours(name string) bool {
	switch name {
	case "STINT_SESSION", "STINT_NAME", "STINT_LINE", "STINT_LOOP", "STINT_ATTEMPT", "STINT_EPOCH", "STINT_PROTOCOL", "STINT_IDEMPOTENCY_KEY":
		return true
	}
	return false
}

// letter reports whether r is an ASCII letter, a digit or _.
func letter(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
}

// badText says what is wrong with a text that may have several lines.
func badText(s string) string {
	switch {
	case strings.ContainsRune(s, 0):
		return "has a NUL character in it"
	case !utf8.ValidString(s):
		return "is not valid Unicode"
	case len(s) > maxText:
		return "is longer than 64 KiB"
	}
	return ""
}

// badLine says what is wrong with a text of one line and at most n characters.
func badLine(s string, n int) string {
	switch {
	case strings.TrimSpace(s) == "":
		return "is empty"
	case utf8.RuneCountInString(s) > n:
		return fmt.Sprintf("is longer than %d characters", n)
	case strings.ContainsFunc(s, unicode.IsControl):
		return "has a line end or another control character in it"
	}
	return ""
}

// asList writes a command given as one text as the list to write instead. A text
// that a shell would interpret is left to a shell.
func asList(command string) string {
	words := strings.Fields(command)
	if strings.ContainsAny(command, "|&;<>$`\"'\\*?(){}~#=\n") || len(words) == 0 {
		words = []string{"sh", "-c", command}
	}
	for i, w := range words {
		words[i] = quote(w)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// quote writes a text so that YAML reads it back as that text.
func quote(s string) string {
	odd := func(r rune) bool { return !letter(r) && r != '.' && r != '/' && r != '-' }
	if s == "" || s[0] >= '0' && s[0] <= '9' || strings.ContainsFunc(s, odd) || reserved(s) {
		return strconv.Quote(s)
	}
	return s
}

// reserved reports whether YAML, or a reader of an older YAML, takes a plain word for
// something else than a text.
func reserved(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "none":
		return true
	}
	return (s[0] == '-' || s[0] == '.') && (strings.HasPrefix(s, "---") || strings.HasPrefix(s, "-.") ||
		regexp.MustCompile(`(?i)^(?:-+|\.+|[-.]*(?:inf|nan)|[-.]+[0-9].*)$`).MatchString(s))
}

// nearest returns the word that s is most likely a misspelling of, or "". Of a long text
// or of many words it says nothing: it is quadratic.
func nearest(s string, words []string) string {
	best, least := "", max(1, min(2, len(s)/3))+1
	if len(s) > 100 || len(words) > 200 {
		return ""
	}
	for _, w := range words {
		if d := distance(strings.ToLower(s), w); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance counts the letters to add, drop, change or swap with their neighbour
// that make b of a.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
		for j := 1; j <= len(b); j++ {
			if i == 0 {
				rows[i][j] = j
				continue
			}
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
