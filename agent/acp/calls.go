package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stint-dev/stint"
)

// What the result of a call says where the agent did not tell the outcome of it.
const (
	markAsks        = "asks_permission" // it went on to ask permission: the next step
	markNotAsked    = "not_asked_again" // permitted, but the agent did not come back to it yet
	markNot         = "not_happened"    // a person or a rule said so
	markInterrupted = "interrupted"     // it may be done again freely
	markUnknown     = "unknown"         // the engine's
)

// mark is such a result.
type mark struct {
	Stint string `json:"stint"`
}

// key tells whether two calls are equal: the same name and the same input, in whatever
// order its members stand.
func (c *call) key() string {
	dec := json.NewDecoder(bytes.NewReader(c.Input))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) == nil {
		if b, err := json.Marshal(v); err == nil {
			return c.Name + "\x00" + string(b)
		}
	}
	return c.Name + "\x00" + string(c.Input)
}

// call journals a call. p is its part where the process that makes it is here.
//
// A permission that a person gave to a process that is gone is for the first equal call
// that the agent asks for afterwards. If that is the first thing it does, it takes the
// step that was asked about. Otherwise that step ends, as permitted and not done, and the
// permission is kept for an equal call later in this loop: both follow from the results
// in the journal, so every attempt sees the same.
func (t *turn) call(ctx context.Context, c *call, p *part) error {
	t.step++
	k := c.key()
	s := stint.Step{Name: c.Name, Kind: stint.Tool, Effect: c.Effect, Input: c.Input, Timeout: t.spec.timeout()}
	refuse := false
	switch {
	case c.Ask == "":
	case t.refusals[k] > 0:
		t.refusals[k]--
		refuse, s.Effect = true, stint.Read // it does nothing
	case t.grants[k] > 0:
		t.grants[k]--
	default:
		s.Ask, s.Why = c.Ask, "the agent asks for permission"
		if p != nil {
			s.Hold = t.spec.hold()
		}
	}
	begun, _ := t.begun()
	looked := false
	if p == nil && s.Ask != "" && t.permitted() {
		// Before the step, so that a crash meanwhile leaves nothing in doubt.
		var err error
		if p, err = t.askedAgain(ctx, c); err != nil {
			return err
		}
		looked = true
	}
	if s.Hold > 0 { // a journal takes no output while its session waits, so the log keeps some
		t.log.Detach()
	}
	res, err := t.loop.Do(ctx, s, func(step context.Context, _ string) (stint.Result, error) {
		if s.Hold > 0 {
			t.log.Attach(t.loop, t.spec.outputLimit())
		}
		if refuse {
			return stint.Result{}, stint.Definite(&stint.Error{Code: stint.Denied, Err: errors.New("a person said no to the same call before")})
		}
		if p != nil && !t.waits(p) {
			p, looked = nil, t.peer != nil
		}
		if p == nil && c.Ask == "" {
			return missed(c, begun)
		}
		if p == nil && !looked {
			var err error
			if p, err = t.askedAgain(step, c); err != nil {
				return stint.Result{}, notBegun{err}
			}
		}
		if p == nil {
			return marked(markNotAsked)
		}
		return t.await(step, c, p)
	})
	if s.Hold > 0 {
		t.log.Attach(t.loop, t.spec.outputLimit())
	}
	t.log.Sync()
	if err != nil && stint.CodeOf(err) == stint.Denied && !errors.Is(err, stint.ErrParked) {
		t.denied(c, p, err)
		return nil
	}
	if err != nil {
		return err
	}
	t.recall(c, k, res.Data, p != nil)
	return nil
}

// waits reports that the agent still waits for the answer to what it asked, or asked
// nothing. A process that ended while a person thought costs nothing: it is started again.
func (t *turn) waits(p *part) bool {
	if p.perm == nil {
		return true
	}
	if !t.peer.alive() {
		t.drop()
		return false
	}
	_, _, lost := t.peer.feed.state(p)
	return !lost
}

// permitted reports that a person said yes to the newest step while nobody was here, and
// that it is not in doubt: it was not begun with the yes, or a person said that it did not
// take place. One in doubt is asked about before the agent is started.
func (t *turn) permitted() bool {
	begun, verdict := t.begun()
	for _, a := range t.ses.At.Approvals {
		if a.Step.Step == t.step && a.Step.Sub == 0 {
			return a.State == stint.ApprovalApproved && (!begun || verdict == saidNot)
		}
	}
	return false
}

// saidNot is the verdict that a step did not take place.
const saidNot = "not"

// begun reports whether the journal had the intent of the newest step when this attempt
// began, and what was said of it since. For a loop that cannot tell, every step counts as
// begun that has an entry, a question too: it is asked about once too often.
func (t *turn) begun() (begun bool, verdict string) {
	if l, ok := t.loop.(looker); ok {
		return l.Begun(t.step, 0)
	}
	return t.ses.At.Step >= t.step, ""
}

