package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
)

// turn is one loop. What a first attempt does and what a later one is answered from the
// journal is the same sequence of steps: the session, then answers of the model, each
// followed by the call that it names. The agent is started by the first step whose
// outcome is not in the journal.
type turn struct {
	agent *Agent
	spec  *Spec
	loop  stint.Loop
	ses   stint.Session
	epoch int64
	log   *child.Log

	state  state
	prompt string
	peer   *peer
	over   bool // the turn came to its end
	step   int  // newest step asked for

	session string // the agent's id
	fresh   bool   // the session's step was not in the journal
	resumed bool   // the next answer is the first of a process that was told to go on
	answers int    // of the model, in this loop
	live    *part  // the call that the newest answer names, if its process is here

	memory
}

// memory is what follows from the steps so far, recorded or not.
type memory struct {
	notes    []string       // what the agent must be told of its calls
	told     []string       // this loop as it is told to an agent that begins anew
	grants   map[string]int // permissions that a person gave and nobody used, by call
	refusals map[string]int // refusals that the agent was not told of
	untold   string         // the call whose refusal may be one of these
	refused  bool           // a call was refused in this loop
}

// message is the result of a model's step.
type message struct {
	Text    string      `json:"text,omitempty"`
	Call    *call       `json:"call,omitempty"`    // ends the answer
	Session string      `json:"session,omitempty"` // the agent's id, where it is a new one
	Resumed bool        `json:"resumed,omitempty"` // the agent was started again before it
	Last    bool        `json:"last,omitempty"`    // the turn ends with it
	Stop    string      `json:"stop,omitempty"`    // why, unless it is end_turn
	Cost    stint.Money `json:"cost,omitempty"`    // see state

	usage stint.Usage
}

// begin reads what the loop starts from.
func (t *turn) begin() error {
	if s := t.loop.State(); len(s) > 0 {
		if err := json.Unmarshal(s, &t.state); err != nil {
			return stint.Fail(&stint.Error{Code: stint.Invalid, Err: fmt.Errorf("the state is not that of an ACP agent: %w", err),
				Hint: "restart the session from loop 0, or give it the agent that it began with"})
		}
	}
	if f, ok := t.loop.(fenced); ok {
		t.epoch = f.Epoch()
	}
	var bodies []string
	for _, m := range t.loop.Inbox() {
		if m.Kind == stint.Prompt {
			bodies = append(bodies, string(m.Body))
		}
	}
	t.prompt = strings.Join(bodies, "\n\n")
	switch {
	case t.prompt != "" || t.spec.Interactive:
	case t.state.Session != "":
		t.prompt = "Go on where you left off."
	default:
		return stint.Fail(&stint.Error{Code: stint.Invalid, Err: errors.New("there is no prompt for the agent"),
			Hint: "start the session with one"})
	}
	return nil
}

func (t *turn) run(ctx context.Context) (stint.Next, error) {
	if err := t.identify(ctx); err != nil {
		return stint.Next{}, err
	}
	var said []string
	for {
		m, err := t.model(ctx)
		if err != nil {
			return stint.Next{}, err
		}
		if m.Text != "" {
			said = append(said, m.Text)
		}
		if m.Call != nil {
			if err := t.call(ctx, m.Call, t.live); err != nil {
				return stint.Next{}, err
			}
		}
		if m.Last {
			return t.finish(m, said)
		}
	}
}

// end ends the process.
func (t *turn) end() {
	switch {
	case t.peer == nil:
	case t.over:
		t.peer.leave()
	default:
		t.peer.cancel()
	}
}

