package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/safedial"
	"github.com/stint-dev/stint/tool"
)

// Headers that each request has.
const (
	KeyHeader   = "Idempotency-Key"     // the idempotency key of the step
	EpochHeader = "Stint-Fencing-Token" // the epoch of the lease, which only rises
)

// Spec describes a request as a tool.
type Spec struct {
	Name        string
	Description string
	Schema      json.RawMessage // of the arguments; nil: any object
	Method      string          // empty: GET
	// URL is http or https, with {name} places in its path and in the values of its query.
	// A path cannot be left with . or .. or nothing in a place; a query parameter whose
	// argument the call leaves out is left out with it.
	URL string
	// Headers is what the request has besides.
	Headers map[string]string
	// Secrets is headers with values that nobody else may see: they are not sent to another
	// origin by a redirect, and where a response has one it becomes {{secret:NAME}}.
	Secrets map[string]tool.Secret
	// Allow names hosts, or host:port, that may have an address of any kind.
	Allow []string
	// Effect: empty is read for GET and HEAD, idempotent for PUT and DELETE (RFC 9110,
	// section 9.2), once for the rest.
	Effect    stint.Effect
	Timeout   time.Duration // of one call; 0: a minute
	MaxOutput int           // bytes of the response that are kept; 0: tool.MaxText
	Approve   tool.Approve
	Parallel  bool
	Taints    bool
}

const defaultTimeout = time.Minute

// New makes a tool of a Spec. [stint.Invalid] for one that can never be called.
func New(s Spec) (tool.Tool, error) {
	r, err := newRequest(&s)
	if err != nil {
		return tool.Tool{}, &stint.Error{Code: stint.Invalid, Op: fmt.Sprintf("tool %.100q", s.Name), Err: err,
			Hint: "mend the tool in the configuration"}
	}
	return tool.Tool{Name: s.Name, Description: s.Description, Schema: s.Schema, Effect: s.Effect, Parallel: s.Parallel,
		Timeout: s.Timeout, Approve: s.Approve, Taints: s.Taints, Source: "http", Caller: r}, nil
}

var _ tool.Caller = (*request)(nil)

// request is the caller of one Spec.
type request struct {
	spec   Spec
	target target
	body   bool // the arguments that the URL does not use are the body
	client *http.Client
}

func newRequest(s *Spec) (*request, error) {
	if s.Method == "" {
		s.Method = http.MethodGet
	}
	if s.Timeout <= 0 {
		s.Timeout = defaultTimeout
	}
	r := &request{}
	switch s.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		r.body = true
	default:
		return nil, fmt.Errorf("there is no method %q; write GET, HEAD, POST, PUT, PATCH or DELETE", s.Method)
	}
	if s.Effect == "" {
		s.Effect = map[string]stint.Effect{http.MethodGet: stint.Read, http.MethodHead: stint.Read,
			http.MethodPut: stint.Idempotent, http.MethodDelete: stint.Idempotent}[s.Method]
	}
	var err error
	if r.target, err = parseTarget(s.URL); err != nil {
		return nil, err
	}
	sample := tool.Args{}
	for _, name := range r.target.names() {
		sample[name] = json.RawMessage(`"x"`)
	}
	if address, _ := r.target.fill(sample); !parses(address) {
		return nil, fmt.Errorf("%.200q is no URL; write what is not plain as %%XX", s.URL)
	}
	if err := tool.CheckNames(r.target.names(), s.Schema); err != nil {
		return nil, err
	}
	if err := r.unused(s.Schema); err != nil {
		return nil, err
	}
	if err := safedial.CheckAllow(s.Allow); err != nil {
		return nil, fmt.Errorf("allow: %w", err)
	}
	ours := []string{KeyHeader, EpochHeader}
	for name := range maps.Keys(s.Secrets) {
		ours = append(ours, name)
	}
	for _, name := range append(slices.Collect(maps.Keys(s.Headers)), ours[2:]...) {
		if !token(name) || reserved(name) {
			return nil, fmt.Errorf("the header %.100q cannot be set", name)
		}
	}
	for name, v := range s.Headers {
		if strings.ContainsAny(v, "\r\n\x00") {
			return nil, fmt.Errorf("the value of the header %s has a line end in it", name)
		}
	}
	transport := safedial.Policy{Allow: s.Allow}.Transport()
	// On a connection that was used before, Go's transport may send a request that has an
	// Idempotency-Key a second time.
	transport.DisableKeepAlives = s.Effect != stint.Read && s.Effect != stint.Idempotent
	r.client = &http.Client{Transport: transport, CheckRedirect: safedial.Redirect(ours)}
	r.spec = *s
	return r, nil
}

// unused finds an argument that would get lost, because a request without a body has no
// place for it.
func (r *request) unused(schema json.RawMessage) error {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if r.body || json.Unmarshal(schema, &s) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(r.target.names(), name) {
			return fmt.Errorf("the argument %s is not used: the URL has no {%s}, and this method has no body", name, name)
		}
	}
	return nil
}

func parses(address string) bool {
	_, err := url.Parse(address)
	return err == nil
}

func token(name string) bool {
	return name != "" && textproto.TrimString(name) == name && strings.IndexFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}) < 0
}

// reserved are the headers that the request is framed by, and those of this package.
func reserved(name string) bool {
	return slices.Contains([]string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer",
		KeyHeader, EpochHeader}, textproto.CanonicalMIMEHeaderKey(name))
}

