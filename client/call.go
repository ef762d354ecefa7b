package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/wire"
)

// Bounds of one exchange.
const (
	answerTime = 75 * time.Second // a server has a minute
	maxAnswer  = 256 << 20        // bytes
	maxProblem = 1 << 20          // bytes of an answer that says what is wrong
)

// How long is waited before a request is sent again: a time that doubles, half of it left
// to chance, or what the server asks for. What asks for more is not waited for.
const (
	firstWait = 200 * time.Millisecond
	mostWait  = 30 * time.Second
)

// request is one that may be sent several times.
type request struct {
	method, path string
	query        string
	body         any    // as JSON; nil: none
	key          string // Idempotency-Key
	again        bool   // to send it twice does no more than to send it once
}

// store asks one of the routes of package wire. All of them may be repeated.
func (c *Client) store(ctx context.Context, name string, in, out any) error {
	return c.call(ctx, request{method: http.MethodPost, path: wire.Prefix + name, body: in, again: true}, out)
}

// call sends a request and reads the document that is answered.
func (c *Client) call(ctx context.Context, r request, out any) error {
	b, _, err := c.send(ctx, r)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(b, out); err != nil {
		return c.away(fmt.Errorf("it answers what cannot be read: %w", err))
	}
	return nil
}

// send sends a request, again where that makes sense, and returns the answer and its status.
func (c *Client) send(ctx context.Context, r request) ([]byte, int, error) {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return nil, 0, stint.Invalid.Errorf("request", "it is no JSON: %w", err)
		}
	}
	for try := 1; ; try++ {
		b, status, err := c.once(ctx, r, body)
		var p passing
		switch {
		case err == nil:
			return b, status, nil
		case ctx.Err() != nil:
			return nil, 0, ctx.Err()
		case !errors.As(err, &p):
			return nil, 0, err
		case !r.again || try >= c.tries || p.after > mostWait:
			return nil, 0, p.error
		}
		if err := sleep(ctx, max(p.after, backoff(try))); err != nil {
			return nil, 0, err
		}
	}
}

// backoff is how long to wait after so many failures.
func backoff(n int) time.Duration {
	d := min(firstWait<<min(n-1, 10), mostWait)
	return d/2 + rand.N(d/2)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// passing is an error that may be over after a while.
type passing struct {
	error

	after time.Duration // that the server asks for; 0: it says nothing
}

// Unwrap returns the error itself.
func (p passing) Unwrap() error { return p.error }

// once sends a request once.
func (c *Client) once(ctx context.Context, r request, body []byte) ([]byte, int, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	req, err := c.request(ctx, r, body)
	if err != nil {
		return nil, 0, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, 0, passing{error: c.away(err)}
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, 0, c.refused(resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, 0, passing{error: c.away(err)}
	case len(b) > maxAnswer:
		return nil, 0, c.away(fmt.Errorf("its answer has more than %d bytes", maxAnswer))
	}
	return b, resp.StatusCode, nil
}

func (c *Client) request(ctx context.Context, r request, body []byte) (*http.Request, error) {
	u := c.base.JoinPath(r.path)
	u.RawQuery = r.query
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, stint.Invalid.Errorf("request", "%w", err)
	}
	req.Header.Set("User-Agent", "stint")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	return req, nil
}

// away is that the server does not answer, or not as one.
func (c *Client) away(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok { // it has the whole URL
		err = u.Err
	}
	return &stint.Error{Code: stint.Unavailable, Op: "server", Err: fmt.Errorf("%s does not answer: %w", c.name, err),
		Hint: "see that stint serve runs there, and that this is the server you mean: " + c.name}
}

// refused reads an answer that is no success.
func (c *Client) refused(resp *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	var p struct {
		Detail  string     `json:"detail"`
		Code    stint.Code `json:"code"`
		Hint    string     `json:"hint"`
		Session string     `json:"session"`
	}
	status := resp.StatusCode
	asks := after(resp.Header)
	if err != nil || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") || json.Unmarshal(b, &p) != nil || p.Code == "" {
		e := c.away(fmt.Errorf("what answers there is no server of stint: %s%s", resp.Status, where(resp)))
		if status == http.StatusTooManyRequests && asks > 0 || status >= http.StatusBadGateway {
			return passing{e, asks} // a proxy, before a server that is away
		}
		return e
	}
	e := &stint.Error{Code: p.Code, Err: errors.New(p.Detail), Hint: p.Hint}
	if op, cause, ok := strings.Cut(p.Detail, " "+p.Session+": "); ok && p.Session != "" {
		if id, err := stint.ParseID(p.Session); err == nil {
			e.Op, e.Session, e.Err = op, id, errors.New(cause)
		}
	}
	// A limit that is used up stays so; one of requests says for how long.
	if status == http.StatusTooManyRequests && asks > 0 || status >= http.StatusBadGateway {
		return passing{e, asks}
	}
	return e
}

// where is where a redirect leads.
func where(resp *http.Response) string {
	if to := resp.Header.Get("Location"); to != "" {
		return " to " + to
	}
	return ""
}

// after reads Retry-After, in seconds or as a time.
func after(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n > 0 && n < 1<<30 {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}
