package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// readInbox fetches the messages that nobody has taken.
func (d *driver) readInbox() error {
	ms, err := d.e.store.Inbox(d.w.ctx, d.lease.Session)
	if err != nil {
		return err
	}
	d.deliver(ms)
	return nil
}

// deliver hands over the inbox as it is now. It may be called from any goroutine;
// what must not wait for the next step boundary acts at once.
func (d *driver) deliver(ms []stint.Message) {
	d.mu.Lock()
	d.inbox = d.inbox[:0:0]
	urgent := false
	for _, m := range ms {
		if d.seen[m.ID] {
			continue
		}
		d.inbox = append(d.inbox, m)
		if m.Kind == stint.Decision || m.Kind.Control() && command(m).Ask != nil {
			d.orders.Store(true)
		}
		if m.Kind == stint.Stop && !d.timed {
			d.timed = true // what takes longer than its grace is canceled
			time.AfterFunc(d.grace, func() { d.stopAgent(errStop) })
		}
		if m.Kind == stint.Kill || m.Kind == stint.Interrupt || m.Kind == stint.Pause && command(m).Now {
			urgent = true
		}
		if m.Kind == stint.Kill && d.w != nil && !d.hastened {
			d.hastened = true
			d.e.wg.Go(func() { d.hasten(m) })
		}
	}
	d.mu.Unlock()
	if urgent {
		d.stopAgent(errStop)
	}
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// command reads the arguments of a control message; bad ones are as good as none,
// since the sender's side has checked them.
func command(m stint.Message) (c journal.Command) {
	if len(m.Data) > 0 {
		if err := json.Unmarshal(m.Data, &c); err != nil {
			return journal.Command{}
		}
	}
	c.Reason = clip(firstLine(c.Reason), 1000)
	return c
}

// between reports whether messages of kind k act between loops at the latest: all but
// a loop's input.
func between(k stint.MessageKind) bool { return !k.Input() }

// hasControl reports whether a message waits that acts between loops.
func (d *driver) hasControl() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.inbox {
		if between(m.Kind) {
			return true
		}
	}
	return false
}

// boundary is asked at every step: must the session stop here?
func (d *driver) boundary() *parking {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.lostErr != nil:
		return &parking{lost: true}
	case d.over != nil:
		return d.over
	}
	for i := range d.inbox {
		if a, yes := d.ofOrder(&d.inbox[i]); yes && a.Name != string(stint.BranchOff) {
			return &parking{again: true}
		}
		if p := stops(&d.inbox[i]); p != nil && !(p.again && d.futile(&d.inbox[i])) {
			return p
		}
	}
	if d.draining {
		return &parking{drain: true}
	}
	return nil
}

// stops says what a control message makes of a session that runs: parked, ended,
// or nothing that a step boundary has to care about. A restart or a rollback ends
// the loop, and [driver.control] then does the rest.
func stops(m *stint.Message) *parking {
	c := command(*m)
	if c.Ask != nil {
		return nil // somebody decides first
	}
	switch m.Kind {
	case stint.Stop, stint.Kill:
		return &parking{by: m, end: &stint.End{Outcome: stint.Canceled, Reason: canceled(m, c)}}
	case stint.Pause:
		return &parking{by: m, wait: &stint.Wait{For: stint.ForOperator, What: or(c.Reason, "paused"), Who: string(m.From)}}
	case stint.Interrupt:
		return &parking{by: m, wait: &stint.Wait{For: stint.ForMessage, What: or(c.Reason, "interrupted"), Wakes: []stint.MessageKind{stint.Prompt}}}
	case stint.Restart, stint.Rollback:
		return &parking{again: true}
	}
	return nil
}

func canceled(m *stint.Message, c journal.Command) string {
	s := "by " + string(m.From)
	if c.Reason != "" {
		s += ": " + c.Reason
	}
	return s
}

