package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/policy"
)

// Bounds of a question.
const (
	maxQuestion = 1000     // bytes of its lines
	maxAnswers  = 32 << 10 // bytes of the schema of its answer
)

// ask looks whether a person has to be asked before c, and what they said. What was asked
// about another step at c's place is void.
func (l *loop) ask(c *call) error {
	a := l.question(c.pos)
	if a != nil && !c.intended && (c.step.Ask == "" || a.Name != c.intent.Name || a.Effect != c.intent.Effect || a.Input != c.intent.Input || a.Edited != "" && c.step.Edit == nil) {
		if err := l.d.void(a, stint.ApprovalInvalidated, "the step at its place is another one, or needs no answer any more"); err != nil {
			return l.refused(err)
		}
		a = nil
	}
	switch {
	case c.step.Ask == "", c.intended:
		return nil
	case a == nil:
		return l.request(c)
	case a.State == stint.ApprovalOpen:
		c.asks = true
		return nil
	}
	return l.heed(c, a)
}

// heed does with c what a person said of it.
func (l *loop) heed(c *call, a *stint.Approval) error {
	c.asks = false
	switch {
	case a.State != stint.ApprovalApproved:
		text := "nobody decided in time"
		if a.State == stint.ApprovalDenied {
			text = "denied by " + string(a.By)
			if a.Note != "" {
				text += ": " + a.Note
			}
		}
		c.decided, c.err = true, stint.Definite(&stint.Error{Code: stint.Denied, Err: fmt.Errorf("%s", text)})
	case a.Answer:
		body, err := l.answer(a)
		if err != nil {
			return err
		}
		c.decided, c.result = true, stint.Result{Data: body}
	case a.Edited != "":
		body, err := l.answer(a)
		if err != nil {
			return err
		}
		return l.edited(c, body, stint.BlobRef{})
	}
	return nil
}

// edited puts the input that a person chose in the place of the one that c came with, and
// tells the agent.
func (l *loop) edited(c *call, input json.RawMessage, blob stint.BlobRef) error {
	if !blob.IsZero() {
		var err error
		if input, err = l.body(&past.Step{Blob: blob}); err != nil {
			return err
		}
	}
	given := c.intent.Input
	c.step.Input = input
	sum := past.Intent(&c.step)
	c.intent.Input, c.intent.Asked = sum.Input, given
	if c.step.Edit != nil {
		return shielded(func() error { c.step.Edit(input); return nil })
	}
	return nil
}

// question is the question about the step at pos; nil: there is none.
func (l *loop) question(pos stint.Position) *stint.Approval {
	for _, a := range l.d.w.session().At.Approvals {
		if a.Step.Step == pos.Step && a.Step.Sub == pos.Sub { // steps count from 1: it is of no order
			return &a
		}
	}
	return nil
}

// request records the question about c.
func (l *loop) request(c *call) error {
	q := &c.step
	d := journal.ApprovalRequested{StepRequested: c.intent, Text: clip(firstLine(q.Ask), maxQuestion), Why: clip(firstLine(q.Why), maxQuestion), Schema: q.Answer}
	if len(q.Answer) > maxAnswers {
		return stint.Invalid.Errorf("step "+c.step.Name, "the schema of the answer has %d bytes; at most %d fit", len(q.Answer), maxAnswers)
	}
	if err := jsonx.Check(q.Answer, jsonx.Limits{}); q.Answer != nil && err != nil {
		return stint.Invalid.Errorf("step "+c.step.Name, "the schema of the answer is not JSON: %v", err)
	}
	if err := c.wants(&d); err != nil {
		return err
	}
	if _, err := l.d.w.add(journal.Draft{Kind: stint.ApprovalRequested, Pos: c.pos, Actor: stint.ByAgent, Data: d, Body: c.step.Input}); err != nil {
		return l.refused(err)
	}
	c.asks = true
	return nil
}

