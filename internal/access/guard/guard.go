package guard

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/problem"
)

// Limits of a request, beside those of [Server].
const (
	maxHeaders     = 100     // values, all names together
	maxURL         = 8 << 10 // bytes
	defaultBody    = 1 << 20 // bytes
	defaultStreams = 512     // at once
	streamShare    = 8       // one token has at most one part in so many of the streams
)

// Config is how a [Guard] decides.
type Config struct {
	Keeper   access.Keeper
	Redeemer access.Redeemer // nil: nobody logs in with a browser
	Hosts    access.Hosts    // loopback names are always in it
	// LocalAdmin lets loopback in without a token though there are tokens. It cannot be
	// together with BehindProxy.
	LocalAdmin bool
	// Somebody returns who is on this machine and needs no token, from the context of the
	// request; nil: [access.Local]. It is asked once for a request, and again while a stream
	// goes on.
	Somebody func(context.Context) access.Principal
	// BehindProxy says that requests come through a proxy with TLS. Plain requests that
	// come from elsewhere than Proxies and loopback are refused.
	BehindProxy bool
	Proxies     []netip.Prefix // where the proxies are; nil: on this machine
	MaxBody     int64          // bytes of a request where its row says nothing; 0: 1 MiB
	MaxStreams  int            // at once, in rows with Stream; 0: 512
	Log         *slog.Logger   // refused credentials, failures of the Keeper; nil: nowhere
}

// Guard decides about requests. It may be used by many goroutines.
type Guard struct {
	config   Config
	cross    *http.CrossOriginProtection
	failures failures

	mu      sync.Mutex
	streams map[string]int // by token
	open    int            // all of them
}

// New returns a guard. A configuration that contradicts itself is [stint.Invalid].
func New(c Config) (*Guard, error) {
	switch {
	case c.Keeper == nil:
		return nil, stint.Invalid.Errorf("listen", "there is no keeper of tokens")
	case c.LocalAdmin && c.BehindProxy:
		e := stint.Invalid.Errorf("listen", "behind a proxy nobody is local")
		e.Hint = "leave out --local-admin or --behind-proxy"
		return nil, e
	case len(c.Proxies) > 0 && !c.BehindProxy:
		return nil, stint.Invalid.Errorf("listen", "proxies are named, and no proxy stands in front")
	}
	if c.BehindProxy && len(c.Proxies) == 0 {
		c.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	if c.MaxBody == 0 {
		c.MaxBody = defaultBody
	}
	if c.MaxStreams == 0 {
		c.MaxStreams = defaultStreams
	}
	if c.Somebody == nil {
		c.Somebody = func(context.Context) access.Principal { return access.Local() }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Guard{config: c, cross: http.NewCrossOriginProtection(), streams: map[string]int{}}, nil
}

// Mux is an http.ServeMux that knows its patterns. Its zero value is empty. Routes are
// registered before it serves.
type Mux struct {
	mux      http.ServeMux
	patterns []string
}

// Handle registers a handler, as http.ServeMux does.
func (m *Mux) Handle(pattern string, h http.Handler) {
	m.mux.Handle(pattern, h)
	m.patterns = append(m.patterns, pattern)
}

// HandleFunc registers a function, as http.ServeMux does.
func (m *Mux) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	m.Handle(pattern, http.HandlerFunc(h))
}

// ServeHTTP serves without any guard: a server uses what [Guard.Protect] returns.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.mux.ServeHTTP(w, r) }

// Patterns returns what was registered, in that order.
func (m *Mux) Patterns() []string { return slices.Clone(m.patterns) }

// Protect returns the handler that a server serves. When routes and rows do not match, it
// is [stint.Internal] with all that is wrong: nothing is served half guarded.
func (g *Guard) Protect(t access.Table, m *Mux) (http.Handler, error) {
	if err := t.Check(m.patterns); err != nil {
		return nil, stint.Internal.Errorf("routes", "%w", err)
	}
	rows := map[string]access.Route{}
	for _, r := range t {
		rows[r.Key()] = r
	}
	return &protected{guard: g, rows: rows, mux: &m.mux}, nil
}

type protected struct {
	guard *Guard
	rows  map[string]access.Route
	mux   *http.ServeMux
}

// ServeHTTP implements http.Handler.
func (p *protected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g := p.guard
	secure(w.Header())
	if !g.config.Hosts.Allows(r.Host) {
		e := stint.Denied.Errorf("request", "this server is not %q", r.Host)
		e.Hint = "use 127.0.0.1 or localhost, or start the server with --host NAME"
		problem.Write(w, e)
		return
	}
	o := g.origin(r)
	if err := g.limits(r, o); err != nil {
		problem.Write(w, err)
		return
	}
	row, err := p.route(w, r)
	if err != nil {
		problem.Write(w, err)
		return
	}
	most := row.MaxBody
	if most == 0 {
		most = g.config.MaxBody
	}
	if r.ContentLength > most {
		problem.Write(w, problem.With(http.StatusRequestEntityTooLarge, stint.Limit.Errorf("request", "its body has %d bytes, %d are allowed", r.ContentLength, most)))
		return
	}
	if r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, most)
	}
	if err := g.sameOrigin(r, o, row); err != nil {
		problem.Write(w, err)
		return
	}
	if row.Public != "" {
		p.mux.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	who, err := g.authenticate(r, o)
	if err == nil && !row.Allows(who.Principal) {
		e := stint.Denied.Errorf("request", "%s has no scope %s", who.Name, row.Scope)
		e.Hint = "ask an administrator for a token with a role that has it"
		err = e
	}
	if err != nil {
		g.refuse(w, o, err)
		return
	}
	p.admit(w, r, row, who)
}

