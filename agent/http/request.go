package http

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/protocol"
	"github.com/stint-dev/stint/internal/safedial"
)

// open sends a request: the loop, the answers of its steps, and a proceed for p, if there
// is one. begun tells that the agent may have got it; an exchange is returned only for a
// response that can be read.
func (d *driver) open(ctx context.Context, p *proceeding) (x *exchange, begun bool, err error) {
	if d.size > d.agent.spec.MaxBody {
		return nil, false, stint.Fail(&stint.Error{Code: stint.Limit,
			Err:  fmt.Errorf("the loop and the answers of its steps have %d bytes; a request has at most %d", d.size, d.agent.spec.MaxBody),
			Hint: "end the loop earlier, or give steps smaller results; max_body raises the limit"})
	}
	x = &exchange{d: d, book: protocol.NewBook(d.loop), known: d.past[:len(d.past):len(d.past)], step: p, loose: func() bool { return true }}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	s := &d.agent.spec
	x.idle = time.AfterFunc(s.Idle, func() { x.cancel(late("the agent sent nothing for %v", s.Idle)) })
	x.idle.Stop()
	x.whole = time.AfterFunc(s.Timeout, func() { x.cancel(late("the response of the agent did not end within %v", s.Timeout)) })
	if p != nil {
		x.whole.Stop()
		x.loose = context.AfterFunc(p.ctx, func() { x.cancel(context.Cause(p.ctx)) })
	}
	begun, err = x.send()
	if err != nil {
		if x.body != nil {
			x.close()
		}
		x.cancel(context.Canceled)
		x.idle.Stop()
		x.whole.Stop()
		x.loose()
		return nil, begun, err
	}
	return x, true, nil
}

func late(format string, after time.Duration) error {
	return &stint.Error{Code: stint.Unavailable, Err: fmt.Errorf(format, after),
		Hint: "a response ends after a step that its request has no answer for; an empty line now and then shows that the agent is alive"}
}

// send makes the request and reads the head of its response.
func (x *exchange) send() (begun bool, err error) {
	var connected atomic.Bool
	ctx := httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { connected.Store(true) },
		WroteRequest: func(httptrace.WroteRequestInfo) { x.idle.Reset(x.d.agent.spec.Idle) },
	})
	req, err := x.request(ctx)
	if err != nil {
		return false, err
	}
	client := x.d.agent.pool
	if x.step != nil && x.step.call.Step.Effect == stint.Once {
		client = x.d.agent.fresh
	}
	resp, err := client.Do(req)
	x.idle.Stop()
	if err != nil {
		return connected.Load(), x.unsent(err)
	}
	x.body = &patient{resp.Body, x.idle, x.d.agent.spec.Idle}
	x.lines = newLineReader(x.body, x.d.agent.spec.MaxLine, x.d.agent.spec.MaxBody)
	return x.accept(resp)
}

// unsent says why there is no response.
func (x *exchange) unsent(err error) error {
	var no *safedial.Refused
	if errors.As(err, &no) {
		return stint.Fail(&stint.Error{Code: stint.Invalid, Err: fmt.Errorf("the agent was not asked: %w", no),
			Hint: "set allow_private: true for an agent on a network of your own"})
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // the rest is the URL, which may hold a key
	}
	return x.broken("the agent cannot be reached", err)
}

// request makes the request, signed.
func (x *exchange) request(ctx context.Context) (*http.Request, error) {
	d := x.d
	parts, key, err := x.content()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.agent.target.String(), nil)
	if err != nil {
		return nil, stint.Internal.Errorf("", "a request for the agent: %w", err)
	}
	req.GetBody = func() (io.ReadCloser, error) {
		readers := make([]io.Reader, len(parts))
		for i, p := range parts {
			readers[i] = bytes.NewReader(p)
		}
		return io.NopCloser(io.MultiReader(readers...)), nil
	}
	req.Body, _ = req.GetBody()
	for _, p := range parts {
		req.ContentLength += int64(len(p))
	}
	set := req.Header.Set
	set("User-Agent", "stint")
	for name, v := range d.agent.spec.Headers {
		set(name, v)
	}
	for name, v := range d.agent.spec.Secrets {
		set(name, v)
	}
	at := d.ses.At
	id := fmt.Sprintf("msg_%s_%d_%d_%d_%d_%d", d.ses.ID, d.epoch, at.Line, at.Loop, at.Attempt, d.sent.Add(1))
	seconds := strconv.FormatInt(time.Now().Unix(), 10)
	set("Content-Type", ContentType)
	set("Accept", ContentType)
	set("Webhook-Id", id)
	set("Webhook-Timestamp", seconds)
	set("Webhook-Signature", signature(d.agent.spec.Secret, id, seconds, parts...))
	set(KeyHeader, key)
	set(SessionHeader, d.ses.ID.String())
	set(EpochHeader, strconv.FormatInt(d.epoch, 10))
	set(LoopHeader, strconv.Itoa(at.Loop))
	set(AttemptHeader, strconv.Itoa(at.Attempt))
	set(VersionHeader, version)
	return req, nil
}

// content is the lines of the request, and its idempotency key.
func (x *exchange) content() (parts [][]byte, key string, err error) {
	parts = [][]byte{x.d.hello}
	var open []*told
	for _, e := range x.known {
		for _, s := range e.steps {
			if s.answer != nil {
				parts = append(parts, s.answer)
			} else {
				open = append(open, s)
			}
		}
	}
	if x.step == nil {
		return parts, placeKey(x.d.ses, len(parts)-1), nil
	}
	parts = append(parts, x.step.line)
	for _, s := range open {
		if s == x.step.step {
			continue
		}
		line, err := protocol.Park(s.id, "another request is for this step")
		if err != nil {
			return nil, "", err
		}
		parts = append(parts, line)
	}
	return parts, x.step.key, nil
}

// placeKey is the idempotency key of a request that does no step: of its place in the
// session, and so the same in every attempt.
func placeKey(s stint.Session, answered int) string {
	b := append([]byte("stint http "), s.ID[:]...)
	for _, v := range []int{s.At.Line, s.At.Loop, answered} {
		b = binary.AppendUvarint(b, uint64(v)) //nolint:gosec // none is negative
	}
	sum := sha256.Sum256(b)
	return base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding).EncodeToString(sum[:])
}
