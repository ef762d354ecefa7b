package worktree

import (
	"slices"
	"strings"
	"testing"
)

func TestParseChangesRefuses(t *testing.T) {
	for _, text := range []string{
		"x", "x\x00", ":1 2 3 4 M\x00", ":1 2 3 M\x00name\x00", ":1 2 3 4 M\x00\x00", "1\t2\tname\x00", ":1 2 3 4 M\x00a\x00x\t1\ta\x00", ":1 2 3 4 M\x00a\x00-1\t1\ta\x00",
		":1 2 3 4 M\x00a\x00:1 2 3 4 M\x00a\x00", ":1 2 3 4 M\x00a\x001\t99999999999\ta\x00", ":1 2 3 4 M\x00a\x001\ta\x00",
	} {
		if got, err := parseChanges([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func FuzzParseChanges(f *testing.F) {
	f.Add([]byte(":100644 100644 a b M\x00one\x00:0 100644 0 c A\x00a\tb\n\x001\t2\tone\x00-\t-\ta\tb\n\x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		all, err := parseChanges(out)
		if err != nil {
			return
		}
		if !slices.IsSortedFunc(all, func(a, b Change) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("%q: not in order", out)
		}
		for _, c := range all {
			if c.Name == "" || strings.Contains(c.Name, "\x00") || c.Added < 0 || c.Deleted < 0 || !slices.Contains([]ChangeKind{Added, Changed, Deleted}, c.Kind) {
				t.Errorf("%q: %+v", out, c)
			}
		}
	})
}

func TestWithin(t *testing.T) {
	got := within([]byte("H 160000 abc 0\tsub\nmodule\x00H 100644 abc 0\tfile\x00? nested/\x00? plain\x00? 160000 abc 0\t.\x00? 160000 abc 0\tx/\x00"))
	if want := []string{"sub\nmodule", "nested", "160000 abc 0\tx"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
