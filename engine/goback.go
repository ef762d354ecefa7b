package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// futile reports whether a restart or a rollback will be refused, so that it does not
// break off the loop that runs.
func (d *driver) futile(m *stint.Message) bool {
	s := d.w.session()
	return d.refusal(&s, command(*m)) != ""
}

// refusal is why the session cannot be taken back as c asks; empty: it can.
func (d *driver) refusal(s *stint.Session, c journal.Command) string {
	head := s.Head
	if head == d.foundLost {
		head-- // what this claim itself had to say of the one before is no news
	}
	switch {
	case c.Head != 0 && c.Head != s.Head && c.Head != head:
		return fmt.Sprintf("the plan was made at entry %d, the journal is at %d: look again", c.Head, s.Head)
	case c.From != nil && (*c.From < 0 || *c.From > s.Checkpoint.Loop):
		return fmt.Sprintf("there is no completed loop %d; %s", *c.From, completed(s.Checkpoint.Loop))
	}
	if c.State != nil {
		if err := checkValue("the state", c.State); err != nil {
			return plain(err)
		}
	}
	if c.Agent != nil {
		switch {
		case c.From == nil && c.State == nil:
			return "another agent begins a new line: say from which loop"
		case c.Agent.Name == "" || c.Agent.Pin != sha256.Sum256(c.Config):
			return "the agent's definition is not the one that its pin is of"
		}
	}
	switch c.InDoubt {
	case "", journal.AskDoubt, journal.SkipDoubt, journal.RedoDoubt:
	default:
		return fmt.Sprintf("in_doubt is %q; it is ask, skip or redo", clip(string(c.InDoubt), 60))
	}
	return ""
}

// goBack restarts the session, or rolls it back.
func (d *driver) goBack(s *stint.Session, m stint.Message, c journal.Command) error {
	b, why, err := d.wayBack(s, m, c)
	switch {
	case err != nil:
		return err
	case why != "":
		return d.refuse(m, why)
	}
	if err := d.take(m, ""); err != nil {
		return err
	}
	return d.goes(s, b)
}

// wayBack is a restart or a rollback that was found to be possible.
type wayBack struct {
	m    stint.Message // that ordered it
	c    journal.Command
	here bool // it stays on its line, from the newest checkpoint
	data journal.LineStarted
	next Agent

	cause stint.Seq // the decision that it follows from; 0: there was none to ask
}

// wayBack looks whether the session can go back as m says, or says why it cannot. It
// records nothing.
func (d *driver) wayBack(s *stint.Session, m stint.Message, c journal.Command) (b wayBack, why string, err error) {
	b = wayBack{m: m, c: c, next: d.agent, here: c.From == nil && m.Kind == stint.Restart && c.State == nil}
	if why := d.refusal(s, c); why != "" || b.here {
		return b, why, nil
	}
	from := s.Checkpoint.Loop
	if c.From != nil {
		from = *c.From
	}
	if err := d.w.sync(); err != nil { // the journal is read: it must have what this drive made
		return b, "", err
	}
	cp, err := d.e.checkpointAt(d.io, s, from)
	if errors.Is(err, stint.NotFound) {
		return b, errors.Unwrap(err).Error(), nil
	}
	if err != nil {
		return b, "", err
	}
	b.data = journal.LineStarted{From: from, Checkpoint: cp, Reason: c.Reason, Plan: c.Plan, Park: m.Kind == stint.Rollback}
	if c.Agent != nil {
		b.data.Agent, b.data.Config = c.Agent, c.Config
		if d.agent.Loop != nil { // whoever only settles a session runs no loop of it
			if b.next, err = d.e.agentOf(*c.Agent, func() (json.RawMessage, error) { return c.Config, nil }); err != nil {
				return b, "the agent cannot be begun: " + plain(err), nil
			}
		}
	}
	why, err = d.leaveDoubts(s, c, &b.data)
	return b, why, err
}

// goes takes the session back. What orders it has been taken.
func (d *driver) goes(s *stint.Session, b wayBack) error {
	if b.here {
		return d.restartHere(s, b)
	}
	var body []byte
	if b.c.State != nil {
		var err error
		if b.data.State, body, err = journal.WriteState(stint.Checkpoint{}, nil, b.c.State, nil); err != nil {
			return err
		}
	}
	if err := d.voidAll(ofAll, stint.ApprovalCanceled, "the session went back to an earlier loop"); err != nil {
		return err
	}
	if _, err := d.w.add(journal.Draft{Kind: stint.LineStarted, Pos: stint.Position{Loop: b.data.From}, Actor: b.m.From, Cause: b.cause, Data: b.data, Body: body}); err != nil {
		return err
	}
	if r, ok := d.agent.Loop.(releaser); ok && b.data.Agent != nil {
		r.Release(d.lease.Session) // the one before keeps no process for it
	}
	d.agent = b.next
	if d.skips = []skip{}; b.data.InDoubt == journal.SkipDoubt {
		d.skips = toSkip(b.data.Doubts)
	}
	if err := d.say(b.m, b.c); err != nil {
		return err
	}
	return d.afterMove(b.c)
}

