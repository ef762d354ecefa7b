package engine

import (
	"errors"
	"fmt"

	"github.com/stint-dev/stint"
)

// What is limited for a session and all that is spawned below it. A child draws on the
// limits of each session above it, so each of those has a meter of the tree below it, with
// the session itself in it once it has spawned. The limit stands with the session: whoever
// draws reads it at that moment, and a raised one holds for the next draw of all.
const (
	perTokens = "tokens"
	perCost   = "cost"
	perChild  = "children"
)

// maxLevels bounds how deep sessions spawn sessions: each level is read before a draw.
const maxLevels = 32

// metric is the meter of a session's tree.
func metric(of string, id stint.ID) string { return of + ":" + id.String() }

// most is a limit as a meter has it: 0 is none, and below it nothing is left.
func most(limit int64) int64 {
	switch {
	case limit == 0:
		return -1
	case limit < 0:
		return 0
	}
	return limit
}

// drawn is what a call holds of the limits of its tree until it has an outcome.
type drawn struct {
	from         []stint.ID
	tokens, cost int64
}

// exhausted is the error of a draw that a limit refused, and what it makes of the session.
type exhausted struct {
	parking *parking
	error
}

func (e *exhausted) Unwrap() error { return e.error }

// spent is what an error that a limit of the tree gave makes of the session; nil for any
// other.
func (d *driver) spent(err error) *parking {
	if e := (*exhausted)(nil); errors.As(err, &e) {
		return e.parking
	}
	return nil
}

// passed says whose limit it was that refused a draw.
func passed(err error, tree []stint.Session) error {
	var e *stint.Error
	if !errors.As(err, &e) || e.Metric == "" {
		return err
	}
	for i := range tree {
		s := &tree[i]
		figure, name := "", ""
		switch e.Metric {
		case metric(perTokens, s.ID):
			name, figure = perTokens, fmt.Sprintf("%d tokens", s.Limits.Tokens)
		case metric(perCost, s.ID):
			name, figure = perCost, fmt.Sprintf("$%v", s.Limits.Cost)
		case metric(perChild, s.ID):
			name, figure = perChild, fmt.Sprintf("%d", max(0, s.Limits.Children))
		default:
			continue
		}
		return &exhausted{used(s.Limits, name, figure+" of "+s.Name+" and what it spawned"), err}
	}
	return err
}

// inTree reports whether the session shares limits with others.
func inTree(s *stint.Session) bool { return isChild(&s.Parent) || s.Totals.Children > 0 }

// tree is the session and those above it, nearest first, as they are now.
func (d *driver) tree() ([]stint.Session, error) {
	s := d.w.session()
	all := []stint.Session{s}
	for isChild(&s.Parent) && len(all) <= maxLevels {
		row, err := patiently(d, func() (stint.Row, error) { return d.e.store.Session(d.io, s.Parent.Session) })
		if stint.CodeOf(err) == stint.NotFound {
			break // it was brought here without its parent
		}
		if err != nil {
			return nil, err
		}
		s = row.Session
		all = append(all, s)
	}
	if d.above == nil {
		d.above = []stint.ID{}
		for i := range all[1:] {
			d.above = append(d.above, all[i+1].ID)
		}
	}
	return all, nil
}

// payers are the sessions whose meters the session's use goes to.
func (d *driver) payers() ([]stint.ID, error) {
	if d.above == nil {
		if _, err := d.tree(); err != nil {
			return nil, err
		}
	}
	if s := d.w.session(); s.Totals.Children > 0 {
		return append([]stint.ID{s.ID}, d.above...), nil
	}
	return d.above, nil
}

// metered reports whether the call has to draw on limits that the session shares.
func (l *loop) metered(c *call) bool {
	s := l.d.w.session()
	return inTree(&s) && !c.intended && (c.step.Kind == stint.Model || c.step.Reserve != (stint.Usage{}))
}

