package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/tool"
)

// pass is one loop of one session. Whatever it decides follows from the state, the inbox
// and what its steps gave.
type pass struct {
	a    *Agent
	l    stint.Loop
	ses  stint.Session
	mem  memory
	t    *transcript
	step int // number of the newest step
	read bool
	note string // what a health rule warned of
	halt string // what a health rule pauses for
}

// Loop implements [stint.Agent].
func (a *Agent) Loop(ctx context.Context, l stint.Loop) (stint.Next, error) {
	p := &pass{a: a, l: l, ses: l.Session()}
	if err := p.open(); err != nil {
		return stint.Next{}, err
	}
	if p.mem.Idle {
		return stint.Next{Wait: forMessage("it waits for a message")}, nil
	}
	if err := p.priced(); err != nil {
		return stint.Next{}, err
	}
	ans, err := p.ask(ctx)
	if err != nil {
		return stint.Next{}, err
	}
	got, err := p.calls(ctx, ans)
	if err != nil {
		return stint.Next{}, err
	}
	next, err := p.follow(ctx, ans, got)
	if err != nil {
		return stint.Next{}, err
	}
	if next.State, err = writeState(&p.mem, p.t); err != nil {
		return stint.Next{}, err
	}
	a.cache.put(p.ses.ID, next.State, p.mem, p.t)
	return next, nil
}

// open takes the state apart and adds what the inbox says.
func (p *pass) open() error {
	state, fresh := p.l.State(), none(p.l.State())
	if fresh {
		p.mem, p.t = memory{V: version, Idle: true}, &transcript{}
	} else {
		var held bool
		if p.mem, p.t, held = p.a.cache.take(p.ses.ID, state); !held {
			var err error
			if p.mem, p.t, err = readState(state); err != nil {
				return stint.Fail(refuse("restart the session, or give it the agent that wrote the state", "the session's state is not this agent's: %w", err))
			}
		}
	}
	p.read = len(p.mem.Long) > 0
	if p.mem.Paused {
		p.forgive()
	}
	if p.ses.Trigger.Kind == "hook" {
		p.taint("the hook " + p.ses.Trigger.Ref)
	}
	if p.ses.Trigger.Kind == "session" { // what that was told, nobody here knows
		p.taint("the session that began this one")
	}
	texts := p.heard()
	if fresh && len(texts) == 0 && strings.TrimSpace(p.a.spec.Prompt) != "" {
		texts = []string{p.a.spec.Prompt}
	}
	notes := p.notices()
	if len(texts) == 0 && len(notes) == 0 {
		return nil
	}
	if len(texts) == 0 {
		return p.t.say(notes...)
	}
	switch said := tool.Excerpt(strings.Join(texts, "\n\n"), maxTask, ""); {
	case p.mem.Task == "":
		p.mem.Task = said
	case p.a.spec.Rubric != nil:
		p.mem.Said = said
	}
	p.mem.Idle, p.mem.Cuts, p.mem.Unfinished, p.mem.Rounds = false, 0, 0, 0
	return p.t.say(append(texts, notes...)...)
}

// notices is what the engine says of the session's limits. It is told to the model, and
// nothing else follows from it.
func (p *pass) notices() []string {
	var texts []string
	for _, m := range p.l.Inbox() {
		if isNotice(&m) {
			texts = append(texts, string(m.Body))
		}
	}
	return texts
}

func isNotice(m *stint.Message) bool {
	return m.From == stint.ByEngine && strings.HasPrefix(m.ID, "limit-80-")
}

// maxTask is how much of what the session was told first outlives compaction, in bytes.
const maxTask = 16 << 10

// heard is the texts of the inbox.
func (p *pass) heard() []string {
	var texts []string
	for _, m := range p.l.Inbox() {
		if text := p.ended(&m); text != "" {
			texts = append(texts, text)
			continue
		}
		text, replaced := tool.Clean(m.Body)
		if m.Kind != stint.Prompt || strings.TrimSpace(text) == "" || isNotice(&m) {
			continue
		}
		if strings.HasPrefix(string(m.From), "hook:") {
			p.taint("the " + strings.Replace(string(m.From), ":", " ", 1))
		}
		texts = append(texts, tool.Noted(text, replaced))
	}
	return texts
}

// taint remembers what first brought content from outside.
func (p *pass) taint(by string) {
	if p.mem.Taint == "" {
		p.mem.Taint = strings.TrimSpace(oneLine(by, 100))
	}
}

// offer is what the model is asked with in this loop.
func (p *pass) offer() *offer {
	if p.read {
		return &p.a.reading
	}
	return &p.a.plain
}

