package view_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

// emptyReader is a store without sessions.
type emptyReader struct{ stint.Reader }

func (emptyReader) Session(context.Context, stint.ID) (stint.Row, error) {
	return stint.Row{}, stint.NotFound
}
func (emptyReader) Sessions(context.Context, stint.Filter) ([]stint.Row, error) { return nil, nil }

// lookups is a world with sessions of every kind of name and age.
type lookups struct {
	*world
	yesterday, old, open, canceled, report, lines, doubt, newest *script
	twice                                                        [2]*script
}

func newLookups(w *world) *lookups {
	l := &lookups{world: w}
	ended := func(name, holder string, outcome stint.Status) *script {
		k := w.session(name).claim(holder)
		k.end(outcome, "", "")
		return k
	}
	l.yesterday = ended("triage-1128", "worker/y", stint.Failed)
	pass(20 * time.Hour) // noon of the next day
	l.old = ended("triage-1130", "worker/o", stint.Completed)
	pass(time.Minute)
	l.open = w.session("triage-1130")
	pass(time.Minute)
	l.twice[0] = w.session("twice-1130")
	pass(time.Second)
	l.twice[1] = w.session("twice-1130")
	pass(time.Hour)
	l.canceled = ended("report-1130", "worker/e", stint.Canceled)
	pass(time.Second)
	l.report = ended("report-1130", "worker/f", stint.Completed)
	pass(time.Hour)
	l.lines = deps(w)
	l.doubt = w.session("pay-1130").claim("worker/p")
	l.doubt.loop("first")
	l.doubt.intend(1, "pay", "{}")
	l.doubt.wait(stint.Wait{For: stint.ForDoubt, Step: l.doubt.at(1, 0)})
	pass(time.Second)
	l.newest = w.session("zebra-1130")
	return l
}

func short(k *script) string { row := k.row(); return row.Short }

func id(k *script) string { return k.s.ID.String() }

func TestFind(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		l := newLookups(w)
		none := view.Place{Line: -1, Loop: -1}
		for _, c := range []struct {
			address string
			want    *script
			place   view.Place
		}{
			{id(l.open), l.open, none},
			{strings.ToUpper(id(l.open)), l.open, none},
			{short(l.open), l.open, none},
			{strings.ToUpper(short(l.open)), l.open, none},
			{id(l.open)[20:], l.open, none},
			{id(l.newest)[:20], l.newest, none},
			{"triage-1130", l.open, none},
			{"report-1130", l.report, none},
			{"triage-1128", l.yesterday, none},
			{"tri", l.open, none},
			{"zeb", l.newest, none},
			{"rep", l.report, none},
			{"@last", l.newest, none},
			{"@bad", l.doubt, none},
			{"triage@12:00", l.old, none},
			{"triage@12:01", l.open, none},
			{"triage@16:00", l.yesterday, none}, // still to come today
			{"triage@2026-11-29", l.yesterday, none},
			{"triage@2026-11-30", l.open, none},
			{short(l.open) + ":11", l.open, view.Place{Line: -1, Loop: 11}},
			{"triage-1130:13.2", l.open, view.Place{Line: -1, Loop: 13, Step: 2}},
			{"triage-1130:13.2.1", l.open, view.Place{Line: -1, Loop: 13, Step: 2, Sub: 1}},
			{"triage@12:01:3.1", l.open, view.Place{Line: -1, Loop: 3, Step: 1}},
			{"@last:0", l.newest, view.Place{Line: -1, Loop: 0}},
			{short(l.lines) + "/0", l.lines, view.Place{Line: 0, Loop: -1}},
			{"deps-bump-1129/1:2", l.lines, view.Place{Line: 1, Loop: 2}},
		} {
			row, place, err := view.Find(t.Context(), w.store, c.address, now())
			switch {
			case err != nil:
				t.Errorf("Find(%q): %v", c.address, err)
			case row.Session.ID != c.want.s.ID:
				t.Errorf("Find(%q) is %s %s, want %s %s", c.address, row.Session.Name, row.Session.ID, c.want.s.Name, c.want.s.ID)
			case place != c.place:
				t.Errorf("Find(%q) names the place %+v, want %+v", c.address, place, c.place)
			}
		}
	})
}

func TestFindNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		l := newLookups(w)
		for _, c := range []struct {
			address string
			code    stint.Code
			hint    string
		}{
			{"twice-1130", stint.Invalid, short(l.twice[0]) + "  twice-1130  pending"},
			{id(l.twice[0])[:7], stint.Invalid, "use an id:"},
			{"zebra-1131", stint.NotFound, "did you mean zebra-1130?"},
			{"nothing-like-it-at-all", stint.NotFound, "stint ps -a"},
			{"triage@11:59", stint.NotFound, "30 Nov 12:01"},
			{"nobody@12:00", stint.NotFound, "stint ps -a"},
			{"triage@2026-11-01", stint.NotFound, "its newest are:"},
			{"triage@25:00", stint.Invalid, "triage@06:00"},
			{"triage@yesterday", stint.Invalid, "triage@06:00"},
			{"@worst", stint.Invalid, "@last or @bad"},
			{"", stint.Invalid, "an address is"},
			{"a:b", stint.Invalid, "an address is"},
			{"a:1.2.3.4", stint.Invalid, "an address is"},
			{"a/99999999999999999999", stint.Invalid, "an address is"},
			{short(l.lines) + "/2", stint.NotFound, "stint show"},
			{"00000000000000000000000000", stint.NotFound, ""},
			{"01m8m0hr00e00000f8nvh15w2z", stint.NotFound, ""},
		} {
			_, _, err := view.Find(t.Context(), w.store, c.address, now())
			if stint.CodeOf(err) != c.code {
				t.Errorf("Find(%q): %v, want %s", c.address, err, c.code)
				continue
			}
			if hint := err.(*stint.Error).Hint; !strings.Contains(hint, c.hint) {
				t.Errorf("Find(%q) has the hint %q, want %q in it", c.address, hint, c.hint)
			}
		}
	})
}

// A name that is also the ending of another session's id means two sessions: no
// verb may act on the wrong one.
func TestFindNameAndEnding(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		first := w.session("first-1129")
		row := first.row()
		w.session("other", func(c *journal.Created) { c.Name = row.Short })
		_, _, err := view.Find(t.Context(), w.store, row.Short, now())
		if stint.CodeOf(err) != stint.Invalid {
			t.Errorf("%q is a name and the ending of an id: %v", row.Short, err)
		}
	})
}

// A session keeps its short id when a later id comes to end in the same way.
func TestFindShortIsForEver(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		first := w.session("first-1129")
		w.n = 0
		pass(time.Millisecond)
		second := w.session("first-1129") // the same ending, a later beginning
		a, b := first.row(), second.row()
		if a.Short == b.Short || !strings.HasSuffix(b.Short, a.Short) {
			t.Fatalf("the short ids are %s and %s", a.Short, b.Short)
		}
		for _, row := range []stint.Row{a, b} {
			got, _, err := view.Find(t.Context(), w.store, row.Short, now())
			if err != nil || got.Session.ID != row.Session.ID {
				t.Errorf("%s is %s: %v", row.Short, got.Session.ID, err)
			}
		}
	})
}

func TestFindInAnEmptyStore(t *testing.T) {
	for _, address := range []string{"x", "@last", "@bad", "a@12:00", "01m8m0hr00e00000f8nvh15w2f"} {
		if _, _, err := view.Find(t.Context(), emptyReader{}, address, time.Now()); stint.CodeOf(err) != stint.NotFound {
			t.Errorf("Find(%q): %v, want not_found", address, err)
		}
	}
}
