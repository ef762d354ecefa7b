package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/plaintest"
	"github.com/stint-dev/stint/journal"
)

// TestLinkShape walks the chain of every rank up to 300,000.
func TestLinkShape(t *testing.T) {
	const top = 300_000
	length := make([]int32, top+1) // links to rank 0
	children := map[int]int{}
	for rank := 1; rank <= top; rank++ {
		to := journal.StandsOn(rank)
		if to < 0 || to >= rank {
			t.Fatalf("rank %d links to %d", rank, to)
		}
		length[rank] = length[to] + 1
		// At most 63 links a level: the digits of the rank in base 64.
		digits := int32(0)
		for r := rank; r > 0; r /= 64 {
			digits += int32(r % 64)
		}
		if length[rank] != digits {
			t.Fatalf("rank %d is %d links from the snapshot, want %d", rank, length[rank], digits)
		}
		if step := rank - to; step != 1 && (step != 64 && step != 4096 && step != 64*4096 || rank%step != 0) {
			t.Fatalf("rank %d skips %d", rank, step)
		}
		children[to]++
	}
	if longest := length[top-1]; longest > 4*63 {
		t.Errorf("a chain of %d links", longest)
	}
	for to, n := range children {
		if n > 4 { // one a level: what a checkpoint changed is stored once a level
			t.Fatalf("%d checkpoints stand on rank %d", n, to)
		}
	}
}

// states keeps the entries of many checkpoints in a map.
type states struct {
	t     failer
	at    map[stint.Seq]stored
	reads int
	seq   stint.Seq
	bytes int64
	cp    stint.Checkpoint
	state []byte
}

type stored struct {
	ref  journal.StateRef
	body []byte
}

func newStates(t failer) *states { return &states{t: t, at: map[stint.Seq]stored{}} }

func (s *states) source(seq stint.Seq) (journal.StateRef, []byte, error) {
	s.reads++
	st, ok := s.at[seq]
	if !ok {
		return journal.StateRef{}, nil, stint.NotFound.Errorf("entry", "there is no entry %d", seq)
	}
	return st.ref, st.body, nil
}

// write makes the next checkpoint and returns it. It keeps state.
func (s *states) write(state []byte) stint.Checkpoint {
	s.t.Helper()
	ref, body, err := journal.WriteState(s.cp, s.state, state, s.source)
	if err != nil {
		s.t.Fatalf("WriteState: %v", err)
	}
	s.seq += 3
	s.cp.Loop++
	s.bytes += int64(len(body))
	s.state = state
	if ref.Enc == journal.Same {
		if body != nil || ref.Size != s.cp.Size {
			s.t.Fatalf("the same state has a body of %d bytes and size %d", len(body), ref.Size)
		}
		return s.cp
	}
	if ref.Size != int64(len(state)) {
		s.t.Fatalf("the reference has size %d, the state %d", ref.Size, len(state))
	}
	s.at[s.seq] = stored{ref, bytes.Clone(body)}
	s.cp = stint.Checkpoint{Seq: s.seq, Loop: s.cp.Loop, Rank: ref.Rank, Weight: ref.Weight, Size: ref.Size, Sum: ref.Sum}
	return s.cp
}

// read returns the state of cp and the number of entries that it took.
func (s *states) read(cp stint.Checkpoint) ([]byte, int) {
	s.t.Helper()
	s.reads = 0
	got, err := journal.ReadState(cp, s.source)
	if err != nil {
		s.t.Fatalf("ReadState of entry %d: %v", cp.Seq, err)
	}
	return got, s.reads
}

// noise gives n bytes of text that nothing compresses much.
func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return b
}

// transcriptOf is a state that grew by 1 KiB a loop, with a counter in front.
func transcriptOf(loops int, messages [][]byte) []byte {
	b := fmt.Appendf(nil, `{"n":%d,"messages":["`, loops)
	b = append(b, bytes.Join(messages[:loops], []byte(`","`))...)
	return append(b, `"]}`...)
}

