// Package safedial connects to addresses that somebody else chose: a model, a document, a
// server that redirects. It looks at the address that is connected to, after the name was
// resolved, so that a name which resolves to something else the second time gains nothing.
//
// Everything that is not plainly of the public Internet is refused: this machine, private
// and shared networks, link-local addresses with the metadata services of clouds,
// multicast, documentation, and the forms of IPv6 that carry such an address inside. A
// host is let through only by its name in the configuration.
package safedial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Refused is the error of an address that may not be connected to. Nothing was sent.
type Refused struct {
	Host string     // as it was asked for
	Addr netip.Addr // what it is, where it was resolved
	Why  string     // "a private network"
}

// Error names host, address and reason.
func (r *Refused) Error() string {
	if r.Addr.IsValid() && r.Addr.String() != r.Host {
		return fmt.Sprintf("%s is %s, %s", r.Host, r.Addr, r.Why)
	}
	return fmt.Sprintf("%s is %s", r.Host, r.Why)
}

// Policy says which hosts may be anywhere. Its zero value allows none. It is not changed
// by its methods and may be used by many goroutines.
type Policy struct {
	// Allow names hosts that may have any address: "db.internal", "127.0.0.1:8080",
	// "[::1]". Without a port it is every port. Nothing is matched but the whole name.
	Allow []string
	// Resolve finds the addresses of a host; nil asks the system.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)

	dial func(ctx context.Context, network, addr string) (net.Conn, error) // tests
}

// networks are refused by their reason. Go's IsPrivate and its like leave out half of them.
func networks() map[string][]string {
	return map[string][]string{
		"this machine":                                {"127.0.0.0/8", "::1/128"},
		"no address of a host":                        {"0.0.0.0/8", "::/128"},
		"a private network":                           {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"},
		"link-local, where clouds keep their secrets": {"169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "fd20:ce::254/128"},
		"a carrier's shared network":                  {"100.64.0.0/10"},
		"reserved for protocols":                      {"192.0.0.0/24", "192.88.99.0/24", "2001::/23"},
		"for benchmarks":                              {"198.18.0.0/15"},
		"for documentation":                           {"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"},
		"multicast":                                   {"224.0.0.0/4", "ff00::/8"},
		"reserved":                                    {"240.0.0.0/4", "100::/64", "5f00::/16"},
		"an IPv6 form of an IPv4 address":             {"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16"},
		// Azure's agent has a public address that only its guests reach.
		"the metadata service of a cloud": {"168.63.129.16/32"},
	}
}

// Why tells why an address is refused; "" for one that is not.
func Why(addr netip.Addr) string {
	if addr.Zone() != "" {
		return "an address with a zone"
	}
	addr = addr.Unmap()
	why, bits := "", -1
	for reason, list := range networks() {
		for _, n := range list {
			if p := netip.MustParsePrefix(n); p.Contains(addr) && p.Bits() > bits {
				why, bits = reason, p.Bits()
			}
		}
	}
	if why == "" && (!addr.IsValid() || addr.Is6() && !netip.MustParsePrefix("2000::/3").Contains(addr)) {
		return "not of the public Internet"
	}
	return why
}

// DialContext connects to a host's first address that takes the connection. It returns
// [Refused] if any address of the host is refused, since such a host is set up to mislead;
// then nothing is sent. Only TCP is dialed.
func (p Policy) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	dial := p.dial
	if p.allowed(host, port) {
		if dial == nil {
			dial = (&net.Dialer{Timeout: dialTime}).DialContext
		}
		return dial(ctx, network, addr)
	}
	addrs, err := p.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if why := Why(a); why != "" {
			return nil, &Refused{Host: host, Addr: a.Unmap(), Why: why}
		}
	}
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTime, Control: control}).DialContext
	}
	var failed error
	for _, a := range addrs {
		conn, err := dial(ctx, network, net.JoinHostPort(a.Unmap().String(), port))
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

const dialTime = 30 * time.Second

// control looks once more at what is connected to, at the last moment there is.
func control(_, addr string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	if why := Why(ap.Addr()); why != "" {
		return &Refused{Host: ap.Addr().String(), Why: why}
	}
	return nil
}

func (p Policy) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if p.Resolve != nil {
		addrs, err := p.Resolve(ctx, host)
		if err == nil && len(addrs) == 0 {
			err = &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return addrs, err
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// allowed compares names as DNS does: without regard to case, or to a dot at the end.
func (p Policy) allowed(host, port string) bool {
	return slices.ContainsFunc(p.Allow, func(entry string) bool {
		name, wanted := entry, ""
		if h, pt, err := net.SplitHostPort(entry); err == nil {
			name, wanted = h, pt
		}
		return plain(name) == plain(host) && (wanted == "" || wanted == port)
	})
}

func plain(host string) string {
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String()
	}
	return host
}

// CheckAllow tells whether the entries of an Allow can ever match.
func CheckAllow(entries []string) error {
	for _, e := range entries {
		name := e
		if h, pt, err := net.SplitHostPort(e); err == nil {
			if n, err := strconv.ParseUint(pt, 10, 16); err != nil || n == 0 {
				return fmt.Errorf("%q: there is no port %q", e, pt)
			}
			name = h
		}
		if name == "" || strings.ContainsAny(name, "/*?#@ \t\n%") {
			return fmt.Errorf("%q is not a host or host:port; patterns and URLs are not taken", e)
		}
	}
	return nil
}

// Transport returns a transport that connects by the policy: no proxy, since a proxy
// would connect in its place, and headers of a response of at most 256 KiB.
func (p Policy) Transport() *http.Transport {
	return &http.Transport{
		DialContext:            p.DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        30 * time.Second,
		TLSHandshakeTimeout:    15 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// MaxRedirects is how many redirects a request follows.
const MaxRedirects = 5

// Redirect returns a CheckRedirect that follows GET and HEAD alone, at most
// [MaxRedirects] times, to http or https and never from https to http, and to a host
// that may be connected to like any other. Of the headers that are ours it takes those
// off that a request to another origin must not carry. A request that is not followed
// gets the redirect itself as its response.
func Redirect(ours []string) func(req *http.Request, via []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		first := via[0]
		switch {
		case first.Method != http.MethodGet && first.Method != http.MethodHead:
			return http.ErrUseLastResponse
		case len(via) > MaxRedirects:
			return &Refused{Host: req.URL.Host, Why: fmt.Sprintf("more than %d redirects away", MaxRedirects)}
		case req.URL.Scheme != "https" && (req.URL.Scheme != "http" || first.URL.Scheme == "https"):
			return &Refused{Host: req.URL.Host, Why: "reached by a redirect from " + first.URL.Scheme + " to " + req.URL.Scheme}
		case req.URL.User != nil:
			return &Refused{Host: req.URL.Host, Why: "reached by a redirect that carries a password"}
		}
		req.Header.Del("Referer")
		if !sameOrigin(req, first) {
			for _, name := range append([]string{"Authorization", "Cookie", "Proxy-Authorization"}, ours...) {
				req.Header.Del(name)
			}
		}
		return nil
	}
}

func sameOrigin(a, b *http.Request) bool {
	return a.URL.Scheme == b.URL.Scheme && strings.EqualFold(a.URL.Host, b.URL.Host)
}
