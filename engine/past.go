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
	cut   stint.Actor     // who interrupted it when a step of it was on record, or may have been done; empty: nobody did
	early bool            // it was interrupted when none was, and none was tried since that may be done
}

// loadPast reads the entries of the open loop.
func (d *driver) loadPast(ctx context.Context) (*opened, error) {
	o := &opened{past: past.Steps{}}
	tried := false // an idempotent step may be done, and has no outcome: its key stands for the inbox that it had
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
			if mayBeDone(&es[i]) {
				tried, o.early = true, false
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
			case m.Kind == stint.Interrupt && (tried || len(o.past) > 0):
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

// mayBeDone reports whether an idempotent step that has no outcome may be done: its try
// failed, or a process died that may have begun it.
func mayBeDone(e *stint.Entry) bool {
	if e.Kind != stint.StepFailed {
		return e.Kind == stint.LeaseLost
	}
	d, err := journal.Decode[journal.StepDone](e)
	return err == nil && d.Effect == stint.Idempotent
}

// taken turns a message.taken entry back into the message.
func (d *driver) taken(ctx context.Context, e *stint.Entry) (stint.Message, error) {
	m, err := past.Message(e, e.Body)
	if err == nil && !e.Blob.IsZero() {
		m.Body, err = d.e.store.Blob(ctx, d.family, e.Blob)
	}
	return m, err
}