// restartHere goes on from the newest checkpoint, on the same line: the loop that
// was open begins again with its finished steps answered.
func (d *driver) restartHere(s *stint.Session, b wayBack) error {
	if err := d.say(b.m, b.c); err != nil || s.Status == stint.Pending {
		return err
	}
	_, err := d.w.add(journal.Draft{Kind: stint.SessionResumed, Pos: d.here(), Actor: b.m.From, Cause: b.cause, Data: journal.Resumed{Why: "restart", Reason: b.c.Reason}})
	return err
}

// afterMove takes up the state of the checkpoint that the session now stands on.
func (d *driver) afterMove(c journal.Command) error {
	s := d.w.session()
	d.place = s.At
	if c.State != nil {
		d.state = c.State
		return nil
	}
	var err error
	d.state, err = d.e.state(d.io, &s)
	return err
}

// say records the prompt that came inside a restart. It is for the first loop that
// begins after it: an open loop has recorded steps that were made without it, and
// every attempt at a loop sees the same inbox.
func (d *driver) say(m stint.Message, c journal.Command) error {
	if c.Say == "" {
		return nil
	}
	s := d.w.session()
	pos := stint.Position{Loop: s.Checkpoint.Loop + 1}
	if s.At.Open {
		pos.Loop = s.At.Loop + 1
	}
	_, err := d.w.add(journal.Draft{Kind: stint.MessageTaken, Pos: pos, Actor: m.From, Body: []byte(c.Say),
		Data: journal.Taken{ID: m.ID + "/say", Kind: stint.Prompt, From: m.From, At: m.At}})
	return err
}

// doubts are the once steps of the open loop whose intent is recorded and whose
// outcome is not, in their order.
func (e *Engine) doubts(ctx context.Context, s *stint.Session) ([]journal.DoubtedStep, error) {
	if !s.At.Open {
		return nil, nil
	}
	steps := past.Steps{}
	for after := s.At.LoopSeq - 1; ; {
		es, err := e.store.Entries(ctx, stint.Range{Session: s.ID, After: after, Limit: 1000})
		if err != nil {
			return nil, err
		}
		for i := range es {
			if es[i].Pos.Loop != s.At.Loop {
				continue // a prompt may have been taken in the loop before
			}
			if err := steps.Add(&es[i]); err != nil {
				return nil, err
			}
		}
		if len(es) < 1000 {
			break
		}
		after = es[len(es)-1].Seq
	}
	var out []journal.DoubtedStep
	for _, st := range steps {
		if st.Requested && st.Done == nil && st.Verdict == "" && st.Intent.Effect == stint.Once {
			out = append(out, journal.DoubtedStep{Pos: stint.Position{Line: s.At.Line, Loop: s.At.Loop, Step: st.Step, Sub: st.Sub}, StepRequested: st.Intent})
		}
	}
	slices.SortFunc(out, func(a, b journal.DoubtedStep) int {
		return cmp.Or(cmp.Compare(a.Pos.Step, b.Pos.Step), cmp.Compare(a.Pos.Sub, b.Pos.Sub))
	})
	return out, nil
}

// maxDoubts bounds the steps that a line's first entry names.
const maxDoubts = 50

// leaveDoubts says in data what becomes of the steps in doubt that the new line leaves
// behind, or why it cannot begin.
func (d *driver) leaveDoubts(s *stint.Session, c journal.Command, data *journal.LineStarted) (why string, err error) {
	if err := d.w.sync(); err != nil { // the journal is read: it must have what this drive made
		return "", err
	}
	doubts, err := d.e.doubts(d.io, s)
	if err != nil {
		return "", err
	}
	if len(doubts) > 0 && (c.InDoubt == "" || c.InDoubt == journal.AskDoubt) {
		return fmt.Sprintf("%s in doubt: say what became of %s first, or choose skip or redo for the new line", named(doubts), it(len(doubts))), nil
	}
	if c.InDoubt != journal.RedoDoubt { // what the line that is left was to skip is not done now either
		if err := d.loadSkips(s); err != nil {
			return "", err
		}
		for _, sk := range d.skips {
			if sk.at.Loop == 0 || sk.at.Loop > data.From {
				doubts = append(doubts, sk.DoubtedStep)
			}
		}
	}
	if len(doubts) == 0 {
		return "", nil
	}
	if data.InDoubt = c.InDoubt; c.InDoubt != journal.RedoDoubt {
		data.InDoubt = journal.SkipDoubt
	}
	if len(doubts) > maxDoubts {
		if data.InDoubt == journal.SkipDoubt {
			return fmt.Sprintf("%d steps are in doubt; at most %d can be skipped: say what became of them first", len(doubts), maxDoubts), nil
		}
		doubts = doubts[:maxDoubts]
	}
	data.Doubts = doubts
	return "", nil
}