// priced refuses to spend money that nobody can count where there is a limit, and says so
// in the session's first loop where there is none.
func (p *pass) priced() error {
	if p.a.spec.Cost == nil || p.ses.Limits.Cost <= 0 && !none(p.l.State()) {
		return nil
	}
	models := []model.Model{p.a.spec.Model}
	if p.a.spec.Rubric != nil {
		models = append(models, p.a.spec.Rubric.Model)
	}
	for _, m := range models {
		if _, ok := p.a.spec.Cost(m.Name(), model.Usage{}); !ok {
			if p.ses.Limits.Cost <= 0 {
				p.log("there is no limit of money, and what " + m.Name() + " costs is not known")
				continue
			}
			return stint.Fail(refuse("give the model a price, as `stint price` shows, or remove the limit",
				"the session has a limit of money, and what %s costs is not known", m.Name()))
		}
	}
	return nil
}

// follow says how the session goes on after an answer and its calls.
func (p *pass) follow(ctx context.Context, ans *answer, got *outcome) (stint.Next, error) {
	if ans.Stop != model.Length {
		p.mem.Cuts = 0
	}
	var next stint.Next
	var err error
	switch {
	case got.result != nil:
		next, err = p.finished(ctx, string(got.result), got.result)
	case ans.Stop == model.Refusal:
		next = p.fails("the model refused: " + or(ans.msg.Text(), ans.Reason, "it gave no reason"))
	case ans.Stop == model.Length:
		next, err = p.wasCut(len(got.names) > 0)
	case len(got.names) > 0:
		p.mem.Unfinished = 0
		next = stint.Next{Wait: got.wait, Headline: strings.Join(got.names, ", ")}
	case ans.Stop == model.Pause:
	default:
		next, err = p.endsTurn(ctx)
	}
	if err != nil {
		return stint.Next{}, err
	}
	if p.note != "" {
		next.Headline = p.note
	}
	if p.halt != "" && next.End == nil {
		p.mem.Paused = true
		next.Wait = &stint.Wait{For: stint.ForHealth, What: p.halt, Wakes: []stint.MessageKind{stint.Prompt}}
	}
	return next, nil
}

// wasCut goes on after an answer that the output limit cut; its calls say so themselves.
func (p *pass) wasCut(called bool) (stint.Next, error) {
	if p.mem.Cuts++; p.mem.Cuts >= inARow {
		return p.fails(fmt.Sprintf("the output limit cut %d answers in a row", inARow)), nil
	}
	next := stint.Next{Headline: "the output limit cut the answer"}
	if called {
		return next, nil
	}
	return next, p.t.say(goOn)
}

// goOn is what the model is told after an answer that was cut.
const goOn = "Your answer was cut by the output limit. Go on."

// said is what the model said last, with what it said before it was told to go on.
func (p *pass) said() string {
	if p.t.last() != model.Assistant {
		return ""
	}
	i := len(p.t.msgs) - 1
	text := p.t.msgs[i].Text()
	for i >= 2 && len(p.t.msgs[i-1].Parts) == 1 && p.t.msgs[i-1].Parts[0].Text == goOn {
		i -= 2
		text = p.t.msgs[i].Text() + text
	}
	return text
}

// endsTurn is the model's end of its turn.
func (p *pass) endsTurn(ctx context.Context) (stint.Next, error) {
	if p.a.finish && !p.a.spec.Interactive {
		if p.mem.Unfinished++; p.mem.Unfinished >= inARow {
			return p.fails(fmt.Sprintf("the model ended its turn %d times without calling finish", inARow)), nil
		}
		return stint.Next{Headline: "it was told to call finish"}, p.t.say("You ended without a result. Call finish with the result.")
	}
	text := p.said()
	result, err := stint.Marshal(struct {
		Text string `json:"text"`
	}{text})
	if err != nil {
		return stint.Next{}, err
	}
	if !p.a.spec.Interactive {
		return p.finished(ctx, text, result)
	}
	return p.finished(ctx, text, nil)
}

// finished ends the turn with a text, and the session where there is a result, unless
// the judge wants it better.
func (p *pass) finished(ctx context.Context, text string, result json.RawMessage) (stint.Next, error) {
	if p.a.spec.Rubric != nil {
		v, err := p.judge(ctx, text)
		if err != nil {
			return stint.Next{}, err
		}
		if !v.Pass {
			return p.better(v.Why)
		}
	}
	p.mem.Idle, p.mem.Rounds = true, 0
	line := oneLine(text, 120)
	if result == nil {
		return stint.Next{Wait: forMessage(line), Headline: line}, nil
	}
	return stint.Next{End: &stint.End{Outcome: stint.Completed, Result: result}, Headline: line}, nil
}

// fails ends the session.
func (p *pass) fails(why string) stint.Next {
	p.mem.Idle = true
	return stint.Next{End: &stint.End{Outcome: stint.Failed, Reason: oneLine(why, 1000)}, Headline: oneLine(why, 120)}
}

func forMessage(what string) *stint.Wait {
	return &stint.Wait{For: stint.ForMessage, What: what, Wakes: []stint.MessageKind{stint.Prompt}}
}

// or is the first text that is not blank.
func or(texts ...string) string {
	for _, s := range texts {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

// oneLine is a text in one line of at most n bytes.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(clip(s, 4*n)), " ")
	return clip(s, n)
}

// clip cuts a text, no character in two.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const more = "…"
	n = max(0, n-len(more))
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + more
}