// finish ends the loop with the turn.
func (t *turn) finish(m *message, said []string) (stint.Next, error) {
	st := state{Session: t.session, Turns: t.state.Turns + 1, Cost: m.Cost}
	last := ""
	if len(said) > 0 {
		last = said[len(said)-1]
	}
	st.Said = t.remember(strings.Join(said, "\n"))
	raw, err := stint.Marshal(st)
	if err != nil {
		return stint.Next{}, err
	}
	head, _, _ := strings.Cut(strings.TrimSpace(last), "\n")
	next := stint.Next{State: raw, Headline: head}
	why := map[string]string{
		"max_tokens":        "the agent reached its limit of tokens",
		"max_turn_requests": "the agent reached its limit of requests in a turn",
		"refusal":           "the agent refused to go on",
		"cancelled":         "the agent ended its turn when a call was refused", // codex-acp does
	}[m.Stop]
	if t.spec.Interactive {
		next.Wait = &stint.Wait{For: stint.ForMessage, What: "say something"}
		if why != "" {
			next.Wait.What = why
		}
		return next, nil
	}
	res, err := stint.Marshal(map[string]string{"text": last})
	if err != nil {
		return stint.Next{}, err
	}
	next.End = &stint.End{Outcome: stint.Completed, Result: res, Reason: why}
	switch {
	case m.Stop == "refusal":
		next.End.Outcome = stint.Failed
	case why != "":
		next.End.Outcome = stint.Stopped
	}
	return next, nil
}

// identity is the result of the session's step.
type identity struct {
	Session string `json:"session"`
	Loads   bool   `json:"loads"` // it says that it can load it
}

// identify is the first step of the loop: the agent's id of its session, so that a later
// attempt can load it.
func (t *turn) identify(ctx context.Context) error {
	t.step++
	s := stint.Step{Name: "session", Kind: stint.Custom, Effect: stint.Read, Timeout: t.spec.timeout()}
	res, err := t.loop.Do(ctx, s, func(step context.Context, _ string) (stint.Result, error) {
		t.fresh = true
		if err := t.open(step); err != nil {
			return stint.Result{}, err
		}
		data, err := stint.Marshal(identity{t.peer.session, t.peer.loads || t.peer.resumes})
		return stint.Result{Data: data}, err
	})
	if err != nil {
		return err
	}
	var id identity
	if err := json.Unmarshal(res.Data, &id); err != nil {
		return fmt.Errorf("the recorded id of the agent's session: %w", err)
	}
	t.session = id.Session
	return nil
}

// drop ends a process that cannot be used.
func (t *turn) drop() {
	if t.peer != nil {
		t.peer.cancel()
		t.peer = nil
	}
}

// open starts the agent, unless it is there, and prompts it.
func (t *turn) open(ctx context.Context) error {
	id := t.session
	if id == "" {
		id = t.state.Session
	}
	anew := false
	if t.peer == nil {
		p, err := start(ctx, t.spec, t.spec.environ(t.ses, t.epoch), t.ses.Name, t.log)
		if err != nil {
			return err
		}
		t.peer = p
		anew, err = p.ready(ctx, id, t.agent.calm)
		var lost lostSession
		if errors.As(err, &lost) {
			t.log.Notef("%s; it begins anew and is told what was", oneLine(lost.Error()))
			anew, err = true, p.begin(ctx)
		}
		if err != nil {
			t.drop()
			return err
		}
	}
	t.peer.prompt(ctx, t.words(anew && id != ""))
	return nil
}

// words are the prompt. anew: the agent knows nothing of what was.
func (t *turn) words(anew bool) string {
	var lines []string
	if anew {
		lines = append(lines, "This goes on with work that an earlier session of yours began. What was said and done so far:")
		for _, x := range t.state.Said {
			lines = append(lines, "The user: "+x.You, "You: "+x.Agent)
		}
		if !t.fresh {
			lines = append(lines, "The user: "+t.prompt)
			lines = append(lines, t.told...)
		}
		lines = append(lines, "")
	}
	if t.fresh {
		return strings.Join(append(lines, t.prompt), "\n")
	}
	lines = append(lines, "You were interrupted. Look at what you did last before you go on.")
	lines = append(lines, t.notes...)
	if t.answers == 0 && !anew { // it may not have read it
		lines = append(lines, "This is what you were asked:", t.prompt)
	}
	return strings.Join(lines, "\n")
}

// again starts the agent after the process that the steps so far came from is gone.
func (t *turn) again(ctx context.Context) error {
	if t.peer != nil {
		return nil
	}
	t.fresh, t.resumed = false, true
	return t.open(ctx)
}

