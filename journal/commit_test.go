package journal_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// TestCommitmentIsHMAC holds the hand-written commitment to crypto/hmac.
func TestCommitmentIsHMAC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := stint.Entry{
			Data: rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "data"),
			Body: rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "body"),
		}
		copy(e.Salt[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "salt"))
		if rapid.Bool().Draw(t, "blob") {
			e.Blob.Size = rapid.Int64Min(1).Draw(t, "size")
		}
		m := hmac.New(sha256.New, e.Salt[:])
		m.Write(binary.AppendUvarint(nil, uint64(len(e.Data))))
		m.Write(e.Data)
		m.Write(binary.AppendUvarint(nil, uint64(len(e.Body))))
		m.Write(e.Body)
		if e.Blob.IsZero() {
			m.Write([]byte{0})
		} else {
			m.Write(append([]byte{1}, e.Blob.Sum[:]...))
			m.Write(binary.AppendUvarint(nil, uint64(e.Blob.Size)))
		}
		if got := journal.Commitment(&e); got != stint.Hash(m.Sum(nil)) {
			t.Fatalf("got %v", got)
		}
	})
}
