package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/tool"
)

// planned is what becomes of one call.
type planned struct {
	call  model.Call
	tool  tool.Tool
	args  json.RawMessage
	never error      // why it is not executed; nil: it is
	ask   string     // what a person is asked before; empty: nothing
	why   string     // the rule that asks
	asker tool.Asker // whose question ask is; nil: what is asked is whether to begin
	asked tool.Question
	taint bool // what led to it came from outside
	other bool // a person chose other arguments, which args are then

	recorded bool // it is answered from the record
	nth      int  // equal calls before it

	fits func(args json.RawMessage) error
}

// outcome is what the calls of an answer gave.
type outcome struct {
	names  []string        // of the calls, in order
	result json.RawMessage // of the session, where a call ended it
	wait   *stint.Wait     // what a call waits for
	spawn  *tool.Spawn     // what the call that was looked at last begins
}

// calls does what an answer asks for: its calls become one group of steps, and the
// transcript gets the answer and one result for each.
func (p *pass) calls(ctx context.Context, ans *answer) (*outcome, error) {
	if err := p.append(ans); err != nil {
		return nil, err
	}
	calls := ans.msg.Calls()
	got := &outcome{}
	if len(calls) == 0 {
		return got, nil
	}
	plan := make([]planned, len(calls))
	steps := make([]stint.Step, len(calls))
	for i, c := range calls {
		got.names = append(got.names, c.Name)
		plan[i] = p.plan(c, ans)
		p.recall(&plan[i])
		steps[i] = plan[i].step()
	}
	p.step++
	at, last := p.ses.At, p.lastAttempt()
	res, err := p.l.DoAll(ctx, steps, func(step context.Context, i int, key string) (stint.Result, error) {
		do := func() (stint.Result, error) {
			if plan[i].recorded {
				return p.recorded(step, &plan[i])
			}
			return plan[i].do(step, p.call(plan[i].args, key, stint.Position{Line: at.Line, Loop: at.Loop, Attempt: at.Attempt, Step: p.step, Sub: i + 1}))
		}
		if last && steps[i].Effect == stint.Read {
			return p.outcome(ctx, step, plan[i].call.Name, do)
		}
		return do()
	})
	errs, err := members(err, len(steps))
	if err != nil {
		return nil, err
	}
	if len(res) != len(steps) {
		res = make([]stint.Result, len(steps))
	}
	parts := make([]model.Part, len(plan))
	for i := range plan {
		r := p.result(&plan[i], i+1, res[i], errs[i], got)
		if err := p.spawn(ctx, got, r); err != nil {
			return nil, err
		}
		parts[i].Result = r
		p.see(plan[i].call, r, ans.At)
	}
	return got, p.t.add(model.User, parts...)
}

// append puts the answer's message into the transcript.
func (p *pass) append(ans *answer) error {
	switch {
	case len(ans.msg.Parts) == 0:
	case p.t.last() == model.Assistant: // it goes on with a turn that was paused
		if err := p.t.add(model.Assistant, ans.msg.Parts...); err != nil {
			return err
		}
	default:
		p.t.put(ans.msg, ans.Message)
	}
	p.mem.UsedAt = len(p.t.raw)
	return nil
}

// lastAttempt reports whether the session would end with an error of this attempt, as far
// as the loop can tell.
func (p *pass) lastAttempt() bool {
	l, ok := p.l.(interface{ LastAttempt() bool })
	return ok && l.LastAttempt()
}

// outcome does a call of a read tool for the last time. That it fails, however it does, is
// then its outcome, which the model is told: nothing can be in doubt about a read, and the
// model may know another way. An end of ctx is not the tool's failure, and an error that is
// final is meant to end the session. It may run beside others.
func (p *pass) outcome(ctx, step context.Context, name string, do func() (stint.Result, error)) (res stint.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			p.log(fmt.Sprintf("%s: panic: %v\n%s", name, r, debug.Stack()))
			err = fmt.Errorf("panic: %v", r)
		}
		definite, final := steering(err)
		if err == nil || definite || final || ctx.Err() != nil || errors.Is(err, stint.ErrParked) {
			return
		}
		if step.Err() != nil {
			err = context.Cause(step) // no result in time, which says more than the tool does
		}
		err = stint.Definite(fmt.Errorf("%s could not be done: %w", name, err))
	}()
	return do()
}

// call is what a tool gets.
func (p *pass) call(args json.RawMessage, key string, at stint.Position) tool.Call {
	c := tool.Call{Args: args, Key: key, Session: p.ses.ID, Name: p.ses.Name, Position: at, Epoch: p.ses.Epoch}
	if l, ok := p.l.(interface{ Epoch() int64 }); ok {
		c.Epoch = l.Epoch()
	}
	return c
}