// grow writes loops checkpoints of a state that grows by step bytes a loop, and
// returns them with the bytes stored after each.
func grow(t failer, loops, step int) (s *states, messages [][]byte, cps []stint.Checkpoint, size []int64) {
	r := rand.New(rand.NewPCG(1, 2))
	s, size = newStates(t), []int64{0}
	for range loops {
		messages = append(messages, noise(r, step))
	}
	for n := 1; n <= loops; n++ {
		s.reads = 0
		cps = append(cps, s.write(transcriptOf(n, messages)))
		if s.reads > 2*63+1 {
			t.Fatalf("writing checkpoint %d read %d entries", n, s.reads)
		}
		size = append(size, s.bytes)
	}
	return s, messages, cps, size
}

// TestGrowingState keeps 3,000 checkpoints of a state that grows by 1 KiB a loop.
func TestGrowingState(t *testing.T) {
	if plaintest.Instead(t) {
		return
	}
	s, messages, cps, size := grow(t, 3000, 1024)
	growth := s.cp.Size
	t.Logf("%d bytes stored for %d of growth: %.2fx", s.bytes, growth, float64(s.bytes)/float64(growth))
	if float64(s.bytes) > 2.6*float64(growth) {
		t.Errorf("%d bytes are stored for %d of growth", s.bytes, growth)
	}
	// From the second level of the chain on, twice the loops take twice the bytes.
	for n := 300; n <= 1500; n += 50 {
		if ratio := float64(size[2*n]) / float64(size[n]); ratio >= 2.2 {
			t.Errorf("%d loops store %d bytes, %d store %d: %.2f times as much", n, size[n], 2*n, size[2*n], ratio)
		}
	}
	for i := 0; i < len(cps); i += 1 + i/4 {
		if got, _ := s.read(cps[i]); !bytes.Equal(got, transcriptOf(i+1, messages)) {
			t.Fatalf("checkpoint %d reads back as something else", i+1)
		}
	}
}

// TestEveryStateReadsBack reads each of 3,000 checkpoints, in bounded time: that
// is why their state is smaller.
func TestEveryStateReadsBack(t *testing.T) {
	if plaintest.Instead(t) {
		return
	}
	s, messages, cps, _ := grow(t, 3000, 24)
	for i, cp := range cps {
		got, reads := s.read(cp)
		if !bytes.Equal(got, transcriptOf(i+1, messages)) {
			t.Fatalf("checkpoint %d reads back as something else", i+1)
		}
		if reads > 2*63+1 {
			t.Fatalf("reading checkpoint %d took %d entries", i+1, reads)
		}
	}
}

// TestStateShapes is what agents do with states besides letting them grow.
func TestStateShapes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	long := noise(r, 20_000)
	for _, tt := range []struct {
		name string
		of   func(i int) []byte
		most int64 // bytes stored for 400 checkpoints
	}{
		{"the same for ever", func(int) []byte { return long }, 20_000},
		{"nothing", func(int) []byte { return []byte{} }, 0},
		{"a counter", func(i int) []byte { return fmt.Appendf(nil, `{"n":%d}`, i) }, 400 * 40},
		{"a counter in a long state", func(i int) []byte { return fmt.Appendf(long[:20_000:20_000], `{"n":%d}`, i) }, 20_000 + 400*60},
		{"shrinking", func(i int) []byte { return long[:20_000-i*49] }, 20_000 + 400*60},
		{"shrinking to nothing", func(i int) []byte { return long[:max(0, 20_000-i*200)] }, 20_000 + 400*60},
		{"there and back", func(i int) []byte { return long[:1+(i%7)*2500] }, 400 * 3000},
		{"new each time", func(int) []byte { return noise(r, 500) }, 400 * 500},
		{"cleared now and then", func(i int) []byte { return long[:(i%100)*150] }, 5 * 25_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStates(t)
			var cps []stint.Checkpoint
			var want [][]byte
			for i := range 400 {
				state := tt.of(i)
				want = append(want, bytes.Clone(state))
				cps = append(cps, s.write(state))
			}
			for i, cp := range cps {
				got, _ := s.read(cp)
				if !bytes.Equal(got, want[i]) {
					t.Fatalf("checkpoint %d reads back as something else", i)
				}
			}
			if s.bytes > tt.most {
				t.Errorf("%d bytes are stored, want at most %d", s.bytes, tt.most)
			}
		})
	}
}

