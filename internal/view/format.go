package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// iso is t for programs: RFC 3339 in UTC, to the millisecond.
func iso(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// clock is t for a person who knows the day: the day is named where it is not now's.
func clock(t, now time.Time) string {
	t = t.In(now.Location())
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	if t.Year() == now.Year() {
		return t.Format("2 Jan 15:04:05")
	}
	return t.Format("2 Jan 2006 15:04")
}

// span is a length of time in at most five characters: 41s, 18m, 1h08, 22h08, 3d04h.
func span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02d", d/time.Hour, d%time.Hour/time.Minute)
	case d < 100*24*time.Hour:
		return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// msec is milliseconds as an entry has them.
func msec(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// took is how long something took: 120ms, 41.5s, 1m34, then as span.
func took(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Second:
		return strconv.Itoa(int(d/time.Millisecond)) + "ms"
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", float64(d/(100*time.Millisecond))/10)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02d", d/time.Minute, d%time.Minute/time.Second)
	}
	return span(d)
}

// bytesOf is a size: 212 B, 18.4 KB, 3.1 MB.
func bytesOf(n int64) string {
	switch {
	case n < 0:
		return "-" + bytesOf(-n)
	case n < 1000:
		return strconv.FormatInt(n, 10) + " B"
	case n < 1_000_000:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// count is a number of tokens: 212, 31.2k, 1.4M.
func count(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// countOf is count in a table, where none is a dash.
func countOf(n int64) string {
	if n == 0 {
		return "-"
	}
	return count(n)
}

// Dollars is an amount to the cent, for people; less than half of one that is not nothing
// shows as such.
func Dollars(m stint.Money) string {
	const cent = 10_000_000
	sign := ""
	if m < 0 {
		sign, m = "-", -m
	}
	if m > 0 && m < cent/2 {
		return sign + "<$0.01"
	}
	c := (int64(m) + cent/2) / cent
	return fmt.Sprintf("%s$%d.%02d", sign, c/100, c%100)
}

// plural is "1 loop", "3 loops" or "3 entries".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		return term.Grouped(int64(n)) + " " + stem + "ies"
	}
	return term.Grouped(int64(n)) + " " + what + "s"
}

// wrap breaks text between words into lines of at most n columns; a longer word
// stands on a line of its own. n of 0 or less breaks nothing.
func wrap(text string, n int) []string {
	if n <= 0 || term.Width(text) <= n {
		return []string{text}
	}
	var lines []string
	line := ""
	for word := range strings.SplitSeq(text, " ") {
		switch {
		case line == "":
			line = word
		case term.Width(line)+1+term.Width(word) <= n:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

// list joins what is not empty with a middle dot.
func list(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · ")
}

// head is the beginning of a body on one line, safe to print: a JSON string as its
// text, other JSON without white space, text as far as it goes.
func head(b []byte, n int) string {
	const look = 4 << 10 // no line is longer
	var s string
	switch {
	case len(b) == 0:
		return ""
	case json.Valid(b):
		if err := json.Unmarshal(b, &s); err != nil || b[0] == 'n' {
			var buf bytes.Buffer
			_ = json.Compact(&buf, b) // it is valid
			s = buf.String()
		}
	default:
		s = string(b)
	}
	cut := len(s) > look
	if cut {
		s = strings.ToValidUTF8(s[:look], "")
	}
	s = term.Line(strings.TrimSpace(s))
	if cut && n <= 0 {
		s += "…"
	}
	return term.Cut(s, n)
}
