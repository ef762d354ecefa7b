package engine_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// treeBreakages break what a store does for sessions and their children.
func treeBreakages() []breakage {
	return []breakage{
		{"a child that is begun again is another one", []string{"led to session", "were made from one key"}, func(m *mutant) {
			m.create = childBy(func(b *stint.Batch) { b.Keys = nil })
		}},
		{"what a decision makes is made each time", []string{"and no decision names it"}, forgetsAnswers},
		{"a child is of a family of its own", []string{"it is of family"}, func(m *mutant) { m.create = childBy(alone) }},
		{"the limit of children is not looked at", []string{"sessions were spawned below it"}, func(m *mutant) {
			m.create = childBy(func(b *stint.Batch) { b.Meters = unlimited(b.Meters) })
		}},
		{"the limits of a tree are not looked at", []string{"its tree used or may use"}, func(m *mutant) {
			m.append = batchBy(func(_ *mutant, b *stint.Batch) { b.Meters = unlimited(b.Meters) })
		}},
		{"what a session used and had drawn is forgotten as its process dies", []string{"its tree used or may use"}, func(m *mutant) { m.claim = forgets }},
		{"the end of a child is lost", []string{"and it was not told"}, func(m *mutant) {
			m.append = batchBy(func(m *mutant, b *stint.Batch) {
				b.Sends = slices.DeleteFunc(slices.Clone(b.Sends), func(s stint.Message) bool { return s.Kind == stint.ChildEnd && m.every(3) })
			})
		}},
		{"the end of a child is told each time", []string{"times that"}, func(m *mutant) {
			m.append = batchBy(func(_ *mutant, b *stint.Batch) {
				b.Sends = slices.Clone(b.Sends)
				for i := range b.Sends {
					if b.Sends[i].Kind == stint.ChildEnd {
						b.Sends[i].ID += fmt.Sprint(b.Session.Head)
					}
				}
			})
		}},
		{"the end of a parent ends nobody", []string{"and did not end it"}, func(m *mutant) { unpassed(m, stint.Stop) }},
		{"a kill stays above", []string{"took a kill"}, func(m *mutant) { unpassed(m, stint.Kill) }},
		{"a pause stays above", []string{"took a pause"}, func(m *mutant) { unpassed(m, stint.Pause) }},
		{"a resume stays above", []string{"took a resume"}, func(m *mutant) { unpassed(m, stint.Resume) }},
		{"a session that has ended is listed as open", []string{"and none is open"}, func(m *mutant) {
			m.list = func(m *mutant, ctx context.Context, f stint.Filter) ([]stint.Row, error) {
				f.Open = false
				return m.Store.Sessions(ctx, f)
			}
		}},
	}
}

// childBy changes the first batch of children.
func childBy(change func(b *stint.Batch)) func(*mutant, context.Context, stint.Batch, stint.Claim) (stint.Lease, error) {
	return func(m *mutant, ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
		if isKid(&b.Session) {
			change(&b)
		}
		return m.Store.Create(ctx, b, c)
	}
}

// batchBy changes batches.
func batchBy(change func(m *mutant, b *stint.Batch)) func(*mutant, context.Context, stint.Lease, stint.Batch, func(error)) {
	return func(m *mutant, ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
		change(m, &b)
		m.Store.Append(ctx, l, b, done)
	}
}

func unlimited(ms []stint.Meter) []stint.Meter {
	ms = slices.Clone(ms)
	for i := range ms {
		ms[i].Limit = -1
	}
	return ms
}

// unpassed loses what is passed on of a kind.
func unpassed(m *mutant, kind stint.MessageKind) {
	passed := func(s *stint.Message) bool {
		var c journal.Command
		return s.Kind == kind && decodeJSON(s.Data, &c) == nil && !c.Tree.IsZero()
	}
	m.append = batchBy(func(_ *mutant, b *stint.Batch) {
		b.Sends = slices.DeleteFunc(slices.Clone(b.Sends), func(s stint.Message) bool { return passed(&s) })
	})
	m.send = func(m *mutant, ctx context.Context, id stint.ID, msg stint.Message) error {
		if passed(&msg) {
			return nil
		}
		return m.Store.Send(ctx, id, msg)
	}
}

// alone makes a child's first entry one of another family.
func alone(b *stint.Batch) {
	e := &b.Entries[0]
	c, err := journal.Decode[journal.Created](e)
	if err != nil {
		panic(err) // the engine made it
	}
	c.Family = b.Session.ID
	s, first, err := journal.Begin(b.Session.ID, c, journal.Draft{At: e.At, Actor: e.Actor, Salt: e.Salt, Body: e.Body, Blob: e.Blob})
	if err != nil {
		panic(err)
	}
	b.Session, b.Entries = s, []stint.Entry{first}
}

// forgets takes what a session used, and had drawn, off the limits of its tree when its
// process dies.
func forgets(m *mutant, ctx context.Context, c stint.Claim) ([]stint.Lease, error) {
	ls, err := m.Store.Claim(ctx, c)
	for _, l := range ls {
		row, err := m.Store.Session(ctx, l.Session)
		if err != nil || l.Prior == stint.Released {
			continue
		}
		b, t := stint.Batch{Session: row.Session}, row.Session.Totals
		for s := row.Session; isKid(&s); s = row.Session {
			if row, err = m.Store.Session(ctx, s.Parent.Session); err != nil {
				break
			}
			above := row.Session.ID.String()
			b.Meters = append(b.Meters, stint.Meter{Metric: "tokens:" + above, Limit: -1, Reserve: -t.Reserved.Tokens(), Spend: -t.Usage.Tokens()},
				stint.Meter{Metric: "cost:" + above, Limit: -1, Reserve: -int64(t.Reserved.Cost), Spend: -int64(t.Usage.Cost)})
		}
		m.Store.Append(ctx, l, b, func(error) {})
	}
	return ls, err
}