// TestSnapshotStartsAnew sees a rank rise with deltas, and fall with a snapshot.
func TestSnapshotStartsAnew(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	s := newStates(t)
	a := noise(r, 4000)
	if cp := s.write(a); cp.Rank != 0 || cp.Weight != 0 || s.at[cp.Seq].ref.Enc != journal.Full {
		t.Fatalf("the first checkpoint is %+v", cp)
	}
	a = append([]byte("!"), a...)
	cp := s.write(a)
	if cp.Rank != 1 || cp.Weight == 0 || s.at[cp.Seq].ref.Enc != journal.Delta {
		t.Fatalf("a small change gave %+v", cp)
	}
	if again := s.write(a); again.Seq != cp.Seq || again.Loop != cp.Loop+1 {
		t.Fatalf("no change gave %+v after %+v", again, cp)
	}
	if cp = s.write(noise(r, 4000)); cp.Rank != 0 || cp.Weight != 0 || s.at[cp.Seq].ref.Enc != journal.Full {
		t.Fatalf("another state gave %+v", cp)
	}
}

// TestOlderCheckpoint goes back, as a restart does, and on from there, again and
// again: also across the checkpoints that skip back.
func TestOlderCheckpoint(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	s := newStates(t)
	type mark struct {
		cp    stint.Checkpoint
		state []byte
	}
	var all, line []mark
	state := noise(r, 30_000)
	for range 25 {
		for range 40 + r.IntN(60) {
			state = append(bytes.Clone(state), noise(r, 20)...)
			m := mark{s.write(state), state}
			all, line = append(all, m), append(line, m)
		}
		back := r.IntN(len(line))
		line = line[:back+1]
		s.cp, s.state, state = line[back].cp, line[back].state, line[back].state
	}
	for _, m := range all {
		got, reads := s.read(m.cp)
		if !bytes.Equal(got, m.state) {
			t.Fatalf("the state of entry %d reads back as something else", m.cp.Seq)
		}
		if reads > 3*63+1 {
			t.Fatalf("reading entry %d took %d entries", m.cp.Seq, reads)
		}
	}
}

// TestBrokenChain damages each entry of a chain in turn: a state is read right or
// not at all, and what is refused is refused as corrupt.
func TestBrokenChain(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	s := newStates(t)
	state := noise(r, 30_000)
	for range 140 {
		state = append(bytes.Clone(state), noise(r, 20)...)
		s.write(state)
	}
	want := s.state
	for _, tt := range []struct {
		name   string
		most   bool // of the 14 entries only some are noticed: the others are like that
		damage func(st *stored)
	}{
		{"a flipped bit", false, func(st *stored) { st.body[len(st.body)/2] ^= 4 }},
		{"cut short", false, func(st *stored) { st.body = st.body[:len(st.body)-1] }},
		{"no body", false, func(st *stored) { st.body = nil }},
		{"one byte more", true, func(st *stored) { st.body = append(st.body, 0) }},
		{"another's body", false, func(st *stored) { st.body = s.at[9].body }},
		{"no state at all", false, func(st *stored) { st.ref.Enc = journal.Same }},
		{"a circle", false, func(st *stored) { st.ref.Enc, st.ref.Base = journal.Delta, s.cp.Seq }},
		{"another rank", true, func(st *stored) { st.ref.Rank += 200 }},
		{"claims snapshot", true, func(st *stored) { st.ref.Enc = journal.Full }},
		{"claims to follow", true, func(st *stored) { st.ref.Enc, st.ref.Base = journal.Delta, 3 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			refused := 0
			for seq, was := range s.at {
				bad := stored{was.ref, bytes.Clone(was.body)}
				tt.damage(&bad)
				s.at[seq] = bad
				got, err := journal.ReadState(s.cp, s.source)
				s.at[seq] = was
				if err != nil {
					refused++
					wantCode(t, err, stint.Corrupt)
				} else if !bytes.Equal(got, want) {
					t.Fatalf("with entry %d damaged, a wrong state is read", seq)
				}
			}
			// The chain of rank 139 = 2·64 + 11 is 13 links and the snapshot.
			if refused != 14 && !tt.most || refused == 0 || refused > 14 {
				t.Errorf("damage of %d entries was noticed", refused)
			}
		})
	}
	gone := errors.New("the disk is gone")
	_, err := journal.ReadState(s.cp, func(stint.Seq) (journal.StateRef, []byte, error) { return journal.StateRef{}, nil, gone })
	if !errors.Is(err, gone) {
		t.Errorf("the source's error became %v", err)
	}
	wrong := s.cp
	wrong.Sum[3] ^= 1
	_, err = journal.ReadState(wrong, s.source)
	wantCode(t, err, stint.Corrupt)
}

