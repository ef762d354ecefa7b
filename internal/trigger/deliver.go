package trigger

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/ident"
)

// Target is a hook as a server runs it.
type Target struct {
	Hook    *hook.Hook
	Secrets func() ([]string, error) // read again for each request, so that they may be changed
	// Request is the session that a delivery begins: Agent at least. Name, Input, Labels,
	// Trigger, Actor and Keys are the delivery's.
	Request func() (engine.Request, error)
}

// deliverer makes sessions of deliveries, at most one of each.
type deliverer struct {
	engine *engine.Engine
	system *engine.System
	store  stint.Store
	log    *slog.Logger
	turns  turns
}

// arrival is a delivery on its way.
type arrival struct {
	*target
	hook.Delivery

	body    []byte
	kept    hook.Kept
	repeats string      // the delivery that is delivered again with it
	by      stint.Actor // who has it delivered again
}

// source names the deliveries of the arrival's key, if it has one.
func (a *arrival) source() string { return a.def.Name + "/" + a.Key }

// name is that of the arrival's line.
func (a *arrival) name() string { return a.def.Name + "/" + a.ID }

// repeat is the name of the arrival's body.
func (a *arrival) repeat() string { return a.def.Name + "#" + hex.EncodeToString(a.Digest[:]) }

// delivered is the arrival's line.
func (a *arrival) delivered(result Result) Delivered {
	return Delivered{ID: a.ID, Hook: a.def.Name, At: now(), Result: result, Event: clip(a.Event, 200), Key: a.Key, Order: a.Order, Bytes: len(a.body), Repeats: a.repeats, By: a.by}
}

// now is the time as precise as a store keeps it.
func now() time.Time { return faultpoint.Now().UTC().Truncate(time.Microsecond) }

// line is what the ledger has of o.
func (a *arrival) line(o Delivered) stint.Key {
	return Shown{Delivered: o, Request: a.kept, Body: a.body}.line(a.Digest)
}

// ignore records that a genuine delivery leads to nothing. What is ignored is not
// remembered by its id: a condition may be mended, and the delivery sent again.
func (d *deliverer) ignore(ctx context.Context, a *arrival, reason string) (Delivered, error) {
	if a.repeats == "" {
		a.ID = ident.New().String()
	}
	o := a.delivered(Ignored)
	o.Reason = reason
	return o, d.system.Record(ctx, engine.Note{What: "delivery.ignored", Name: o.Hook, Actor: a.by, Reason: reason, Keys: []stint.Key{a.line(o)}})
}

// known returns what became of an arrival that was there before.
func (d *deliverer) known(ctx context.Context, a *arrival) (o Delivered, there bool, err error) {
	keys, err := d.store.Keys(ctx, stint.Key{Scope: deliveries, Name: a.name()}, 1)
	if err != nil {
		return o, false, err
	}
	if len(keys) > 0 && keys[0].Digest != a.Digest {
		return o, true, &stint.Error{Code: stint.Conflict, Op: "hook", Err: errors.New("another delivery has this id, with another body"),
			Hint: "the first one stands; give each delivery an id of its own"}
	}
	if len(keys) == 0 && !a.Covered { // nobody vouches for the id
		if keys, err = d.store.Keys(ctx, stint.Key{Scope: repeats, Name: a.repeat()}, 1); err != nil {
			return o, false, err
		}
	}
	if len(keys) == 0 {
		return o, false, nil
	}
	was, err := shown(keys[0])
	was.Repeated = true
	return was.Delivered, true, err
}

// attempts is how often a delivery looks for its session again, after others ended it or
// were quicker.
const attempts = 20

// deliver makes or messages the session of a, once. Those of one id come here one after
// the other, and so do those of one key unless they only add a message.
func (d *deliverer) deliver(ctx context.Context, a *arrival) (Delivered, error) {
	names := []string{"id " + a.name()}
	if !a.Covered {
		names = append(names, "body "+a.repeat())
	}
	if a.Key != "" {
		names = append(names, "key "+a.source())
	}
	leave, tries := func() {}, 0
	for _, name := range names { // in the order of their kinds, so that no two wait for each other
		var err error
		if leave, err = d.turns.take(ctx, name); err != nil {
			return Delivered{}, err
		}
		defer leave()
	}
	for look := !a.simple(); ; look = true {
		if look {
			if o, there, err := d.known(ctx, a); there || err != nil {
				return o, err
			}
		}
		o, err := d.attempt(ctx, a, leave)
		if !look && err != nil {
			continue
		}
		if code := stint.CodeOf(err); err == nil || code != stint.Conflict && code != stint.Exists {
			return o, err
		}
		if tries++; tries == attempts {
			return o, &stint.Error{Code: stint.Unavailable, Op: "hook", Err: errors.New("the sessions of this key come and go too quickly"), Hint: "send it again"}
		}
	}
}

