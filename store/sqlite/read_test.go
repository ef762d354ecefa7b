package sqlite_test

import (
	"testing"

	"github.com/stint-dev/stint"
)

// A damaged short id does nothing to the terminal that it is printed on.
func TestDamagedShortIDIsPrintable(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	hold(t, s, "me")
	story(t, s)
	ok(t, s.Close())
	raw(t, path, "UPDATE sessions SET short = CAST(x'741b5b8e' AS TEXT)")
	s = open(t, path)
	rows, err := s.Sessions(t.Context(), stint.Filter{Limit: 1})
	ok(t, err)
	equal(t, "the short id", rows[0].Short, "t???")
}
