package trigger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/ident"
)

// Redeliver judges a delivery that was kept once more, as the hook is now, and does what
// that says. It was proven when it came and is not proven again. What it becomes is a
// delivery of its own: its id is that of the first one, ~, and as, so that asking twice by one
// name is one delivery; an empty one is a name that nobody has. It is not bound by the hook's rate. One that was not kept, or not whole, is
// [stint.NotFound]; other errors are those that a sender gets.
func (r *Receiver) Redeliver(ctx context.Context, name, id, as string, by stint.Actor) (Delivered, error) {
	t, err := r.target(name)
	if err != nil {
		return Delivered{}, err
	}
	if err := by.Check(); err != nil {
		return Delivered{}, err
	}
	was, err := Delivery(ctx, r.store, name, id)
	if err != nil {
		return Delivered{}, err
	}
	if len(was.Body) != was.Bytes {
		return Delivered{}, &stint.Error{Code: stint.NotFound, Op: "redeliver", Session: was.Session, Err: errors.New("the delivery's body was too long to be kept"), Hint: "have its sender send it again"}
	}
	v, err := t.Hook.Judge(was.Request.Request(was.Body))
	if err != nil {
		return Delivered{}, err
	}
	a := &arrival{target: t, Delivery: v.Delivery, body: was.Body, kept: was.Request, repeats: cmp.Or(was.Repeats, was.ID), by: by}
	a.ID, a.Covered = a.repeats+"~"+cmp.Or(as, ident.New().String()), true // its body has come before, and that is meant
	switch v.Decision {
	case hook.Answer:
		return Delivered{}, stint.Invalid.Errorf("redeliver", "it is a handshake, which begins nothing")
	case hook.Ignore:
		return r.ignore(ctx, a, v.Reason)
	case hook.Accept:
	}
	return r.deliver(ctx, a)
}

// Trial is what would become of a request.
type Trial struct {
	Decision  hook.Decision     `json:"decision"`
	Reason    string            `json:"reason,omitempty"` // of ignore and dropped
	Reply     string            `json:"reply,omitempty"`  // of answer
	Result    Result            `json:"result,omitempty"`
	Repeated  bool              `json:"repeated,omitempty"` // it was there before, and Result and Session are of then
	ID        string            `json:"id,omitempty"`
	Event     string            `json:"event,omitempty"`
	Key       string            `json:"key,omitempty"`
	Order     *int64            `json:"order,omitempty"`
	Input     string            `json:"input,omitempty"`     // the prompt
	Name      string            `json:"name,omitempty"`      // of the session that would begin
	Labels    map[string]string `json:"labels,omitempty"`    // of that session
	Session   stint.ID          `json:"session,omitzero"`    // that would get the message
	Replaces  stint.ID          `json:"replaces,omitzero"`   // that would be stopped
	Interrupt bool              `json:"interrupt,omitempty"` // Session would be interrupted
}

// Test says what would become of a request now, if it were proven, and writes nothing. The
// error is the one that its sender would get; the hook's rate is not looked at.
func (r *Receiver) Test(ctx context.Context, name string, req hook.Request) (Trial, error) {
	t, err := r.target(name)
	if err != nil {
		return Trial{}, err
	}
	v, err := t.Hook.Judge(req)
	if err != nil {
		return Trial{}, err
	}
	is := Trial{Decision: v.Decision, Reason: v.Reason, Reply: v.Reply.Body, Event: v.Delivery.Event}
	switch v.Decision {
	case hook.Answer:
		return is, nil
	case hook.Ignore:
		is.Result = Ignored
		return is, nil
	case hook.Accept:
	}
	a := &arrival{target: t, Delivery: v.Delivery, body: req.Body}
	is.ID, is.Key, is.Order, is.Input = a.ID, a.Key, a.Order, string(a.Input)
	was, there, err := r.known(ctx, a)
	if there {
		is.Result, is.Session, is.Repeated = was.Result, was.Session, true
	}
	if there || err != nil {
		return is, err
	}
	return is, r.foresee(ctx, a, &is)
}

// foresee fills in what would become of a delivery that is new.
func (r *Receiver) foresee(ctx context.Context, a *arrival, is *Trial) error {
	what, last, err := r.plan(ctx, a)
	if err != nil {
		return err
	}
	is.Result = what
	switch what {
	case Dropped:
		is.Reason = tooLate
	case Messaged:
		is.Session, is.Interrupt = last.Session.ID, a.def.Busy == hook.Interrupt && busy(&last.Row)
	case Created:
		made, err := a.room.enter(ctx, r.store, a.def.Name, a.def.Limits.Concurrency, last.Session.ID)
		if err != nil {
			return err
		}
		made(stint.ID{})
		of, _, err := r.request(a, &last)
		if err != nil {
			return err
		}
		if is.Name, is.Labels = of.Name, of.Labels; is.Labels == nil {
			is.Labels = of.Agent.Labels
		}
		if last.open() {
			is.Replaces = last.Session.ID
		}
	case Ignored:
	}
	return nil
}

// RedeliverVerb is what is asked of a delivery.
const RedeliverVerb = "hook.redeliver"

// HookCommand is the body of a message to the system journal that asks something of a
// hook.
type HookCommand struct {
	Verb string `json:"verb"`
	Hook string `json:"hook"`
	ID   string `json:"id"` // of a delivery
}

// Obey does what a message to the system journal asks, and takes it. known is false for a
// message that is none for hooks. What cannot be done is recorded with why.
func (r *Receiver) Obey(ctx context.Context, m *stint.Message) (known bool, err error) {
	var c HookCommand
	if json.Unmarshal(m.Body, &c) != nil || !strings.HasPrefix(c.Verb, "hook.") {
		return false, nil
	}
	note := engine.Note{What: c.Verb + ".refused", Name: c.Hook, Actor: m.From, Takes: m, Reason: "that is nothing that a hook can do"}
	if c.Verb == RedeliverVerb {
		o, err := r.Redeliver(ctx, c.Hook, c.ID, m.ID, m.From)
		switch {
		case ctx.Err() != nil || stint.CodeOf(err) == stint.Unavailable:
			return true, err
		case err != nil:
			note.Reason = err.Error()
		default:
			note.What, note.Reason, note.Data = "hook.redelivered", "", o
		}
	}
	return true, r.system.Record(ctx, note)
}