// model is one answer of the model.
func (t *turn) model(ctx context.Context) (*message, error) {
	t.step++
	t.live = nil
	ran := false
	s := stint.Step{Name: t.spec.name(), Kind: stint.Model, Effect: stint.Read, Timeout: t.spec.timeout()}
	res, err := t.loop.Do(ctx, s, func(step context.Context, _ string) (stint.Result, error) {
		ran = true
		if err := t.again(step); err != nil {
			return stint.Result{}, err
		}
		m, err := t.answer(step)
		if err != nil {
			return stint.Result{}, err
		}
		t.log.Sync()
		data, err := stint.Marshal(m)
		return stint.Result{Data: data, Usage: m.usage}, err
	})
	if err != nil {
		return nil, err
	}
	m := &message{}
	if err := json.Unmarshal(res.Data, m); err != nil {
		return nil, fmt.Errorf("the recorded answer of the model: %w", err)
	}
	t.answers++
	if !ran && !m.Resumed && t.untold != "" { // it went on, so it knew
		t.refusals[t.untold]--
	}
	t.untold, t.notes = "", nil
	t.resumed = false
	if m.Session != "" {
		t.session = m.Session
	}
	if m.Text != "" {
		t.tell("You: " + m.Text)
	}
	return m, nil
}

// answer puts together what the model says next, up to the call that it makes.
func (t *turn) answer(ctx context.Context) (*message, error) {
	p := t.peer
	m := &message{Resumed: t.resumed}
	if p.session != t.session {
		m.Session = p.session
	}
	for {
		e := p.feed.next(ctx)
		switch e.kind {
		case evText:
			m.Text, _ = bound(m.Text+e.text, maxText)
		case evBegin:
			c := p.feed.take(ctx, t.spec, e.part, t.agent.settle)
			m.Call, t.live = &c, e.part
			return m, nil
		case evDone:
			if e.stop == "cancelled" && !t.refused {
				return nil, &stint.Error{Code: stint.Unavailable, Err: fmt.Errorf("%s says that its turn was canceled", t.spec.name()), Hint: "it is tried again; its log (stint logs) has what it wrote"}
			}
			m.Last, m.usage = true, e.usage
			if m.Stop = cutRunes(clean(e.stop), maxName); m.Stop == "end_turn" {
				m.Stop = ""
			}
			m.Cost, m.usage.Cost = t.spent(p)
			return m, nil
		case evFail:
			t.drop()
			return nil, e.err
		case evExit:
			t.peer = nil
			return nil, t.spec.failure("", e.exit, p.login)
		default:
			t.drop()
			return nil, stopped(ctx, "an answer of the model")
		}
	}
}

// spent is what the session cost, as the agent counts, and how much of it is new. An
// agent may count a session from its beginning or from when it was loaded.
func (t *turn) spent(p *peer) (all, more stint.Money) {
	all = p.feed.spent()
	before := t.state.Cost
	switch {
	case all == 0:
		return before, 0
	case p.session == t.state.Session && all >= before:
		return all, all - before
	}
	return all, all
}

// Bounds of what an agent that begins anew is told, in bytes.
const (
	maxTold  = 64 << 10
	maxPiece = 8 << 10
)

// tell adds to what an agent that begins anew is told; of too much the oldest goes.
func (t *turn) tell(text string) {
	t.told = append(t.told, short(text, maxPiece))
	size := 0
	for i := len(t.told) - 1; i >= 0; i-- {
		if size += len(t.told[i]); size > maxTold {
			t.told = t.told[i+1:]
			return
		}
	}
}

// remember is what the next loop could tell.
func (t *turn) remember(answer string) []exchange {
	all := append(t.state.Said, exchange{short(t.prompt, maxPiece), short(answer, maxPiece)})
	size := 0
	for i := len(all) - 1; i >= 0; i-- {
		if size += len(all[i].You) + len(all[i].Agent); size > maxTold {
			return all[i+1:]
		}
	}
	return all
}
