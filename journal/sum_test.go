package journal_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"pgregory.net/rapid"
)

// leb writes an unsigned LEB128 varint, as the package comment says.
func leb(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func text[T ~string | ~[]byte](b []byte, s T) []byte { return append(leb(b, uint64(len(s))), s...) }

// documentedSum is the hash as the package comment describes it, from scratch.
func documentedSum(e stint.Entry, prev stint.Hash) stint.Hash {
	plain := text(text(nil, e.Data), e.Body)
	if e.Blob.IsZero() {
		plain = append(plain, 0)
	} else {
		plain = leb(append(append(plain, 1), e.Blob.Sum[:]...), uint64(e.Blob.Size))
	}
	mac := hmac.New(sha256.New, e.Salt[:])
	mac.Write(plain)
	commitment := mac.Sum(nil)
	if e.Erased {
		commitment = e.Commit[:]
	}
	b := append([]byte{e.Version}, e.Session[:]...)
	for _, n := range []int64{int64(e.Seq), e.Epoch, int64(e.Pos.Line), int64(e.Pos.Loop), int64(e.Pos.Attempt), int64(e.Pos.Step), int64(e.Pos.Sub)} {
		b = leb(b, uint64(n))
	}
	b = text(b, e.Kind)
	us := uint64(e.At.UnixMicro())
	for shift := 56; shift >= 0; shift -= 8 {
		b = append(b, byte(us>>shift))
	}
	b = leb(text(b, e.Actor), uint64(e.Cause))
	return sha256.Sum256(append(append(b, prev[:]...), commitment...))
}

func drawEntry(t *rapid.T) stint.Entry {
	n := rapid.OneOf(rapid.Int64Range(0, 300), rapid.SampledFrom([]int64{math.MaxInt64, math.MinInt64, -1}))
	num := func() int { return int(n.Draw(t, "number")) }
	hash := func() stint.Hash {
		return stint.Hash(slices.Repeat([]byte{rapid.Byte().Draw(t, "hash")}, 32))
	}
	e := stint.Entry{
		Version: rapid.Byte().Draw(t, "version"), Session: testID(rapid.Byte().Draw(t, "session")), Seq: stint.Seq(num()), Epoch: n.Draw(t, "epoch"),
		Pos:  stint.Position{Line: num(), Loop: num(), Attempt: num(), Step: num(), Sub: num()},
		Kind: stint.Kind(rapid.StringN(0, 300, -1).Draw(t, "kind")), Actor: stint.Actor(rapid.StringN(0, 300, -1).Draw(t, "actor")),
		At: time.UnixMicro(n.Draw(t, "at")), Cause: stint.Seq(num()),
		Data: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data"), Body: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "body"),
	}
	copy(e.Salt[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "salt"))
	if rapid.Bool().Draw(t, "has a blob") {
		e.Blob = stint.BlobRef{Sum: hash(), Size: n.Draw(t, "size")}
	}
	if rapid.Bool().Draw(t, "erased") {
		e.Erased, e.Commit = true, hash()
	}
	return e
}

func TestSumAsDocumented(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, prev := drawEntry(t), stint.Hash{rapid.Byte().Draw(t, "prev")}
		was := e
		if got, want := journal.Sum(&e, prev), documentedSum(e, prev); got != want {
			t.Fatalf("the hash is %s, the package comment says %s", got, want)
		}
		e.Hash = stint.Hash{9}
		if journal.Sum(&e, prev) != journal.Sum(&was, prev) {
			t.Fatalf("the hash reads the field Hash")
		}
	})
}