// members are the errors of a group's steps, if all of them are outcomes; else the
// first that is none.
func members(err error, n int) ([]error, error) {
	errs := make([]error, n)
	if err == nil {
		return errs, nil
	}
	var all interface{ Members() []error }
	switch {
	case errors.Is(err, stint.ErrParked):
		return nil, err
	case errors.As(err, &all) && len(all.Members()) == n:
		errs = all.Members()
	case n == 1:
		errs[0] = err
	default:
		return nil, err
	}
	for _, e := range errs {
		if e != nil && !definite(e) {
			return nil, e
		}
	}
	return errs, nil
}

// maxAnswer is the longest schema of an answer that a step can have, in bytes.
const maxAnswer = 32 << 10

// plan decides on a call: executed as it stands, asked of a person, or not executed.
func (p *pass) plan(c model.Call, ans *answer) planned {
	out := planned{call: c}
	if ans.Stop != model.ToolUse {
		out.never = errors.New(cutText(c.Name, ans))
		return out
	}
	t, args, err := p.offer().set.Check(c.Name, json.RawMessage(c.Args))
	if err == nil {
		if err = c.Args.Check(); err != nil {
			err = fmt.Errorf("%s was not called: %w", c.Name, err)
		}
	}
	if err != nil {
		out.never = err
		return out
	}
	out.fits = func(args json.RawMessage) error {
		_, _, err := p.offer().set.Check(c.Name, args)
		return err
	}
	out.tool, out.args, out.taint = t, args, p.mem.Taint != "" && !p.a.spec.TrustAll
	if t.Name == readName {
		out.tool.Caller = tool.CallerFunc(p.readResult)
	}
	if a, ok := t.Caller.(tool.Asker); ok {
		q, err := a.Question(args)
		if err != nil {
			out.never = fmt.Errorf("%s was not called: %w", c.Name, err)
			return out
		}
		if q.Schema == nil {
			q.Schema = json.RawMessage(`{"type":"string"}`)
		}
		if len(q.Schema) > maxAnswer {
			out.never = fmt.Errorf("%s was not called: the schema of the answer has %d bytes; at most %d fit", c.Name, len(q.Schema), maxAnswer)
			return out
		}
		out.asker, out.asked = a, q
		out.ask, out.why = or(oneLine(q.Text, 1000), t.Name), "the model asks with the tool "+t.Name
		return out
	}
	if out.why = p.approval(&t); out.why != "" {
		out.ask = clip(t.Name+" "+oneLine(string(args), 400), 200)
	}
	return out
}

// approval is the rule that has a person asked before a call; empty: none.
func (p *pass) approval(t *tool.Tool) string {
	switch {
	case t.Approve == tool.Always:
		return "approve: " + t.Name + " is asked for each time"
	case p.mem.Taint != "" && t.Class() == stint.Once && t.Approve != tool.Never && !p.a.spec.TrustAll:
		return fmt.Sprintf("tainted: what %s gave comes from outside, and %s is of class once", p.mem.Taint, t.Name)
	}
	return ""
}

func cutText(name string, ans *answer) string {
	switch ans.Stop {
	case model.Length:
		return name + " was not called: your answer was cut by the output limit. Call it again, with less in one answer."
	case model.Refusal:
		return name + " was not called: the answer ended as a refusal."
	}
	return fmt.Sprintf("%s was not called: your answer ended (%s) before its calls were complete. Call it again if it is still needed.", name, ans.Stop)
}

// step describes the call to the engine.
func (c *planned) step() stint.Step {
	if c.never != nil {
		return stint.Step{Name: c.call.Name, Kind: stint.Tool, Effect: stint.Read, Input: shown(c.call.Args)}
	}
	s := c.tool.Step(c.args)
	if c.recorded { // nothing is done, so nobody is asked, and nothing can be in doubt
		s.Effect = stint.Read
		return s
	}
	s.Alone, s.Ask, s.Why, s.Answer, s.Yields = !c.tool.Parallel, c.ask, c.why, c.asked.Schema, true
	s.Approve, s.Tainted = string(c.tool.Approve), c.taint
	if c.asker == nil {
		s.Edit = func(args json.RawMessage) { c.args, c.other = args, true }
	}
	return s
}

// maxShown is how much of arguments that cannot be used is recorded, in bytes.
const maxShown = 64 << 10

// shown is arguments as the input of a step, whatever they are.
func shown(args model.Args) json.RawMessage {
	object := json.RawMessage(args.Object())
	if len(object) <= maxShown && jsonx.Check(object, jsonx.Limits{}) == nil {
		return object
	}
	text, _ := tool.Clean([]byte(clip(string(args), 1000)))
	object, err := stint.Marshal(map[string]string{model.Unusable: text})
	if err != nil {
		return json.RawMessage("{}")
	}
	return object
}

