package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/policy"
)

// Store is what orders are checked against and sent to.
type Store interface {
	stint.Reader
	stint.Blobs
	stint.Sender
}

// Settler makes messages act on sessions that nobody holds.
type Settler interface {
	// Settle is as [engine.Engine.Settle].
	Settle(ctx context.Context, id stint.ID) error
}

// Desk is where orders are given. It keeps nothing between calls, and may be used
// concurrently if its members may.
type Desk struct {
	Store    Store
	Settler  Settler
	Brancher Brancher // for [Desk.Branch]
	// Gate is as [Gate], for the policy of the session's agent and whoever asks; nil: all is done.
	Gate func(ctx context.Context, row *stint.Row, verb policy.Verb, c *journal.Command, by stint.Actor) (*journal.ApprovalRequested, error)
	// Prefix stands before the name of a member of an order in an error: "--" where people
	// give it as a flag.
	Prefix string
}

// may asks the gate about an order.
func (d *Desk) may(ctx context.Context, row *stint.Row, verb policy.Verb, c *journal.Command, by stint.Actor) (*journal.ApprovalRequested, error) {
	if d.Gate == nil {
		return nil, nil
	}
	return d.Gate(ctx, row, verb, c, by)
}

// Order is a message that somebody sends to a session.
type Order struct {
	Kind    stint.MessageKind
	From    stint.Actor
	ID      string // of the message, chosen by who sends it; empty: a new one
	Command journal.Command
	Body    []byte      // of a prompt
	Keys    []stint.Key // durable with it, see [stint.Message]
}

// Give sends the order and makes it act: the session's runner obeys it; one that nobody
// holds is settled. row is the session as it was just read. To resume a session that was
// interrupted sends nothing: it needs a runner, and no message. The error is
// [stint.Conflict] where the session cannot take the order as it stands, [Asked] where others
// decide about it, and
// [stint.Invalid] for the system journal: a message to that would be an order to the
// server, which whoever may send to sessions may not give.
func (d *Desk) Give(ctx context.Context, row *stint.Row, o Order) error {
	if row.Session.Trigger.OfServer() {
		e := stint.Invalid.Errorf(string(o.Kind), "that is the journal of the server itself, which takes no orders as sessions do")
		e.Hint = "name a session: stint ps -a lists them"
		return e
	}
	if err := d.Futile(ctx, row, o); err != nil {
		return err
	}
	if status, _ := row.Status(); o.Kind == stint.Resume && status == stint.Pending {
		return nil
	}
	m, err := o.message()
	if err != nil {
		return err
	}
	if err := d.send(ctx, row, m); err != nil || !o.Kind.Control() {
		return err
	}
	if err := d.settle(ctx, row, m.ID); err != nil {
		if after, again := d.Store.Session(ctx, row.Session.ID); o.Kind == stint.Resume && again == nil && after.Session.Status == stint.Pending {
			return nil // what came before it had it go on
		}
		return err
	}
	return d.question(ctx, row, &o, m.ID)
}

// message is the order as the inbox has it.
func (o *Order) message() (stint.Message, error) {
	m := stint.Message{ID: o.ID, Kind: o.Kind, From: o.From, Body: o.Body, Keys: o.Keys}
	if m.ID == "" {
		m.ID = ident.New().String()
	}
	if o.Kind != stint.Prompt {
		data, err := stint.Marshal(o.Command)
		if err != nil {
			return m, err
		}
		m.Data = data
	}
	return m, m.Check()
}

func (d *Desk) send(ctx context.Context, row *stint.Row, m stint.Message) error {
	err := d.Store.Send(ctx, row.Session.ID, m)
	if err == nil || !errors.Is(err, stint.Conflict) {
		return err
	}
	after, again := d.Store.Session(ctx, row.Session.ID)
	if again != nil || !after.Session.Status.Ended() {
		return err
	}
	e := stint.Conflict.Errorf("", "%s (%s): the session has ended: %s", after.Session.Name, after.Short, after.Session.Status)
	e.Hint = fmt.Sprintf("stint restart %s --run begins it again", after.Short)
	if m.Kind == stint.Prompt {
		e.Hint = fmt.Sprintf("stint restart %s --say TEXT --run begins it again with a message", after.Short)
	}
	return e
}

// settle has a message acted on: the session's runner obeys it, one that nobody holds is
// settled here.
func (d *Desk) settle(ctx context.Context, row *stint.Row, id string) error {
	if row.Live {
		return nil
	}
	if err := d.Settler.Settle(ctx, row.Session.ID); err != nil {
		return err
	}
	return d.refusal(ctx, row, id)
}

