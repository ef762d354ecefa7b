package health

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// whole cleans a text as clean does, with every pattern, whether or not it can match.
func (m *Monitor) whole(t interface{ Errorf(string, ...any) }, s string) string {
	for i, v := range m.volatile {
		re := m.compiled[i]
		if re.MatchString(s) && !v.may(s) {
			t.Errorf("%s matches %q, which is passed over", v.pattern, s)
		}
		if v.only == nil {
			s = re.ReplaceAllString(s, v.by)
			continue
		}
		s = re.ReplaceAllStringFunc(s, func(found string) string {
			if v.only(found) {
				return v.by
			}
			return found
		})
	}
	return regexp.MustCompile(`[ \t\r]+`).ReplaceAllString(s, " ")
}

// pieces are what patterns match, what they nearly match, and what may stand between.
func pieces() []string {
	return []string{
		"\x1b", "[32m", "\x1b[0m", "\x1b]0;t\x07", "\x1b\\", "6f1c0001-aaaa-4bbb-8ccc-0123456789ab", "6f1c0001-", "aaaa-", "0123456789ab", "0123456789a",
		"2026-11-29", "2026/11/29", "T16:09:45.912Z", "16:09:45", "16:09", ":09:", "9:45 pm", "+01:00", "Nov", "Nov 29 2026", "Nov  9 16:09", "29 Nov 2026", "Mon, ", "May", "GMT", "2026",
		"time", "ts", "tſ", "epocH", "at", "expireſ", "_", "\"", "'", ": ", "=", "#", "1764432585", "176443258", "1764432585123.5", "1.5s", "3m12s", "250ms", "7 ms", "7\tseconds", "7  s", "1h", "4µs", "ms", "s_", "2sx", "min", "hours", " sec,", "4μs", "4 µs", "4K", "4ſ",
		"0x", "0X", "c000012345", "/tmp/", "/tmp/a", "/private/tmp/b", "/var/tmp/", "/dev/shm/x", "/var/folders/a/b/T/c", "/var/folders/", `C:\Users\me\AppData\Local\Temp\x`, `c:/uſers/a/appdata/local/temp/y`, ":/", `:\`,
		"pid", "ppid", "PID 4711", "tid=1", "process id", "proceſs id: 4", "goroutine 17", "port", "Port\" : 80", "pid' \t=  9", "sshd[4711]: ", "sshd[999", "]: ", "]:", "localhost:80", "127.0.0.1:43211", "127.0.0.1", "[::1]:443", ":8", ":80",
		" ", "  ", "\t", "\r\n", "\n", "\r", "a", "Z", "-", "/", ".", ",", "é", "\xff", "<time>", "12", "9",
	}
}

// What passes over the patterns that cannot match changes nothing that is cleaned.
func TestNothingIsPassedOver(t *testing.T) {
	m := monitor(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(pieces()), rapid.StringN(0, 4, 8)), 0, 12).Draw(rt, "pieces"), "")
		if got, want := m.clean(s), m.whole(rt, s); got != want {
			rt.Fatalf("%q is cleaned to\n%q, want\n%q", s, got, want)
		}
	})
}

// Each check is there for something: a text of two pieces that it passes over, and one that
// it does not.
func TestChecksDecide(t *testing.T) {
	for _, v := range volatile() {
		var yes, no bool
		for _, a := range pieces() {
			for _, b := range pieces() {
				yes, no = yes || v.may(a+b), no || !v.may(a+b)
			}
		}
		if !yes || !no {
			t.Errorf("%s: some text passes: %v, some does not: %v", v.pattern, yes, no)
		}
	}
}