// do executes the call; it may run beside others.
func (c *planned) do(ctx context.Context, call tool.Call) (stint.Result, error) {
	if c.never != nil {
		return stint.Result{}, stint.Definite(c.never)
	}
	if c.other { // nobody has held them against the schema yet
		if err := c.fits(c.args); err != nil {
			return stint.Result{}, stint.Definite(fmt.Errorf("%s was not called with the arguments that a person chose: %w", c.call.Name, err))
		}
	}
	out, err := c.tool.Caller.Call(ctx, call)
	if err != nil {
		return stint.Result{}, err
	}
	if strings.IndexByte(out.Text, 0) >= 0 || !utf8.ValidString(out.Text) {
		out.Text = tool.Noted(tool.Clean([]byte(out.Text)))
	}
	data, err := stint.Marshal(out)
	if err != nil {
		return stint.Result{}, stint.Definite(fmt.Errorf("%s: its output cannot be recorded: %w", c.call.Name, err))
	}
	return stint.Result{Data: data}, nil
}

// Texts for results that no tool wrote.
const (
	unknownText  = "interrupted; whether it took effect is not known. Find out before you do it again."
	happenedText = "It took effect, a person says; what it gave is not known."
)

// result makes the model's result of what a call's step gave, and takes in what follows
// from it.
func (p *pass) result(c *planned, sub int, res stint.Result, err error, got *outcome) *model.Result {
	r := &model.Result{Call: c.call.ID}
	limit := p.a.spec.Context.Excerpt
	if err != nil {
		r.Text, r.Error = failText(c, err), true
		r.Text = tool.Excerpt(r.Text, limit, "")
		if c.never == nil && !c.denied(err) && c.tool.Taints {
			p.taint(c.tool.Name)
		}
		return r
	}
	out, known := c.output(res.Data)
	if !known {
		r.Text, r.Error = unknownText, true
		return r
	}
	if c.tool.Taints {
		p.taint(c.tool.Name)
	}
	if r.Error = out.Error; out.Error {
		out.Text = errorText(out.Text)
	}
	if c.other {
		out.Text = changedText(c.args) + out.Text
	}
	r.Text = out.Text
	if len(out.Text) > limit {
		r.Text = tool.Excerpt(out.Text, limit, readHow(c.call.ID))
		p.remember(c.call.ID, sub)
	}
	if c.recorded { // nothing is begun, and nothing is waited for
		return r
	}
	got.spawn = out.Spawn
	if got.result == nil && len(out.Result) > 0 {
		got.result = out.Result
	}
	if w := out.Wait; w != nil && (got.wait == nil || got.wait.Until.Before(w.Until)) {
		got.wait = w
	}
	return r
}

// output reads what a step recorded: a tool's output, a person's answer, or a person's
// word on a call in doubt; not known says that nobody can tell.
func (c *planned) output(data json.RawMessage) (out tool.Output, known bool) {
	if c.asker != nil {
		out, err := c.asker.Answer(c.asked, data)
		if err != nil {
			text, _ := tool.Clean(data)
			return tool.Errorf("the answer was %s, which does not fit what was asked: %v", clip(text, 1000), err), true
		}
		return out, true
	}
	var o struct {
		tool.Output

		Text  *string `json:"text"`
		Stint string  `json:"stint"`
	}
	if err := json.Unmarshal(data, &o); err == nil && o.Text != nil {
		o.Output.Text = *o.Text
		if *o.Text == "" && len(o.Data) > 0 {
			o.Output.Text = string(o.Data)
		}
		return o.Output, true
	}
	text, replaced := tool.Clean(data)
	switch {
	case o.Stint == "unknown":
		return tool.Output{}, false
	case text == "" || text == "null":
		return tool.Output{Text: happenedText}, true
	}
	return tool.Output{Text: tool.Noted(text, replaced)}, true
}

// denied reports whether err is a person's no.
func (c *planned) denied(err error) bool { return c.ask != "" && errors.Is(err, stint.Denied) }

// failText is a definite error as the model reads it.
func failText(c *planned, err error) string {
	text, _ := tool.Clean([]byte(err.Error()))
	switch {
	case c.never != nil:
		return text
	case c.denied(err) && !strings.HasPrefix(text, "denied"):
		return "denied: " + text
	case c.denied(err):
		return text
	}
	return errorText(text)
}

// errorText says that a call failed where the text may not: most providers have no other
// place for it.
func errorText(text string) string {
	switch {
	case strings.TrimSpace(text) == "":
		return "error: the tool failed and said nothing"
	case len(text) >= 5 && strings.EqualFold(text[:5], "error"):
		return text
	}
	return "error: " + text
}