// simple reports whether a can only begin a session, in the transaction that also sees
// whether it was there before: most deliveries need no look before it.
func (a *arrival) simple() bool { return a.Key == "" && a.def.Limits.Concurrency == 0 }

// attempt does with a what is right as things stand. [stint.Conflict] says that they no
// longer do.
func (d *deliverer) attempt(ctx context.Context, a *arrival, leave func()) (Delivered, error) {
	what, last, err := d.plan(ctx, a)
	switch {
	case err != nil:
		return Delivered{}, err
	case what == Dropped:
		return d.drop(ctx, a)
	case what == Created:
		return d.create(ctx, a, &last)
	case a.def.Busy == hook.Queue && a.def.Late == hook.KeepLate:
		leave() // nothing that those behind decide depends on it
	}
	return d.message(ctx, a, &last.Row)
}

// plan says what is right for a as things stand, and which session of its key is the
// newest.
func (d *deliverer) plan(ctx context.Context, a *arrival) (Result, route, error) {
	if late, err := d.late(ctx, a); err != nil {
		return "", route{}, err
	} else if late {
		return Dropped, route{}, nil
	}
	last, err := d.routed(ctx, a)
	switch {
	case err != nil:
		return "", last, err
	case !last.open() || a.def.Busy == hook.Replace:
		return Created, last, nil
	case a.def.Busy == hook.Reject && busy(&last.Row):
		err := &stint.Error{Code: stint.Limit, Op: "hook", Session: last.Session.ID, Err: errors.New("the session of this key is at work"), Hint: "send it again later"}
		return "", last, stint.Retry(fullWait, err)
	}
	return Messaged, last, nil
}

// busy reports whether a session would let a message wait.
func busy(r *stint.Row) bool {
	s := &r.Session
	return s.Status != stint.Waiting || s.Wait == nil || s.Wait.For != stint.ForMessage || r.Unread > 0
}

// route is the newest session of a key; a zero one if there is none.
type route struct {
	stint.Row

	at time.Time // its place in the order of the key's sessions
}

// open reports whether there is such a session and it has not ended.
func (r *route) open() bool { return !r.Session.ID.IsZero() && !r.Session.Status.Ended() }

// next is the place of the session that follows, whatever the clock says.
func (r *route) next(now time.Time) time.Time {
	if now.After(r.at) {
		return now
	}
	return r.at.Add(time.Microsecond)
}

// routed finds the newest session of a's key.
func (d *deliverer) routed(ctx context.Context, a *arrival) (route, error) {
	if a.Key == "" {
		return route{}, nil
	}
	keys, err := d.store.Keys(ctx, stint.Key{Scope: routes, Source: a.source()}, 1)
	if err != nil || len(keys) == 0 {
		return route{}, err
	}
	r := route{at: keys[0].At}
	id, err := stint.ParseID(keys[0].Ref)
	if err != nil {
		return r, err
	}
	r.Row, err = d.store.Session(ctx, id)
	if err != nil && stint.CodeOf(err) == stint.NotFound { // it was deleted
		r.Row, err = stint.Row{Session: stint.Session{ID: id, Status: stint.Completed}}, nil
	}
	return r, err
}

// late reports whether a is older than an event of its key before it, and the hook drops
// such.
func (d *deliverer) late(ctx context.Context, a *arrival) (bool, error) {
	if a.def.Late != hook.DropLate || a.Order == nil || a.Key == "" {
		return false, nil
	}
	keys, err := d.store.Keys(ctx, stint.Key{Scope: orders, Source: a.source()}, 1)
	return err == nil && len(keys) > 0 && keys[0].At.UnixMicro() > *a.Order, err
}

// keys are what a delivery leaves behind, with o as its line.
func (a *arrival) keys(o Delivered) []stint.Key {
	line := a.line(o)
	all := []stint.Key{line}
	if !a.Covered {
		all = append(all, stint.Key{Scope: repeats, Name: a.repeat(), Source: o.Hook, At: o.At, Note: line.Note, Expires: line.Expires})
	}
	if a.Order != nil && a.Key != "" {
		all = append(all, stint.Key{Scope: orders, Name: line.Name, Source: a.source(), At: time.UnixMicro(*a.Order).UTC(), Expires: line.Expires})
	}
	if !o.Session.IsZero() {
		for i := range all {
			all[i].Ref = o.Session.String()
		}
	}
	return all
}

