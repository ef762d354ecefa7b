package access

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/stint-dev/stint"
)

// Bind says whether a server may listen at addr: "127.0.0.1:7777", "[::1]:0",
// "localhost:7777", ":7777", "unix:/run/stint.sock". Ask with the address that was asked
// for and again with the one that the listener got. A refusal is [stint.Invalid] and its
// hint says what to add.
//
// Loopback and Unix sockets are for this machine. Anything else needs tokens, and TLS or a
// proxy that has it: a token that crosses a network in the clear is everybody's. Behind a
// proxy every request comes from this machine or looks so, so tokens are needed wherever
// the server listens.
func Bind(addr string, hasTokens, tls, behindProxy bool) error {
	local, err := localAddr(addr)
	if err != nil {
		return err
	}
	var missing []string
	if !hasTokens && (!local || behindProxy) {
		missing = append(missing, "make a token first: stint token create --role admin NAME")
	}
	if !local && !tls && !behindProxy {
		missing = append(missing, "add --tls-cert FILE --tls-key FILE, or --behind-proxy when a proxy with TLS stands in front")
	}
	if missing == nil {
		return nil
	}
	why := "other machines can reach %s"
	if local {
		why = "a proxy lets other machines reach %s"
	}
	e := stint.Invalid.Errorf("listen", why, addr)
	if !local {
		missing = append(missing, "or listen at 127.0.0.1 and use an SSH tunnel")
	}
	e.Hint = strings.Join(missing, "; ")
	return e
}

// localAddr reports whether only this machine can reach addr.
func localAddr(addr string) (bool, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok && path != "" {
		return true, nil
	}
	i := strings.LastIndexByte(addr, ':')
	if i >= 0 {
		host, port := addr[:i], addr[i+1:]
		name, ok := hostName(host)
		if goodPort(port) && (ok || host == "") {
			return loopback(name), nil
		}
	}
	e := stint.Invalid.Errorf("listen", "%q is no address to listen at", addr)
	e.Hint = "write HOST:PORT, [IPv6]:PORT or unix:PATH"
	return false, e
}

func goodPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// loopback reports whether a name that hostName returned is of this machine alone.
func loopback(name string) bool {
	if name == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(name)
	return err == nil && a.Unmap().IsLoopback()
}

// hostName returns the one form of the host of a Host header or address, without its
// port: names in lower case, addresses as netip writes them, IPv6 without brackets.
func hostName(host string) (string, bool) {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		return a.String(), ok && err == nil && a.Is6() && a.Zone() == ""
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.String(), a.Is4()
	}
	strange := strings.IndexFunc(host, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
	})
	return strings.ToLower(host), host != "" && len(host) <= 253 && strange < 0
}

// Hosts is the names that a server answers to, see [NewHosts]. The zero value is the
// loopback names alone.
type Hosts struct{ names []string }

// NewHosts returns the loopback names and names, each for every port:
// "stint.example.com", "192.0.2.7", "[2001:db8::7]". A name with a port, a wildcard, or
// what is no name is [stint.Invalid].
func NewHosts(names ...string) (Hosts, error) {
	var h Hosts
	for _, n := range names {
		name, ok := hostName(n)
		if !ok {
			e := stint.Invalid.Errorf("host", "%q is no name of a host", n)
			e.Hint = "write the name that stands in the browser, without scheme and port; IPv6 in brackets"
			return Hosts{}, e
		}
		h.names = append(h.names, name)
	}
	return h, nil
}

// Allows reports whether a request with this Host header is for this server. A page of
// another site that makes its own name point here (DNS rebinding) sends its own name, so
// this is asked before anything else, on every method. Loopback is localhost, 127.0.0.1
// and [::1], with any port; nothing that only resolves there.
func (h Hosts) Allows(host string) bool {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		if !goodPort(host[i+1:]) {
			return false
		}
		host = host[:i]
	}
	name, ok := hostName(host)
	if !ok {
		return false
	}
	return name == "localhost" || name == "127.0.0.1" || name == "::1" || slices.Contains(h.names, name)
}
