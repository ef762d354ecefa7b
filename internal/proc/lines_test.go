package proc_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint/internal/proc"
)

type gotLine struct {
	data         string
	size         int64
	unterminated bool
}

func readLines(t interface{ Fatalf(string, ...any) }, r io.Reader, limit int) []gotLine {
	lr := proc.Lines(r, limit)
	var out []gotLine
	for {
		l, err := lr.Next()
		if err == io.EOF {
			if _, again := lr.Next(); again != io.EOF {
				t.Fatalf("after io.EOF: %v", again)
			}
			return out
		}
		if err != nil {
			t.Fatalf("next: %v", err)
		}
		if l.Truncated() != (l.Size > int64(len(l.Data))) || len(l.Data) > max(limit, proc.MinLine) {
			t.Fatalf("line of %d bytes with size %d at limit %d, truncated %v", len(l.Data), l.Size, limit, l.Truncated())
		}
		out = append(out, gotLine{string(l.Data), l.Size, l.Unterminated})
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 100)
	for name, c := range map[string]struct {
		in   string
		want []gotLine
	}{
		"empty":          {"", nil},
		"two":            {"a\nb\n", []gotLine{{"a", 1, false}, {"b", 1, false}}},
		"empty lines":    {"\n\n", []gotLine{{"", 0, false}, {"", 0, false}}},
		"no newline":     {"a\nb", []gotLine{{"a", 1, false}, {"b", 1, true}}},
		"carriage":       {"a\r\n", []gotLine{{"a\r", 2, false}}},
		"long":           {long + "\nb\n", []gotLine{{long[:32], 100, false}, {"b", 1, false}}},
		"long at end":    {long, []gotLine{{long[:32], 100, true}}},
		"exactly":        {long[:32] + "\n", []gotLine{{long[:32], 32, false}}},
		"one byte over":  {long[:33] + "\n", []gotLine{{long[:32], 33, false}}},
		"NUL and binary": {"\x00\xff\n", []gotLine{{"\x00\xff", 2, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := readLines(t, strings.NewReader(c.in), 32)
			if len(got) != len(c.want) {
				t.Fatalf("%d lines %v, want %v", len(got), got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("line %d is %+v, want %+v", i, got[i], c.want[i])
				}
			}
		})
	}
}

func TestLinesKeepBytesBeforeAnError(t *testing.T) {
	broken := errors.New("broken")
	lr := proc.Lines(io.MultiReader(strings.NewReader("a\nhalf"), iotest.ErrReader(broken)), 32)
	for _, want := range []string{"a", "half"} {
		l, err := lr.Next()
		if err != nil || string(l.Data) != want || l.Unterminated != (want == "half") {
			t.Fatalf("got %q, %v, unterminated %v, want %q", l.Data, err, l.Unterminated, want)
		}
	}
	if _, err := lr.Next(); err != broken {
		t.Fatalf("got %v, want the error of the stream", err)
	}
}

// checkLines compares with splitting the whole text at once.
func checkLines(t interface{ Fatalf(string, ...any) }, in []byte, limit int, r io.Reader) {
	var want []gotLine
	limit = max(limit, proc.MinLine)
	for part := range bytes.Lines(in) {
		line, ended := bytes.CutSuffix(part, []byte("\n"))
		want = append(want, gotLine{string(line[:min(len(line), limit)]), int64(len(line)), !ended})
	}
	got := readLines(t, r, limit)
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("line %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestLinesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOf(rapid.SampledFrom([]byte("\n\nab\r\x00"))).Draw(t, "in")
		in = bytes.Repeat(in, rapid.IntRange(1, 40).Draw(t, "times"))
		limit := rapid.IntRange(-1, 200).Draw(t, "limit")
		r := io.Reader(bytes.NewReader(in))
		switch rapid.IntRange(0, 2).Draw(t, "pace") {
		case 1:
			r = iotest.OneByteReader(r)
		case 2:
			r = iotest.DataErrReader(r)
		}
		checkLines(t, in, limit, r)
	})
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb"), 16)
	f.Add(bytes.Repeat([]byte("x"), 70000), 20)
	f.Fuzz(func(t *testing.T, in []byte, limit int) {
		if limit > 1<<20 {
			limit %= 1 << 20
		}
		checkLines(t, in, limit, bytes.NewReader(in))
	})
}

type zeros struct{ left int }

func (z *zeros) Read(p []byte) (int, error) {
	n := min(len(p), z.left)
	z.left -= n
	if n == 0 {
		return 0, io.EOF
	}
	clear(p[:n])
	return n, nil
}

func TestLinesMemoryIsBounded(t *testing.T) {
	const limit = 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	lr := proc.Lines(&zeros{100 << 20}, limit)
	l, err := lr.Next()
	runtime.ReadMemStats(&after)
	if err != nil || l.Size != 100<<20 || len(l.Data) != limit || !l.Unterminated || cap(l.Data) > limit {
		t.Fatalf("size %d, kept %d of capacity %d, unterminated %v, error %v", l.Size, len(l.Data), cap(l.Data), l.Unterminated, err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 4*limit {
		t.Errorf("allocated %d bytes for a limit of %d", got, limit)
	}
}
