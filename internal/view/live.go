package view

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
)

// More prints the entries that came since it was called last, at first those behind
// Query.After. heard is asked of each before it is put into words: whether what it says
// of a model's words was shown as they came; the line then has the calls alone. nil
// means of none. show gets the entry with its lines, which are safe to print, empty
// where there are none.
func (l *Log) More(ctx context.Context, heard func(e *stint.Entry) bool, show func(e *stint.Entry, lines string) error) error {
	return eachEntry(ctx, l.src, stint.Range{Session: l.row.Session.ID, After: l.last}, func(e *stint.Entry) error {
		l.last = e.Seq
		l.heard = heard != nil && heard(e)
		var b bytes.Buffer
		if l.opt.Query.matches(e) {
			if err := l.print(ctx, &b, e); err != nil {
				return err
			}
		}
		return show(e, b.String())
	})
}

// NowLine is what a session does, on one line that is safe to print: its loop, doing, how
// long it has been driven, and what it used so far. What is not known is left out. Where
// all of it takes more than width columns, doing is cut; 0 cuts nothing.
func NowLine(row *stint.Row, doing string, driven time.Duration, width int) string {
	s := &row.Session
	loop, tokens, cost := "", "", ""
	if n := s.At.Loop; n > 0 {
		loop = fmt.Sprintf("loop %d", n)
	}
	u := s.Totals.Usage
	if n := u.Input + u.CacheRead + u.CacheWrite + u.Output; n > 0 {
		tokens = count(n) + " tokens"
	}
	if u.Cost > 0 {
		cost = Dollars(u.Cost)
	}
	doing = term.Line(doing)
	line := list(loop, doing, elapsed(driven), tokens, cost)
	if over := term.Width(line) - width; width > 0 && over > 0 && doing != "" {
		doing = term.Cut(doing, max(term.Width(doing)-over, 1))
		line = term.Cut(list(loop, doing, elapsed(driven), tokens, cost), width)
	}
	return line
}

// elapsed is a length of time to the second: 12s, 1m04s, 2h03m.
func elapsed(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}
