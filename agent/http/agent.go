package http

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
	"github.com/stint-dev/stint/internal/protocol"
	"github.com/stint-dev/stint/internal/safedial"
	"github.com/stint-dev/stint/tool"
)

var _ stint.Agent = (*Agent)(nil)

// Agent asks one URL for any number of sessions. Its methods may be called from several
// goroutines.
type Agent struct {
	spec   Spec
	target *url.URL
	hidden map[string]string
	pool   *http.Client
	// fresh has a connection of its own for each request. On one that was used before,
	// Go's transport may send a request with an Idempotency-Key a second time by itself,
	// which a once step does not bear.
	fresh *http.Client
}

// New makes an agent of a valid Spec; see [Spec.Validate] for its error.
func New(s Spec) (*Agent, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	u, err := s.target()
	if err != nil {
		return nil, err
	}
	a := &Agent{spec: s.withDefaults(), target: u, hidden: s.hidden()}
	a.pool, a.fresh = a.client(false), a.client(true)
	return a, nil
}

func (a *Agent) client(fresh bool) *http.Client {
	policy := safedial.Policy{}
	if host := a.target.Hostname(); a.spec.AllowPrivate || isLoopback(host) {
		policy.Allow = []string{host}
		if port := a.target.Port(); port != "" {
			policy.Allow = []string{net.JoinHostPort(host, port)}
		}
	}
	t := policy.Transport()
	t.DisableKeepAlives = fresh
	t.DisableCompression = true // a line that is sent must not wait in a compressor
	t.MaxIdleConnsPerHost = maxBeside
	t.TLSClientConfig = &tls.Config{RootCAs: a.spec.Roots, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: t, CheckRedirect: redirect}
}

// redirect follows to the same origin, and only where the request stays as it is (307
// and 308): the signature is for this agent. Others become the response.
func redirect(req *http.Request, via []*http.Request) error {
	same := req.URL.Scheme == via[0].URL.Scheme && req.URL.Host == via[0].URL.Host
	if !same || req.Method != http.MethodPost || len(via) > 3 {
		return http.ErrUseLastResponse
	}
	req.Header.Del("Referer")
	return nil
}

// Close ends the connections that nobody uses. Its error is nil.
func (a *Agent) Close() error {
	a.pool.CloseIdleConnections()
	return nil
}

// Loop does one loop. When it returns, its requests have ended or are canceled. It shows
// output through [stint.Reporter], and tells the agent more where l has the methods
// Recorded and Epoch, as agent/exec documents them.
//
// Errors: a breach of the protocol, or a response that ends without an end message, is
// [stint.Invalid] and fails the attempt. A status of 429 or 503 with Retry-After is tried
// again as it says, other refusals (3xx, 4xx) end the session, and 5xx and what the
// network did is [stint.Unavailable] and fails the attempt. A once step that was sent and
// has no result is in doubt, unless the server refused it. The agent's own errors are
// passed on as it asked. The text of each is one sentence.
func (a *Agent) Loop(ctx context.Context, l stint.Loop) (stint.Next, error) {
	hello, err := protocol.Greeting(l)
	if err != nil {
		return stint.Next{}, err
	}
	ctx, cancel := context.WithCancel(ctx) // a panic in the loop's Do leaves no request either
	defer cancel()
	d := &driver{agent: a, loop: l, ses: l.Session(), epoch: protocol.Epoch(l), hello: hello,
		sink: &child.Log{}, slots: make(chan struct{}, maxBeside)}
	d.sink.Attach(l, a.spec.MaxOutput)
	defer d.sink.Detach()
	return d.run(ctx)
}

// redact takes out of a text what nobody may see.
func (a *Agent) redact(text string) string { return tool.Redact(text, a.hidden) }
