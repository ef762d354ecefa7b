package past

import (
	"encoding/json"
	"sort"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// Steps is what is on record of the steps of one loop, by step and member.
type Steps map[[2]int]*Step

// Step is one recorded step. Body, or Blob where it lies outside the journal, is that of
// its outcome.
type Step struct {
	Step, Sub int
	Intent    journal.StepRequested
	Requested bool              // its intent is recorded
	Done      *journal.StepDone // its result, or its definite error
	Failed    bool              // it is the error
	Verdict   journal.Verdict
	Body      json.RawMessage
	Blob      stint.BlobRef
	Input     json.RawMessage // that of its intent, where a person put it in the place of the agent's
	InputBlob stint.BlobRef
}

// At is the step at a place; nil: nothing is on record of it.
func (p Steps) At(step, sub int) *Step { return p[[2]int{step, sub}] }

// Add notes what e says of a step. An error is one of data that cannot be read.
func (p Steps) Add(e *stint.Entry) error {
	switch e.Kind {
	case stint.StepRequested, stint.StepCompleted, stint.StepFailed, stint.StepResolved:
	default:
		return nil
	}
	at := [2]int{e.Pos.Step, e.Pos.Sub}
	st := p[at]
	if st == nil {
		st = &Step{Step: e.Pos.Step, Sub: e.Pos.Sub}
	}
	switch e.Kind {
	case stint.StepRequested:
		d, err := journal.Decode[journal.StepRequested](e)
		if err != nil {
			return err
		}
		st.Intent, st.Requested, st.Verdict = d, true, ""
		if d.Asked != "" {
			st.Input, st.InputBlob = e.Body, e.Blob
		}
	case stint.StepResolved:
		d, err := journal.Decode[journal.StepResolved](e)
		if err != nil {
			return err
		}
		st.Verdict, st.Body, st.Blob = d.Verdict, e.Body, e.Blob
	default:
		d, err := journal.Decode[journal.StepDone](e)
		if err != nil {
			return err
		}
		if e.Kind == stint.StepFailed && !d.Definite {
			return nil // a try that failed answers nothing
		}
		st.Intent, st.Done, st.Failed, st.Body, st.Blob = d.StepRequested, &d, e.Kind == stint.StepFailed, e.Body, e.Blob
	}
	p[at] = st
	return nil
}

// Left returns the first recorded step after the given number, if there is one
// that an agent which ends its loop there has left out.
func (p Steps) Left(step int) *Step {
	var out *Step
	for _, s := range p {
		if s.Step > step && (out == nil || s.Step < out.Step || s.Step == out.Step && s.Sub < out.Sub) {
			out = s
		}
	}
	return out
}

// Describe returns the steps that have an outcome, as JSON objects in order of position:
// for agents that tell their program about them.
func (p Steps) Describe() []json.RawMessage {
	type recorded struct {
		Step   int             `json:"step"`
		Sub    int             `json:"sub"`
		Name   string          `json:"name"`
		Kind   stint.StepKind  `json:"kind"`
		Effect stint.Effect    `json:"effect"`
		Error  string          `json:"error,omitempty"`
		Result json.RawMessage `json:"result,omitempty"`
	}
	var steps []*Step
	for _, s := range p {
		if s.Done != nil {
			steps = append(steps, s)
		}
	}
	sort.Slice(steps, func(i, j int) bool {
		return steps[i].Step < steps[j].Step || steps[i].Step == steps[j].Step && steps[i].Sub < steps[j].Sub
	})
	var out []json.RawMessage
	for _, s := range steps {
		r := recorded{Step: s.Step, Sub: s.Sub, Name: s.Intent.Name, Kind: s.Intent.Kind, Effect: s.Intent.Effect}
		if r.Result = s.Body; s.Failed {
			r.Error, r.Result = s.Done.Error, nil
			if f, err := s.Done.Failure(s.Body); err == nil && s.Blob.IsZero() {
				r.Error = f.Text // a long one comes with the step itself
			}
		}
		b, err := stint.Marshal(r)
		if err == nil {
			out = append(out, b)
		}
	}
	return out
}

// Begun tells of a step whether its intent or its outcome is on record, and what was said
// of it since it was last begun.
func (p Steps) Begun(step, sub int) (begun bool, verdict string) {
	s := p.At(step, sub)
	if s == nil {
		return false, ""
	}
	return s.Requested || s.Done != nil, string(s.Verdict)
}