// drawOn records the intent of a call together with what it draws on the limits of its
// tree, or parks. One that does not say what it may use draws the least there is, so that
// it is refused when nothing is left.
func (l *loop) drawOn(c *call) error {
	tree, err := l.d.tree()
	if err != nil {
		return err
	}
	if tree[0].Totals.Children == 0 { // its own limits are those of its totals
		tree = tree[1:]
	}
	if l.reserves(c) {
		c.intent.Reserve = c.step.Reserve
	}
	held := &drawn{tokens: max(1, c.step.Reserve.Tokens()), cost: max(1, int64(c.step.Reserve.Cost))}
	limited := false
	var meters []stint.Meter
	for i := range tree {
		s := &tree[i]
		limited = limited || s.Limits.Tokens != 0 || s.Limits.Cost != 0
		held.from = append(held.from, s.ID)
		meters = append(meters,
			stint.Meter{Metric: metric(perTokens, s.ID), Limit: most(s.Limits.Tokens), Reserve: held.tokens},
			stint.Meter{Metric: metric(perCost, s.ID), Limit: most(int64(s.Limits.Cost)), Reserve: held.cost})
	}
	if !limited {
		meters, held = nil, nil
		if c.step.Effect != stint.Once && c.intent.Reserve == (stint.Usage{}) && c.intent.Asked == "" {
			return nil
		}
	}
	if err := l.d.w.try(c.request(), extras{meters: meters}); err != nil {
		if l.park = l.d.spent(passed(err, tree)); l.park != nil {
			return stint.ErrParked
		}
		return l.refused(err)
	}
	l.loose, l.model = 0, 0
	c.intended, c.held = true, held
	return nil
}

// used is what the outcome of a call does to the meters: it spends what was used, and
// gives back what was drawn.
func (d *driver) used(c *call) []stint.Meter {
	s, u := d.w.session(), c.result.Usage
	if !inTree(&s) || c.held == nil && u.Tokens() == 0 && u.Cost == 0 {
		return nil
	}
	held := c.held
	if held == nil {
		from, err := d.payers()
		if err != nil {
			d.e.opt.Log.Error("what a step used is not counted for the sessions above", "session", s.ID, "error", err)
			return nil
		}
		held = &drawn{from: from}
	}
	var meters []stint.Meter
	for _, id := range held.from {
		meters = append(meters,
			stint.Meter{Metric: metric(perTokens, id), Limit: -1, Spend: u.Tokens(), Reserve: -held.tokens},
			stint.Meter{Metric: metric(perCost, id), Limit: -1, Spend: int64(u.Cost), Reserve: -held.cost})
	}
	return meters
}

// opens is what the first intent of a child does to the meters: from here on those of the
// session count, and it has used what it has.
func (d *driver) opens(c *call) []stint.Meter {
	s := d.w.session()
	if !c.intent.Child || s.Totals.Children > 0 {
		return nil
	}
	return owes(s.ID, &s)
}

// owes is what a session used of the limits of the tree below one.
func owes(of stint.ID, s *stint.Session) []stint.Meter {
	u, r := s.Totals.Usage, s.Totals.Reserved
	return []stint.Meter{
		{Metric: metric(perTokens, of), Limit: -1, Spend: u.Tokens(), Reserve: r.Tokens()},
		{Metric: metric(perCost, of), Limit: -1, Spend: int64(u.Cost), Reserve: int64(r.Cost)},
	}
}

// Trees are the sessions of a store that is made of journals, each with those above it,
// nearest first. Nothing may use it beside a call of a method.
type Trees map[stint.ID][]stint.ID

// Meters are what a session with this journal has used of the limits that it shares with
// others, which no journal has: for the batch that brings it into a store. A session comes
// before those that it spawned.
func (t Trees) Meters(s *stint.Session) (all []stint.Meter) {
	if s.Totals.Children > 0 {
		all = owes(s.ID, s)
	}
	if !isChild(&s.Parent) {
		return all
	}
	t[s.ID] = append([]stint.ID{s.Parent.Session}, t[s.Parent.Session]...)
	for _, id := range t[s.ID] {
		all = append(all, owes(id, s)...)
		all = append(all, stint.Meter{Metric: metric(perChild, id), Limit: -1, Reserve: 1})
	}
	return all
}
