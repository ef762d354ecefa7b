package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/term"
)

// Find returns the session that address means, and the place in it that it names.
//
// An address begins with one of
//
//   - a name: its newest open session, else its newest;
//   - an id of 26 characters, a short id, or another ending of at least 4;
//   - the beginning of exactly one id (at least 4 characters) or of exactly one name;
//   - AGENT@HH:MM, the agent's newest session of that minute, today or, where that is
//     still to come, yesterday; AGENT@2026-11-28, its newest of that day. Both in the
//     zone of now;
//   - @last, the newest session; @bad, the newest that ended badly, or waits because something is wrong;
//
// and goes on with /LINE and :LOOP, :LOOP.STEP or :LOOP.STEP.SUB, or with nothing.
// Errors: [stint.NotFound] with the nearest names, also for a line that is not
// there; [stint.Invalid] for what is no address, or means several sessions, which
// it then lists.
func Find(ctx context.Context, r stint.Reader, address string, now time.Time) (stint.Row, Place, error) {
	key, place, err := cutPlace(address)
	if err != nil {
		return stint.Row{}, place, err
	}
	f := finder{ctx: ctx, r: r, now: now}
	row, err := f.session(key)
	if err != nil {
		return row, place, err
	}
	if last := row.Session.At.Line; place.Line > last {
		err := stint.NotFound.Errorf("session", "there is no line %d of %s; it has %s", place.Line, term.Line(row.Session.Name), LinesUpTo(last))
		err.Hint = "stint show " + row.Short + " lists them"
		return row, place, err
	}
	return row, place, nil
}

// LinesUpTo says in words which lines a session has whose newest is last.
func LinesUpTo(last int) string {
	if last == 0 {
		return "line 0 alone"
	}
	return fmt.Sprintf("the lines 0 to %d", last)
}

type finder struct {
	ctx context.Context
	r   stint.Reader
	now time.Time
}

func (f *finder) session(key string) (stint.Row, error) {
	agent, at, timed := strings.Cut(key, "@")
	switch {
	case key == "@last":
		return f.newest(stint.Filter{}, "there is no session yet", "stint run AGENT starts one")
	case key == "@bad":
		return f.bad()
	case timed && agent != "":
		return f.at(agent, at)
	case timed:
		err := stint.Invalid.Errorf("session", "%q is not an address", clip(key))
		err.Hint = addressHint
		return stint.Row{}, err
	}
	if id, err := stint.ParseID(key); err == nil && !id.IsZero() {
		row, err := f.r.Session(f.ctx, id)
		if !errors.Is(err, stint.NotFound) {
			return row, err
		}
	}
	rows, err := f.exact(key)
	if err == nil && len(rows) == 0 {
		rows, err = f.begins(key)
	}
	switch {
	case err != nil:
		return stint.Row{}, err
	case len(rows) == 0:
		return stint.Row{}, f.missing(key)
	case len(rows) > 1:
		return stint.Row{}, ambiguous(key, rows)
	}
	return rows[0], nil
}

// newest returns the newest session that q selects.
func (f *finder) newest(q stint.Filter, none, hint string) (stint.Row, error) {
	q.Limit = 1
	rows, err := f.r.Sessions(f.ctx, q)
	if err != nil {
		return stint.Row{}, err
	}
	if len(rows) == 0 {
		err := stint.NotFound.Errorf("session", "%s", none)
		err.Hint = hint
		return stint.Row{}, err
	}
	return rows[0], nil
}

// bad returns the newest session that ended badly, or waits because something is wrong.
func (f *finder) bad() (stint.Row, error) {
	rows, _, err := Sessions(f.ctx, f.r, Query{Bad: true, Limit: 1})
	if err != nil {
		return stint.Row{}, err
	}
	if len(rows) == 0 {
		err := stint.NotFound.Errorf("session", "no session failed, was stopped or canceled, or waits for doubt, budget or health")
		err.Hint = "stint ps -a lists them all"
		return stint.Row{}, err
	}
	return rows[0], nil
}

// at returns the newest session that an agent began at a time of day, or on a day.
func (f *finder) at(agent, at string) (stint.Row, error) {
	y, m, d := f.now.Date()
	zone := f.now.Location()
	begin, end := time.Time{}, time.Time{}
	if day, err := time.ParseInLocation(time.DateOnly, at, zone); err == nil {
		begin, end = day, day.AddDate(0, 0, 1)
	} else if t, err := time.Parse("15:04", at); err == nil {
		begin = time.Date(y, m, d, t.Hour(), t.Minute(), 0, 0, zone)
		if begin.After(f.now) {
			begin = time.Date(y, m, d-1, t.Hour(), t.Minute(), 0, 0, zone)
		}
		end = begin.Add(time.Minute)
	} else {
		err := stint.Invalid.Errorf("session", "%q is neither a time of day nor a day", clip(at))
		err.Hint = "write triage@06:00 or triage@2026-11-28"
		return stint.Row{}, err
	}
	row, err := f.newest(stint.Filter{Agent: agent, Since: begin, Before: end}, "", "")
	if !errors.Is(err, stint.NotFound) {
		return row, err
	}
	none := stint.NotFound.Errorf("session", "the agent %s began no session %s", term.Line(clip(agent)), begin.Format("2 Jan 2006 at 15:04"))
	if end.Sub(begin) > time.Hour {
		none = stint.NotFound.Errorf("session", "the agent %s began no session on %s", term.Line(clip(agent)), begin.Format("2 Jan 2006"))
	}
	rows, err := f.r.Sessions(f.ctx, stint.Filter{Agent: agent, Limit: 3})
	if err != nil {
		return row, err
	}
	none.Hint = "stint ps -a lists the sessions"
	if len(rows) > 0 {
		none.Hint = "its newest are:" + lines(rows, func(r *stint.Row) string { return r.Session.Created.In(zone).Format("2 Jan 15:04") })
	}
	return row, none
}

