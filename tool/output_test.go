package tool_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/tool"
)

func TestClean(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
		replaced       int
	}{
		{"plain", "tab\t, esc\x1b[31m, bell\a, 😀", "tab\t, esc\x1b[31m, bell\a, 😀", 0},
		{"the six characters", `a literal \u0000 stays`, `a literal \u0000 stays`, 0},
		{"a mark that was there", "\uFFFD", "\uFFFD", 0},
		{"NUL", "before\x00after", "before\uFFFDafter", 1},
		{"two NUL", "\x00\x00", "\uFFFD\uFFFD", 2},
		{"lone surrogate in UTF-8", "x\xed\xa0\xbdy", "x\uFFFDy", 1},
		{"bytes that are no text", "\xff\xfe a \x80", "\uFFFD a \uFFFD", 2},
		{"cut character", "é\xc3", "é\uFFFD", 1},
		{"empty", "", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, n := tool.Clean([]byte(tt.in))
			if got != tt.want || n != tt.replaced {
				t.Errorf("got %q and %d, want %q and %d", got, n, tt.want, tt.replaced)
			}
		})
	}
}

func TestCleanJSON(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		replaced int
	}{
		{`{"id": 2512292042121000001,  "s":"\u00e9\n\\u0000"}`, `{"id": 2512292042121000001,  "s":"\u00e9\n\\u0000"}`, 0},
		{`"a\u0000b"`, `"a\ufffdb"`, 1},
		{`"\\\u0000"`, `"\\\ufffd"`, 1},
		{`"\ud83d lone"`, `"\ufffd lone"`, 1},
		{`"\uD83D\ude00 pair"`, `"\uD83D\ude00 pair"`, 0},
		{`"\ud83d\ud83d\ude00"`, `"\ufffd\ud83d\ude00"`, 1},
		{`"\ude00"`, `"\ufffd"`, 1},
		{"\"\xff\"", "\"\uFFFD\"", 1},
	} {
		got, n := tool.CleanJSON([]byte(tt.in))
		if string(got) != tt.want || n != tt.replaced {
			t.Errorf("%s: got %s and %d, want %s and %d", tt.in, got, n, tt.want, tt.replaced)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{`"\ud83d\u0000\\u0000"`, "a\x00\xff", `{"a":"\u00`, `\`, `"\ud83d\ude00"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		text, n := tool.Clean(b)
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") || (n == 0) != (text == string(b)) {
			t.Errorf("%q became %q with %d replaced", b, text, n)
		}
		if again, m := tool.Clean([]byte(text)); again != text || m != 0 {
			t.Errorf("cleaning twice is not cleaning once: %q, %q", text, again)
		}
		clean, n := tool.CleanJSON(b)
		if json.Valid(b) {
			if err := jsonx.Check(clean, jsonx.Limits{NoNUL: true, Depth: jsonx.MaxDepth}); err != nil && !strings.Contains(err.Error(), "twice") {
				t.Errorf("%q became %q: %v", b, clean, err)
			}
			if n == 0 && !bytes.Equal(b, clean) {
				t.Errorf("%q became %q, and nothing is said", b, clean)
			}
		}
	})
}

func TestExcerpt(t *testing.T) {
	t.Run("short text is left alone", func(t *testing.T) {
		if got := tool.Excerpt("abc", 3, "read it"); got != "abc" {
			t.Errorf("got %q", got)
		}
	})
	long := "HEAD " + strings.Repeat("é😀", 500_000) + " TAIL"
	for limit := 512; limit < 600; limit++ {
		got := tool.Excerpt(long, limit, `call read_result with {"id":"4.2"}`)
		if len(got) > limit || len(got) < limit-20 || !utf8.ValidString(got) {
			t.Fatalf("limit %d gave %d bytes: %q", limit, len(got), got)
		}
		for _, want := range []string{"HEAD é", " TAIL", "of 3000010 bytes are left out here; to read it, call read_result with"} {
			if !strings.Contains(got, want) {
				t.Fatalf("%q is not in %q", want, got)
			}
		}
	}
	if got := tool.Excerpt(long, 10, strings.Repeat("é", 900)); len(got) > 400 || !utf8.ValidString(got) {
		t.Errorf("a tiny limit gave %q", got)
	}
}

func TestKeep(t *testing.T) {
	k := tool.NewKeep(10)
	for range 1000 {
		if n, err := k.Write([]byte("12é")); n != 4 || err != nil {
			t.Fatal(n, err)
		}
	}
	text := k.Capped().Text()
	if !strings.HasPrefix(text, "12é12é12\n[stint: ") || !strings.Contains(text, "3990 bytes after these were not kept") {
		t.Errorf("got %q", text)
	}
	for _, s := range []string{"12345678é", "123456789é", "1234567😀"} {
		k := tool.NewKeep(10)
		_, _ = k.Write([]byte(s))
		if text := k.Capped().Text(); strings.Contains(text, "\uFFFD") {
			t.Errorf("%q: a cut character shows as a fault of the tool: %q", s, text)
		}
	}
	k = tool.NewKeep(0)
	_, _ = k.Write([]byte("a\x00b\xffc"))
	if got, want := k.Capped().Text(), "a\uFFFDb\uFFFDc\n[stint: 2 times \uFFFD above stands for a NUL or for bytes that are not UTF-8]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestJSON(t *testing.T) {
	if got := tool.JSON([]byte(`{"id": 18446744073709551615, "s":"\ud83d"}`)); string(got) != `{"id": 18446744073709551615, "s":"\ufffd"}` {
		t.Errorf("got %s", got)
	}
	for _, bad := range []string{`{"a":1,"a":2}`, `1e400`, `x`, ``, `{} {}`} {
		if got := tool.JSON([]byte(bad)); got != nil {
			t.Errorf("%s gave %s", bad, got)
		}
	}
}
