package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/journal"
)

// people start sessions and send messages. They reach the store by a process of
// their own, with which nothing is wrong but for the disk.
type people struct {
	w      *world
	rng    *rand.Rand
	engine *engine.Engine
	port   *port
	tools  int // command lines that were started
	limbs  int // branches that were asked for
}

func (w *world) newPeople() (*people, error) {
	p := &people{w: w, rng: w.dice("people"), port: w.newPort("desk")}
	var err error
	p.engine, err = engine.New(w.ctx, p.port, engine.Options{Holder: "desk"})
	return p, err
}

// live creates sessions and meddles with them until a time.
func (p *people) live(until time.Time, sessions int) {
	for i := range sessions {
		at := p.w.begun.Add(time.Duration(p.rng.Int64N(int64(time.Until(until)) * 3 / 4)))
		p.w.wg.Go(func() {
			if p.w.pass(time.Until(at)) {
				p.create(i)
			}
		})
	}
	for p.w.pass(time.Duration(p.rng.Int64N(int64(8*time.Second)))) && time.Now().Before(until) {
		if ids := p.w.sessions(); len(ids) > 0 {
			p.meddle(ids[p.rng.IntN(len(ids))])
		}
	}
}

// create starts session n, by the key that makes it one session however often it
// is asked for: the answer may be lost, and two may ask at once.
func (p *people) create(n int) {
	r := p.w.dice("create", n)
	agents := p.w.simAgents(p.port)
	req := engine.Request{Agent: agents[r.IntN(len(agents))], Actor: "human:ana", Dedupe: fmt.Sprintf("key %d", n),
		Labels: map[string]string{"n": fmt.Sprint(n)}, Input: []byte(strings.Repeat("go ", 1+r.IntN(3)))}
	if r.IntN(8) == 0 {
		req.Input = []byte(strings.Repeat("a long story ", 300))
	}
	req.Limits = p.w.treeLimits(fmt.Sprint(n))
	if r.IntN(4) == 0 && req.Agent.Name != "capped" {
		p.runNew(n, req)
		return
	}
	ask := func() {
		for !p.w.isOver() {
			c, err := p.engine.Start(p.w.ctx, req)
			if err == nil {
				p.w.born(req.Dedupe, c.ID)
				return
			}
			if stint.CodeOf(err) != stint.Unavailable {
				p.w.broken(stint.ID{}, "start %q: %v", req.Dedupe, err)
				return
			}
			p.w.pass(time.Second)
		}
	}
	for range r.IntN(3) {
		p.w.wg.Go(ask)
	}
	ask()
	if r.IntN(3) == 0 && p.w.pass(time.Duration(r.IntN(60))*time.Second) {
		ask()
	}
}

// runNew is the command line that makes a session and runs it itself.
func (p *people) runNew(n int, req engine.Request) {
	port := p.w.newPort(fmt.Sprintf("run%d", n))
	port.frail = true
	req.Agent = p.w.simAgents(port)[0]
	e, err := engine.New(p.w.ctx, port, p.w.options(port))
	if err != nil {
		return
	}
	_, err = e.RunNew(p.w.ctx, req, func(c engine.Created) { p.w.born(req.Dedupe, c.ID) })
	if code := stint.CodeOf(err); code == stint.Invalid || code == stint.Internal || code == stint.Corrupt {
		p.w.broken(stint.ID{}, "run: %v", err)
	}
	if err := e.Close(); err != nil {
		p.w.broken(stint.ID{}, "close after run: %v", err)
	}
}

// settle is a command line that applies what was sent to a session nobody holds.
func (p *people) settle(id stint.ID) {
	p.tools++
	port := p.w.newPort(fmt.Sprintf("tool%d", p.tools))
	port.tool = true
	p.w.wg.Go(func() {
		e, err := engine.New(p.w.ctx, port, p.w.options(port))
		if err != nil {
			return
		}
		if err := e.Settle(p.w.ctx, id); stint.CodeOf(err) == stint.Invalid || stint.CodeOf(err) == stint.Corrupt {
			p.w.broken(id, "settle: %v", err)
		}
		if err := e.Close(); err != nil {
			p.w.broken(id, "close after settle: %v", err)
		}
	})
}