// refusal is why a message was refused; nil if it was not.
func (d *Desk) refusal(ctx context.Context, row *stint.Row, id string) error {
	es, err := d.Store.Entries(ctx, stint.Range{Session: row.Session.ID, After: row.Session.Head, Kinds: []stint.Kind{stint.MessageRefused}})
	if err != nil {
		return err
	}
	for i := range es {
		t, err := journal.Decode[journal.Taken](&es[i])
		if err != nil {
			return err
		}
		if t.ID == id {
			err := stint.Conflict.Errorf(string(t.Kind), "%s (%s) refused it: %s", row.Session.Name, row.Short, t.Why)
			err.Hint = "stint show " + row.Short
			return err
		}
	}
	return nil
}

// Futile refuses an order that would be taken and lead to nothing: to go on before a step
// in doubt is settled asks the same again, and to park a session that is parked for it
// hides the question. [Desk.Give] asks it.
func (d *Desk) Futile(ctx context.Context, row *stint.Row, o Order) error {
	ses := &row.Session
	concerned := o.Kind == stint.Resume || o.Kind == stint.Pause || o.Kind == stint.Interrupt || o.Kind == stint.Restart && o.Command.From == nil
	if !concerned || row.Live || ses.Status != stint.Waiting || ses.Wait.For != stint.ForDoubt {
		return nil
	}
	differs, err := Diverged(ctx, d.Store, row)
	if err != nil || differs { // it may have been mended
		return err
	}
	step := ses.Wait.Step.String()
	e := stint.Conflict.Errorf("", "%s (%s) is parked, and cannot go on before step %s is settled", ses.Name, row.Short, step)
	e.Hint = fmt.Sprintf("stint resolve %s:%s --happened | --not | --unknown", row.Short, step)
	return e
}

// Diverged reports whether a session in doubt waits since its agent goes on otherwise than
// is recorded, and not for a word on a step.
func Diverged(ctx context.Context, src view.Source, row *stint.Row) (bool, error) {
	v, err := view.NewShow(ctx, src, row, view.ShowOptions{Line: -1}, time.Now())
	if err != nil {
		return false, err
	}
	step := row.Session.Wait.Step.String()
	return !slices.ContainsFunc(v.Steps, func(st view.StepInfo) bool { return st.Step == step }), nil
}

// Anew is, in commands, how a session goes on whose loop diverged.
func Anew(row *stint.Row) string {
	return fmt.Sprintf("do the loop anew, as the agent is now: stint restart %[1]s --from %[2]d --run\n  or put the agent back, and go on: stint resume %[1]s --run", row.Short, row.Session.Wait.Step.Loop-1)
}

// Resolve gives an order of kind [stint.Resolve] about the step in doubt. If place names a
// step, it has to be that one, else the error is [stint.Conflict], as it is where the
// session has none.
func (d *Desk) Resolve(ctx context.Context, row *stint.Row, place view.Place, o Order) error {
	ses := &row.Session
	if ses.Status != stint.Waiting || ses.Wait.For != stint.ForDoubt {
		err := stint.Conflict.Errorf("resolve", "%s (%s) has no step in doubt: it is %s", ses.Name, row.Short, view.StatusWord(row))
		err.Hint = "stint show " + row.Short + "  says what it needs, if anything"
		if ses.Status == stint.Pending && ses.At.Open {
			err.Hint = "stint resume " + row.Short + " --run  finds out what is in doubt, and asks"
		}
		return err
	}
	if differs, err := Diverged(ctx, d.Store, row); err != nil {
		return err
	} else if differs {
		err := stint.Conflict.Errorf("resolve", "%s (%s) goes on otherwise than is recorded, which no word on a step settles", ses.Name, row.Short)
		err.Hint = Anew(row)
		return err
	}
	step := ses.Wait.Step
	if place.Step != 0 && (place.Loop != step.Loop || place.Step != step.Step || place.Sub != step.Sub) {
		err := stint.Conflict.Errorf("resolve", "the step in doubt is %s, not %s", step, stint.Position{Loop: place.Loop, Step: place.Step, Sub: place.Sub})
		err.Hint = fmt.Sprintf("stint resolve %s:%s --happened | --not | --unknown", row.Short, step)
		return err
	}
	o.Command.Step = &step
	return d.Give(ctx, row, o)
}