// skip is a step that the line must not do.
type skip struct {
	journal.DoubtedStep
	at stint.Position // where it was skipped; zero: not yet
}

// loadSkips reads what the current line must not do, unless it is known.
func (d *driver) loadSkips(s *stint.Session) error {
	if d.skips != nil || s.At.Line == 0 && !s.Parent.Branch {
		return nil
	}
	skips, err := d.e.skips(d.io, s)
	if err == nil && skips != nil {
		d.skips = skips
	}
	return err
}

// skips are what the current line of s must not do; nil: the entry that says so is not there
// yet.
func (e *Engine) skips(ctx context.Context, s *stint.Session) ([]skip, error) {
	kind := stint.LineStarted
	if s.At.Line == 0 {
		kind = stint.SessionCreated
	}
	es, err := e.store.Entries(ctx, stint.Range{Session: s.ID, Kinds: []stint.Kind{kind}, Last: true, Limit: 1})
	if err != nil || len(es) == 0 {
		return nil, err
	}
	skips, err := skipsOf(&es[0])
	for after := es[0].Seq; err == nil && len(skips) > 0; after = es[len(es)-1].Seq {
		es, err = e.store.Entries(ctx, stint.Range{Session: s.ID, After: after, Kinds: []stint.Kind{stint.StepResolved}, Limit: 1000})
		if err != nil {
			return nil, err
		}
		for i := range es {
			r, err := journal.Decode[journal.StepResolved](&es[i])
			if err != nil {
				return nil, err
			}
			if j := slices.IndexFunc(skips, func(sk skip) bool { return r.Skipped != nil && sk.Pos == *r.Skipped }); j >= 0 {
				skips[j].at = es[i].Pos
			}
		}
		if len(es) < 1000 {
			break
		}
	}
	return skips, err
}

// skipsOf is what a line must not do that e began. It is never nil.
func skipsOf(e *stint.Entry) ([]skip, error) {
	if e.Kind == stint.SessionCreated {
		d, err := journal.Decode[journal.Created](e)
		return toSkip(d.Skipped), err
	}
	d, err := journal.Decode[journal.LineStarted](e)
	if d.InDoubt != journal.SkipDoubt {
		d.Doubts = nil
	}
	return toSkip(d.Doubts), err
}

func toSkip(doubts []journal.DoubtedStep) []skip {
	out := make([]skip, len(doubts))
	for i := range doubts {
		out[i] = skip{DoubtedStep: doubts[i]}
	}
	return out
}

// skip answers c without doing it, if it is a step that a person chose to skip when
// the line began.
func (l *loop) skip(c *call) {
	i := slices.IndexFunc(l.d.skips, func(sk skip) bool { return sk.at.Loop == 0 && sk.StepRequested == c.intent })
	if i < 0 {
		return
	}
	sk := &l.d.skips[i]
	if err := l.intend(c); err != nil {
		c.answered, c.err = true, err
		return
	}
	seq, err := l.d.w.add(journal.Draft{Kind: stint.StepResolved, Pos: c.pos, Actor: stint.ByPolicy, Data: journal.StepResolved{
		Verdict: journal.Unknown, Skipped: &sk.Pos, Reason: fmt.Sprintf("step %s was left in doubt on line %d, and whoever went back chose to skip it", sk.Pos, sk.Pos.Line)}})
	if err != nil {
		c.answered, c.err = true, l.refused(err)
		return
	}
	sk.at, l.loose = c.pos, seq
	l.count(c.step, stint.Usage{})
	c.answered, c.result = true, stint.Result{Data: json.RawMessage(past.Unknown)}
	l.d.w.flush(false)
}

// completed says which loops can be kept.
func completed(n int) string {
	switch n {
	case 0:
		return "none is completed yet"
	case 1:
		return "loop 1 is completed"
	}
	return fmt.Sprintf("loops 1 to %d are completed", n)
}

// named are steps for a person to recognise.
func named(steps []journal.DoubtedStep) string {
	var b strings.Builder
	for i, st := range steps {
		if i == 5 {
			fmt.Fprintf(&b, " and %d more", len(steps)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s", st.Pos, st.Name)
	}
	if len(steps) == 1 {
		return "step " + b.String() + " is"
	}
	return "steps " + b.String() + " are"
}

func it(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}
