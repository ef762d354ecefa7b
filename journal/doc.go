// Package journal is the rules: which entry may follow which, what an entry does
// to a session, and how entries are chained. It is pure: no I/O, no clock, no
// randomness; what it needs of those comes in as arguments.
//
// [Next] makes the entry that follows, [Apply] is the only place where a session
// changes, and [Fold] applies a whole journal: recovery, audit and replay are the
// same function. A session is its fold and nothing else.
//
// # Hash chain, version 1
//
// All numbers are unsigned LEB128 varints unless said otherwise; a string or byte
// string is its length and its bytes.
//
//	commitment = HMAC-SHA256(key: salt (16 bytes), data · body · ref)
//	             data, body: byte strings as stored, never re-serialised
//	             ref: 0 if there is no blob, else 1 · sum (32 bytes) · size
//	hash       = SHA-256(version (1 byte) · session (16 bytes) · seq · epoch · line ·
//	             loop · attempt · step · sub · kind · time (µs since 1970, 8 bytes
//	             big-endian two's complement) · actor · cause · previous hash
//	             (32 bytes, zero before the first) · commitment (32 bytes))
//
// The commitment stands between bytes and hash so that bytes can be erased later:
// an erased entry keeps its commitment instead of its salt, and the chain still
// verifies. The salt keeps short erased texts from being guessed.
//
// # States
//
// A checkpoint's state is the body of the entry that made it: a full snapshot, or
// a delta against an earlier checkpoint. See standsOn for the shape of the chain.
package journal
