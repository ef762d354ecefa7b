package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stint-dev/stint/internal/safedial"
)

// remote is an SDK transport to a Spec's URL, whose variables are put in.
func remote(s Spec) (mcp.Transport, *http.Transport, error) {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil:
		return nil, nil, errors.New("its url cannot be read") // the error would show it
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, nil, errors.New("its url does not begin with http:// or https:// and a host")
	case u.User != nil:
		return nil, nil, errors.New("its url has a password in it; put an Authorization header under headers")
	}
	ours := []string{"Mcp-Session-Id", "Last-Event-Id"}
	for name, v := range s.Headers {
		if strings.ContainsAny(v, "\r\n\x00") {
			return nil, nil, fmt.Errorf("the header %s has a line end in it", name)
		}
		ours = append(ours, name)
	}
	base := safedial.Policy{Allow: s.Allow}.Transport()
	client := &http.Client{
		Transport:     &roundTripper{base: base, scheme: u.Scheme, host: u.Host, headers: s.Headers},
		CheckRedirect: safedial.Redirect(ours),
	}
	return &mcp.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client}, base, nil
}

// notSent is the error of a request that never had a connection.
type notSent struct{ error }

// Unwrap returns the cause.
func (e notSent) Unwrap() error { return e.error }

// refusal is a response that says that the request was not taken up at all.
type refusal struct {
	status int
	after  time.Duration
}

// Error names the status.
func (r *refusal) Error() string {
	return fmt.Sprintf("it refused the request: HTTP %d %s", r.status, http.StatusText(r.status))
}

// busy reports that it may take the request later.
func (r *refusal) busy() bool {
	return r.status == http.StatusTooManyRequests || r.status == http.StatusServiceUnavailable
}

// maxAfter bounds what a server can ask to wait for.
const maxAfter = time.Hour

// refusalOf returns nil for a response that is for the SDK to read.
func refusalOf(resp *http.Response) *refusal {
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		return nil
	}
	r := &refusal{status: resp.StatusCode}
	if n, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 31); err == nil {
		r.after = min(time.Duration(n)*time.Second, maxAfter)
	}
	return r
}

// roundTripper gives requests the headers of the configuration, and makes what comes back
// fit for the SDK.
type roundTripper struct {
	base         http.RoundTripper
	scheme, host string
	headers      map[string]string
}

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	var connected atomic.Bool
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req = req.Clone(ctx)
	if req.URL.Scheme == t.scheme && req.URL.Host == t.host { // not where a redirect leads
		for name, v := range t.headers {
			req.Header.Set(name, v)
		}
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		if !connected.Load() {
			err = notSent{err}
		}
		return nil, err
	}
	if r := refusalOf(resp); r != nil && req.Method == http.MethodPost {
		resp.Body.Close()
		return nil, r
	}
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	switch strings.TrimSpace(strings.ToLower(kind)) {
	case "text/event-stream":
		resp.Body = &events{from: resp.Body, r: bufio.NewReaderSize(resp.Body, 64<<10)}
	default:
		resp.Body = &whole{from: resp.Body}
	}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
	return resp, nil
}

var errTooLong = fmt.Errorf("a message of the server has more than %d bytes", maxMessage)

// whole is a body that is one message. It is read when it is asked for, and not before.
type whole struct {
	from io.ReadCloser
	out  *bytes.Reader
}

// Read implements io.Reader.
func (w *whole) Read(p []byte) (int, error) {
	if w.out == nil {
		b, err := io.ReadAll(io.LimitReader(w.from, maxMessage+1))
		switch {
		case err != nil:
			return 0, err
		case len(b) > maxMessage:
			return 0, errTooLong
		}
		w.out = bytes.NewReader(mend(b))
	}
	return w.out.Read(p)
}

// Close implements io.Closer.
func (w *whole) Close() error { return w.from.Close() }

// events is a body of server-sent events, each line of data one message.
type events struct {
	from io.ReadCloser
	r    *bufio.Reader
	out  []byte
	err  error
}

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		line, _, size, err := readLine(e.r, maxMessage)
		e.err = err
		if size > maxMessage {
			e.err = errTooLong
			continue
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			ended := bytes.HasSuffix(data, []byte("\n"))
			line = append([]byte("data: "), mend(bytes.TrimSpace(data))...)
			if ended {
				line = append(line, '\n')
			}
		}
		e.out = line
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// Close implements io.Closer.
func (e *events) Close() error { return e.from.Close() }