// exact returns the sessions that key names: by name, and by the end of an id.
func (f *finder) exact(key string) ([]stint.Row, error) {
	named, err := f.named(key)
	if err != nil {
		return nil, err
	}
	ending, err := f.ending(strings.ToLower(key))
	if err != nil {
		return nil, err
	}
	for _, row := range ending {
		if !slices.ContainsFunc(named, func(n stint.Row) bool { return n.Session.ID == row.Session.ID }) {
			named = append(named, row)
		}
	}
	return named, nil
}

// named returns the open sessions of a name, or else its newest.
func (f *finder) named(name string) ([]stint.Row, error) {
	rows, err := f.r.Sessions(f.ctx, stint.Filter{Name: name, Open: true, Limit: maxCandidates})
	if err != nil || len(rows) > 0 {
		return rows, err
	}
	return f.r.Sessions(f.ctx, stint.Filter{Name: name, Limit: 1})
}

// minEnding is the least number of characters that can stand for an id.
const minEnding = 4

// maxCandidates is how many sessions an error lists.
const maxCandidates = 10

// ending returns the sessions whose ids end in s. The one that was given s as its
// short id keeps it, also when a later id ends so too.
func (f *finder) ending(s string) ([]stint.Row, error) {
	if len(s) < minEnding || !idCharacters(s) {
		return nil, nil
	}
	rows, err := f.r.Sessions(f.ctx, stint.Filter{Short: s, Limit: 2 * maxCandidates})
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(rows, func(r stint.Row) bool { return r.Short == s }); i >= 0 {
		return rows[i : i+1], nil
	}
	return rows, nil
}

// idCharacters reports whether s could be a part of an id.
func idCharacters(s string) bool {
	_, err := stint.ParseID(strings.Repeat("0", max(0, 26-len(s))) + s)
	return err == nil
}

// begins returns the sessions whose id begins with key, or else those that a name
// beginning with it means: open ones before ended ones.
func (f *finder) begins(key string) ([]stint.Row, error) {
	low := strings.ToLower(key)
	if len(low) >= minEnding && len(low) < 26 {
		if last, err := stint.ParseID(low + strings.Repeat("z", 26-len(low))); err == nil {
			rows, err := f.r.Sessions(f.ctx, stint.Filter{After: last, Limit: maxCandidates})
			if err != nil {
				return nil, err
			}
			rows = slices.DeleteFunc(rows, func(r stint.Row) bool { return !strings.HasPrefix(r.Session.ID.String(), low) })
			if len(rows) > 0 {
				return rows, nil
			}
		}
	}
	var found []stint.Row
	for _, open := range []bool{true, false} {
		err := f.scan(stint.Filter{Open: open}, func(row *stint.Row) {
			same := func(r stint.Row) bool { return r.Session.Name == row.Session.Name }
			if strings.HasPrefix(row.Session.Name, key) && (open || !slices.ContainsFunc(found, same)) && len(found) < maxCandidates {
				found = append(found, *row)
			}
		})
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}

// maxScan is how many sessions are looked at for the beginning of a name.
const maxScan = 10_000

// scan calls fn for the newest sessions that q selects.
func (f *finder) scan(q stint.Filter, fn func(*stint.Row)) error {
	q.Limit = listPage
	for seen := 0; seen < maxScan; {
		rows, err := f.r.Sessions(f.ctx, q)
		if err != nil {
			return err
		}
		for i := range rows {
			fn(&rows[i])
		}
		if len(rows) < listPage {
			return nil
		}
		seen += len(rows)
		q.After = rows[len(rows)-1].Session.ID
	}
	return nil
}

// missing is the error for a key that names nothing, with the nearest names.
func (f *finder) missing(key string) error {
	type near struct {
		name string
		far  int
	}
	var all []near
	if err := f.scan(stint.Filter{}, func(row *stint.Row) {
		for _, name := range []string{row.Session.Name, row.Short} {
			d := ident.Distance(key, name)
			if d <= max(2, len(key)/3) && !slices.ContainsFunc(all, func(n near) bool { return n.name == name }) {
				all = append(all, near{name, d})
			}
		}
	}); err != nil {
		return err
	}
	err := stint.NotFound.Errorf("session", "there is no session %q", clip(key))
	err.Hint = "stint ps -a lists the sessions"
	if len(all) > 0 {
		slices.SortStableFunc(all, func(a, b near) int { return cmp.Compare(a.far, b.far) })
		var names []string
		for _, n := range all[:min(3, len(all))] {
			names = append(names, term.Line(n.name))
		}
		err.Hint = "did you mean " + strings.Join(names, ", ") + "? " + err.Hint
	}
	return err
}

func ambiguous(key string, rows []stint.Row) error {
	some := strconv.Itoa(len(rows))
	if len(rows) >= maxCandidates {
		some = "many"
	}
	err := stint.Invalid.Errorf("session", "%q may be any of %s sessions", clip(key), some)
	err.Hint = "use an id:" + lines(rows[:min(len(rows), maxCandidates)], StatusWord)
	return err
}

// lines is one line for each of rows, as a hint lists them.
func lines(rows []stint.Row, last func(*stint.Row) string) string {
	var b strings.Builder
	for i := range rows {
		fmt.Fprintf(&b, "\n    %s  %s  %s", rows[i].Short, term.Line(rows[i].Session.Name), last(&rows[i]))
	}
	return b.String()
}
