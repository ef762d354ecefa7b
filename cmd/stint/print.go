package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

// printSession prints one session as JSON.
func (a *app) printSession(row *stint.Row) error {
	return a.printJSON(view.NewSession(row, time.Now()))
}

// followPoll is how often a follower looks for new entries.
const followPoll = 100 * time.Millisecond

// followLive prints the session's log behind entry after while it runs, until the
// returned function is called.
func (a *app) followLive(s *site, row *stint.Row, after stint.Seq) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	opt := view.LogOptions{Query: view.LogQuery{Line: -1, After: after}}
	if a.json {
		opt.Format = view.JSONL
	}
	log := view.NewLog(s.store, *row, a.style(), time.Now(), opt)
	done := make(chan error, 1)
	go func() {
		_, err := log.Follow(ctx, a.out, followPoll)
		done <- err
	}()
	return func() {
		timer := time.AfterFunc(2*followPoll, cancel) // a session that parks has no end to wait for
		defer timer.Stop()
		<-done
		cancel()
	}
}

// planText is a plan for people.
func planText(row *stint.Row, p *journal.Plan) string {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", label, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "Plan: restart %s (%s) from the end of loop %d\n", term.Line(row.Session.Name), row.Short, p.From)
	line("Keeps", "loops 1 to %d · %d steps", p.Keeps.Loops, p.Keeps.Steps)
	if p.Leaves.Loops > 0 {
		line("Leaves", "%d loops on line %s/%d (readable, not deleted)", p.Leaves.Loops, row.Short, p.Leaves.Line)
	}
	switch {
	case p.State.Unknown:
		line("State", "the newest state cannot be read; goes back to one of %d bytes", p.State.After)
	case len(p.State.Changes) == 0:
		line("State", "unchanged")
	default:
		line("State", "%d bytes become %d", p.State.Before, p.State.After)
		for i, c := range p.State.Changes {
			if i == 10 {
				line("", "and %d more (--json lists them)", len(p.State.Changes)-10+p.State.More)
				break
			}
			line("", "%s  %s → %s", term.Line(or(c.Path, "(all)")), value(c.Old, c.OldSize), value(c.New, c.NewSize))
		}
	}
	for i, e := range p.Outside {
		label := ""
		if i == 0 {
			label = "Outside"
		}
		line(label, "%s %s %s", e.Pos, term.Line(e.Name), e.Note)
	}
	for i, e := range p.InDoubt {
		label := ""
		if i == 0 {
			label = "In doubt"
		}
		line(label, "%s %s %s", e.Pos, term.Line(e.Name), e.Note)
	}
	fmt.Fprintf(&b, "Nothing was changed. To do it: stint restart %s --from %d\n", row.Short, p.From)
	return b.String()
}

func value(v []byte, size int) string {
	switch {
	case size == 0:
		return "(none)"
	case v == nil:
		return fmt.Sprintf("(%d bytes)", size)
	}
	return term.Line(string(v))
}

func or(s, def string) string {
	if s == "" {
		return def
	}
	return s
}