// meddle sends something to a session, as its state suggests or not.
func (p *people) meddle(id stint.ID) {
	row, err := p.w.store.Session(p.w.ctx, id)
	if err != nil {
		p.w.broken(id, "a session that was created cannot be read: %v", err)
		return
	}
	s := &row.Session
	switch {
	case s.Status == stint.Waiting && s.Wait.For == stint.ForDoubt && p.rng.IntN(3) > 0:
		p.send(id, p.resolve(s))
	case s.Status == stint.Waiting && s.Wait.For == stint.ForApproval && p.rng.IntN(4) > 0:
		p.decide(s)
	case waitsForSomebody(s) && p.rng.IntN(3) == 0:
		p.decide(s)
	case p.rng.IntN(25) == 0:
		p.send(id, p.ordered(s))
	case s.Status == stint.Waiting && s.Totals.Children > 0 && p.rng.IntN(3) == 0:
		p.redo(s)
	case s.Totals.Children > 0 && !s.Status.Ended() && p.rng.IntN(6) == 0:
		p.send(id, stint.Message{Kind: []stint.MessageKind{stint.Pause, stint.Pause, stint.Resume, stint.Interrupt}[p.rng.IntN(4)]})
	case s.Status == stint.Waiting && s.Wait.For == stint.ForBudget && p.rng.IntN(3) > 0:
		p.raise(s)
	case s.Status == stint.Waiting && s.Wait.For == stint.ForMessage && p.rng.IntN(2) == 0:
		p.send(id, p.prompt())
	case s.Status == stint.Waiting && p.rng.IntN(2) == 0:
		p.send(id, stint.Message{Kind: stint.Resume})
	case s.Status.Ended() && p.rng.IntN(4) > 0:
		return // most of what has ended is left in peace
	case p.rng.IntN(5) == 0: // several things at once
		for range 2 + p.rng.IntN(3) {
			p.send(id, p.any(s))
		}
	case p.rng.IntN(20) == 0:
		p.branch(s)
	default:
		p.send(id, p.any(s))
	}
	if p.rng.IntN(4) == 0 {
		p.settle(id)
	}
}

// branch makes a session of a checkpoint of another, whatever that one is doing. It has a
// script of its own.
func (p *people) branch(s *stint.Session) {
	p.limbs++
	from, key := p.rng.IntN(s.Checkpoint.Loop+2), fmt.Sprintf("branch %d", p.limbs) // also a loop that is not there
	b := engine.Branch{From: &from, Dedupe: key, Actor: "human:ana", Labels: limbLabels(p.limbs),
		InDoubt: []journal.DoubtChoice{"", journal.AskDoubt, journal.SkipDoubt, journal.RedoDoubt}[p.rng.IntN(4)]}
	if p.rng.IntN(2) == 0 {
		b.Say = "another way"
	}
	for range 1 + p.rng.IntN(2) {
		switch c, err := p.engine.Branch(p.w.ctx, s.ID, b); stint.CodeOf(err) {
		case "":
			p.w.born(key, c.ID)
		case stint.NotFound, stint.Conflict, stint.Unavailable:
		default:
			p.w.broken(s.ID, "branch behind loop %d: %v", from, err)
		}
	}
}

// limbLabels are those of the n-th branch that was asked for: it has a script of its own.
func limbLabels(n int) map[string]string { return map[string]string{"n": fmt.Sprint(10_000 + n)} }

// decide says yes or no to a question. Of two people who do the first is heard, and the
// second is told so.
func (p *people) decide(s *stint.Session) {
	var open []stint.Approval
	for _, a := range s.At.Approvals {
		if a.State == stint.ApprovalOpen {
			open = append(open, a)
		}
	}
	if len(open) == 0 {
		return
	}
	a := open[p.rng.IntN(len(open))]
	others := p.others(s, &a)
	say := func(state stint.ApprovalState) error {
		d := journal.Decision{Approval: a.Seq, State: state, Nonce: ident.New().String(), Branches: others}
		data, err := json.Marshal(d)
		if err != nil {
			panic(err) // a decision always marshals
		}
		return p.port.Send(p.w.ctx, s.ID, stint.Message{ID: d.MessageID(), Kind: stint.Decision, From: "human:kim", Data: data})
	}
	states := []stint.ApprovalState{stint.ApprovalApproved, stint.ApprovalApproved, stint.ApprovalDenied}
	state := states[p.rng.IntN(len(states))]
	if say(state) != nil {
		return // it was decided meanwhile, or the answer was lost
	}
	p.w.mu.Lock()
	if p.w.decided[s.ID] == nil {
		p.w.decided[s.ID] = map[stint.Seq]stint.ApprovalState{}
	}
	p.w.decided[s.ID][a.Seq] = state
	p.w.mu.Unlock()
	if p.rng.IntN(3) == 0 {
		if err := say(states[p.rng.IntN(len(states))]); err == nil {
			p.w.broken(s.ID, "two decisions about entry %d were both taken", a.Seq)
		}
	}
}

func (p *people) prompt() stint.Message {
	text := fmt.Sprintf("say %d", p.rng.IntN(1000))
	if p.rng.IntN(10) == 0 {
		text = strings.Repeat(text, 500)
	}
	return stint.Message{Kind: stint.Prompt, Body: []byte(text)}
}

// resolve is the verdict of someone who looked.
func (p *people) resolve(s *stint.Session) stint.Message {
	at := s.Wait.Step
	c := journal.Command{Step: &at, Reason: "looked"}
	c.Verdict, c.Result = p.w.verdict(place{s.ID, at.Line, at.Loop, at.Step, at.Sub})
	if p.rng.IntN(6) == 0 {
		c.Verdict, c.Result = journal.Unknown, nil
	}
	return message(stint.Resolve, c)
}

