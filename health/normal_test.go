package health

import (
	"strings"
	"testing"
)

func TestResult(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"\x1b[32mok\x1b[0m", "ok", "ok"},
		{"\x1b]0;title\x07ok", "\x1b]0;other\x1b\\ok", "ok"},
		{`{"out":"\u001b[1mok"}`, `{"out":"ok"}`, `{"out":"ok"}`},
		{`{"out":"a\n16:09:45 \"/tmp/a1\""}`, `{"out":"a\n06:09:45 \"/tmp/a2\""}`, "{\"out\":\"a\n<time> \"<temp>\"\"}"},
		{"at 2026-11-29T16:09:45.912Z.", "at 2025-01-02T03:04:05+01:00.", "at <time>."},
		{"2026/11/29 16:09:45 GET /", "2026/11/30 06:19:05 GET /", "<time> GET /"},
		{"Date: Sun, 29 Nov 2026 16:09:45 GMT", "Date: Mon, 30 Nov 2026 01:00:00 GMT", "Date: <time>"},
		{"Sun Nov 29 16:09:45 UTC 2026", "Mon Nov 30 16:09:46 UTC 2026", "<time>"},
		{"-rw-r--r-- 1 me me 12 Nov 29 16:09 a.go", "-rw-r--r-- 1 me me 12 Nov  9  2025 a.go", "-rw-r--r-- 1 me me 12 <time> a.go"},
		{"16:09:45 up", "4:09:45 PM up", "<time> up"},
		{`{"created_at": 1764432585, "n": 1}`, `{"n":1,"created_at":1764432999}`, `{"created_at":<time>,"n":1}`},
		{"took 1m2.5s", "took 12ms", "took <span>"},
		{"ran 3 tests in 0.031 seconds", "ran 3 tests in 4 secs", "ran 3 tests in <span>"},
		{"id 6f1c0001-aaaa-4bbb-8ccc-0123456789ab", "id 00000000-AAAA-4bbb-8ccc-0123456789ab", "id <id>"},
		{"commit 3f786850e387550fdab836ed7e6dc881de23001b", "commit 89e6c98d92887913cadf06b2adb97f26cde4849b", "commit <id>"},
		{"panic at 0xc000012345", "panic at 0xc0000fffff", "panic at <address>"},
		{"wrote /tmp/go-build123/b001/a.o", "wrote /tmp/go-build77/b001/a.o", "wrote <temp>/b001/a.o"},
		{`open C:\Users\me\AppData\Local\Temp\x1: no`, `open C:\Users\me\AppData\Local\Temp\x22: no`, "open <temp>: no"},
		{"listening, pid 4711", "listening, pid 12", "listening, pid <n>"},
		{"goroutine 17 [running]", "goroutine 4 [running]", "goroutine <n> [running]"},
		{"sshd[4711]: bye", "sshd[999]: bye", "sshd[<n>]: bye"},
		{"dial 127.0.0.1:43211: refused", "dial 127.0.0.1:50001: refused", "dial 127.0.0.1:<n>: refused"},
		{"a \t b\r\n", "a b", "a b"},
	} {
		if a, b := monitor(t).result(c.a), monitor(t).result(c.b); a != c.want || b != c.want {
			t.Errorf("%q is %q and\n%q is %q, want %q", c.a, a, c.b, b, c.want)
		}
	}
}

// What a result says must count, above all in a poll that changes.
func TestResultKeeps(t *testing.T) {
	for _, c := range [][2]string{
		{"41 of 90 done", "42 of 90 done"},
		{"41%", "42%"},
		{`{"n":1}`, `{"n":2}`},
		{`{"n":12345678901234567890}`, `{"n":12345678901234567891}`},
		{"main.go:12:30: undefined", "main.go:12:31: undefined"},
		{"main.go:112:5: undefined", "main.go:113:5: undefined"},
		{"123456789012 bytes", "123456789013 bytes"},
		{"models[3]: bad", "models[4]: bad"},
		{"v1.26.0", "v1.26.1"},
		{"3f78685", "89e6c98"},
		{"process 12 of 40", "process 13 of 40"},
		{"home/tmp/a", "home/tmp/b"},
		{"flags 0x1f", "flags 0x2f"},
		{"May 12", "May 13"},
		{"a\nb", "a b"},
		{`{"out":"a\n1"}`, `{"out":"a\n2"}`},
		{strings.Repeat("a", 3*ends), strings.Repeat("a", 3*ends+1)},
		{strings.Repeat("a", ends) + "1" + strings.Repeat("a", 2*ends), strings.Repeat("a", ends) + "2" + strings.Repeat("a", 2*ends)},
	} {
		if a, b := monitor(t).result(c[0]), monitor(t).result(c[1]); a == b {
			t.Errorf("%.80q and %.80q are both %.80q", c[0], c[1], a)
		}
	}
}

func TestFailure(t *testing.T) {
	a, b := failure(monitor(t).result("line 12: no column c4 (took 3ms)")), failure(monitor(t).result("line 9: no column c12 (took 1.5s)"))
	if a != b || a != "line #: no column c# (took <span>)" {
		t.Errorf("%q, %q", a, b)
	}
}

// Whatever stands around it, a line with a number of its own stays another line; what is
// cleaned is clean, and does not grow beyond the marks that were put in.
func FuzzResult(f *testing.F) {
	for _, s := range []string{
		"", "pid", "\x1b[", "\x1b]0;", "2026-11-29T", "/tmp/", "port:", "localhost:", "Nov", "0x", `{"ts":`, "sshd[", "1.", "\xff", `"a`, "C:\\Users\\a",
		"\\u001b[\\u001b[1m1m", "1\x1b[0m0s",
	} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		line := func(s string) string { return before + "\n" + s + " items\n" + after }
		if monitor(t).result(line("12")) == monitor(t).result(line("13")) {
			t.Errorf("12 and 13 are the same between %q and %q", before, after)
		}
		if got, want := monitor(t).clean(before), monitor(t).whole(t, before); got != want {
			t.Errorf("%q is cleaned to\n%q, want\n%q", before, got, want)
		}
		got := monitor(t).result(before)
		if len(got) > 10*len(before)+10 {
			t.Errorf("%d bytes became %d", len(before), len(got))
		}
		if failure(got) != failure(failure(got)) || strings.ContainsAny(failure(got), "0123456789") {
			t.Errorf("%q has digits", failure(got))
		}
		if strings.Contains(got, "\x1b") && len(before) <= 2*ends {
			t.Errorf("%q has an escape", got)
		}
	})
}

func monitor(t testing.TB) *Monitor {
	t.Helper()
	m, err := NewMonitor(Rules{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
