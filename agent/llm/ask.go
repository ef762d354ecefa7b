package llm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/model"
)

// answer is what a model step records.
type answer struct {
	Message json.RawMessage `json:"message"`
	Stop    model.Stop      `json:"stop"`
	Reason  string          `json:"reason,omitempty"`
	Usage   model.Usage     `json:"usage"`
	Wasted  model.Usage     `json:"wasted,omitzero"`
	Model   string          `json:"model,omitempty"`
	ID      string          `json:"id,omitempty"`
	Prices  string          `json:"prices,omitempty"` // version of the table that the cost is from
	At      time.Time       `json:"at"`               // when it was whole
	Raw     []byte          `json:"raw,omitempty"`
	RawSize int64           `json:"raw_size,omitempty"`

	msg model.Message
}

// question is one question to a model, as a step.
type question struct {
	step  string
	model model.Model
	req   *model.Request
	input json.RawMessage
	// tokens is about how many the request is.
	tokens int64
	hear   func(model.Delta)
	// settled says which errors are an outcome that the loop goes on from. They are
	// recorded, so that it goes on the same way when it is begun again.
	settled func(k model.Kind) bool
	// check refuses an answer before it is recorded; nil: none.
	check func(*model.Answer) error
}

// put asks a model in a step.
func (p *pass) put(ctx context.Context, q question) (*answer, error) {
	p.step++
	var live *answer
	var recorded json.RawMessage
	spec := &p.a.spec
	most := model.Usage{Input: q.tokens, Output: q.req.MaxTokens}
	if most.Output == 0 {
		most.Output = defaultTokens
	}
	step := stint.Step{Name: q.step, Kind: stint.Model, Effect: stint.Read, Input: q.input, Timeout: spec.Timeout, Reserve: p.usage(q.model, most)}
	res, err := p.l.Do(ctx, step, func(ctx context.Context, _ string) (stint.Result, error) {
		got, err := q.model.Call(p.shown(ctx, q.model), q.req, q.hear)
		if err == nil && q.check != nil {
			if err = q.check(got); err != nil {
				return stint.Result{Usage: p.usage(q.model, got.Usage.Add(got.Wasted))}, err
			}
		}
		if err != nil {
			used, err := modelError(err, q.settled)
			return stint.Result{Usage: p.usage(q.model, used)}, err
		}
		a, data, err := record(got, spec.Prices)
		if err != nil {
			return stint.Result{}, err
		}
		live, recorded = a, data
		return stint.Result{Data: data, Usage: p.usage(q.model, got.Usage.Add(got.Wasted))}, nil
	})
	if err != nil {
		return nil, err
	}
	if live != nil && bytes.Equal(recorded, res.Data) {
		return live, nil
	}
	a := &answer{}
	if err := json.Unmarshal(res.Data, a); err != nil {
		return nil, unreadable(err)
	}
	if err := json.Unmarshal(a.Message, &a.msg); err != nil {
		return nil, unreadable(err)
	}
	return a, nil
}

// shown lets the session's NOW line say what a call of the model waits for.
func (p *pass) shown(ctx context.Context, m model.Model) context.Context {
	rep, ok := p.l.(stint.Reporter)
	if !ok {
		return ctx
	}
	return model.OnWait(ctx, func(w model.Wait) {
		line := ""
		if (w != model.Wait{}) {
			line = m.Name() + ": " + w.String()
		}
		rep.Progress(line)
	})
}

func unreadable(err error) error {
	return stint.Fail(refuse("restart the session from before this loop", "the recorded answer of the model cannot be read: %w", err))
}

// record makes the recorded form of an answer.
func record(got *model.Answer, prices string) (*answer, json.RawMessage, error) {
	got.Message.Role = model.Assistant
	msg, err := stint.Marshal(got.Message)
	if err != nil {
		return nil, nil, err
	}
	valid := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
	a := &answer{Message: msg, Stop: got.Stop, Reason: valid(got.Reason), Usage: got.Usage, Wasted: got.Wasted, Model: valid(got.Model), ID: valid(got.ID),
		Prices: prices, At: time.Now().UTC().Truncate(time.Millisecond), Raw: got.Raw, RawSize: got.RawSize, msg: got.Message}
	data, err := stint.Marshal(a)
	return a, data, err
}

// usage is what tokens of a model are to the engine.
func (p *pass) usage(m model.Model, u model.Usage) stint.Usage {
	out := stint.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}
	if p.a.spec.Cost != nil {
		if cost, ok := p.a.spec.Cost(m.Name(), u); ok {
			out.Cost = cost
		}
	}
	return out
}

