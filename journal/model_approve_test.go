package journal_test

import (
	"slices"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// question is one that a person was asked in the open loop, as the model sees it.
type question struct {
	approval stint.Approval
	over     bool // nothing more is to be said or done about it
}

// questions looks back over what was asked since the loop began, and about orders since the
// line began, and keeps what is not over.
func (m *model) questions() (list []question) {
	began := 1 + m.last(stint.LoopCompleted, stint.LineStarted, stint.SessionEnded)
	for i := 1 + m.last(stint.LineStarted); i < len(m.facts); i++ {
		f := m.facts[i]
		switch d := f.data.(type) {
		case journal.ApprovalRequested:
			if i < began && f.pos.Step > 0 {
				continue
			}
			list = append(list, question{approval: stint.Approval{Seq: f.seq, Step: f.pos, Name: d.Name, Effect: d.Effect, Input: d.Input,
				Text: d.Text, Why: d.Why, Answer: len(d.Schema) > 0, State: "open", Since: f.at, Until: d.Until, Approvers: d.Approvers, Quorum: d.Quorum}})
		case journal.ApprovalChanged:
			for i := range list {
				if a := &list[i].approval; a.Seq == d.Approval {
					m.changed(a, d, f.actor)
				}
			}
		case journal.ApprovalDecided:
			for i := range list {
				if a := &list[i].approval; a.Seq == d.Approval {
					a.State, a.By, a.At, a.Note, a.Decided = d.State, f.actor, f.at, d.Note, f.seq
					if d.Edited != "" {
						a.Edited = d.Edited
					}
					list[i].over = d.State == "canceled" || d.State == "invalidated" || a.Step.Step == 0
				}
			}
		case journal.StepDone:
			if f.kind == stint.StepFailed && !d.Definite {
				continue
			}
			for i := range list {
				if p := list[i].approval.Step; p.Step == f.pos.Step && p.Sub == f.pos.Sub {
					list[i].over = true
				}
			}
		}
	}
	return slices.DeleteFunc(list, func(q question) bool { return q.over })
}

// changed is a question that stays open, after d.
func (m *model) changed(a *stint.Approval, d journal.ApprovalChanged, by stint.Actor) {
	switch {
	case !d.Yes:
		a.Approvers, a.Until = d.Approvers, d.Until
	case d.Edited != "" && d.Edited != a.Edited:
		a.Edited, a.Yes = d.Edited, []stint.Actor{by}
	default:
		a.Yes = append(slices.Clone(a.Yes), by)
	}
}

func (m *model) mayDecide(d journal.ApprovalDecided, pos stint.Position, by stint.Actor) bool {
	for _, q := range m.questions() {
		if q.approval.Seq != d.Approval {
			continue
		}
		if (q.approval.Step.Step == 0) != (pos.Step == 0) {
			return false
		}
		switch d.State {
		case "canceled", "invalidated":
			return true
		case "denied", "expired":
			return q.approval.State == "open" && d.Edited == ""
		case "approved":
			said := map[stint.Actor]bool{by: true}
			if d.Edited == "" || d.Edited == q.approval.Edited {
				for _, a := range q.approval.Yes {
					said[a] = true
				}
			}
			return q.approval.State == "open" && len(said) >= q.approval.Quorum
		}
	}
	return false
}

func (m *model) mayChange(d journal.ApprovalChanged, pos stint.Position, by stint.Actor) bool {
	for _, q := range m.questions() {
		if q.approval.Seq == d.Approval && q.approval.State == "open" && (q.approval.Step.Step == 0) == (pos.Step == 0) {
			again := slices.Contains(q.approval.Yes, by) && (d.Edited == "" || d.Edited == q.approval.Edited)
			return !(d.Yes && again) && (d.Yes || d.Edited == "")
		}
	}
	return false
}

// mayStep says whether what was asked about a step lets the entry be.
func (m *model) mayStep(kind stint.Kind, pos stint.Position, data any) bool {
	step := journal.StepRequested{}
	switch d := data.(type) {
	case journal.StepRequested:
		step = d
	case journal.StepDone:
		step = d.StepRequested
	}
	for _, q := range m.questions() {
		a := q.approval
		if a.Step.Step != pos.Step || a.Step.Sub != pos.Sub {
			continue
		}
		given, done := step.Input, step.Input
		if step.Asked != "" {
			given = step.Asked
		}
		if kind == stint.ApprovalRequested || a.Name != step.Name || a.Effect != step.Effect || a.Input != given {
			return false
		}
		if a.State == "approved" && a.Edited != "" && a.Edited != done {
			return false
		}
		return a.State == "approved" || kind == stint.StepFailed && a.State != "open"
	}
	return true
}