// TestSumGolden pins the format: journals of version 1 have these hashes for ever.
func TestSumGolden(t *testing.T) {
	e := stint.Entry{
		Version: 1, Session: testID(1), Seq: 300, Epoch: 7, Pos: stint.Position{Line: 1, Loop: 13, Attempt: 2, Step: 4, Sub: 5},
		Kind: stint.StepCompleted, At: base().Add(123456 * time.Microsecond), Actor: "human:kim", Cause: 129,
		Data: []byte(`{"name":"list"}`), Body: []byte("[1, 2]\n"), Salt: saltOf(1),
	}
	blob := e
	blob.Body, blob.Blob = nil, journal.BlobID(familyKey(), []byte("a long body"))
	erased := e
	erased.Erased, erased.Commit = true, journal.Commitment(&e)
	for name, tt := range map[string]struct {
		e    stint.Entry
		want string
	}{
		"inline": {e, "4b9301a97405b53a07fae3eed596845a465aafcf656fd25e2fbc5e59cf32922a"}, "blob": {blob, "3a1021ec857440fcce1a19c9b1d6bd9d6745d549ffbcbf931222e17125ea9c85"}, "erased": {erased, "4b9301a97405b53a07fae3eed596845a465aafcf656fd25e2fbc5e59cf32922a"},
	} {
		if got := journal.Sum(&tt.e, stint.Hash{1}).String(); got != tt.want {
			t.Errorf("%s: the hash is %s, it has to be %s", name, got, tt.want)
		}
	}
	if got, want := blob.Blob.Sum.String(), "5c56a2b24d2b76aa6af199cae1cede0422b8ab04e07ac3b209714f0ccf598c42"; got != want {
		t.Errorf("the blob's id is %s, it has to be %s", got, want)
	}
}

// TestBlobID depends on key and body alone.
func TestBlobID(t *testing.T) {
	a := journal.BlobID(familyKey(), []byte("a body"))
	for name, other := range map[string]stint.BlobRef{
		"another body": journal.BlobID(familyKey(), []byte("a bodz")),
		"another key":  journal.BlobID(bytes.Repeat([]byte{8}, 32), []byte("a body")),
		"no body":      journal.BlobID(familyKey(), nil),
	} {
		if other.Sum == a.Sum {
			t.Errorf("%s has the same id", name)
		}
	}
	if again := journal.BlobID(familyKey(), []byte("a body")); again != a || a.Size != 6 {
		t.Errorf("%+v, then %+v", a, again)
	}
}

// TestKey is the same over attempts and nothing else.
func TestKey(t *testing.T) {
	pos := stint.Position{Line: 1, Loop: 13, Attempt: 1, Step: 2, Sub: 3}
	key := journal.Key(testID(1), pos)
	if key != "ef7mqtebcvfvz3gwwq9ddh49kaj50nhhqcwr797epr4zxkepgsn0" {
		t.Errorf("the key is %s: steps that were begun by an older program would be done twice", key)
	}
	other := pos
	other.Attempt = 9
	if journal.Key(testID(1), other) != key {
		t.Errorf("another attempt has another key")
	}
	seen := map[string]stint.Position{}
	for _, line := range []int{0, 1, 2, 127, 128, 16384} {
		for _, loop := range []int{0, 1, 2, 127, 128, 16384} {
			for _, step := range []int{0, 1, 2, 127, 128, 16384} {
				for _, sub := range []int{0, 1, 2, 127, 128, 16384} {
					p := stint.Position{Line: line, Loop: loop, Step: step, Sub: sub}
					k := journal.Key(testID(1), p)
					if was, ok := seen[k]; ok {
						t.Fatalf("%+v and %+v have the same key", was, p)
					}
					seen[k] = p
				}
			}
		}
	}
	if journal.Key(testID(2), pos) == key {
		t.Errorf("another session has the same key")
	}
}

func TestBase32(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "\x00": "00", "\xff": "zw", "f": "cr", "fo": "csqg", "foo": "csqpy", "foob": "csqpyrg", "fooba": "csqpyrk1", "foobar": "csqpyrk1e8",
	} {
		if got := journal.Base32([]byte(in)); got != want {
			t.Errorf("Base32(%q) is %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")
		// The same bits, as a binary number cut into fives.
		var bits strings.Builder
		for _, c := range b {
			for i := 7; i >= 0; i-- {
				bits.WriteByte('0' + c>>i&1)
			}
		}
		for bits.Len()%5 != 0 {
			bits.WriteByte('0')
		}
		var want strings.Builder
		for s := bits.String(); s != ""; s = s[5:] {
			v := 0
			for _, c := range s[:5] {
				v = 2*v + int(c-'0')
			}
			want.WriteByte("0123456789abcdefghjkmnpqrstvwxyz"[v])
		}
		if got := journal.Base32(b); got != want.String() {
			t.Fatalf("Base32(%x) is %q, want %q", b, got, want.String())
		}
	})
}