func or(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// control acts on the control messages of a session whose loop is not running, all of
// them: one that parks or ends the session does not keep back those behind it.
func (d *driver) control() error {
	for {
		m, ok := d.next(between)
		if !ok {
			return nil
		}
		s := d.w.session()
		why, err := d.unfit(&s, m)
		switch p := stops(&m); {
		case err != nil:
		case why != "":
			err = d.refuse(m, why)
		case p != nil && !p.again:
			err = d.record(p)
		default:
			err = d.obey(&s, m)
		}
		if err != nil {
			return err
		}
	}
}

// unfit is why m cannot be obeyed as things stand, whatever it asks in particular;
// empty: it can.
func (d *driver) unfit(s *stint.Session, m stint.Message) (string, error) {
	if s.Status.Ended() && s.Accepts(m.Kind) != nil {
		return "the session has ended (" + string(s.Status) + ")", nil
	}
	if err := m.Check(); err != nil {
		return plain(err), nil
	}
	if m.Kind != stint.Stop && m.Kind != stint.Kill { // to end a session needs no arguments
		if err := jsonx.Check(m.Data, jsonx.Limits{}); len(m.Data) > 0 && err != nil {
			return "its arguments are not one JSON value: " + err.Error(), nil
		}
	}
	if s.Status != stint.Waiting || s.Wait.For != stint.ForDoubt {
		return "", nil
	}
	switch c := command(m); {
	case m.Kind == stint.Pause, m.Kind == stint.Interrupt:
		return "the session is parked already, and its question stays open: " + s.Wait.What, nil
	case m.Kind == stint.Resume, m.Kind == stint.Restart && c.From == nil && c.State == nil:
		if err := d.w.sync(); err != nil {
			return "", err
		}
		doubts, err := d.e.doubts(d.io, s)
		if err != nil || len(doubts) == 0 {
			return "", err // the agent's step differs from the recorded one: it may have been mended
		}
		return fmt.Sprintf("%s in doubt: say what became of %s first", named(doubts), it(len(doubts))), nil
	}
	return "", nil
}

// obey does what a message asks that does not stop the session.
func (d *driver) obey(s *stint.Session, m stint.Message) error {
	c := command(m)
	if c.Ask != nil {
		return d.askOrder(s, m, c)
	}
	switch m.Kind {
	case stint.Resume:
		return d.resume(s, m, c)
	case stint.Resolve:
		return d.resolve(s, m, c)
	case stint.SetLimit:
		return d.setLimits(s, m, c)
	case stint.Decision:
		return d.decide(s, m)
	case stint.Restart, stint.Rollback:
		return d.goBack(s, m, c)
	}
	return d.refuse(m, "this runner does not know messages of kind "+string(m.Kind))
}

// next takes the oldest message of a kind that is wanted off the list.
func (d *driver) next(wanted func(stint.MessageKind) bool) (stint.Message, bool) {
	return d.nextOf(func(m *stint.Message) bool { return wanted(m.Kind) })
}

// nextOf takes the oldest message that is wanted off the list.
func (d *driver) nextOf(wanted func(*stint.Message) bool) (stint.Message, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, m := range d.inbox {
		if wanted(&m) {
			d.inbox = append(d.inbox[:i:i], d.inbox[i+1:]...)
			d.seen[m.ID] = true // from here on it is not delivered again
			return m, true
		}
	}
	return stint.Message{}, false
}

// take records that the session took m.
func (d *driver) take(m stint.Message, why string) error { return d.takeAt(d.here(), m, why) }

// takeAt is take for a message that belongs to the loop of pos.
func (d *driver) takeAt(pos stint.Position, m stint.Message, why string) error {
	kind := stint.MessageTaken
	if why != "" {
		kind = stint.MessageRefused
	}
	from := stint.Actor(clip(string(m.From), maxName)) // one that is too long is refused, which is an entry too
	t := journal.Taken{ID: clip(m.ID, 255), Kind: stint.MessageKind(clip(string(m.Kind), maxName)), From: from, At: m.At, Data: m.Data, Why: clip(why, 1000)}
	body := m.Body
	if len(t.Data) > maxTakenData || len(t.Data) > 0 && !json.Valid(t.Data) {
		if t.Long = m.Kind.Control(); t.Long {
			body = t.Data
		}
		t.Data = nil
	}
	x := extras{taken: []string{m.ID}}
	if why == "" {
		var err error
		if x.sends, err = d.passOn(m); err != nil {
			return err
		}
	}
	_, err := d.w.addWith(journal.Draft{Kind: kind, Pos: pos, Actor: from, Body: body, Data: t}, x)
	d.drop(m.ID)
	return err
}

// drop makes sure that a message is not acted on again in this drive.
func (d *driver) drop(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[id] = true
	d.inbox = slices.DeleteFunc(slices.Clone(d.inbox), func(m stint.Message) bool { return m.ID == id })
}

// maxTakenData is how long a message's arguments may be to lie in an entry's data;
// longer ones are its body, which a control message does not have.
const maxTakenData = 16 << 10

func (d *driver) refuse(m stint.Message, why string) error { return d.take(m, why) }

// takeInput takes the messages that are input of the loop that begins at pos.
func (d *driver) takeInput(pos stint.Position) ([]stint.Message, error) {
	d.mu.Lock()
	var input, rest []stint.Message
	for _, m := range d.inbox {
		if m.Kind.Input() {
			d.seen[m.ID] = true
			input = append(input, m)
		} else {
			rest = append(rest, m)
		}
	}
	d.inbox = rest
	d.mu.Unlock()
	good := input[:0:0]
	for _, m := range input {
		why := ""
		if err := m.Check(); err != nil {
			why = plain(err)
		} else {
			good = append(good, m)
		}
		if err := d.take(m, why); err != nil {
			return nil, err
		}
	}
	return good, nil
}

// firstInput is the input of the session as a message; nil: it has none. A branch has that
// of its parent, where it begins before the first loop.
func (e *Engine) firstInput(ctx context.Context, s *stint.Session) (*stint.Message, error) {
	es, err := e.store.Entries(ctx, stint.Range{Session: s.ID, Limit: 2})
	if err != nil {
		return nil, err
	}
	if len(es) == 0 {
		return nil, stint.Corrupt.Errorf("inbox", "the journal has no first entry")
	}
	m, from, err := past.FirstInput(es)
	if err != nil || from == nil {
		return nil, err
	}
	if !from.Blob.IsZero() {
		if m.Body, err = e.store.Blob(ctx, s.Family, from.Blob); err != nil {
			return nil, err
		}
	}
	if len(m.Body) == 0 {
		return nil, nil
	}
	return &m, nil
}

// firstInput is that for the loop that begins, if it is the first.
func (d *driver) firstInput() ([]stint.Message, error) {
	if d.input == nil {
		s := d.w.session()
		if s.Parent.Branch && s.At.Line == 0 {
			return nil, nil // it was taken for this loop when the branch was made
		}
		m, err := d.e.firstInput(d.io, &s)
		if err != nil || m == nil {
			return nil, err
		}
		d.input = m
	}
	if len(d.input.Body) == 0 {
		return nil, nil
	}
	return []stint.Message{*d.input}, nil
}

// wake ends a wait whose reason is gone: its time has come, or a message that it
// waits for is there.
func (d *driver) wake() *parking {
	s := d.w.session()
	if s.Status != stint.Waiting {
		return nil
	}
	why := ""
	if !s.Wait.Until.IsZero() && !faultpoint.Now().Before(s.Wait.Until) {
		why = "time"
	}
	if err := d.takeOthers(&s); err != nil {
		return &parking{lost: true}
	}
	d.mu.Lock()
	for _, m := range d.inbox {
		switch {
		case m.Kind.Control() || !s.WokenBy(m.Kind):
		case m.Kind == stint.ChildEnd:
			why = or(why, "child")
		default:
			why = "message"
		}
	}
	d.mu.Unlock()
	if why == "" {
		return nil
	}
	if _, err := d.w.add(journal.Draft{Kind: stint.SessionResumed, Pos: d.here(), Data: journal.Resumed{Why: why}}); err != nil {
		return &parking{lost: true}
	}
	return nil
}

func (d *driver) here() stint.Position {
	s := d.w.session()
	return stint.Position{Loop: s.At.Loop, Attempt: s.At.Attempt}
}

func (d *driver) resume(s *stint.Session, m stint.Message, c journal.Command) error {
	if s.Status != stint.Waiting {
		return d.refuse(m, "the session is not waiting")
	}
	if !c.Tree.IsZero() && s.Wait.For != stint.ForOperator {
		return d.refuse(m, "the session was not paused: it waits for "+string(s.Wait.For))
	}
	if s.Wait.For == stint.ForApproval {
		return d.refuse(m, "the session waits for a decision: approve or deny it")
	}
	if err := d.take(m, ""); err != nil {
		return err
	}
	_, err := d.w.add(journal.Draft{Kind: stint.SessionResumed, Pos: d.here(), Actor: m.From, Data: journal.Resumed{Why: "resume", Reason: c.Reason}})
	return err
}

func (d *driver) setLimits(s *stint.Session, m stint.Message, c journal.Command) error {
	if c.Limits == nil && c.Tree.IsZero() {
		return d.refuse(m, "the message names no limits")
	}
	if err := d.take(m, ""); err != nil {
		return err
	}
	if c.Limits == nil { // they are those of a session above, which this one draws on
		return d.resumeBudget(s, m, c)
	}
	if _, err := d.w.add(journal.Draft{Kind: stint.LimitChanged, Pos: d.here(), Actor: m.From, Data: journal.LimitChanged{Limits: *c.Limits, Reason: c.Reason}}); err != nil {
		return err
	}
	d.watch()
	return d.resumeBudget(s, m, c)
}

// resumeBudget ends a wait for a raised limit.
func (d *driver) resumeBudget(s *stint.Session, m stint.Message, c journal.Command) error {
	if s.Status != stint.Waiting || s.Wait.For != stint.ForBudget {
		return nil
	}
	_, err := d.w.add(journal.Draft{Kind: stint.SessionResumed, Pos: d.here(), Actor: m.From, Data: journal.Resumed{Why: "limit", Reason: c.Reason}})
	return err
}

// resolve settles a step in doubt by a person's word.
func (d *driver) resolve(s *stint.Session, m stint.Message, c journal.Command) error {
	if s.Status != stint.Waiting || s.Wait.For != stint.ForDoubt || c.Step == nil {
		return d.refuse(m, "the session has no step in doubt")
	}
	want := s.Wait.Step
	if c.Step.Loop != want.Loop || c.Step.Step != want.Step || c.Step.Sub != want.Sub {
		return d.refuse(m, fmt.Sprintf("the step in doubt is %s, not %s", want, *c.Step))
	}
	body := []byte(nil)
	switch c.Verdict {
	case journal.Happened:
		if err := checkValue("the result", c.Result); err != nil {
			return d.refuse(m, plain(err))
		}
		if body = c.Result; body == nil {
			body = []byte("null")
		}
	case journal.NotHappened, journal.Unknown:
	default:
		return d.refuse(m, fmt.Sprintf("%q is no verdict: happened, not, or unknown", c.Verdict))
	}
	d.place = s.At
	o, err := d.loadPast(d.io)
	if err != nil {
		return err
	}
	if st := o.past.At(want.Step, want.Sub); st == nil || !st.Requested || st.Done != nil {
		return d.refuse(m, "the agent's step differs from the recorded one, which no verdict settles: mend the agent and resume, or restart from an earlier loop")
	}
	if err := d.take(m, ""); err != nil {
		return err
	}
	want.Line = s.At.Line
	if _, err := d.w.add(journal.Draft{Kind: stint.StepResolved, Pos: want, Actor: m.From, Body: body,
		Data: journal.StepResolved{Verdict: c.Verdict, Reason: c.Reason}}); err != nil {
		return err
	}
	_, err = d.w.add(journal.Draft{Kind: stint.SessionResumed, Pos: d.here(), Actor: m.From, Data: journal.Resumed{Why: "resolved"}})
	return err
}

// fence ends a drive whose lease is lost.
func (d *driver) fence(err error) {
	d.mu.Lock()
	if d.lostErr == nil {
		d.lostErr = err
	}
	d.mu.Unlock()
	d.stopAgent(err)
}

func (d *driver) isDraining() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.draining
}

func (d *driver) isLost() bool { return d.loss() != nil }

// loss is why the lease is lost; nil while it is not.
func (d *driver) loss() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lostErr
}

// stopping reports whether the session is being taken from the agent.
func (d *driver) stopping() bool {
	return context.Cause(d.ctx) != nil
}
