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

// questions looks back over what was asked since the loop began, and keeps what is not
// over.
func (m *model) questions() (list []question) {
	for _, f := range m.facts[1+m.last(stint.LoopCompleted, stint.LineStarted, stint.SessionEnded):] {
		switch d := f.data.(type) {
		case journal.ApprovalRequested:
			list = append(list, question{approval: stint.Approval{Seq: f.seq, Step: f.pos, Name: d.Name, Effect: d.Effect, Input: d.Input,
				Text: d.Text, Why: d.Why, Answer: len(d.Schema) > 0, State: "open", Since: f.at}})
		case journal.ApprovalDecided:
			for i := range list {
				if a := &list[i].approval; a.Seq == d.Approval {
					a.State, a.By, a.At, a.Note, a.Decided = d.State, f.actor, f.at, d.Note, f.seq
					list[i].over = d.State == "canceled" || d.State == "invalidated"
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

func (m *model) mayDecide(d journal.ApprovalDecided) bool {
	for _, q := range m.questions() {
		if q.approval.Seq == d.Approval {
			switch d.State {
			case "canceled", "invalidated":
				return true
			case "approved", "denied", "expired":
				return q.approval.State == "open"
			}
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
		if kind == stint.ApprovalRequested || a.Name != step.Name || a.Effect != step.Effect || a.Input != step.Input {
			return false
		}
		return a.State == "approved" || kind == stint.StepFailed && a.State != "open"
	}
	return true
}
