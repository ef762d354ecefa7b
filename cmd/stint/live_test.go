package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/model"
)

func TestWaitWords(t *testing.T) {
	until := time.Date(2026, 11, 30, 12, 31, 7, 0, time.Local)
	for _, c := range []struct {
		wait model.Wait
		want string
	}{
		{model.Wait{}, ""},
		{model.Wait{Until: until, Err: &model.Error{Kind: model.Rate}}, "rate limited, goes on at 12:31:07"},
		{model.Wait{Until: until, Err: &model.Error{Kind: model.Overloaded}}, "the provider is overloaded, goes on at 12:31:07"},
		{model.Wait{Until: until, Err: &model.Error{Kind: model.Cut}}, "it failed: cut, goes on at 12:31:07"},
		{model.Wait{Until: until}, "the provider asked to wait, goes on at 12:31:07"},
		{model.Wait{Ahead: 1}, "waits behind 1 call of this provider"},
		{model.Wait{Ahead: 12}, "waits behind 12 calls of this provider"},
	} {
		if got := waitWords(c.wait); got != c.want {
			t.Errorf("%+v: %q, want %q", c.wait, got, c.want)
		}
	}
}

// watched is a live view of the desk's session on a screen that remembers all.
func (d *desk) watched(row stint.Row) (*live, *buffer) {
	var seen buffer
	st := term.Style{TTY: true, Color: true, Width: 120}
	s := &site{store: d.store, app: d.app(&buffer{}, &buffer{})}
	screen := term.NewScreen(&seen, st, func() int { return 120 })
	l := &live{app: s.app, site: s, lines: screen, style: st, screen: screen, began: time.Now(), id: row.Session.ID,
		log: view.NewLog(d.store, row, st, time.Now(), view.LogOptions{Query: view.LogQuery{Line: -1}})}
	return l, &seen
}

// What is heard stands between the entries that are older and those that are younger; an
// answer that was shown as it came is not shown again, one that was not is.
func TestLiveOrder(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	row := d.run("done-1", works)
	es, err := d.store.Entries(t.Context(), stint.Range{Session: row.Session.ID})
	if err != nil {
		t.Fatal(err)
	}
	l, seen := d.watched(row)
	begun := es[1].At // of the first loop
	for _, p := range []piece{
		{begun.Add(-time.Hour), model.Delta{Text: "before all"}},
		{begun, model.Delta{Text: " of it\n"}},
		{time.Now().Add(time.Hour), model.Delta{Thought: true, Text: "a thought"}},
		{time.Now().Add(time.Hour), model.Delta{Text: "It broke"}},
		{time.Now().Add(time.Hour), model.Delta{Void: true}},
		{time.Now().Add(time.Hour), model.Delta{Text: "after \x1b[2Jall"}},
	} {
		l.heard = append(l.heard, p)
	}
	if err := l.more(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.screen.Close()
	at := -1
	for _, want := range []string{"before all\n", "session   created", " of it\n", "── loop 1 ", "── loop 2 ", "\x1b[2ma thought\x1b[0m\n", "It broke\n", "\x1b[2m↺ the answer broke off and begins again\x1b[0m\n", `after \x1b[2Jall`} {
		i := strings.LastIndex(seen.String(), want)
		if i <= at {
			t.Errorf("%q stands at %d, which is not behind %d:\n%q", want, i, at, seen.String())
		}
		at = max(at, i)
	}
	if got := l.now.String(); got != "after \x1b[2Jall" {
		t.Errorf("the answer under way is %q", got)
	}
	if len(l.heard) > 0 {
		t.Errorf("%d pieces are left", len(l.heard))
	}
}

// The line at the bottom is drawn when it changes, and says what a call waits for.
func TestLiveStatus(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	row := d.run("chat-1", sleeps)
	l, seen := d.watched(row)
	for range 5 {
		if err := l.status(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := seen.String(); strings.Count(got, "loop 1 · waits for message · 0s") != 1 {
		t.Errorf("it is drawn as\n%q", got)
	}
	read := l.newest
	l.wait = model.Wait{Ahead: 3}
	if err := l.status(t.Context()); err != nil || !strings.Contains(seen.String(), "loop 1 · waits behind 3 calls of this provider · ") || l.newest != read && l.newest.Sub(read) < statusEvery {
		t.Errorf("%v: it is drawn as\n%q", err, seen.String())
	}
}
