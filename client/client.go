package client

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/stint-dev/stint"
)

// Options say where a server is, and who asks.
type Options struct {
	// URL is that of the server: https://HOST, http://HOST:PORT, or unix:PATH for its
	// socket on this machine. A path is put before those of the API.
	URL string
	// Token is sent with each request; a socket, and often the machine itself, needs none.
	// In the clear it is sent to this machine alone.
	Token string
	// Socket is the path of a Unix socket that is dialled instead of the URL's host.
	Socket string
	// HTTP is what requests are made with; nil: one of its own. It must not have a time
	// limit if events are watched. Redirects are not followed: they would take the token
	// elsewhere.
	HTTP *http.Client
	// Tries is how often what may be repeated is sent at most; 0: 4.
	Tries int
}

// Client speaks with one server. All methods may be called concurrently; all honour ctx.
type Client struct {
	base  *url.URL
	name  string // of the server, in errors
	token string
	tries int
	http  *http.Client
}

var (
	_ stint.Reader = (*Client)(nil)
	_ stint.Sender = (*Client)(nil)
	_ stint.Blobs  = (*Client)(nil)
)

// New returns a client and asks nothing of the server yet. What is no address, and a token
// that would cross a network in the clear, is [stint.Invalid].
func New(o Options) (*Client, error) {
	c := &Client{name: o.URL, token: strings.TrimSpace(o.Token), tries: o.Tries}
	if c.tries <= 0 {
		c.tries = 4
	}
	if path, ok := strings.CutPrefix(o.URL, "unix:"); ok {
		if o.Socket != "" || path == "" {
			return nil, wrong("%q is no path of a socket", o.URL)
		}
		o.URL, o.Socket = "http://localhost", path
	}
	if o.Socket != "" && o.URL == "" {
		o.URL, c.name = "http://localhost", "unix:"+o.Socket
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, wrong("%.100q is no address of a server", o.URL)
	}
	if u.Scheme == "http" && c.token != "" && o.Socket == "" && !isLoopback(u.Hostname()) {
		e := stint.Invalid.Errorf("server", "a token would cross the network to %s in the clear", u.Host)
		e.Hint = "give an address that begins with https://; docs/access.md says how a server gets one"
		return nil, e
	}
	c.base = u
	plain := http.Client{}
	if o.HTTP != nil {
		plain = *o.HTTP
	} else {
		plain.Transport = transport(o.Socket)
	}
	plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &plain
	return c, nil
}

func wrong(format string, args ...any) error {
	e := stint.Invalid.Errorf("server", format, args...)
	e.Hint = "write https://HOST, http://127.0.0.1:7878, or unix:PATH for the socket of a server on this machine"
	return e
}

func transport(socket string) http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // a program has put its own there
		return http.DefaultTransport
	}
	t = t.Clone()
	if socket != "" {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		}
	}
	return t
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// Server returns the address that the client was made with.
func (c *Client) Server() string { return c.name }

// Close lets connections go that are not in use. The client may be used on.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}
