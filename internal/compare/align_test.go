package compare

import (
	"testing"

	"pgregory.net/rapid"
)

// An alignment matches what is the same, in order, and as much of it as can be; gaps and
// matches together are both lists, each member once.
func TestAlign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 9, -1)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		pairs := align(len(a), len(b), func(i, j int) bool { return a[i] == b[j] })
		if want := longest(a, b); len(pairs) != want {
			t.Fatalf("%d pairs of %q and %q, want %d", len(pairs), a, b, want)
		}
		i, j := 0, 0
		gaps(len(a), len(b), pairs, func(i0, i1, j0, j1 int) {
			if i0 != i || j0 != j || i1 < i0 || j1 < j0 || i0 == i1 && j0 == j1 {
				t.Fatalf("a gap from %d to %d and %d to %d, behind %d and %d", i0, i1, j0, j1, i, j)
			}
			i, j = i1, j1
		}, func(p, q int) {
			if p != i || q != j || a[p] != b[q] {
				t.Fatalf("a match of %d and %d, behind %d and %d", p, q, i, j)
			}
			i, j = i+1, j+1
		})
		if i != len(a) || j != len(b) {
			t.Fatalf("it ends at %d of %q and %d of %q", i, a, j, b)
		}
	})
}

// longest is how many members a longest common part has.
func longest(a, b string) int {
	if a == "" || b == "" {
		return 0
	}
	if a[0] == b[0] {
		return 1 + longest(a[1:], b[1:])
	}
	return max(longest(a[1:], b), longest(a, b[1:]))
}

// What is too long to be aligned is matched at its ends.
func TestAlignOfLongLists(t *testing.T) {
	n := 3000
	pairs := align(n, n, func(i, j int) bool { return i == j && (i < 10 || i >= n-5) })
	if len(pairs) != 15 {
		t.Errorf("%d pairs, want the 15 at the ends", len(pairs))
	}
}
