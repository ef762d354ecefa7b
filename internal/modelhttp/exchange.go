package modelhttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stint-dev/stint/model"
)

// Bounds, in bytes.
const (
	MaxRaw   = 1 << 20   // of a response that is kept
	MaxBody  = 256 << 20 // of a response that is read at all
	maxError = 64 << 10  // of the body of an error that is read
)

// Default time limits.
const (
	DefaultConnect = 10 * time.Second
	DefaultIdle    = 5 * time.Minute
)

var errIdle = errors.New("nothing came for too long")

// NewClient returns a client that follows no redirects, so that a key goes to no host
// that the configuration does not name. connect bounds the connection and its TLS
// handshake each; 0 is [DefaultConnect].
func NewClient(connect time.Duration) *http.Client {
	if connect <= 0 {
		connect = DefaultConnect
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:   connect,
			ForceAttemptHTTP2:     true,
			MaxIdleConns:          100,
			MaxIdleConnsPerHost:   32,
			IdleConnTimeout:       90 * time.Second,
			ExpectContinueTimeout: time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Exchange is one request and its response. It belongs to the goroutine that began it.
type Exchange struct {
	Model   string   // for errors
	Secrets []string // never to appear in one
	Idle    time.Duration

	ended   func() error // why the caller's context ended, nil if it did not
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	raw     bytes.Buffer
	size    int64
	request string // the provider's id
}

// Begin starts the clock of x and returns the context for its request. [Exchange.End]
// has to be called.
func (x *Exchange) Begin(ctx context.Context) context.Context {
	if x.Idle <= 0 {
		x.Idle = DefaultIdle
	}
	parent := ctx
	x.ended = func() error {
		if parent.Err() == nil {
			return nil
		}
		return context.Cause(parent)
	}
	ctx, x.cancel = context.WithCancelCause(ctx)
	x.timer = time.AfterFunc(x.Idle, func() { x.cancel(errIdle) })
	return ctx
}

// End releases what Begin took.
func (x *Exchange) End() {
	x.timer.Stop()
	x.cancel(nil)
}

// Hurry makes d the longest time without a byte from now on, if it is shorter.
func (x *Exchange) Hurry(d time.Duration) {
	x.Idle = min(x.Idle, d)
	x.timer.Reset(x.Idle)
}

// Raw is the beginning of the response and how much of it came.
func (x *Exchange) Raw() ([]byte, int64) { return x.raw.Bytes(), x.size }

// RoundTrip is a middleware for the vendors' clients: it sends req with next, and
// returns either an event stream or a [*model.Error].
func (x *Exchange) RoundTrip(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := next(req)
	if err != nil {
		return nil, x.Fail(err)
	}
	x.request = firstOf(res.Header, "request-id", "x-request-id")
	if res.StatusCode/100 != 2 || !isStream(res.Header) {
		defer func() { _ = res.Body.Close() }()
		return nil, x.refusal(res)
	}
	res.Body = &body{rc: res.Body, x: x}
	return res, nil
}

func isStream(h http.Header) bool {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err != nil || t == "text/event-stream" || t == "text/plain" || t == "application/octet-stream"
}

func firstOf(h http.Header, names ...string) string {
	for _, n := range names {
		if v := h.Get(n); v != "" {
			return clip(v, 200)
		}
	}
	return ""
}

// refusal makes the error of a response that is no stream.
func (x *Exchange) refusal(res *http.Response) *model.Error {
	b, err := io.ReadAll(io.LimitReader(res.Body, maxError))
	x.raw.Write(b)
	x.size += int64(len(b))
	e := parse(b)
	e.Model, e.Status, e.Request = x.Model, res.StatusCode, x.request
	page := strings.Contains(res.Header.Get("Content-Type"), "html") || looksLikePage(b)
	if page {
		e.Message = "it answered with a web page: " + title(b)
	}
	switch {
	case res.StatusCode/100 == 3:
		e.Kind, e.Message = model.NotFound, "it redirects to "+host(res.Header.Get("Location"))+"; the base URL must name the service itself"
	case res.StatusCode/100 == 2 && (e.Code != "" || e.Message != "") && !page:
		e.Kind = classify(0, e.Code, e.Message)
	case res.StatusCode/100 == 2 && page:
		e.Kind = model.NotFound
	case res.StatusCode/100 == 2:
		e.Kind, e.Message = model.Transient, "it answered with "+res.Header.Get("Content-Type")+" and not with a stream"
	default:
		e.Kind = classify(res.StatusCode, e.Code, e.Message)
	}
	if e.Kind.Retryable() {
		e.After = retryAfter(res.Header, time.Now())
	}
	if e.Message == "" && err != nil {
		e.Message = err.Error()
	}
	e.Message = clip(x.redact(e.Message), maxMessage)
	return e
}

// Fail makes the error of a request that got no response.
func (x *Exchange) Fail(err error) error {
	if e := model.AsError(err); e != nil {
		return e
	}
	if ended := x.ended(); ended != nil {
		return ended
	}
	message := err.Error()
	if u := (*url.Error)(nil); errors.As(err, &u) {
		message = "no connection to " + host(u.URL) + ": " + u.Err.Error() // its text has the whole URL
	}
	if errors.Is(err, errIdle) || errors.Is(err, context.Canceled) {
		message = "no answer within " + x.Idle.String()
	}
	return &model.Error{Kind: model.Transient, Model: x.Model, Request: x.request, Message: clip(x.redact(message), maxMessage)}
}

// Cut makes the error of a stream that ended too soon; err is what ended it, nil for
// an ordinary end of the response.
func (x *Exchange) Cut(err error, partial string) error {
	if ended := x.ended(); ended != nil {
		return ended
	}
	message := "the stream ended before the answer did"
	switch {
	case errors.Is(err, errIdle):
		message = "nothing came for " + x.Idle.String()
	case err != nil:
		message = err.Error()
	}
	return &model.Error{Kind: model.Cut, Model: x.Model, Request: x.request, Message: clip(x.redact(message), maxMessage), Partial: partial}
}

// Inside makes the error of one that came inside a stream; data is its JSON.
func (x *Exchange) Inside(data []byte, partial string) error {
	e := parse(data)
	e.Kind = classify(0, e.Code, e.Message)
	e.Model, e.Request, e.Partial = x.Model, x.request, partial
	e.Message = clip(x.redact(e.Message), maxMessage)
	return e
}

// body counts, keeps the beginning, and winds up the clock with each piece.
type body struct {
	rc io.ReadCloser
	x  *Exchange
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.rc.Read(p)
	if n > 0 {
		b.x.timer.Reset(b.x.Idle)
		b.x.size += int64(n)
		if room := MaxRaw - b.x.raw.Len(); room > 0 {
			b.x.raw.Write(p[:min(n, room)])
		}
		if b.x.size > MaxBody {
			return n, errors.New("the answer is larger than 256 MiB")
		}
	}
	if errors.Is(err, context.Canceled) && b.x.ended() == nil {
		err = errIdle
	}
	return n, err
}

func (b *body) Close() error { return b.rc.Close() }

// redact takes the keys out of a text, and what is not UTF-8.
func (x *Exchange) redact(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	for _, secret := range x.Secrets {
		if len(secret) >= 4 {
			s = strings.ReplaceAll(s, secret, "[key]")
		}
	}
	return s
}

func host(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "another place"
	}
	return u.Host
}

// Secrets are the values that must not appear in an error: the key, and of headers
// those whose name says so.
func Secrets(key string, headers http.Header) []string {
	all := []string{key}
	for name, values := range headers {
		n := strings.ToLower(name)
		for _, word := range []string{"auth", "key", "token", "secret", "cookie"} {
			if strings.Contains(n, word) {
				for _, v := range values {
					all = append(all, v, strings.TrimPrefix(v, "Bearer "))
				}
				break
			}
		}
	}
	return all
}
