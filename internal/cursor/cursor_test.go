package cursor_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/cursor"
)

func draw(t *rapid.T, name string) cursor.Cursor {
	c := cursor.Cursor{Pos: rapid.Int64Min(0).Draw(t, name)}
	copy(c.Store[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, name+" store"))
	copy(c.Check[:], rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, name+" check"))
	return c
}

func TestTextIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := draw(t, "cursor")
		got, err := cursor.Parse(want.String())
		if err != nil || got != want {
			t.Fatalf("%s is read as %v, %v", want, got, err)
		}
	})
}

// Those who have two cursors of one store compare them as they are.
func TestLaterIsGreater(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, "a"), draw(t, "b")
		b.Store = a.Store
		if a.Pos != b.Pos && (a.String() < b.String()) != (a.Pos < b.Pos) {
			t.Fatalf("%s and %s do not sort as %d and %d", a, b, a.Pos, b.Pos)
		}
	})
}

func TestOthersAreInvalid(t *testing.T) {
	for _, text := range []string{
		"", "0", "-1", "latest", "0123456789abcdef-0000000000000001-0123456", "0123456789abcdef-0000000000000001-012345678",
		"0123456789ABCDEF-0000000000000001-01234567", "0123456789abcdef_0000000000000001-01234567", "0123456789abcdef-ffffffffffffffff-01234567",
		"0123456789abcdef--000000000000001-01234567", "0123456789abcdef-+000000000000001-01234567", "0123456789abcdeg-0000000000000001-01234567",
		"0123456789abcdef-0000000000000001-0123456z", "0123456789abcdef-00000000000\x00001-01234567",
	} {
		if _, err := cursor.Parse(text); stint.CodeOf(err) != stint.Invalid {
			t.Errorf("%q: %v, want invalid", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0123456789abcdef-0000000000000001-01234567")
	f.Add("0123456789abcdef-ffffffffffffffff-01234567")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := cursor.Parse(text)
		switch {
		case err == nil && c.String() != text:
			t.Errorf("%q is read as %q", text, c)
		case err == nil && c.Pos < 0:
			t.Errorf("%q has the position %d", text, c.Pos)
		case err != nil && stint.CodeOf(err) != stint.Invalid:
			t.Errorf("%q: %v", text, err)
		}
	})
}
