package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
)

// turn is one loop. What a first attempt does and what a later one is answered from
// the journal is the same sequence of steps: the session's id, then answers of the
// model, each followed by the calls that it names. The CLI is started by the first
// step whose outcome is not in the journal.
type turn struct {
	agent *Agent
	spec  *Spec
	loop  stint.Loop
	ses   stint.Session
	log   *child.Log

	state   state
	prompt  string
	process *process
	step    int // newest step asked for
	session string
	answers int      // of the model, in this loop
	heard   bool     // this process has said something of the model's
	fresh   bool     // the loop's first step was not in the journal
	trouble string   // the newest error that the CLI may have got over
	notes   []string // what the CLI must be told of its calls since its newest answer
	done    map[[2]int]bool
}

// message is the result of a model's step.
type message struct {
	Text    string      `json:"text,omitempty"`
	Calls   []*call     `json:"calls,omitempty"`
	Session string      `json:"session,omitempty"` // the CLI's id, where it is a new one
	Last    bool        `json:"last,omitempty"`    // the turn ends with it
	Told    stint.Usage `json:"told,omitzero"`     // see state

	usage stint.Usage
	id    string
	words []byte // of Text, while it grows
}

func (m *message) empty() bool { return len(m.words) == 0 && len(m.Calls) == 0 }

// whole is m once nothing is added to it any more.
func (m *message) whole() *message {
	m.Text = string(m.words)
	return m
}

// begin reads what the loop starts from.
func (t *turn) begin() error {
	if s := t.loop.State(); len(s) > 0 {
		if err := json.Unmarshal(s, &t.state); err != nil {
			return stint.Fail(&stint.Error{Code: stint.Invalid, Err: fmt.Errorf("the state is not that of a CLI agent: %w", err),
				Hint: "restart the session from loop 0, or give it the agent that it began with"})
		}
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
	case t.state.Resume != "":
		t.prompt = "Go on where you left off."
	default:
		return stint.Fail(&stint.Error{Code: stint.Invalid, Err: errors.New("there is no prompt for the CLI"),
			Hint: "start the session with one"})
	}
	if r, ok := t.loop.(recorded); ok {
		t.done = map[[2]int]bool{}
		for _, raw := range r.Recorded() {
			var at struct{ Step, Sub int }
			if json.Unmarshal(raw, &at) == nil {
				t.done[[2]int{at.Step, at.Sub}] = true
			}
		}
	}
	return nil
}

func (t *turn) run(ctx context.Context) (stint.Next, error) {
	if err := t.identify(ctx); err != nil {
		return stint.Next{}, err
	}
	last := ""
	for {
		m, err := t.model(ctx)
		if err != nil {
			return stint.Next{}, err
		}
		if m.Session != "" {
			t.session = m.Session
		}
		if m.Text != "" {
			last = m.Text
		}
		if len(m.Calls) > 0 {
			if err := t.tools(ctx, m.Calls); err != nil {
				return stint.Next{}, err
			}
		}
		if m.Last {
			return t.finish(last, m.Told)
		}
	}
}

// stop ends the process, if there is one.
func (t *turn) stop() {
	if t.process != nil {
		t.process.end()
	}
}

// finish ends the loop with the turn.
func (t *turn) finish(last string, told stint.Usage) (stint.Next, error) {
	if t.process != nil {
		t.process.leave()
	}
	st, err := stint.Marshal(state{Resume: t.session, Turns: t.state.Turns + 1, Told: told})
	if err != nil {
		return stint.Next{}, err
	}
	head, _, _ := strings.Cut(strings.TrimSpace(last), "\n")
	next := stint.Next{State: st, Headline: head}
	if t.spec.Interactive {
		next.Wait = &stint.Wait{For: stint.ForMessage, What: "say something"}
		return next, nil
	}
	res, err := stint.Marshal(map[string]string{"text": last})
	if err != nil {
		return stint.Next{}, err
	}
	next.End = &stint.End{Outcome: stint.Completed, Result: res}
	return next, nil
}

// identify is the first step of the loop: the CLI's id of its session, as early as
// the CLI tells it, so that a later attempt can resume it.
func (t *turn) identify(ctx context.Context) error {
	type identity struct {
		ID string `json:"id"`
	}
	t.step++
	s := stint.Step{Name: "session", Kind: stint.Custom, Effect: stint.Read, Timeout: t.spec.timeout()}
	res, err := t.loop.Do(ctx, s, func(step context.Context, _ string) (stint.Result, error) {
		t.fresh = true
		if err := t.start(ctx, t.state.Resume, t.prompt); err != nil {
			return stint.Result{}, err
		}
		id, err := t.hear(step)
		if err != nil {
			return stint.Result{}, err
		}
		data, err := stint.Marshal(identity{id})
		return stint.Result{Data: data}, err
	})
	if err != nil {
		return err
	}
	var id identity
	if err := json.Unmarshal(res.Data, &id); err != nil {
		return fmt.Errorf("the recorded id of the CLI's session: %w", err)
	}
	t.session = id.ID
	return nil
}

// hear waits for the CLI to tell its id.
func (t *turn) hear(ctx context.Context) (string, error) {
	var early []event
	for {
		e := t.process.feed.next(ctx, nil, nil)
		switch e.kind {
		case 0:
			t.process.end()
			return "", stopped(ctx, "the start of the CLI")
		case evSession:
			id, _ := bound(e.id, maxName)
			t.process.feed.back(early...)
			return id, nil
		case evTrouble:
			t.trouble = e.text
		case evFail, evDone, evExit:
			return "", t.failed(e)
		default:
			early = append(early, e)
		}
	}
}