// tooLate is why a delivery is dropped.
const tooLate = "a newer event of its key was there before"

// drop records a delivery that comes too late.
func (d *deliverer) drop(ctx context.Context, a *arrival) (Delivered, error) {
	o := a.delivered(Dropped)
	o.Reason = tooLate
	return o, d.system.Record(ctx, engine.Note{What: "delivery.dropped", Name: o.Hook, Actor: a.by, Reason: o.Reason, Keys: a.keys(o)})
}

// message gives a delivery to the open session of its key.
func (d *deliverer) message(ctx context.Context, a *arrival, to *stint.Row) (Delivered, error) {
	o := a.delivered(Messaged)
	o.Session = to.Session.ID
	if a.def.Busy == hook.Interrupt && busy(to) {
		m := stint.Message{ID: "interrupt-" + ident.New().String(), Kind: stint.Interrupt, From: a.actor()}
		if err := d.store.Send(ctx, o.Session, m); err != nil {
			return o, err
		}
	}
	m := stint.Message{ID: "delivery-" + ident.New().String(), Kind: stint.Prompt, From: a.actor(), Body: a.Input, Keys: a.keys(o)}
	return o, d.store.Send(ctx, o.Session, m)
}

// actor is whose doing it is.
func (a *arrival) actor() stint.Actor {
	if a.by != "" {
		return a.by
	}
	return stint.Actor("hook:" + a.def.Name)
}

// routeLife is how long it is known which session follows which.
const routeLife = 10 * 365 * 24 * time.Hour

// request is the session that a begins, after the last one of its key.
func (d *deliverer) request(a *arrival, last *route) (engine.Request, Delivered, error) {
	o := a.delivered(Created)
	r, err := a.Request()
	if err != nil { // it is not the sender's fault, and may be mended
		d.log.Error("hook", "hook", o.Hook, "error", err)
		return r, o, stint.Unavailable.Errorf("hook", "the hook's agent cannot be begun")
	}
	r.Input, r.Actor, r.Trigger, r.Keys = a.Input, a.actor(), stint.Trigger{Kind: "hook", Ref: o.Hook}, a.keys(o)
	if r.Name = a.Session; r.Name == "" {
		r.Name = o.Hook + o.At.Format("-0102")
	}
	if len(a.Labels) > 0 {
		r.Labels = map[string]string{}
		maps.Copy(r.Labels, r.Agent.Labels)
		maps.Copy(r.Labels, a.Labels)
	}
	if a.Key != "" { // one session follows the one before it, whoever is first to say so
		r.Keys = append(r.Keys, stint.Key{Scope: routes, Name: a.source() + "/" + last.Session.ID.String(), Source: a.source(), At: last.next(o.At), Expires: o.At.Add(routeLife)})
	}
	return r, o, nil
}

// create begins a session with a delivery, in the place of the last one of its key if that
// is open. All that may be in its way is looked at before that one is stopped. If another
// was quicker with one of its key, that is [stint.Conflict].
func (d *deliverer) create(ctx context.Context, a *arrival, last *route) (o Delivered, err error) {
	r, o, err := d.request(a, last)
	if err != nil {
		return o, err
	}
	made, err := a.room.enter(ctx, d.store, o.Hook, a.def.Limits.Concurrency, last.Session.ID)
	if err != nil {
		return o, err
	}
	defer func() { made(o.Session) }()
	if last.open() {
		if err := d.replace(ctx, a, last.Session.ID); err != nil {
			return o, err
		}
	}
	got, err := d.engine.Start(ctx, r)
	if err != nil {
		return o, err
	}
	if got.Found {
		return o, stint.Conflict.Errorf("hook", "another delivery was quicker")
	}
	o.Session = got.ID
	return o, nil
}

// replace stops the session that another one takes the place of.
func (d *deliverer) replace(ctx context.Context, a *arrival, id stint.ID) error {
	data, _ := json.Marshal(map[string]string{"reason": "hook " + a.def.Name + " replaces it"}) // it is plain text
	m := stint.Message{ID: "replaced-" + ident.New().String(), Kind: stint.Stop, From: a.actor(), Data: data}
	err := d.store.Send(ctx, id, m)
	if err == nil {
		err = d.engine.Settle(ctx, id)
	}
	if stint.CodeOf(err) == stint.Conflict {
		return nil // it has ended, or its runner will see the message
	}
	return err
}