// route finds the row of a request. What has none does not exist, also when a handler
// for it does.
func (p *protected) route(w http.ResponseWriter, r *http.Request) (access.Route, error) {
	h, pattern := p.mux.Handler(r)
	if row, ok := p.rows[pattern]; ok {
		return row, nil
	}
	if pattern == "" { // the mux knows whether it is the method
		miss := &headerOnly{header: http.Header{}}
		h.ServeHTTP(miss, r)
		if allow := miss.header.Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
			e := stint.Invalid.Errorf("request", "there is no %s of %s", strings.ToUpper(r.Method), r.URL.Path)
			e.Hint = "the methods are " + allow
			return access.Route{}, problem.With(http.StatusMethodNotAllowed, e)
		}
	}
	return access.Route{}, stint.NotFound.Errorf("request", "there is nothing at %s", r.URL.Path)
}

// headerOnly takes the headers of an answer that nobody gets.
type headerOnly struct{ header http.Header }

// Header implements http.ResponseWriter.
func (h *headerOnly) Header() http.Header { return h.header }

// Write implements http.ResponseWriter.
func (h *headerOnly) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements http.ResponseWriter.
func (h *headerOnly) WriteHeader(int) {}

// limits refuses what no client of stint sends. Header bytes are bounded by [Server].
func (g *Guard) limits(r *http.Request, o origin) error {
	values := 0
	for _, v := range r.Header {
		values += len(v)
	}
	switch {
	case values > maxHeaders:
		return problem.With(http.StatusRequestHeaderFieldsTooLarge, stint.Limit.Errorf("request", "it has %d headers, %d are allowed", values, maxHeaders))
	case len(r.RequestURI) > maxURL:
		return problem.With(http.StatusRequestURITooLong, stint.Limit.Errorf("request", "its URL has %d bytes, %d are allowed", len(r.RequestURI), maxURL))
	case !plainPath(r.URL.Path) || !plainPath(r.URL.EscapedPath()):
		return stint.Invalid.Errorf("request", "the path %s is not plain", strconv.QuoteToASCII(r.URL.Path))
	case o.around:
		e := stint.Denied.Errorf("request", "it came in the clear and not through the proxy")
		e.Hint = "use the address of the proxy, which has to be on the machine of the server"
		return e
	}
	return nil
}

// plainPath reports whether a path means the same to everybody who reads it: no empty
// segment, no . or .., no control characters.
func plainPath(path string) bool {
	if !strings.HasPrefix(path, "/") || strings.Contains(path, "//") || strings.IndexFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) >= 0 {
		return false
	}
	for s := range strings.SplitSeq(path, "/") {
		if s == "." || s == ".." {
			return false
		}
	}
	return true
}

// secure sets what each answer has. The dashboard brings no script or style of others, is
// framed by nobody, and tells nobody where a click came from.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// sameOrigin refuses what a page of another origin makes a browser send. A bearer token
// is nothing that a browser adds by itself, and a public route changes nothing by who
// asks: both need the standard check of unsafe methods only. Where the browser itself is
// the credential, by its cookie or by standing on this machine, reads are checked too,
// since pages on other ports of a host count as of the same site; and with a cookie, an
// unsafe request whose origin is not said is refused.
func (g *Guard) sameOrigin(r *http.Request, o origin, row access.Route) error {
	err := g.cross.Check(r)
	if err == nil && row.Public == "" && r.Header.Get("Authorization") == "" {
		unsafe := *r
		unsafe.Method = http.MethodPost // a read is checked as a write
		err = g.cross.Check(&unsafe)
		silent := r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == ""
		if _, ok := cookie(r, o); ok && silent && !safe(r.Method) {
			err = stint.Denied.Errorf("request", "it has a cookie and no origin")
		}
	}
	if err == nil {
		return nil
	}
	e := stint.Denied.Errorf("request", "another page sent it: %w", err)
	e.Hint = "use the dashboard itself, or a token in an Authorization header; a proxy in front has to pass Host on"
	return e
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// refuse answers a request that did not get in. A source whose credentials failed too
// often is told to wait; one that is good is let in all the same, so that a forgotten
// cron job behind the same address locks nobody out. Nobody guesses 256 bits: what the
// limit saves is the log.
func (g *Guard) refuse(w http.ResponseWriter, o origin, err error) {
	if problem.Status(err) == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="stint"`)
	}
	if failed(err) {
		if after := g.failures.note(o.source, time.Now()); after > 0 {
			e := stint.Limit.Errorf("token", "too many credentials from %s were refused", o.source)
			e.Hint = "find the program that sends an old token"
			problem.Write(w, stint.Retry(after, e))
			return
		}
		g.config.Log.Warn("credential refused", "source", o.source, "why", err)
	}
	problem.Write(w, err)
}

// principalKey is where the context of a request has its principal.
type principalKey struct{}

// From returns who a request comes from: nobody on a public route.
func From(ctx context.Context) access.Principal {
	p, _ := ctx.Value(principalKey{}).(access.Principal)
	return p
}
