package sqlite

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// planOf is how SQLite answers a list.
func planOf(t *testing.T, s *Store, f stint.Filter) string {
	t.Helper()
	var plan []string
	err := s.read(t.Context(), "sessions", func(c *sqlite.Conn) error {
		q, args, err := s.listing(c, &f, micros(clock()), map[string]bool{})
		if err != nil {
			return err
		}
		return each(c, "EXPLAIN QUERY PLAN "+q, func(st *sqlite.Stmt) error {
			plan = append(plan, st.ColumnText(3))
			return nil
		}, args...)
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}

// TestListsUseAnIndex: a list is read in its own order, by an index that has no row which
// the list has not, so that it ends once it has enough. A search by text reads the index
// of the texts and nothing else. Only what was asked for by a time may be sorted, and
// what has one of several statuses.
func TestListsUseAnIndex(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "stint.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	after, err := stint.ParseID("01m8m0hr00e00bswq6ytpzwwr8")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		f    stint.Filter
		want string
	}{
		{"all", stint.Filter{}, "SCAN s USING INDEX sqlite_autoindex_sessions_1"},
		{"open ones", stint.Filter{Open: true}, "SCAN s USING INDEX sessions_open"},
		{"those with a question", stint.Filter{Asking: true}, "SCAN s USING INDEX sessions_asking"},
		{"a status", stint.Filter{Statuses: []stint.Status{stint.Failed}}, "SEARCH s USING INDEX sessions_status (status=?)"},
		{"an agent", stint.Filter{Agent: "triage"}, "SEARCH s USING INDEX sessions_agent (agent=?)"},
		{"a name", stint.Filter{Name: "x"}, "SEARCH s USING INDEX sessions_name (name=?)"},
		{"a trigger", stint.Filter{Trigger: "hook"}, "SEARCH s USING INDEX sessions_trigger (trigger=?)"},
		{"a label", stint.Filter{Labels: map[string]string{"team": "a"}}, "SEARCH g USING PRIMARY KEY (key=? AND value=?)"},
		{"two labels", stint.Filter{Labels: map[string]string{"team": "a", "env": "b"}}, "USING PRIMARY KEY (key=? AND value=? AND id=?)"},
		{"a family", stint.Filter{Family: after}, "SEARCH s USING INDEX sessions_family (fid=?)"},
		{"the open ones of a family", stint.Filter{Family: after, Open: true}, "SEARCH s USING INDEX sessions_family (fid=?)"},
		{"a text", stint.Filter{Text: "x"}, "SCAN t USING COVERING INDEX sessions_text"},
	} {
		for _, page := range []stint.ID{{}, after} {
			f := c.f
			f.After, f.Limit = page, 51
			plan := planOf(t, s, f)
			want := c.want
			if !page.IsZero() {
				plan = strings.NewReplacer(" (id<?)", "", " AND id<?", "", "SEARCH s USING INDEX sqlite", "SCAN s USING INDEX sqlite", "SEARCH s USING INDEX sessions_open", "SCAN s USING INDEX sessions_open", "SEARCH s USING INDEX sessions_asking", "SCAN s USING INDEX sessions_asking", "SEARCH t", "SCAN t").Replace(plan)
			}
			if !strings.Contains(plan, want) || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("%s, after %v:\n%s\nwant %s, and nothing sorted", c.name, page, plan, want)
			}
		}
	}
	if plan := planOf(t, s, stint.Filter{Since: time.Now()}); !strings.Contains(plan, "sessions_created") {
		t.Errorf("few that were created since a time:\n%s", plan)
	}
}