// answer reads what a person answered.
func (l *loop) answer(a *stint.Approval) (json.RawMessage, error) {
	if err := l.d.w.sync(); err != nil {
		return nil, l.lost()
	}
	for {
		es, err := l.d.e.store.Entries(l.d.io, stint.Range{Session: l.start.ID, After: a.Decided - 1, Until: a.Decided})
		if err == nil && len(es) == 1 {
			return l.body(&past.Step{Body: es[0].Body, Blob: es[0].Blob})
		}
		if err == nil {
			return nil, stint.Corrupt.Errorf("approval", "entry %d, which has the answer, is not there", a.Decided)
		}
		if stint.CodeOf(err) != stint.Unavailable || l.d.isDraining() || l.d.isLost() {
			return nil, err
		}
		<-time.After(retryCommit)
	}
}

// questions is the wait for what a person has been asked.
func (l *loop) questions() *parking {
	s := l.d.w.session()
	w := &stint.Wait{For: stint.ForApproval, Wakes: []stint.MessageKind{stint.Decision}}
	w.Until, _ = nextExpiry(&s)
	n := 0
	for i := range s.At.Approvals {
		a := &s.At.Approvals[i]
		if a.State != stint.ApprovalOpen || a.OfOrder() {
			continue
		}
		if n++; n == 1 {
			w.What, w.Approval, w.Step = a.Text, ident.ApprovalID(s.ID, a.Seq), a.Step
		}
	}
	if n > 1 {
		w.What = fmt.Sprintf("%d questions, the first: %s", n, w.What)
	}
	return &parking{wait: w}
}

// hold waits for the answer to c's question while the agent keeps its process, as long as
// the question says. The session is parked in the journal and the lease stays. An error
// parks the loop.
func (l *loop) hold(ctx context.Context, c *call) error {
	d := l.d
	l.park = l.questions()
	if c.step.Hold <= 0 {
		return stint.ErrParked
	}
	if err := d.record(l.park); err != nil || d.w.sync() != nil {
		l.park = nil
		return l.lost()
	}
	d.told()
	timer := time.NewTimer(c.step.Hold)
	defer timer.Stop()
	for {
		l.park = &parking{still: true}
		select {
		case <-d.news:
		case <-timer.C:
			return stint.ErrParked
		case <-ctx.Done():
		case <-d.drained:
		}
		if p := d.boundary(); p != nil {
			l.park = p
			return stint.ErrParked
		}
		if ctx.Err() != nil {
			return stint.ErrParked
		}
		if err := d.decisions(); err != nil {
			l.park = nil
			return l.lost()
		}
		if a := l.question(c.pos); a != nil && a.State != stint.ApprovalOpen {
			return l.goOn(c, a)
		}
	}
}

// goOn goes on with a loop that was held for an answer.
func (l *loop) goOn(c *call, a *stint.Approval) error {
	l.park = nil
	if l.d.w.session().Status == stint.Waiting {
		if _, err := l.d.w.add(journal.Draft{Kind: stint.SessionResumed, Pos: l.d.here(), Data: journal.Resumed{Why: "message"}}); err != nil {
			return l.lost()
		}
	}
	if _, err := l.d.w.add(journal.Draft{Kind: stint.LoopStarted, Pos: l.at(0, 0), Data: journal.LoopStarted{Why: "wake"}}); err != nil {
		return l.lost()
	}
	l.d.place = l.d.w.session().At
	l.d.pulse.touch()
	l.d.watch()
	return l.heed(c, a)
}

// decisions acts on the decisions that have come and that do not end the loop, and on no
// other message.
func (d *driver) decisions() error {
	return d.obeyThose(func(m *stint.Message) bool {
		a, _ := d.ofOrder(m)
		return m.Kind == stint.Decision && a == nil || d.aside(m)
	})
}