func message(kind stint.MessageKind, c journal.Command) stint.Message {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // a command always marshals
	}
	return stint.Message{Kind: kind, Data: data}
}

// any is any message.
func (p *people) any(s *stint.Session) stint.Message {
	var c journal.Command
	kinds := []stint.MessageKind{
		stint.Prompt, stint.Prompt, stint.Pause, stint.Pause, stint.Resume, stint.Resume, stint.Interrupt, stint.Stop,
		stint.Kill, stint.Restart, stint.Restart, stint.Restart, stint.Rollback, stint.SetLimit, stint.SetLimit, stint.Resolve,
	}
	kind := kinds[p.rng.IntN(len(kinds))]
	switch kind {
	case stint.Prompt:
		return p.prompt()
	case stint.Pause:
		c.Now = p.rng.IntN(2) == 0
	case stint.Restart, stint.Rollback:
		return p.goBack(s, kind)
	case stint.SetLimit:
		c.Limits = p.limits(s)
	case stint.Resolve: // of a step that is not in doubt
		c.Step, c.Verdict = &stint.Position{Loop: s.At.Loop, Step: 1}, journal.NotHappened
	}
	if p.rng.IntN(12) == 0 {
		c.Reason = strings.Repeat("because ", 4000)
	}
	return message(kind, c)
}

func (p *people) goBack(s *stint.Session, kind stint.MessageKind) stint.Message {
	var c journal.Command
	if kind == stint.Rollback || p.rng.IntN(3) > 0 {
		from := p.rng.IntN(s.Checkpoint.Loop + 2) // also one that is not there
		c.From = &from
	}
	switch p.rng.IntN(3) {
	case 0:
		c.Head = s.Head
	case 1:
		c.Head = max(1, s.Head-1)
	}
	c.InDoubt = []journal.DoubtChoice{"", journal.AskDoubt, journal.SkipDoubt, journal.RedoDoubt}[p.rng.IntN(4)]
	if kind == stint.Restart {
		if p.rng.IntN(2) == 0 {
			c.Say = strings.Repeat(fmt.Sprintf("mind %d", p.rng.IntN(1000)), 1+p.rng.IntN(2)*400)
		}
		if p.rng.IntN(5) == 0 {
			c.State = json.RawMessage(fmt.Sprintf(`{"loops":0,"seen":"person %d","log":["%s"]}`, p.rng.IntN(1000), strings.Repeat("·", p.rng.IntN(2)*20_000)))
		}
	}
	return message(kind, c)
}

func (p *people) limits(s *stint.Session) *stint.Limits {
	l := &stint.Limits{Stop: p.rng.IntN(4) == 0, Tokens: s.Limits.Tokens, Cost: s.Limits.Cost, Children: s.Limits.Children}
	if p.rng.IntN(3) == 0 { // what a tree shares is raised and never lowered, so that what it is bounds what it was
		raised(l)
	}
	switch p.rng.IntN(10) {
	case 0:
		l.Steps = s.Totals.Steps + p.rng.IntN(6)
	case 1:
		l.Loops = s.Totals.Loops + p.rng.IntN(3)
	case 2:
		l.Wall = s.Totals.Running + time.Duration(p.rng.IntN(60))*time.Second
	case 3:
		l.Idle = time.Duration(5+p.rng.IntN(60)) * time.Second
	case 4:
		l.Deadline = time.Now().Add(time.Duration(p.rng.IntN(300)) * time.Second)
	}
	return l
}

// send sends m, sometimes twice, and remembers what was acknowledged.
func (p *people) send(id stint.ID, m stint.Message) {
	m.ID, m.From = ident.New().String(), "human:ana"
	err := p.port.Send(p.w.ctx, id, m)
	for try := 0; stint.CodeOf(err) == stint.Unavailable && try < 3 && p.w.pass(time.Second); try++ {
		err = p.port.Send(p.w.ctx, id, m)
	}
	if err != nil {
		return // full, or not accepted; the sender knows
	}
	p.w.mu.Lock()
	if p.w.sent[id] == nil {
		p.w.sent[id] = map[string]stint.Message{}
	}
	p.w.sent[id][m.ID] = m
	p.w.mu.Unlock()
	if p.rng.IntN(5) == 0 {
		if err := p.port.Send(p.w.ctx, id, m); err != nil && stint.CodeOf(err) != stint.Unavailable {
			p.w.broken(id, "the same message again: %v", err)
		}
	}
	if p.rng.IntN(10) == 0 {
		m.Body = []byte("something else")
		if err := p.port.Send(p.w.ctx, id, m); err == nil {
			p.w.broken(id, "message %s was taken a second time with other content", m.ID)
		}
	}
}

func (w *world) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}
