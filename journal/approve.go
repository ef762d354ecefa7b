package journal

import (
	"slices"

	"github.com/stint-dev/stint"
)

// questioned changes the questions of s as e, with its data d, says.
func questioned(s *stint.Session, e *stint.Entry, d any) error {
	switch d := d.(type) {
	case ApprovalRequested:
		return approvalRequested(s, e, d)
	case ApprovalChanged:
		return approvalChanged(s, e, d)
	case ApprovalDecided:
		return approvalDecided(s, e, d)
	}
	return nil
}

// approvalRequested adds an open question. At one step there is one at a time; about
// orders, which have no step, there may be several.
func approvalRequested(s *stint.Session, e *stint.Entry, d ApprovalRequested) error {
	if i := asked(s, e.Pos); i >= 0 && e.Pos.Step > 0 {
		return illegal(s, e, "step %s was asked about in entry %d", e.Pos, s.At.Approvals[i].Seq)
	}
	list := s.At.Approvals
	s.At.Approvals = append(list[:len(list):len(list)], stint.Approval{
		Seq: e.Seq, Step: e.Pos, Name: d.Name, Effect: d.Effect, Input: d.Input, Text: d.Text, Why: d.Why,
		Answer: d.Schema != nil, State: stint.ApprovalOpen, Since: e.At, Until: micro(d.Until), Approvers: d.Approvers, Quorum: d.Quorum,
	})
	return nil
}

// approvalDecided ends a question. One that is open comes to any end; a yes whose step
// has not begun can still be taken back by what makes it void.
func approvalDecided(s *stint.Session, e *stint.Entry, d ApprovalDecided) error {
	i := slices.IndexFunc(s.At.Approvals, func(a stint.Approval) bool { return a.Seq == d.Approval })
	if i < 0 {
		return illegal(s, e, "entry %d is no question of the open loop, or its step has its outcome", d.Approval)
	}
	a := s.At.Approvals[i]
	if a.OfOrder() != (e.Pos.Step == 0) {
		return illegal(s, e, "question %d is not about what stands at %s", a.Seq, e.Pos)
	}
	void := false
	switch d.State {
	case stint.ApprovalApproved, stint.ApprovalDenied, stint.ApprovalExpired:
	case stint.ApprovalCanceled, stint.ApprovalInvalidated:
		void = true
	default:
		return illegal(s, e, "%q is no end of a question", d.State)
	}
	if a.State != stint.ApprovalOpen && !void {
		return illegal(s, e, "question %d is %s already", a.Seq, a.State)
	}
	list := slices.Clone(s.At.Approvals)
	if void {
		list = slices.Delete(list, i, i+1)
	} else {
		if d.State != stint.ApprovalApproved && d.Edited != "" {
			return illegal(s, e, "only a yes changes the input")
		}
		if n := yeses(&a, e, d.Edited); d.State == stint.ApprovalApproved && n < a.Quorum {
			return illegal(s, e, "question %d wants %d yeses and has %d", a.Seq, a.Quorum, n)
		}
		if d.State == stint.ApprovalApproved && d.Edited != "" {
			a.Edited = d.Edited
		}
		a.State, a.By, a.At, a.Note, a.Decided = d.State, e.Actor, e.At, d.Note, e.Seq
		if list[i] = a; a.OfOrder() { // what came of it is in the same batch
			list = slices.Delete(list, i, i+1)
		}
	}
	s.At.Approvals = orNil(list)
	return nil
}

// yeses is how many people say yes with e, each counted once. With another input than before
// the count begins anew.
func yeses(a *stint.Approval, e *stint.Entry, edited string) int {
	if edited != "" && edited != a.Edited {
		return 1
	}
	if slices.Contains(a.Yes, e.Actor) {
		return len(a.Yes)
	}
	return len(a.Yes) + 1
}

// approvalChanged notes what became of a question that stays open.
func approvalChanged(s *stint.Session, e *stint.Entry, d ApprovalChanged) error {
	i := slices.IndexFunc(s.At.Approvals, func(a stint.Approval) bool { return a.Seq == d.Approval && a.State == stint.ApprovalOpen })
	if i < 0 {
		return illegal(s, e, "entry %d is no question that is open", d.Approval)
	}
	a := s.At.Approvals[i]
	switch {
	case a.OfOrder() != (e.Pos.Step == 0):
		return illegal(s, e, "question %d is not about what stands at %s", a.Seq, e.Pos)
	case !d.Yes && d.Edited != "":
		return illegal(s, e, "only a yes changes the input")
	case !d.Yes:
		a.Approvers, a.Until = d.Approvers, micro(d.Until)
	case d.Edited != "" && d.Edited != a.Edited:
		a.Edited, a.Yes = d.Edited, []stint.Actor{e.Actor}
	case slices.Contains(a.Yes, e.Actor):
		return illegal(s, e, "%s has said yes to question %d already", e.Actor, a.Seq)
	default:
		a.Yes = append(a.Yes[:len(a.Yes):len(a.Yes)], e.Actor)
	}
	list := slices.Clone(s.At.Approvals)
	list[i] = a
	s.At.Approvals = list
	return nil
}

// permitted checks a step that a person was asked about: it begins, and succeeds, after a
// yes to exactly this step. After a no it fails without having begun.
func permitted(s *stint.Session, e *stint.Entry, d StepRequested) error {
	i := asked(s, e.Pos)
	if i < 0 {
		return nil
	}
	switch a := &s.At.Approvals[i]; {
	case a.Name != d.Name || a.Effect != d.Effect || a.Input != d.given().Input || a.Edited != "" && a.State == stint.ApprovalApproved && a.Edited != d.Input:
		return illegal(s, e, "question %d is about another step, %q", a.Seq, a.Name)
	case a.State == stint.ApprovalOpen, a.State != stint.ApprovalApproved && e.Kind != stint.StepFailed:
		return illegal(s, e, "question %d about it is %s", a.Seq, a.State)
	}
	return nil
}

// settled drops the question of a step that has its outcome.
func settled(s *stint.Session, pos stint.Position) {
	if i := asked(s, pos); i >= 0 {
		s.At.Approvals = orNil(slices.Delete(slices.Clone(s.At.Approvals), i, i+1))
	}
}

// asked is the index of the question of the step at pos; -1: there is none.
func asked(s *stint.Session, pos stint.Position) int {
	return slices.IndexFunc(s.At.Approvals, func(a stint.Approval) bool { return a.Step.Step == pos.Step && a.Step.Sub == pos.Sub })
}

// ofOrders are those of the questions that outlive a loop.
func ofOrders(all []stint.Approval) []stint.Approval {
	return orNil(slices.DeleteFunc(slices.Clone(all), func(a stint.Approval) bool { return !a.OfOrder() }))
}

func orNil(list []stint.Approval) []stint.Approval {
	if len(list) == 0 {
		return nil
	}
	return list
}
