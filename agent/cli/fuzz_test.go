package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint/agent/cli"
	"github.com/stint-dev/stint/internal/jsonx"
)

// fuzz feeds a reader, one stream a run; it must not panic, and what is no object is refused.
func fuzz(f *testing.F, p cli.Protocol) {
	f.Helper()
	stream, err := os.ReadFile(filepath.Join("testdata", string(p)+".jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(stream)
	for line := range bytes.Lines(stream) {
		f.Add(line)
	}
	f.Add([]byte(`{"type":null}` + "\n" + `[]` + "\n" + `{"type":"result"}`))
	f.Fuzz(func(t *testing.T, stream []byte) {
		var before [][]byte
		for line := range bytes.Lines(stream) {
			line = bytes.TrimSpace(line)
			n, err := cli.ReadLine(p, before, line)
			if err == nil && (len(line) == 0 || line[0] != '{') {
				t.Errorf("%q is taken for %d events", line, n)
			}
			if len(before) < 20 {
				before = append(before, line)
			}
		}
	})
}

func FuzzCodex(f *testing.F)    { fuzz(f, cli.Codex) }
func FuzzClaude(f *testing.F)   { fuzz(f, cli.Claude) }
func FuzzOpenCode(f *testing.F) { fuzz(f, cli.OpenCode) }
func FuzzGemini(f *testing.F)   { fuzz(f, cli.Gemini) }

// What is kept of a text is UTF-8 without what a terminal acts on.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"plain\n", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07x", "\x1b", "\x1b[", "a\xffb", "\u009b31m", "\x1bP", "tab\there", "\r"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := cli.Clean(s)
		if !utf8.ValidString(out) || strings.ContainsFunc(out, func(r rune) bool { return r != '\n' && r != '\t' && (r < 0x20 || r >= 0x7f && r <= 0x9f) }) {
			t.Errorf("%q became %q", s, out)
		}
		if again := cli.Clean(out); again != out {
			t.Errorf("%q became %q, and then %q", s, out, again)
		}
	})
}

// Arguments are what a journal takes, whatever a stream has.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"a":1,"a":2}`, `"\ud83d"`, `null`, ``, `{`, `[1e999]`, strings.Repeat("[", 600) + strings.Repeat("]", 600)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if out := cli.Arguments(in); out != nil {
			if err := jsonx.Check(out, jsonx.Limits{}); err != nil {
				t.Errorf("%q became %q: %v", in, out, err)
			}
		}
	})
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[1;31mred\x1b[0m":           "red",
		"\x1b]8;;http://x\x1b\\link\x07": "link",
		"\x1b]0;no end\nnext":            "\nnext",
		"a\r\nb\x00":                     "a\nb",
		"\x9b":                           "\uFFFD",
		"ü✓":                             "ü✓",
	} {
		if got := cli.Clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestAfter(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"Try again in 12 seconds":               12 * time.Second,
		"please retry in 1.5s":                  1500 * time.Millisecond,
		"retry after 20 min":                    20 * time.Minute,
		"try again in 900ms":                    time.Second,
		"429 Too Many Requests":                 30 * time.Second,
		"try again in 99 hours, or so they say": 24 * time.Hour,
	} {
		if got := cli.After(in); got != want {
			t.Errorf("%q is %v, want %v", in, got, want)
		}
	}
}
