package delta_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/delta"
	"pgregory.net/rapid"
)

// prose gives n bytes that look like text and do not repeat.
func prose(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	for b.Len() < n {
		for range 2 + r.IntN(9) {
			b.WriteByte(byte('a' + r.IntN(26)))
		}
		b.WriteByte(' ')
	}
	return b.String()[:n]
}

// transcript is a state as an agent keeps it: a counter in front, messages behind.
func transcript(n, count, size int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `{"n":%d,"messages":[`, n)
	for i := range count {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"role":"user","content":"%s"}`, prose(uint64(i), size))
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

func roundTrip(t interface {
	Helper()
	Fatalf(string, ...any)
}, old, new []byte) []byte {
	t.Helper()
	oldWas, newWas := bytes.Clone(old), bytes.Clone(new)
	d := delta.Make(old, new)
	if len(d) > len(new)+16 {
		t.Fatalf("the delta has %d bytes, the new state %d", len(d), len(new))
	}
	got, err := delta.Apply(old, d)
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}
	if !bytes.Equal(got, new) || got == nil {
		t.Fatalf("Apply gave %d other bytes than the %d of the new state", len(got), len(new))
	}
	if !bytes.Equal(old, oldWas) || !bytes.Equal(new, newWas) {
		t.Fatalf("the inputs were changed")
	}
	return d
}

func TestDeltaSize(t *testing.T) {
	doc := func(n int) []byte { return []byte(prose(99, n)) }
	edit := func(b []byte, at int, cut int, put string) []byte {
		return []byte(string(b[:at]) + put + string(b[at+cut:]))
	}
	big := doc(64 << 10)
	half := len(big) / 2
	kib := prose(5, 1024)
	tests := []struct {
		name     string
		old, new []byte
		under    int
	}{
		{"both empty", nil, nil, 8},
		{"identical short", []byte(`{}`), []byte(`{}`), 16},
		{"identical 1 KiB", doc(1024), doc(1024), 16},
		{"identical 2 MiB", doc(2 << 20), doc(2 << 20), 16},
		{"from nothing", nil, big, len(big) + 16},
		{"to nothing", big, nil, 8},
		{"append", big, append(bytes.Clone(big), kib...), 1024 + 24},
		{"prepend", big, append([]byte(kib), big...), 1024 + 24},
		{"counter and 1 KiB message, 2 messages", transcript(17, 2, 1024), transcript(18, 3, 1024), 1200},
		{"counter and 1 KiB message, 64 KiB", transcript(17, 64, 1024), transcript(18, 65, 1024), 1200},
		{"counter grows a digit, 2 MiB", transcript(99, 2048, 1024), transcript(100, 2049, 1024), 1200},
		{"two edits far apart", big, edit(edit(big, 60000, 9, "something else"), 1000, 0, "new"), 128},
		{"two edits of 300 bytes far apart", big, edit(edit(big, 60000, 9, kib[:300]), 1000, 50, kib[300:600]), 700},
		{"first message dropped", transcript(5, 64, 1000), transcript(5, 64, 1000)[:1], 24},
		{"halves swapped", big, append(bytes.Clone(big[half:]), big[:half]...), 32},
		{"cut from the front", big, big[1000:], 24},
		{"cut in the middle", big, edit(big, 30000, 3000, ""), 24},
		{"hundred counters", []byte(strings.Repeat(`{"id":"`+prose(3, 200)+`","n":1},`, 100)), []byte(strings.Repeat(`{"id":"`+prose(3, 200)+`","n":2},`, 100)), 1200},
		{"small state, three small edits", doc(1024), edit(edit(edit(doc(1024), 900, 3, "xyz"), 500, 1, ""), 100, 0, "q"), 64},
		{"all zeros, longer", make([]byte, 100000), make([]byte, 150000), 50100},
		{"random to random", doc(5000), []byte(prose(7, 5000)), 5016},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := roundTrip(t, tt.old, tt.new)
			if len(d) >= tt.under {
				t.Errorf("the delta has %d bytes, want less than %d", len(d), tt.under)
			}
			roundTrip(t, tt.new, tt.old)
		})
	}
}

// TestFrontDropped is a transcript cut to fit a context: the oldest messages go, one comes.
func TestFrontDropped(t *testing.T) {
	all := bytes.SplitAfter(transcript(1, 70, 1000), []byte(`},`))
	join := func(from, to int) []byte {
		return []byte(`{"n":1,"messages":[` + string(bytes.Join(all[from:to], nil)) + `{}]}`)
	}
	d := roundTrip(t, join(1, 60), join(5, 61))
	if len(d) > 1300 {
		t.Errorf("the delta has %d bytes for one new message of 1 KiB", len(d))
	}
}

func TestLinear(t *testing.T) {
	// Likely bad cases for a matcher: one byte repeated, two nearly equal periods. They must
	// end; a quadratic matcher would need hours for them.
	n := 8 << 20
	a := bytes.Repeat([]byte("a"), n)
	period := bytes.Repeat([]byte("0123456789abcdeX"), n/16)
	other := bytes.Repeat([]byte("0123456789abcdeY0"), n/17)
	b := bytes.Clone(a)
	for i := 0; i < n; i += 15 {
		b[i] = 'b'
	}
	for _, p := range [][2][]byte{{a, b}, {b, a}, {period, other}, {other, period}, {a, a[:n/2]}, {b, period}} {
		roundTrip(t, p[0], p[1])
	}
}

func TestLimit(t *testing.T) {
	old := make([]byte, delta.MaxSize+1)
	t.Run("new state over the limit", func(t *testing.T) {
		if _, err := delta.Apply(nil, delta.Make(nil, old)); !errors.Is(err, delta.ErrCorrupt) {
			t.Errorf("got %v, want ErrCorrupt", err)
		}
	})
	t.Run("new state at the limit", func(t *testing.T) { roundTrip(t, nil, old[1:]) })
	t.Run("old state over the limit", func(t *testing.T) {
		if d := roundTrip(t, old, old[:100]); len(d) < 100 {
			t.Errorf("a delta of %d bytes copies from it", len(d))
		}
	})
}

func TestResultIsFresh(t *testing.T) {
	old := []byte(strings.Repeat("state ", 100))
	d := delta.Make(old, old)
	got, err := delta.Apply(old, d)
	if err != nil {
		t.Fatal(err)
	}
	got[0] = 'X'
	if old[0] != 's' {
		t.Error("the result shares memory with the old state")
	}
}

// raw builds a delta by hand after the byte table in the package comment.
func raw(new string, ops ...[]byte) []byte {
	d := binary.AppendUvarint([]byte{1}, uint64(len(new)))
	d = binary.LittleEndian.AppendUint32(d, crc32.Checksum([]byte(new), crc32.MakeTable(crc32.Castagnoli)))
	return append(d, bytes.Join(ops, nil)...)
}

func ins(s string) []byte {
	return append(binary.AppendUvarint(nil, uint64(len(s))<<1), s...)
}

func cp(n uint64, diff int64) []byte {
	return binary.AppendVarint(binary.AppendUvarint(nil, n<<1|1), diff)
}

func TestFormat(t *testing.T) {
	old := []byte("0123456789")
	t.Run("ops as in the table", func(t *testing.T) {
		got, err := delta.Apply(old, raw("345ab01289", cp(3, 3), ins("ab"), cp(3, -6), cp(2, 5)))
		if err != nil || string(got) != "345ab01289" {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("Make of an append", func(t *testing.T) {
		old := strings.Repeat("x", 20)
		want := raw(old+"yz", cp(20, 0), ins("yz"))
		if got := delta.Make([]byte(old), []byte(old+"yz")); !bytes.Equal(got, want) {
			t.Errorf("got %x, want %x", got, want)
		}
	})
}

func TestCorrupt(t *testing.T) {
	old := []byte("0123456789")
	huge := bytes.Repeat([]byte{0xff}, 11)
	tests := []struct {
		name  string
		delta []byte
		at    int
	}{
		{"empty", nil, 0},
		{"version 0", []byte{0}, 0},
		{"version 2", append([]byte{2}, raw("")[1:]...), 0},
		{"no size", []byte{1}, 1},
		{"size overflows", append([]byte{1}, huge...), 1},
		{"size over the limit", binary.AppendUvarint([]byte{1}, delta.MaxSize+1), 1},
		{"cut in the sum", raw("")[:5], 2},
		{"wrong sum", append([]byte{1, 1, 0, 0, 0, 0}, ins("x")...), 2},
		{"no ops", raw("abc"), 6},
		{"ops end early", raw("abc", ins("ab")), 9},
		{"ops go on", raw("ab", ins("ab"), ins("c")), 9},
		{"insert of nothing", raw("ab", []byte{0}, ins("ab")), 6},
		{"copy of nothing", raw("ab", cp(0, 0), ins("ab")), 6},
		{"insert longer than the delta", raw("abc", ins("abc")[:3]), 6},
		{"insert longer than the state", raw("ab", ins("abc")), 6},
		{"head overflows", raw("ab", huge), 6},
		{"head is huge", raw("ab", cp(1<<63-1, 0)), 6},
		{"copy cut", raw("ab", cp(2, 0)[:1]), 7},
		{"copy place overflows", raw("ab", []byte{5}, huge), 7},
		{"copy before the start", raw("01", cp(2, -1)), 7},
		{"copy place at minimum", raw("01", cp(2, -1<<63)), 7},
		{"copy place at maximum", raw("01", cp(2, 1<<63-1)), 7},
		{"copy after the end", raw("01", cp(2, 11)), 7},
		{"copy over the end", raw("01", cp(2, 9)), 6},
		{"second copy place overflows", raw("0101", cp(2, 5), cp(2, 1<<63-1)), 9},
		{"declared large, nothing to fill it", append(binary.AppendUvarint([]byte{1}, delta.MaxSize), 0, 0, 0, 0), 9},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := delta.Apply(old, tt.delta)
			if !errors.Is(err, delta.ErrCorrupt) || got != nil {
				t.Fatalf("got %q, %v, want ErrCorrupt", got, err)
			}
			if want := fmt.Sprintf("at byte %d:", tt.at); !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q in it", err, want)
			}
		})
	}
	t.Run("other base", func(t *testing.T) {
		a, b := []byte(prose(1, 500)), []byte(prose(2, 500))
		if _, err := delta.Apply(b, delta.Make(a, append(a, '!'))); !errors.Is(err, delta.ErrCorrupt) {
			t.Errorf("got %v, want ErrCorrupt", err)
		}
	})
	t.Run("every single bit flipped", func(t *testing.T) {
		a := transcript(1, 3, 40)
		d := delta.Make(a, transcript(2, 4, 40))
		for i := range len(d) * 8 {
			bad := bytes.Clone(d)
			bad[i/8] ^= 1 << (i % 8)
			if _, err := delta.Apply(a, bad); !errors.Is(err, delta.ErrCorrupt) {
				t.Fatalf("bit %d: got %v, want ErrCorrupt", i, err)
			}
		}
	})
}

func TestNothingAllocatedForRefused(t *testing.T) {
	bad := append(binary.AppendUvarint([]byte{1}, delta.MaxSize), 0, 0, 0, 0, 2, 'x')
	if n := allocated(func() {
		if _, err := delta.Apply(nil, bad); err == nil {
			t.Fatal("accepted")
		}
	}); n > 4096 {
		t.Errorf("%d bytes allocated for a refused delta that declares %d", n, delta.MaxSize)
	}
}

// TestSmallEditNeedsNoTable holds the usual step of a large state to a small allocation.
func TestSmallEditNeedsNoTable(t *testing.T) {
	old, new := transcript(99, 1000, 1000), transcript(100, 1001, 1000)
	if n := allocated(func() { delta.Make(old, new) }); n > 4096 {
		t.Errorf("%d bytes allocated", n)
	}
}

// allocated gives the bytes that f allocates, on average.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		f()
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / 20
}

// edits draws a state and its successor: cuts, puts, moves, repeats.
func edits(t *rapid.T) (old, new []byte) {
	word := rapid.SampledFrom([]string{`{"a":1}`, "x", prose(1, 20), prose(2, 70), prose(3, 700), strings.Repeat("ab", 90), "\x00"})
	for range rapid.IntRange(0, 40).Draw(t, "words") {
		old = append(old, word.Draw(t, "word")...)
	}
	new = bytes.Clone(old)
	for range rapid.IntRange(0, 6).Draw(t, "edits") {
		at := rapid.IntRange(0, len(new)).Draw(t, "at")
		to := min(len(new), at+rapid.IntRange(0, 400).Draw(t, "cut"))
		put := ""
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			put = word.Draw(t, "put")
		case 1:
			put = string(new[at:to]) + string(new[at:to])
		case 2:
			put = string(rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "bytes"))
		}
		new = []byte(string(new[:at]) + put + string(new[to:]))
	}
	return old, new
}

func TestRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, new := edits(t)
		roundTrip(t, old, new)
		roundTrip(t, new, old)
	})
}

// TestRandomStates walks a long chain of larger states, as a session would.
func TestRandomStates(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	state := []byte(prose(1, 200000))
	for i := range 300 {
		next := bytes.Clone(state)
		for range 1 + r.IntN(4) {
			at := r.IntN(len(next))
			cut := min(r.IntN(1<<r.IntN(12)), len(next)-at)
			next = append(next[:at:at], append([]byte(prose(r.Uint64(), r.IntN(1<<r.IntN(12)))), next[at+cut:]...)...)
		}
		d := roundTrip(t, state, next)
		if len(d) > 20000 {
			t.Errorf("state %d: the delta has %d bytes", i, len(d))
		}
		state = next
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte(nil), []byte("a"))
	f.Add(transcript(1, 3, 100), transcript(2, 4, 100))
	f.Add([]byte(prose(1, 400)), []byte(prose(1, 300)+prose(1, 400)))
	f.Fuzz(func(t *testing.T, old, new []byte) { roundTrip(t, old, new) })
}

func FuzzApply(f *testing.F) {
	a := transcript(1, 3, 30)
	f.Add(a, delta.Make(a, transcript(2, 4, 30))[6:], uint32(300))
	f.Add([]byte("0123456789"), raw("345ab012", cp(3, 3), ins("ab"), cp(3, -6))[6:], uint32(8))
	f.Add([]byte("0"), cp(1, 0), uint32(1<<31))
	f.Fuzz(func(t *testing.T, old, ops []byte, size uint32) {
		d := binary.AppendUvarint([]byte{1}, uint64(size))
		d = append(append(d, 0, 0, 0, 0), ops...)
		got, err := delta.Apply(old, d)
		if err != nil {
			if !errors.Is(err, delta.ErrCorrupt) || got != nil {
				t.Fatalf("got %q, %v, want ErrCorrupt", got, err)
			}
			return
		}
		if len(got) != int(size) || size > delta.MaxSize {
			t.Fatalf("%d bytes declared, %d made", size, len(got))
		}
		roundTrip(t, old, got)
	})
}

type shape struct {
	name        string
	count, size int
}

func shapes() []shape { return []shape{{"1KiB", 2, 450}, {"64KiB", 64, 1000}, {"2MiB", 2048, 1000}} }

func BenchmarkMake(b *testing.B) {
	for _, s := range shapes() {
		for _, kind := range []string{"counter+append", "append", "identical", "middle", "unlike"} {
			old, new := transcript(17, s.count, s.size), transcript(18, s.count+1, s.size)
			switch kind {
			case "append":
				new = append(bytes.Clone(old), prose(9, 1024)...)
			case "identical":
				new = bytes.Clone(old)
			case "middle": // an insert in the middle besides the two: the table is needed
				at := len(new) / 3
				new = append(new[:at:at], append([]byte(prose(77, 300)), new[at:]...)...)
			case "unlike":
				new = []byte(prose(1234, len(old)))
			}
			b.Run(s.name+"/"+kind, func(b *testing.B) {
				b.SetBytes(int64(len(new)))
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					n = len(delta.Make(old, new))
				}
				b.ReportMetric(float64(n), "delta-bytes")
			})
		}
	}
}

func BenchmarkApply(b *testing.B) {
	for _, s := range shapes() {
		old, new := transcript(17, s.count, s.size), transcript(18, s.count+1, s.size)
		d := delta.Make(old, new)
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(new)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := delta.Apply(old, d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