// modelError is a model's error as a step's: what passes is tried again, what does not
// fails the session, and what is settled is an outcome.
func modelError(err error, settled func(model.Kind) bool) (model.Usage, error) {
	e := model.AsError(err)
	if e == nil {
		return model.Usage{}, err // that of the context
	}
	out := &stint.Error{Code: stint.Invalid, Err: e, Hint: e.Hint()}
	switch e.Kind {
	case model.TooLong:
		out.Code = stint.Limit
	case model.Auth, model.Quota, model.Refused:
		out.Code = stint.Denied
	case model.NotFound:
		out.Code = stint.NotFound
	}
	switch {
	case e.Retryable():
		out.Code = stint.Unavailable
		return e.Usage, stint.Retry(e.RetryAfter(), out)
	case settled != nil && settled(e.Kind):
		return e.Usage, stint.Definite(out)
	}
	return e.Usage, stint.Fail(out)
}

// definite reports whether err is the recorded outcome of a step.
func definite(err error) bool {
	yes, _ := steering(err)
	return yes
}

// steering reports whether err is the outcome of a step, and whether no other attempt can
// mend it.
func steering(err error) (definite, final bool) {
	for err != nil {
		var s interface {
			error
			Steer() (after time.Duration, final, definite bool)
		}
		if !errors.As(err, &s) {
			break
		}
		_, f, d := s.Steer()
		definite, final = definite || d, final || f
		err = errors.Unwrap(s)
	}
	return definite, final
}

// ask gets the next answer. Where the request is too long for the model, older messages
// give way to a summary and it is asked once more.
func (p *pass) ask(ctx context.Context) (*answer, error) {
	c := p.a.spec.Context
	if most := int64(float64(c.Window) * c.Compact); p.estimate() >= most {
		if err := p.compact(ctx, c.Window/4, min(c.Window/2, most)); err != nil {
			return nil, err
		}
	}
	ans, err := p.answer(ctx)
	if full := tooLong(ans, err); full == nil {
		return ans, err
	}
	if err := p.compact(ctx, min(c.Window, p.estimate())/4, min(c.Window, p.estimate())/2); err != nil {
		return nil, err
	}
	ans, err = p.answer(ctx)
	if full := tooLong(ans, err); full != nil {
		return nil, stint.Fail(full)
	}
	return ans, err
}

// tooLong is why an answer says that the request does not fit; nil if it does not say so.
func tooLong(ans *answer, err error) error {
	switch {
	case err == nil && ans.Stop == model.Window:
		return &stint.Error{Code: stint.Limit, Err: errors.New("the model's context window is full, also after older messages gave way to a summary"),
			Hint: "say how large the model's window is, or name a model with a larger one"}
	case err != nil && definite(err):
		return err
	}
	return nil
}

// answer asks the model with the transcript as it is, and remembers what it says of its
// length.
func (p *pass) answer(ctx context.Context) (*answer, error) {
	o := p.offer()
	req := o.request
	req.Messages, req.Session = p.t.msgs, p.ses.ID.String()
	q := question{step: p.a.spec.Model.Name(), model: p.a.spec.Model, req: &req, input: p.input(o, len(p.t.msgs)), tokens: p.estimate(),
		settled: func(k model.Kind) bool { return k == model.TooLong }}
	if hear := p.a.spec.Hear; hear != nil {
		q.hear = func(d model.Delta) { hear(p.ses.ID, p.ses.At.Loop, d) }
	}
	ans, err := p.put(ctx, q)
	if err == nil {
		u := ans.Usage
		p.mem.Used = u.Input + u.CacheRead + u.CacheWrite + u.Output
	}
	return ans, err
}

// input is what a model step records of the request for the first n messages: how many,
// and the hash of the request's JSON without its session.
func (p *pass) input(o *offer, n int) json.RawMessage {
	raw := p.t.raw
	if n < len(p.t.at) {
		raw = raw[:p.t.at[n]-1]
	}
	h := sha256.New()
	h.Write(o.front)
	h.Write(raw)
	h.Write(o.back)
	return fmt.Appendf(nil, `{"messages":%d,"sha256":"%x"}`, n, h.Sum(nil))
}

// estimate is about how many tokens the transcript is. A service may report fewer tokens
// than there are, or none that were cached; a token is no more than a few bytes, whatever
// it says.
func (p *pass) estimate() int64 {
	all := int64(len(p.t.raw) + p.offer().size())
	if p.mem.Used > 0 && p.mem.UsedAt <= len(p.t.raw) {
		return max(p.mem.Used+int64(len(p.t.raw)-p.mem.UsedAt)/4, all/maxToken)
	}
	return all / 4
}

// maxToken is how many bytes a token has at most, on average over a transcript. Prose and
// code have about four, and texts in other scripts fewer.
const maxToken = 8
