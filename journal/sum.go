package journal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/stint-dev/stint"
)

// Version is the format of the entries that this package makes.
const Version = 1

// Limits on the bytes of one entry.
const (
	InlineBytes = 2 << 10  // a longer body becomes a blob before the entry is hashed
	MaxBody     = 32 << 20 // longest body: a state, a step's result, a message
	maxData     = 64 << 10 // longest data
)

// Sum is the hash of e after prev. It reads everything in e but Hash.
func Sum(e *stint.Entry, prev stint.Hash) stint.Hash {
	commit := e.Commit
	if !e.Erased {
		commit = commitment(e)
	}
	var arr [256]byte
	b := append(arr[:0], e.Version)
	b = append(b, e.Session[:]...)
	b = binary.AppendUvarint(b, uint64(e.Seq))
	b = binary.AppendUvarint(b, uint64(e.Epoch))
	for _, v := range [...]int{e.Pos.Line, e.Pos.Loop, e.Pos.Attempt, e.Pos.Step, e.Pos.Sub} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	b = binary.AppendUvarint(b, uint64(len(e.Kind)))
	b = append(b, e.Kind...)
	b = binary.BigEndian.AppendUint64(b, uint64(e.At.UnixMicro()))
	b = binary.AppendUvarint(b, uint64(len(e.Actor)))
	b = append(b, e.Actor...)
	b = binary.AppendUvarint(b, uint64(e.Cause))
	b = append(b, prev[:]...)
	b = append(b, commit[:]...)
	return sha256.Sum256(b)
}

// commitment is the salted commitment to the bytes of e.
func commitment(e *stint.Entry) stint.Hash {
	// HMAC (RFC 2104) by hand: crypto/hmac allocates four times, which costs more
	// than the hashing of a small entry.
	var arr [3 << 10]byte
	const block = sha256.BlockSize
	b := arr[:0]
	if n := block + len(e.Data) + len(e.Body) + 64; n > len(arr) {
		b = make([]byte, 0, n)
	}
	b = append(b, e.Salt[:]...)
	b = append(b, make([]byte, block-len(e.Salt))...)
	pad(b, 0x36)
	b = binary.AppendUvarint(b, uint64(len(e.Data)))
	b = append(b, e.Data...)
	b = binary.AppendUvarint(b, uint64(len(e.Body)))
	b = append(b, e.Body...)
	if e.Blob.IsZero() {
		b = append(b, 0)
	} else {
		b = append(append(b, 1), e.Blob.Sum[:]...)
		b = binary.AppendUvarint(b, uint64(e.Blob.Size))
	}
	inner := sha256.Sum256(b)
	b = append(b[:0], e.Salt[:]...)
	b = append(b, make([]byte, block-len(e.Salt))...)
	pad(b, 0x5c)
	return sha256.Sum256(append(b, inner[:]...))
}

func pad(key []byte, with byte) {
	for i := range key {
		key[i] ^= with
	}
}

// Verify reports whether e follows prev in its chain; the error is
// [stint.Corrupt] and names the entry.
func Verify(e *stint.Entry, prev stint.Hash) error {
	if e.Version != Version {
		return corrupt(e, "has format version %d, this program knows %d", e.Version, Version)
	}
	if e.At.Nanosecond()%1000 != 0 {
		return corrupt(e, "has a time that is not whole microseconds")
	}
	if e.Erased {
		return corrupt(e, "says that its bytes were erased, and no entry of this format version can say so")
	}
	if Sum(e, prev) != e.Hash {
		return corrupt(e, "does not have the hash of its bytes and predecessor")
	}
	return nil
}

func corrupt(e *stint.Entry, format string, args ...any) error {
	err := stint.Corrupt.Errorf("journal", "entry %d (%s) "+format, append([]any{e.Seq, e.Kind}, args...)...)
	err.Session = e.Session
	err.Hint = "keep a copy of the store; `stint verify " + e.Session.String() + "` lists what is sound, `stint db restore` brings back a backup"
	return err
}

// BlobID names body as a blob of the family that key belongs to.
func BlobID(key, body []byte) stint.BlobRef {
	m := hmac.New(sha256.New, key)
	m.Write(body)
	ref := stint.BlobRef{Size: int64(len(body))}
	m.Sum(ref.Sum[:0])
	return ref
}

// Key is the idempotency key of the step at p: the same over attempts, restarts
// and machines, new on a new line. It is the SHA-256 of session, line, loop, step
// and sub in base32.
func Key(id stint.ID, p stint.Position) string {
	var arr [16 + 4*binary.MaxVarintLen64]byte
	b := append(arr[:0], id[:]...)
	for _, v := range [...]int{p.Line, p.Loop, p.Step, p.Sub} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	sum := sha256.Sum256(b)
	return base32(sum[:])
}

// base32 writes b in Crockford's alphabet, lower case, without padding: the
// alphabet of ids.
func base32(b []byte) string {
	const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	out := make([]byte, 0, (len(b)*8+4)/5)
	acc, bits := uint32(0), uint(0)
	for _, c := range b {
		acc = acc<<8 | uint32(c)
		for bits += 8; bits >= 5; {
			bits -= 5
			out = append(out, alphabet[acc>>bits&31])
		}
	}
	if bits > 0 {
		out = append(out, alphabet[acc<<(5-bits)&31])
	}
	return string(out)
}