// obeyThose acts on the messages that are wanted, none of which stops the session.
func (d *driver) obeyThose(wanted func(*stint.Message) bool) error {
	for {
		m, ok := d.nextOf(wanted)
		if !ok {
			return nil
		}
		s := d.w.session()
		why, err := d.unfit(&s, m)
		switch {
		case err != nil:
		case why != "":
			err = d.refuse(m, why)
		default:
			err = d.obey(&s, m)
		}
		if err != nil {
			return err
		}
	}
}

// decide ends a question as a person said.
func (d *driver) decide(s *stint.Session, m stint.Message) error {
	var c journal.Decision
	if err := json.Unmarshal(m.Data, &c); err != nil {
		return d.refuse(m, "it is no decision: "+plain(err))
	}
	var a *stint.Approval
	for i := range s.At.Approvals {
		if s.At.Approvals[i].Seq == c.Approval {
			a = &s.At.Approvals[i]
		}
	}
	switch {
	case c.State != stint.ApprovalApproved && c.State != stint.ApprovalDenied:
		return d.refuse(m, fmt.Sprintf("%q is no decision: approved or denied", c.State))
	case a == nil:
		return d.refuse(m, fmt.Sprintf("entry %d is no question that is open", c.Approval))
	case a.State != stint.ApprovalOpen:
		return d.refuse(m, fmt.Sprintf("it was %s by %s at %s", a.State, a.By, a.At.Format(time.RFC3339)))
	}
	why, err := d.tooLate(a, m.At)
	var v vote
	if err == nil && why == "" {
		v, why, err = d.vote(a, &m, &c)
	}
	switch {
	case err != nil:
		return err
	case why != "":
		return d.refuse(m, why)
	case a.OfOrder() && len(c.Branches) > 0:
		return d.refuse(m, "a question about an order has one answer")
	case a.OfOrder() && (c.State == stint.ApprovalDenied || v.yeses >= a.Quorum):
		return d.decideOrder(s, m, &c, a)
	}
	made, why, err := d.split(s, &m, &c, a)
	switch {
	case err != nil:
		return err
	case why != "": // it is asked anew, since of one question there is one decision
		if err := d.refuse(m, why); err != nil {
			return err
		}
		if err := d.void(a, stint.ApprovalInvalidated, clip(firstLine(why), maxQuestion)); err != nil {
			return err
		}
		return d.resumes(s, m.From)
	}
	if err := d.take(m, ""); err != nil {
		return err
	}
	if c.State == stint.ApprovalApproved && v.yeses < a.Quorum {
		pos := d.here()
		pos.Step, pos.Sub = a.Step.Step, a.Step.Sub
		_, err := d.w.add(journal.Draft{Kind: stint.ApprovalChanged, Pos: pos, Actor: m.From, Cause: a.Seq, Body: v.body,
			Data: journal.ApprovalChanged{Approval: a.Seq, Yes: true, Edited: v.edited, Note: clip(firstLine(c.Note), maxQuestion)}})
		return err
	}
	data := journal.ApprovalDecided{Approval: a.Seq, State: c.State, Note: clip(firstLine(c.Note), maxQuestion), Edited: v.edited, Branches: made}
	if err := d.end(a, m.From, data, v.body); err != nil {
		return err
	}
	return d.resumes(s, m.From)
}

// resumes ends the wait for an answer.
func (d *driver) resumes(s *stint.Session, by stint.Actor) error {
	if s.Status != stint.Waiting || s.Wait.For != stint.ForApproval {
		return nil
	}
	_, err := d.w.add(journal.Draft{Kind: stint.SessionResumed, Pos: d.here(), Actor: by, Data: journal.Resumed{Why: "decision"}})
	return err
}

// vote is what a decision comes to.
type vote struct {
	body   []byte // the answer, or the input that takes the place of the one asked about
	edited string // the short hash of that input
	yeses  int    // with this one
}