// TestMissingLink has entries that are not what their successors stand on, where
// WriteState has to go back to them.
func TestMissingLink(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	s := newStates(t)
	state := noise(r, 30_000)
	for range 64 { // ranks 0 to 63: the next one skips back
		state = append(bytes.Clone(state), noise(r, 20)...)
		s.write(state)
	}
	next := append(bytes.Clone(state), "more"...)
	snapshot := s.at[3]
	for name, tt := range map[string]struct {
		put  stored
		want stint.Code
	}{
		"as it is":             {snapshot, ""},
		"one rank too high":    {stored{journal.StateRef{Enc: journal.Full, Rank: 1}, snapshot.body}, stint.Corrupt},
		"no state":             {stored{journal.StateRef{Enc: journal.Same}, nil}, stint.Corrupt},
		"a circle":             {stored{journal.StateRef{Enc: journal.Delta, Rank: 0, Base: 6}, snapshot.body}, stint.Corrupt},
		"a snapshot of itself": {stored{journal.StateRef{Enc: journal.Full, Rank: 0, Sum: snapshot.ref.Sum}, snapshot.body}, ""},
		"a flipped bit":        {stored{snapshot.ref, flipped(snapshot.body)}, stint.Corrupt},
	} {
		t.Run(name, func(t *testing.T) {
			s.at[3] = tt.put
			_, _, err := journal.WriteState(s.cp, s.state, next, s.source)
			wantCode(t, err, tt.want)
		})
	}
	// A snapshot that stands above the one it needs, so that the walk ends too soon.
	was := s.at[12]
	s.at[12] = stored{journal.StateRef{Enc: journal.Full, Rank: 3}, was.body}
	_, _, err := journal.WriteState(s.cp, s.state, next, s.source)
	wantCode(t, err, stint.Corrupt)
	s.at[12] = was
	delete(s.at, 3)
	_, _, err = journal.WriteState(s.cp, s.state, next, s.source)
	wantCode(t, err, stint.NotFound)
}

// TestJumpedLink has a chain that leads past the checkpoint that the next delta
// has to stand on.
func TestJumpedLink(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	s := newStates(t)
	state := noise(r, 30_000)
	for range 128 { // ranks 0 to 127: the next one skips back to 64
		state = append(bytes.Clone(state), noise(r, 20)...)
		s.write(state)
	}
	past := s.at[3*66]
	if past.ref.Rank != 65 {
		t.Fatalf("entry %d has rank %d", 3*66, past.ref.Rank)
	}
	past.ref.Base = 3 * 61
	s.at[3*66] = past
	_, _, err := journal.WriteState(s.cp, s.state, append(bytes.Clone(state), "more"...), s.source)
	wantCode(t, err, stint.Corrupt)
}

func flipped(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)/2] ^= 1
	return b
}

// TestNoState is a session that never had one.
func TestNoState(t *testing.T) {
	got, err := journal.ReadState(stint.Checkpoint{}, nil)
	if got != nil || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	ref, body, err := journal.WriteState(stint.Checkpoint{}, nil, []byte(`{}`), nil)
	if err != nil || ref.Enc != journal.Full || string(body) != `{}` {
		t.Fatalf("%+v %q %v", ref, body, err)
	}
}
