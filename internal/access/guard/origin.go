package guard

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/stint-dev/stint/internal/access"
)

// origin is where a request comes from.
type origin struct {
	peer   access.Peer
	source string // whom to count failures for
	secure bool   // the client's connection has TLS
	around bool   // behind a proxy: it came in the clear, from another machine, not through the proxy
}

// origin looks at the connection, and at the headers of a proxy that is to be believed.
func (g *Guard) origin(r *http.Request) origin {
	o := origin{secure: r.TLS != nil}
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && a.Network() == "unix" {
		o.peer.Unix = true
	} else if ap, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		o.peer.Addr = ap.Addr().Unmap().WithZone("")
	}
	for _, name := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"} {
		o.peer.Forwarded = o.peer.Forwarded || r.Header.Get(name) != ""
	}
	client := o.peer.Addr
	if g.config.BehindProxy {
		if g.proxy(o.peer) {
			if a, ok := address(last(r.Header["X-Forwarded-For"])); ok {
				client = a
			}
			o.secure = o.secure || strings.EqualFold(last(r.Header["X-Forwarded-Proto"]), "https")
		} else {
			o.around = r.TLS == nil && !o.peer.Addr.IsLoopback()
		}
	}
	o.source = source(client)
	return o
}

// proxy reports whether a peer is a proxy that is to be believed.
func (g *Guard) proxy(p access.Peer) bool {
	if p.Unix {
		return true
	}
	for _, n := range g.config.Proxies {
		if n.Contains(p.Addr) {
			return true
		}
	}
	return false
}

// last returns the last value of a header that is a list. The nearest proxy wrote it;
// all before it is what it was told.
func last(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	all := lines[len(lines)-1]
	return strings.TrimSpace(all[strings.LastIndexByte(all, ',')+1:])
}

// address reads an address with or without a port.
func address(s string) (netip.Addr, bool) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return a.Unmap().WithZone(""), err == nil
}

// source is an address as failures are counted: of IPv6 the network, since a host there
// has as many addresses as it likes.
func source(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "this machine"
	case a.Is6():
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}