// askedAgain starts the agent, if need be, and waits for what it does first. If that is
// an equal call that waits for permission, its part is returned.
func (t *turn) askedAgain(ctx context.Context, c *call) (*part, error) {
	if t.peer == nil {
		t.notes = append(t.notes, "You were given permission for "+t.describe(c)+". Go on with it now.")
		if err := t.again(ctx); err != nil {
			return nil, err
		}
	}
	e := t.peer.feed.deed(ctx)
	switch e.kind {
	case evBegin:
		now := t.peer.feed.take(ctx, t.spec, e.part, t.agent.settle)
		if now.key() == c.key() && (e.part.perm != nil || e.part.file != nil) {
			t.peer.feed.claim(e.part)
			return e.part, nil
		}
		return nil, nil
	case evDone:
		return nil, nil
	case evFail:
		t.drop()
		return nil, e.err
	case evExit:
		login := t.peer.login
		t.peer = nil
		return nil, t.spec.failure("", e.exit, login)
	}
	t.drop()
	return nil, stopped(ctx, "the start of the agent")
}

// await lets a call go on and waits for its end.
func (t *turn) await(ctx context.Context, c *call, p *part) (stint.Result, error) {
	if p.file != nil {
		x := p.file.serve(t.spec.Dir)
		data, err := stint.Marshal(x)
		return stint.Result{Data: data}, err
	}
	if p.perm != nil && !p.perm.allow() {
		p.perm.cancel()
		t.peer.feed.closed(p)
		return stint.Result{}, stint.Definite(stint.Fail(&stint.Error{Code: stint.Invalid, Err: fmt.Errorf("%s asks permission for %s and does not offer to take it once", t.spec.name(), c.Name),
			Hint: "let the agent's own configuration allow or forbid such calls"}))
	}
	t.log.Progress(c.Name + " " + string(c.Input))
	for {
		f := t.peer.feed.file(ctx, p.done)
		if f == nil {
			break
		}
		t.peer.feed.served(p, f.serve(t.spec.Dir))
	}
	o, over, lost := t.peer.feed.state(p)
	if ctx.Err() != nil && (!over || lost) {
		t.drop()
		return stint.Result{}, stopped(ctx, c.Name)
	}
	if lost && c.Effect != stint.Once {
		return marked(markInterrupted)
	}
	if lost {
		return stint.Result{}, fmt.Errorf("%s did not tell how %s ended", t.spec.name(), c.Name)
	}
	data, err := stint.Marshal(o)
	return stint.Result{Data: data}, err
}

func marked(m string) (stint.Result, error) {
	data, err := stint.Marshal(mark{m})
	return stint.Result{Data: data}, err
}

// missed is asked for the result of a call that an earlier process began and nobody was
// asked about. What ran then stint cannot do again; the agent is told instead. A once
// call whose intent the journal has comes here only after the word that it did not take
// place. One without is in doubt if the agent told of it when it had begun, and not if it
// waited for stint.
func missed(c *call, begun bool) (stint.Result, error) {
	if c.Effect != stint.Once {
		return marked(markInterrupted)
	}
	if !begun && !c.Waits {
		return stint.Result{}, errors.New("stint ended as the agent began it")
	}
	return marked(markNot)
}

// denied tells the agent that a person said no.
func (t *turn) denied(c *call, p *part, err error) {
	why := brief(err.Error())
	t.refused = true
	t.tell("You asked for " + t.describe(c) + ", which was refused: " + why)
	switch {
	case p != nil && p.file != nil:
		p.file.fail(why)
	case p != nil && t.peer != nil:
		t.peer.feed.closed(p)
		p.perm.reject()
	default:
		k := c.key()
		t.refusals[k]++
		t.untold = k
		t.notes = append(t.notes, "Your call of "+t.describe(c)+" was refused: "+why+". Do not ask for it again.")
	}
}

func (t *turn) describe(c *call) string {
	return strings.TrimSpace(c.Name + " " + short(string(c.Input), 500))
}

// recall notes what a call gave, and what the agent may not know of it.
func (t *turn) recall(c *call, k string, data json.RawMessage, live bool) {
	var m mark
	_ = json.Unmarshal(data, &m)
	what := "Your call of " + t.describe(c)
	note := ""
	switch {
	case m.Stint == markAsks:
	case m.Stint == markNotAsked:
		if c.Ask != "" {
			t.grants[k]++
		}
		note = "You were given permission for " + t.describe(c) + "; it was not done."
	case m.Stint == markNot:
		note = what + " did not take place."
	case m.Stint == markInterrupted:
		note = what + " was interrupted."
	case m.Stint == markUnknown:
		note = "Nobody knows whether this took place: " + t.describe(c) + "."
	case c.Effect == stint.Once:
		result := short(string(data), 4000)
		if result == "null" || result == "" {
			result = "not told"
		}
		note = what + " did take place; do not repeat it. Its result: " + result
	}
	if note != "" && !live {
		t.notes = append(t.notes, note)
	}
	if m.Stint == "" {
		t.tell("You called " + t.describe(c) + " and got: " + short(string(data), 4000))
	} else if note != "" {
		t.tell(note)
	}
}
