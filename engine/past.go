package engine

import (
	"context"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// opened is what the journal has of the open loop.
type opened struct {
	past  past.Steps
	inbox []stint.Message // that it took
	cut   stint.Actor     // who interrupted it when it had come to something, or may have; empty: nobody did
	early bool            // it was interrupted when it had not
}

// loadPast reads the entries of the open loop.
func (d *driver) loadPast(ctx context.Context) (*opened, error) {
	o := &opened{past: past.Steps{}}
	acted := false // something may have had its effect, under a key that is for this input alone
	for after := d.place.LoopSeq - 1; ; {
		es, err := d.e.store.Entries(ctx, stint.Range{Session: d.lease.Session, After: after, Limit: 1000})
		if err != nil {
			return nil, err
		}
		for i := range es {
			if es[i].Pos.Loop != d.place.Loop {
				continue // a prompt may have been taken in the loop before
			}
			if err := o.past.Add(&es[i]); err != nil {
				return nil, err
			}
			switch es[i].Kind {
			case stint.StepFailed:
				d, err := journal.Decode[journal.StepDone](&es[i])
				if err != nil {
					return nil, err
				}
				acted = acted || d.Effect != stint.Read
			case stint.LeaseLost: // nobody knows what its runner had begun
				acted = true
			}
			if es[i].Kind != stint.MessageTaken {
				continue
			}
			m, err := d.taken(ctx, &es[i])
			switch {
			case err != nil:
				return nil, err
			case m.Kind.Input():
				o.inbox = append(o.inbox, m)
			case m.Kind == stint.Interrupt && (acted || len(o.past) > 0):
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

// taken turns a message.taken entry back into the message.
func (d *driver) taken(ctx context.Context, e *stint.Entry) (stint.Message, error) {
	m, err := past.Message(e, e.Body)
	if err == nil && !e.Blob.IsZero() {
		m.Body, err = d.e.store.Blob(ctx, d.family, e.Blob)
	}
	return m, err
}
