package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// asked makes an order one that somebody has to agree to.
func (p *people) asked(m stint.Message) stint.Message {
	var c journal.Command
	if err := json.Unmarshal(m.Data, &c); err != nil {
		panic(err) // people write commands
	}
	c.Ask = &journal.ApprovalRequested{Text: string(m.Kind) + " it", Why: "a rule"}
	if p.rng.IntN(4) == 0 {
		c.Ask.Until = time.Now().Add(time.Duration(1+p.rng.IntN(300)) * time.Second)
	}
	return message(m.Kind, c)
}

// ordered is an order that waits for a decision.
func (p *people) ordered(s *stint.Session) stint.Message {
	if kind := []stint.MessageKind{stint.Restart, stint.Rollback, stint.BranchOff}[p.rng.IntN(3)]; kind != stint.BranchOff {
		return p.asked(p.goBack(s, kind))
	}
	p.limbs++
	from := p.rng.IntN(s.Checkpoint.Loop + 2) // also one that is not there
	c := journal.Command{From: &from, Labels: limbLabels(p.limbs), InDoubt: []journal.DoubtChoice{"", journal.SkipDoubt, journal.RedoDoubt}[p.rng.IntN(3)]}
	if p.rng.IntN(2) == 0 {
		c.Head = s.Head
	}
	return p.asked(message(stint.BranchOff, c))
}

// waitsForSomebody reports whether a question about an order is open.
func waitsForSomebody(s *stint.Session) bool {
	return slices.ContainsFunc(s.At.Approvals, func(a stint.Approval) bool { return a.OfOrder() && a.State == stint.ApprovalOpen })
}

// others are the answers that branches go on with. They have the script of the session, so
// it is one that nobody tells by its label.
func (p *people) others(s *stint.Session, a *stint.Approval) []journal.Decision {
	label := s.Labels["n"]
	if a.OfOrder() || strings.Contains(label, "/") || p.w.boss(label) || s.Parent.Branch || p.rng.IntN(4) > 0 {
		return nil
	}
	return []journal.Decision{{State: stint.ApprovalDenied}, {State: stint.ApprovalApproved}}[:1+p.rng.IntN(2)]
}

// decidedAboutOrders: a yes to an order is followed by what was ordered, in its batch, and by
// one branch for each that a decision names.
func decidedAboutOrders(_ *world, v *view) error {
	of := map[stint.ID]int{} // branches that decisions name
	for _, id := range v.ids {
		for i := range v.entries[id] {
			e := &v.entries[id][i]
			if e.Kind != stint.ApprovalDecided {
				continue
			}
			d, err := journal.Decode[journal.ApprovalDecided](e)
			if err != nil {
				return in(id, "%v", err)
			}
			for _, b := range d.Branches {
				if of[b]++; of[b] > 1 {
					return in(b, "two decisions made this branch")
				}
				if row, there := v.rows[b]; !there || !row.Session.Parent.Branch || row.Session.Parent.Session != id {
					return in(id, "entry %d names the branch %s, which is none of it", e.Seq, b)
				}
			}
			if len(v.folds[id]) == 0 {
				continue // it was looked at before
			}
			asks := v.folds[id][i].At.Approvals
			at := slices.IndexFunc(asks, func(a stint.Approval) bool { return a.Seq == d.Approval })
			if d.State != stint.ApprovalApproved || at < 0 || !asks[at].OfOrder() || asks[at].Name == string(stint.BranchOff) {
				continue
			}
			if i+1 == len(v.entries[id]) {
				return in(id, "entry %d agrees to a %s, and nothing follows", e.Seq, asks[at].Name)
			}
		}
	}
	for _, id := range v.ids {
		if goesOn(v, id) && of[id] == 0 && !undecided(v, v.rows[id].Session.Parent.Session) {
			return in(id, "it goes on from a question, and no decision names it")
		}
	}
	return nil
}

// undecided reports whether a session has a decision that it has not taken, or did not take:
// what that makes is there before.
func undecided(v *view, id stint.ID) bool {
	return slices.ContainsFunc(v.inbox[id], func(m stint.Message) bool { return m.Kind == stint.Decision }) ||
		slices.ContainsFunc(v.entries[id], func(e stint.Entry) bool {
			d, err := journal.Decode[journal.Taken](&e)
			return e.Kind == stint.MessageRefused && err == nil && d.Kind == stint.Decision
		})
}

// forgetsAnswers breaks that what a decision makes is made once: its keys are not kept, and
// half of the decisions are lost behind it.
func forgetsAnswers(m *mutant) {
	m.create = func(m *mutant, ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
		if b.Session.Parent.Branch {
			b.Keys = nil
		}
		return m.Store.Create(ctx, b, c)
	}
	m.append = func(m *mutant, ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
		for i := range b.Entries {
			d, err := journal.Decode[journal.ApprovalDecided](&b.Entries[i])
			if b.Entries[i].Kind == stint.ApprovalDecided && err == nil && len(d.Branches) > 0 && m.every(2) {
				go done(stint.Fenced.Errorf("append", "the lease is over"))
				return
			}
		}
		m.Store.Append(ctx, l, b, done)
	}
}

// goesOn reports whether a session is a branch that goes on from a question, with the script
// of the session that asked it.
func goesOn(v *view, id stint.ID) bool {
	s := v.rows[id].Session
	return s.Parent.Branch && s.Labels["n"] == v.rows[s.Parent.Session].Session.Labels["n"]
}

// everybody are all sessions that there are, also those that a decision made.
func (w *world) everybody() (all []stint.ID, err error) {
	for page := (stint.Filter{Limit: 500}); ; {
		rows, err := w.store.Sessions(w.ctx, page)
		if err != nil || len(rows) == 0 {
			return all, err
		}
		for i := range rows {
			page.After = rows[i].Session.ID
			all = append(all, page.After)
		}
	}
}
