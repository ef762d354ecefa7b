package ident_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/ident"
)

func TestNewRises(t *testing.T) {
	last := ident.New()
	for range 10_000 {
		id := ident.New()
		if bytes.Compare(last[:], id[:]) >= 0 {
			t.Fatalf("%s was made after %s", id, last)
		}
		last = id
	}
}

// The first 48 bits of a UUIDv7 are the time in ms, then come its version and its
// variant: RFC 9562, section 5.7.
func TestAt(t *testing.T) {
	for _, at := range []time.Time{
		time.UnixMilli(1),
		time.Date(2026, 3, 29, 1, 59, 59, 999_000_000, time.UTC),
		time.UnixMilli(1<<48 - 1),
	} {
		id, again := ident.At(at), ident.At(at)
		ms := int64(binary.BigEndian.Uint64(append([]byte{0, 0}, id[:6]...)))
		if ms != at.UnixMilli() {
			t.Errorf("the id of %s says %s", at, time.UnixMilli(ms))
		}
		if id[6]>>4 != 7 || id[8]>>6 != 2 {
			t.Errorf("%s is no UUIDv7", id)
		}
		if id == again {
			t.Errorf("%s was made twice", id)
		}
	}
}

func TestApprovalID(t *testing.T) {
	id := ident.New()
	session, asked := ident.CutApprovalID(ident.ApprovalID(id, 42))
	if session != id.String() || asked != 42 {
		t.Errorf("cut into %s and %d", session, asked)
	}
	for text, want := range map[string]struct {
		session string
		asked   stint.Seq
	}{
		"night.v2.7": {"night.v2", 7},
		"night":      {"night", 0},
		"night.v2":   {"night.v2", 0},
		"night.0":    {"night.0", 0},
		"night.-1":   {"night.-1", 0},
		"":           {"", 0},
	} {
		if session, asked := ident.CutApprovalID(text); session != want.session || asked != want.asked {
			t.Errorf("%q was cut into %q and %d", text, session, asked)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"same", "same", 0},
		{"kitten", "sitting", 3}, {"schedule", "shcedule", 2}, {"größe", "grösse", 2}, {"ö", "o", 1},
	} {
		if got := ident.Distance(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