// vote checks a decision about a; why says that it cannot be taken.
func (d *driver) vote(a *stint.Approval, m *stint.Message, c *journal.Decision) (v vote, why string, err error) {
	yes := c.State == stint.ApprovalApproved
	if c.Edit && !yes {
		return v, "only a yes changes the input", nil
	}
	if a.Answer && yes {
		if err := checkValue("the answer", m.Body); err != nil || len(m.Body) == 0 {
			return v, "the question wants an answer, and this is no JSON value", nil
		}
		v.body = m.Body
	}
	if a.Approvers == nil && a.Quorum == 0 && !c.Edit {
		v.yeses = 1
		return v, "", nil
	}
	verdict, q, err := d.asked(a)
	if err != nil {
		return v, "", err
	}
	if verdict != nil {
		verdict.Approvers = a.Approvers // an escalation changes them
		if err := verdict.Admits(policy.Vote{By: m.From, Roles: c.Roles, Yes: yes, Edited: c.Edit}); err != nil {
			return v, plain(err), nil
		}
	}
	if !yes {
		return v, "", nil
	}
	if c.Edit {
		switch err := checkValue("the input", m.Body); {
		case !q.Editable:
			return v, "the input of this step cannot be changed", nil
		case err != nil || len(m.Body) == 0:
			return v, "the input that is to take its place is no JSON value", nil
		}
		v.body, v.edited = m.Body, past.InputSum(m.Body)
	} else if a.Edited != "" {
		v.edited = a.Edited
		if v.body, err = d.editOf(a); err != nil {
			return v, "", err
		}
	}
	said := append(slices.Clone(a.Yes), m.From)
	if v.edited != a.Edited {
		said = said[len(said)-1:]
	}
	slices.Sort(said)
	if v.yeses = len(slices.Compact(said)); slices.Contains(a.Yes, m.From) && v.edited == a.Edited && v.yeses < a.Quorum {
		return v, "you have said yes to it already, and others have to", nil
	}
	return v, "", nil
}

// editOf reads the input that somebody who said yes to a put in the place of its own.
func (d *driver) editOf(a *stint.Approval) ([]byte, error) {
	if err := d.w.sync(); err != nil {
		return nil, err
	}
	es, err := d.e.store.Entries(d.io, stint.Range{Session: d.lease.Session, After: a.Seq, Kinds: []stint.Kind{stint.ApprovalChanged}})
	if err != nil {
		return nil, err
	}
	for i := range slices.Backward(es) {
		c, err := journal.Decode[journal.ApprovalChanged](&es[i])
		if err != nil {
			return nil, err
		}
		if c.Approval == a.Seq && c.Edited == a.Edited {
			return past.Body(d.io, d.e.store, d.family, &es[i])
		}
	}
	return nil, stint.Corrupt.Errorf("approval", "the changed input of question %d is not there", a.Seq)
}

// end records the end of a question.
func (d *driver) end(a *stint.Approval, by stint.Actor, data journal.ApprovalDecided, body []byte) error {
	pos := d.here()
	pos.Step, pos.Sub = a.Step.Step, a.Step.Sub
	_, err := d.w.add(journal.Draft{Kind: stint.ApprovalDecided, Pos: pos, Actor: by, Cause: a.Seq, Data: data, Body: body})
	return err
}

// void takes a question back, or a yes whose step has not begun.
func (d *driver) void(a *stint.Approval, state stint.ApprovalState, why string) error {
	return d.end(a, stint.ByEngine, journal.ApprovalDecided{Approval: a.Seq, State: state, Note: why}, nil)
}

// Which questions are taken back.
func ofSteps(a *stint.Approval) bool { return !a.OfOrder() }
func ofAll(*stint.Approval) bool     { return true }

// voidAll takes back what is open of those questions when the loop, or the line, is left.
func (d *driver) voidAll(of func(*stint.Approval) bool, state stint.ApprovalState, why string) error {
	s := d.w.session()
	for i := range s.At.Approvals {
		if a := &s.At.Approvals[i]; a.State == stint.ApprovalOpen && of(a) {
			if err := d.void(a, state, why); err != nil {
				return err
			}
		}
	}
	return nil
}
