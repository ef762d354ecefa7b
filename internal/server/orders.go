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
	// somebody else. An error means that it was not taken: with [stint.Unavailable] it is
	// tried again, and with any other but [stint.Fenced] it is refused, for that reason.
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

// Once obeys what has come, in that order. What nobody knows, and what cannot be done, is
// recorded as that.
func (o *Orders) Once(ctx context.Context) error {
	in, err := o.System.Inbox(ctx)
	if err != nil {
		return err
	}
	for i := range in {
		if err := o.Obey(ctx, &in[i]); err != nil {
			return err
		}
	}
	return nil
}

// Obey does what m asks, or refuses it. An error means that it is still there.
func (o *Orders) Obey(ctx context.Context, m *stint.Message) error {
	for _, who := range o.Obeyers {
		known, err := who.Obey(ctx, m)
		if err == nil && !known {
			continue
		}
		if err == nil || ctx.Err() != nil || passes(err) {
			return err
		}
		return o.Refuse(ctx, m, err.Error()) // or nothing behind it would ever be done
	}
	return o.Refuse(ctx, m, "this server does not know what it asks")
}

// passes reports whether an order that failed so may go well later, here or elsewhere.
func passes(err error) bool {
	code := stint.CodeOf(err)
	return code == stint.Unavailable || code == stint.Fenced
}

// Refuse takes m and records why nothing came of it.
func (o *Orders) Refuse(ctx context.Context, m *stint.Message, why string) error {
	o.Log.Warn("an order was refused", "from", m.From, "id", m.ID, "because", why)
	return o.System.Record(ctx, engine.Note{What: "order.refused", Actor: m.From, Reason: why, Takes: m})
}
