package engine

import (
	"context"
	"encoding/json"
	"sort"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// past is what earlier attempts at the open loop recorded, by step and member.
type past map[[2]int]*pastStep

// pastStep is one recorded step.
type pastStep struct {
	step, sub int
	intent    journal.StepRequested
	requested bool              // its intent is recorded
	done      *journal.StepDone // its result, or its definite error
	failed    bool              // it is the error
	verdict   journal.Verdict
	body      json.RawMessage
	blob      stint.BlobRef
}

func (p past) at(step, sub int) *pastStep { return p[[2]int{step, sub}] }

// opened is what the journal has of the open loop.
type opened struct {
	past  past
	inbox []stint.Message // that it took
	cut   stint.Actor     // who interrupted it when a step of it was on record; empty: nobody did
	early bool            // it was interrupted when none was
}

// loadPast reads the entries of the open loop.
func (d *driver) loadPast(ctx context.Context) (*opened, error) {
	o := &opened{past: past{}}
	for after := d.place.LoopSeq - 1; ; {
		es, err := d.e.store.Entries(ctx, stint.Range{Session: d.lease.Session, After: after, Limit: 1000})
		if err != nil {
			return nil, err
		}
		for i := range es {
			if es[i].Pos.Loop != d.place.Loop {
				continue // a prompt may have been taken in the loop before
			}
			if err := o.past.add(&es[i]); err != nil {
				return nil, err
			}
			if es[i].Kind != stint.MessageTaken {
				continue
			}
			m, err := d.taken(ctx, &es[i])
			switch {
			case err != nil:
				return nil, err
			case m.Kind == stint.Prompt:
				o.inbox = append(o.inbox, m)
			case m.Kind == stint.Interrupt && len(o.past) > 0:
				o.cut = m.From
			case m.Kind == stint.Interrupt:
				o.early = true
			}
		}
		if len(es) < 1000 {
			return o, nil
		}
		after = es[len(es)-1].Seq
	}
}

func (p past) add(e *stint.Entry) error {
	switch e.Kind {
	case stint.StepRequested, stint.StepCompleted, stint.StepFailed, stint.StepResolved:
	default:
		return nil
	}
	at := [2]int{e.Pos.Step, e.Pos.Sub}
	st := p[at]
	if st == nil {
		st = &pastStep{step: e.Pos.Step, sub: e.Pos.Sub}
	}
	switch e.Kind {
	case stint.StepRequested:
		d, err := journal.Decode[journal.StepRequested](e)
		if err != nil {
			return err
		}
		st.intent, st.requested, st.verdict = d, true, ""
	case stint.StepResolved:
		d, err := journal.Decode[journal.StepResolved](e)
		if err != nil {
			return err
		}
		st.verdict, st.body, st.blob = d.Verdict, e.Body, e.Blob
	default:
		d, err := journal.Decode[journal.StepDone](e)
		if err != nil {
			return err
		}
		if e.Kind == stint.StepFailed && !d.Definite {
			return nil // a try that failed answers nothing
		}
		st.intent, st.done, st.failed, st.body, st.blob = d.StepRequested, &d, e.Kind == stint.StepFailed, e.Body, e.Blob
	}
	p[at] = st
	return nil
}

// left returns the first recorded step after the given number, if there is one
// that an agent which ends its loop there has left out.
func (p past) left(step int) *pastStep {
	var out *pastStep
	for _, s := range p {
		if s.step > step && (out == nil || s.step < out.step || s.step == out.step && s.sub < out.sub) {
			out = s
		}
	}
	return out
}

func (p past) describe() []json.RawMessage {
	type recorded struct {
		Step   int             `json:"step"`
		Sub    int             `json:"sub"`
		Name   string          `json:"name"`
		Kind   stint.StepKind  `json:"kind"`
		Effect stint.Effect    `json:"effect"`
		Error  string          `json:"error,omitempty"`
		Result json.RawMessage `json:"result,omitempty"`
	}
	var steps []*pastStep
	for _, s := range p {
		if s.done != nil {
			steps = append(steps, s)
		}
	}
	sort.Slice(steps, func(i, j int) bool {
		return steps[i].step < steps[j].step || steps[i].step == steps[j].step && steps[i].sub < steps[j].sub
	})
	var out []json.RawMessage
	for _, s := range steps {
		r := recorded{Step: s.step, Sub: s.sub, Name: s.intent.Name, Kind: s.intent.Kind, Effect: s.intent.Effect}
		if r.Result = s.body; s.failed {
			r.Error, r.Result = s.done.Error, nil
			if f, err := s.done.Failure(s.body); err == nil && s.blob.IsZero() {
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

// taken turns a message.taken entry back into the message.
func (d *driver) taken(ctx context.Context, e *stint.Entry) (stint.Message, error) {
	t, err := journal.Decode[journal.Taken](e)
	if err != nil {
		return stint.Message{}, err
	}
	m := stint.Message{ID: t.ID, Kind: t.Kind, From: t.From, At: t.At, Data: t.Data, Body: e.Body}
	if !e.Blob.IsZero() {
		m.Body, err = d.e.store.Blob(ctx, d.family, e.Blob)
	}
	return m, err
}
