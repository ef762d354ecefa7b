package stint

import (
	"encoding/hex"
	"fmt"
)

// ID names a session for ever: a UUIDv7 (RFC 9562), so that ids sort by creation
// to the millisecond. It is written as 26 lower-case Crockford base32 characters;
// people type its [Row.Short] form.
type ID [16]byte

// crockford is Crockford's base32 alphabet in lower case: no i, l, o, u.
const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// ParseID reads the 26 characters that [ID.String] writes. Upper case is taken
// too. Anything else is [Invalid].
func ParseID(s string) (ID, error) {
	var id ID
	err := id.UnmarshalText([]byte(s))
	return id, err
}

// IsZero reports whether id is the zero ID, which no session has.
func (id ID) IsZero() bool { return id == ID{} }

// String returns the 26 character form. The first character carries 3 bits.
func (id ID) String() string {
	var out [26]byte
	// 130 bits hold the 128, right aligned: two zero bits lead.
	acc, bits, o := uint32(0), uint(2), 0
	for _, b := range id {
		acc = acc<<8 | uint32(b)
		bits += 8
		for bits >= 5 {
			bits -= 5
			out[o] = crockford[acc>>bits&31]
			o++
		}
	}
	return string(out[:])
}

// MarshalText writes the 26 character form, the zero ID as nothing.
func (id ID) MarshalText() ([]byte, error) {
	if id.IsZero() {
		return []byte{}, nil
	}
	return []byte(id.String()), nil
}

// UnmarshalText reads what [ID.MarshalText] writes; other input is [Invalid].
func (id *ID) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*id = ID{}
		return nil
	}
	if len(b) != 26 {
		return invalidID(b)
	}
	var out ID
	acc, bits, o := uint32(0), uint(0), 0
	for i, c := range b {
		v := crockfordValue(c)
		if v < 0 || i == 0 && v > 7 {
			return invalidID(b)
		}
		acc = acc<<5 | uint32(v)
		bits += 5
		if i == 0 {
			bits = 3
		}
		if bits >= 8 {
			bits -= 8
			out[o] = byte(acc >> bits)
			o++
		}
	}
	*id = out
	return nil
}

func crockfordValue(c byte) int {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	for i := range len(crockford) {
		if crockford[i] == c {
			return i
		}
	}
	return -1
}

func invalidID(b []byte) error {
	if len(b) > 40 {
		b = b[:40]
	}
	return &Error{Code: Invalid, Op: "id", Err: fmt.Errorf("%q is not a session id", b),
		Hint: "a session id is 26 characters of 0-9 and a-z without i, l, o, u; `stint ps -a` lists them"}
}

// Hash is a SHA-256 value: an entry's place in its chain, a digest of a state or
// of a pinned agent.
type Hash [32]byte

// IsZero reports whether h is all zeros, which no entry has.
func (h Hash) IsZero() bool { return h == Hash{} }

// String returns 64 lower-case hexadecimal characters.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes the hexadecimal form, the zero Hash as nothing.
func (h Hash) MarshalText() ([]byte, error) {
	if h.IsZero() {
		return []byte{}, nil
	}
	return []byte(h.String()), nil
}

// UnmarshalText reads what [Hash.MarshalText] writes; other input is [Invalid].
func (h *Hash) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*h = Hash{}
		return nil
	}
	if len(b) != 64 {
		return &Error{Code: Invalid, Op: "hash", Err: fmt.Errorf("%d characters, want 64 of hexadecimal", len(b))}
	}
	if _, err := hex.Decode(h[:], b); err != nil {
		return &Error{Code: Invalid, Op: "hash", Err: err}
	}
	return nil
}

// Position is a place in a session: the line, the loop on it, the attempt at that
// loop, and in it the step and, in a group of steps, the member. Loops, attempts
// and steps count from 1; lines from 0. Zero means "not in one".
type Position struct {
	Line    int `json:"line"`
	Loop    int `json:"loop"`
	Attempt int `json:"attempt"`
	Step    int `json:"step"`
	Sub     int `json:"sub"`
}

// String writes loop.step or loop.step.sub, as people type it after a session's
// name and a colon: "13.2", "13.2.1", "13" for a loop.
func (p Position) String() string {
	switch {
	case p.Step == 0:
		return fmt.Sprint(p.Loop)
	case p.Sub == 0:
		return fmt.Sprintf("%d.%d", p.Loop, p.Step)
	}
	return fmt.Sprintf("%d.%d.%d", p.Loop, p.Step, p.Sub)
}
