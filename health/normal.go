package health

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// ends is how many bytes of each end of a long result are cleaned. What tools print at
// full length is then cleaned in milliseconds.
const ends = 8 << 10

// canon returns JSON without white space and with its members in order, and any other
// text without white space around it.
func canon(s string) string {
	s = strings.TrimSpace(s)
	if !mayBeJSON(s) {
		return s
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber() // all digits count
	var v any
	if err := d.Decode(&v); err != nil {
		return s
	}
	if _, err := d.Token(); err != io.EOF {
		return s
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return s
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func mayBeJSON(s string) bool { return s != "" && strings.IndexByte(`{["`, s[0]) >= 0 }

// result returns a result without what changes by itself.
func (m *Monitor) result(s string) string {
	plain := func(s string) string { return s }
	if s = strings.TrimSpace(s); mayBeJSON(s) {
		// The lines of a text in JSON begin like those of any other.
		plain = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\"`, `"`, `\u001b`, "\x1b", `\u001B`, "\x1b").Replace
	}
	if len(s) <= 2*ends {
		return m.clean(plain(canon(s)))
	}
	return m.clean(plain(s[:ends])) + s[ends:len(s)-ends] + m.clean(plain(s[len(s)-ends:]))
}

// failure returns an error, cleaned already, with # for each number.
func failure(s string) string {
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		switch digit := '0' <= s[i] && s[i] <= '9'; {
		case !digit:
			b = append(b, s[i])
		case len(b) == 0 || b[len(b)-1] != '#':
			b = append(b, '#')
		}
	}
	return string(b)
}

// clean takes out of s what changes by itself, and makes all white space in a line one
// space. No pattern reaches beyond a line.
func (m *Monitor) clean(s string) string {
	for i, v := range m.volatile {
		if !v.may(s) {
			continue // most texts have little of all this
		}
		re := m.compiled[i]
		if v.only == nil {
			s = re.ReplaceAllString(s, v.by)
			continue
		}
		s = re.ReplaceAllStringFunc(s, func(m string) string {
			if v.only(m) {
				return v.by
			}
			return m
		})
	}
	return squeeze(s)
}

type pattern struct {
	may     check // true where there may be a match
	pattern string
	by      string
	only    func(string) bool // what else a match must be; nil for nothing
}

// volatile lists what changes by itself, in the order in which it is taken out: a date
// before the clock that is part of it, a UUID before the hexadecimal digits of its end.
func volatile() []pattern {
	const (
		month = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*`
		day   = `(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?[ \t]+)?`
		clock = `\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?`
		zone  = `(?:[ \t]+(?:[A-Z]{3,4}|[+-]\d{4}))?`
		name  = `[^/\\\s"':;,)\]]+` // of a file
	)
	esc := with("\x1b")
	months := with("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
	digits := func(n int) check { return run(n, digit) }
	return []pattern{
		// Colours and cursor; then titles; then what is left of others.
		{may: esc, pattern: `\x1b\[[0-?]*[ -/]*[@-~]`},
		{may: esc, pattern: `\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)`},
		{may: esc, pattern: `\x1b`},

		{may: both(with("-"), run(12, hexDigit)), pattern: `\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b`, by: `<id>`},

		// 2026-11-29, 2026/11/29, 2026-11-29T16:09:45.912+01:00, 2026-11-29 16:09.
		{may: either(at('-', between), at('/', between)), pattern: `\b\d{4}([-/])\d\d[-/]\d\d(?:[T \t]` + clock + `(?:[ \t]?(?:Z\b|[+-]\d\d:?\d\d))?)?`, by: `<time>`},
		// Nov 29 16:09:45 UTC 2026, November 29, 2026; then 29 Nov 2026 16:09:45 GMT.
		{may: both(digits(1), months), pattern: `\b` + day + month + `[ \t]+\d{1,2},?[ \t]+(?:` + clock + zone + `(?:[ \t]+\d{4}\b)?|\d{4}\b)`, by: `<time>`},
		{may: both(digits(4), months), pattern: `\b` + day + `\d{1,2}[ \t-]+` + month + `[ \t-]+\d{4}(?:[ \t]+` + clock + zone + `)?\b`, by: `<time>`},
		{may: at(':', beforeClock), pattern: `\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?:[ \t]?[AaPp][Mm])?\b`, by: `<time>`},
		// "ts": 1764432585123.
		{may: digits(10), pattern: `(?i)((?:\b|_)(?:time|timestamp|ts|date|epoch|at|expires|modified)["']?[ \t]*[:=][ \t]*["']?)\d{10,19}(?:\.\d+)?\b`, by: `${1}<time>`},

		// 1.5s, 3m12s, 250ms; then 0.03 seconds.
		{may: spans(0, "h", "ms", "m", "s", "us", "µs", "μs", "ns"), pattern: `\b(?:\d+(?:\.\d+)?(?:h|ms|m|s|us|µs|μs|ns))+\b`, by: `<span>`},
		{may: spans(1, strings.Fields("ns us µs μs ms s sec secs second seconds min mins minute minutes hour hours")...), pattern: `\b\d+(?:\.\d+)?[ \t]?(?:ns|us|µs|μs|ms|s|secs?|seconds?|mins?|minutes?|hours?)\b`, by: `<span>`},

		{may: with("0x"), pattern: `\b0x[0-9a-fA-F]{6,}\b`, by: `<address>`},
		{may: run(12, hexDigit), pattern: `\b[0-9a-fA-F]{12,}\b`, by: `<id>`, only: hexadecimal},

		// The first name below a folder for temporary files; what is below that stays.
		{may: with("/tmp/", "/dev/shm/"), pattern: `(^|[^\w./-])(?:/private)?/(?:tmp|var/tmp|dev/shm)/` + name, by: `${1}<temp>`},
		{may: with("/var/folders/"), pattern: `(?:/private)?/var/folders/` + name + `/` + name + `/T/` + name, by: `<temp>`},
		{may: with(`:\`, ":/"), pattern: `(?i)\b[a-z]:[\\/]+users[\\/]+` + name + `[\\/]+appdata[\\/]+local[\\/]+temp[\\/]+` + name, by: `<temp>`},

		{may: numbered("pid", "tid", " id", "ine", "ort"), pattern: `(?i)\b(p?pid|tid|process id|goroutine|port)(["']?[ \t]*[=:#]?[ \t]*)\d+\b`, by: `${1}${2}<n>`},
		{may: both(with("]:"), digits(3)), pattern: `\b([a-z_][\w.-]*)\[\d{3,}\]:[ \t]`, by: `${1}[<n>]: `}, // sshd[1234]:
		{may: at(':', beforePort), pattern: `(\blocalhost|\b\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:]*::[0-9a-f:]*\]):\d{2,5}\b`, by: `${1}:<n>`},
	}
}

// hexadecimal reports whether hexadecimal digits are more than a number or a word.
func hexadecimal(s string) bool {
	return strings.ContainsAny(s, "0123456789") && strings.ContainsAny(s, "abcdefABCDEF")
}