// Call sends the request once.
func (r *request) Call(ctx context.Context, c tool.Call) (tool.Output, error) {
	args, err := tool.ReadArgs(c.Args)
	if err != nil {
		return tool.Output{}, stint.Definite(err)
	}
	address, wrong := r.target.fill(args)
	if wrong != "" {
		return tool.Errorf("%s was not called: %s", r.spec.Name, wrong), nil
	}
	secrets := make(map[string]string, len(r.spec.Secrets))
	for name, secret := range r.spec.Secrets {
		v, err := secret()
		if err == nil && strings.ContainsAny(v, "\r\n\x00") {
			err = errors.New("it has a line end in it")
		}
		if err != nil {
			return tool.Output{}, tool.NotBegun(&stint.Error{Code: stint.Unavailable, Op: "tool " + r.spec.Name,
				Err: fmt.Errorf("the secret for the header %s: %w", name, err), Hint: "look where the configuration says it is"})
		}
		secrets[name] = v
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.spec.Timeout, fmt.Errorf("its time of %v was up", r.spec.Timeout))
	defer cancel()
	if ctx.Err() != nil {
		return tool.Output{}, tool.NotBegun(context.Cause(ctx))
	}
	return r.send(ctx, c, args, address, secrets)
}

func (r *request) send(ctx context.Context, c tool.Call, args tool.Args, address string, secrets map[string]string) (tool.Output, error) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	var body io.Reader
	if r.body {
		body = bytes.NewReader(r.target.rest(c.Args, args))
	}
	req, err := http.NewRequestWithContext(ctx, r.spec.Method, address, body)
	if err != nil {
		return tool.Output{}, stint.Definite(err)
	}
	req.Header.Set("User-Agent", "stint")
	if r.body {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, v := range r.spec.Headers {
		req.Header.Set(name, v)
	}
	for name, v := range secrets {
		req.Header.Set(name, v)
	}
	if c.Key != "" {
		req.Header.Set(KeyHeader, c.Key)
	}
	req.Header.Set(EpochHeader, strconv.FormatInt(c.Epoch, 10))
	resp, err := r.client.Do(req)
	if err != nil {
		return r.failed(ctx, err, connected.Load(), secrets)
	}
	defer resp.Body.Close()
	return r.read(ctx, resp, secrets)
}

// failed says what an error of the transport leaves behind.
func (r *request) failed(ctx context.Context, err error, connected bool, secrets map[string]string) (tool.Output, error) {
	var no *safedial.Refused
	if errors.As(err, &no) {
		return tool.Errorf("%s got no answer: %s, and stint connects to such a host only if its configuration names it", r.spec.Name, no), nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	e := &stint.Error{Code: stint.Unavailable, Op: "tool " + r.spec.Name, Err: errors.New(tool.Redact(err.Error(), secrets)),
		Hint: "look whether the server of the tool is there"}
	if ctx.Err() != nil {
		e.Err = err
	}
	if !connected {
		return tool.Output{}, tool.NotBegun(e)
	}
	return tool.Output{}, e
}

// read makes an output of a response.
func (r *request) read(ctx context.Context, resp *http.Response, secrets map[string]string) (tool.Output, error) {
	keep := tool.NewKeep(r.spec.MaxOutput)
	limit := int64(tool.MaxText)
	if r.spec.MaxOutput > 0 {
		limit = int64(r.spec.MaxOutput)
	}
	// The rest is not read: who sends without end would never be done.
	n, err := io.Copy(keep, io.LimitReader(resp.Body, limit+1))
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return tool.Output{}, &stint.Error{Code: stint.Unavailable, Op: "tool " + r.spec.Name,
			Err: fmt.Errorf("HTTP %d, but the response broke off after %d bytes: %w", resp.StatusCode, n, err)}
	}
	whole := n <= limit
	got := keep.Capped()
	out := tool.Output{Error: resp.StatusCode >= 400}
	switch kind := resp.Header.Get("Content-Type"); {
	case binary(kind):
		out.Text = fmt.Sprintf("[%s, %s; it is no text and not shown]", short(kind), size(n, whole))
	case whole:
		out.Text = tool.Redact(got.Text(), secrets)
		out.Data = tool.JSON([]byte(tool.Redact(string(got.Bytes), secrets)))
	default:
		out.Text = tool.Redact(tool.Capped{Bytes: got.Bytes}.Text(), secrets) +
			fmt.Sprintf("\n[stint: the response was longer; only its first %d bytes were read]", limit)
	}
	if resp.StatusCode < 200 || resp.StatusCode >= 300 {
		head := fmt.Sprintf("[HTTP %d %s]", resp.StatusCode, http.StatusText(resp.StatusCode))
		if to := resp.Header.Get("Location"); to != "" {
			out.Error = true
			head += fmt.Sprintf("\n[it redirects to %s; stint follows that for GET and HEAD only]", short(to))
		}
		if after := resp.Header.Get("Retry-After"); after != "" {
			head += "\n[Retry-After: " + short(after) + "]"
		}
		out.Text = strings.TrimSuffix(head+"\n"+out.Text, "\n")
	}
	return out, nil
}

func size(n int64, whole bool) string {
	if whole {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("more than %d bytes", n-1)
}

// short is a header's value in a text.
func short(v string) string {
	v, _ = tool.Clean([]byte(v))
	if v == "" {
		return "no type"
	}
	return tool.Excerpt(v, 512, "")
}

// binary reports that a media type is not text.
func binary(kind string) bool {
	kind, _, _ = strings.Cut(strings.ToLower(kind), ";")
	kind = strings.TrimSpace(kind)
	top, sub, _ := strings.Cut(kind, "/")
	switch top {
	case "image", "audio", "video", "font":
		return !strings.HasSuffix(sub, "+xml")
	case "application":
		return slices.Contains([]string{"octet-stream", "pdf", "zip", "gzip", "x-gzip", "x-tar", "wasm"}, sub)
	}
	return false
}
