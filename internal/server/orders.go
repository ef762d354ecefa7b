package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// Obeyer does what messages to the system journal ask.
type Obeyer interface {
	// Obey does what m asks and takes it. known is false for a message that is for
	// somebody else. An error means that it was not taken and is to be tried again.
	Obey(ctx context.Context, m *stint.Message) (known bool, err error)
}

// Orders has obeyers do what is asked of a server by messages to its system journal.
type Orders struct {
	System  *engine.System
	Changed <-chan struct{} // see [stint.Watcher]; nil: it looks each second
	Obeyers []Obeyer
	Log     *slog.Logger
}

const (
	// lookEvery is how often the inbox is looked at when nothing tells that it changed.
	lookEvery = time.Second
	// lookSoon is how long changes are gathered: a busy store changes all the time.
	lookSoon = 50 * time.Millisecond
)

// Run obeys until ctx ends. It returns early only when nothing can be recorded any more.
func (o *Orders) Run(ctx context.Context) error {
	for {
		if err := o.Once(ctx); err != nil && ctx.Err() == nil {
			if stint.CodeOf(err) == stint.Fenced {
				return err
			}
			o.Log.Warn("orders", "error", err)
		}
		timer := time.NewTimer(lookEvery)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-o.Changed:
			timer.Reset(lookSoon)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// Once obeys what has come, in that order. What nobody knows is recorded as that.
func (o *Orders) Once(ctx context.Context) error {
	in, err := o.System.Inbox(ctx)
	if err != nil {
		return err
	}
	for i := range in {
		if err := o.obey(ctx, &in[i]); err != nil {
			return err
		}
	}
	return nil
}

func (o *Orders) obey(ctx context.Context, m *stint.Message) error {
	for _, who := range o.Obeyers {
		if known, err := who.Obey(ctx, m); known || err != nil {
			return err
		}
	}
	o.Log.Warn("an order that nobody knows", "from", m.From, "id", m.ID)
	return o.System.Record(ctx, engine.Note{What: "order.refused", Actor: m.From, Reason: "this server does not know what it asks", Takes: m})
}