// start starts the CLI.
func (t *turn) start(ctx context.Context, resume, prompt string) error {
	var epoch int64
	if f, ok := t.loop.(fenced); ok {
		epoch = f.Epoch()
	}
	t.trouble, t.heard = "", false
	p, err := startProcess(ctx, t.spec, t.spec.Argv(resume), t.spec.environ(t.ses, epoch), t.ses.Name, prompt, t.log)
	if err != nil {
		return err
	}
	t.process = p
	return nil
}

// failed is the error of a turn that e ended. The process is gone then.
func (t *turn) failed(e event) error {
	text, x := e.text, e.exit
	if x == nil {
		t.process.end()
	} else if text = t.trouble; text == "" {
		text = x.words()
	}
	if text == "" {
		text = t.trouble
	}
	return t.spec.failure(text, x)
}

// model is one answer of the model.
func (t *turn) model(ctx context.Context) (*message, error) {
	t.step++
	var live *message
	s := stint.Step{Name: string(t.spec.Protocol), Kind: stint.Model, Effect: stint.Read, Timeout: t.spec.timeout()}
	res, err := t.loop.Do(ctx, s, func(step context.Context, _ string) (stint.Result, error) {
		if t.process == nil {
			if err := t.start(ctx, t.session, t.interrupted()); err != nil {
				return stint.Result{}, err
			}
		}
		m, err := t.answer(ctx, step)
		if err != nil {
			return stint.Result{}, err
		}
		t.log.Sync()
		data, err := stint.Marshal(m)
		if err != nil {
			return stint.Result{}, err
		}
		live = m
		return stint.Result{Data: data, Usage: m.usage}, nil
	})
	if err != nil {
		return nil, err
	}
	t.answers++
	t.notes = nil // the process that answered was told, and may have done since what had not taken place
	if live != nil {
		return live, nil
	}
	m := &message{}
	if err := json.Unmarshal(res.Data, m); err != nil {
		return nil, fmt.Errorf("the recorded answer of the model: %w", err)
	}
	return m, nil
}

// answer puts together what the model says next: words, the calls that come with
// them, and what it used.
func (t *turn) answer(ctx, step context.Context) (*message, error) {
	m := &message{}
	var late <-chan time.Time
	var first <-chan struct{}
	for {
		e := t.process.feed.next(step, late, first)
		switch e.kind {
		case 0:
			if step.Err() != nil && len(m.Calls) == 0 {
				t.process.end()
				return nil, stopped(step, "an answer of the model")
			}
			return m.whole(), nil // no more calls begin with the first, or there is no time for more
		case evTrouble:
			t.trouble = e.text
			continue
		case evUsage:
			if len(m.Calls) > 0 || len(m.words) > 0 && e.id != "" && e.id != m.id {
				t.process.feed.back(e)
				return m.whole(), nil
			}
			m.usage = m.usage.Add(e.usage)
			t.heard = true
			continue
		case evSession:
			if id, _ := bound(e.id, maxName); id != t.session {
				m.Session = id
			}
			continue
		case evText:
			if len(m.Calls) > 0 || len(m.words) > 0 && (e.id != m.id || e.id == "" && !e.more) {
				t.process.feed.back(e)
				return m.whole(), nil
			}
			m.say(e)
			t.heard, t.trouble = true, ""
			continue
		case evBegin:
			if len(m.Calls) > 0 && e.call.before != m.Calls[0].before {
				t.process.feed.back(e)
				return m.whole(), nil
			}
			if m.Calls = append(m.Calls, e.call); len(m.Calls) == 1 {
				timer := time.NewTimer(t.agent.gather)
				defer timer.Stop()
				late, first = timer.C, e.call.done
			}
			t.heard, t.trouble = true, ""
			continue
		}
		if over := t.over(e); !m.empty() && (!over || len(m.Calls) > 0) {
			t.process.feed.back(e)
			return m.whole(), nil
		} else if over {
			t.conclude(m, e)
			return m.whole(), nil
		}
		if err := t.failed(e); !t.startOver(ctx, err) {
			return nil, err
		}
	}
}

// say adds the model's words, as far as they are kept.
func (m *message) say(e event) {
	if len(m.words) > 0 && !e.more {
		m.words = append(m.words, '\n')
	}
	m.words = append(m.words, child.WholeRunes([]byte(e.text[:min(len(e.text), max(maxText-len(m.words), 0))]))...)
	m.id = e.id
}

// over reports that e ends the turn well. opencode says so by its exit alone.
func (t *turn) over(e event) bool {
	return e.kind == evDone || e.kind == evExit && t.spec.Protocol == OpenCode && t.heard &&
		e.exit.code == 0 && e.exit.signal == "" && !e.exit.killed
}

// conclude makes m the last of the turn.
func (t *turn) conclude(m *message, e event) {
	m.Last = true
	if len(m.words) == 0 {
		m.words = []byte(e.text)
	}
	used := e.usage
	if e.whole {
		m.Told = e.usage
		if t.session == t.state.Resume {
			used = minus(used, t.state.Told)
		}
	}
	m.usage = m.usage.Add(used)
}

// startOver starts the CLI anew where it was to be resumed and does not know of the
// session: it was stopped before it had written anything down.
func (t *turn) startOver(ctx context.Context, err error) bool {
	if t.fresh || t.answers > 0 || t.heard || t.state.Resume != "" || !errors.Is(err, stint.NotFound) || ctx.Err() != nil {
		return false
	}
	t.fresh = true
	return t.start(ctx, "", t.prompt) == nil
}
