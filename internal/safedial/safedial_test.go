package safedial_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/safedial"
)

func TestWhy(t *testing.T) {
	refused := strings.Fields(`
		127.0.0.1 127.255.255.254 0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1
		169.254.169.254 169.254.170.2 100.64.0.1 100.100.100.200 100.127.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1
		198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 168.63.129.16
		:: ::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::127.0.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1
		2002:7f00:1:: 2002:a9fe:a9fe:: 2001::1 2001:0:7f00:1:: 2001:db8::1 3fff::1 fc00::1 fd00:ec2::254 fd20:ce::254 fe80::1 fe80::1%eth0
		fec0::1 ff02::1 ff0e::1 100::1 5f00::1 4000::1 1::1 ::ffff:0:127.0.0.1`)
	for _, s := range refused {
		if safedial.Why(netip.MustParseAddr(s)) == "" {
			t.Errorf("%s is let through", s)
		}
	}
	for _, s := range strings.Fields(`1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1
		169.253.255.255 172.15.255.255 172.32.0.1 192.0.1.1 192.167.255.255 198.17.255.255 198.20.0.1 223.255.255.255
		2606:4700:4700::1111 2a00:1450::1 2001:4860:4860::8888 ::ffff:8.8.8.8`) {
		if why := safedial.Why(netip.MustParseAddr(s)); why != "" {
			t.Errorf("%s is refused as %s", s, why)
		}
	}
	for s, want := range map[string]string{
		"169.254.169.254": "link-local, where clouds keep their secrets", "fd00:ec2::254": "link-local, where clouds keep their secrets",
		"64:ff9b::7f00:1": "an IPv6 form of an IPv4 address", "fd00::1": "a private network", "::ffff:127.0.0.1": "this machine", "::1": "this machine",
	} {
		if why := safedial.Why(netip.MustParseAddr(s)); why != want {
			t.Errorf("%s is refused as %s, want %s", s, why, want)
		}
	}
	for addr, refused := range map[string]bool{"127.0.0.1:80": true, "[::1]:80": true, "8.8.8.8:53": false, "nonsense": true} {
		if err := safedial.Control(addr); (err != nil) != refused {
			t.Errorf("at the last moment %s: %v", addr, err)
		}
	}
	if safedial.Why(netip.Addr{}) == "" {
		t.Error("no address at all is let through")
	}
}

var errDialed = errors.New("dialed")

// TestDial goes through what a resolver may say.
func TestDial(t *testing.T) {
	answers := map[string][]string{
		"public.example": {"8.8.8.8", "2606:4700::1"}, "private.example": {"10.0.0.7"}, "mixed.example": {"8.8.8.8", "127.0.0.1"},
		"mapped.example": {"::ffff:169.254.169.254"}, "intern.example": {"10.0.0.8"}, "nowhere.example": {},
	}
	for _, tt := range []struct{ addr, want, dialed string }{
		{"public.example:443", "dialed", "8.8.8.8:443 [2606:4700::1]:443"},
		{"8.8.8.8:80", "dialed", "8.8.8.8:80"},
		{"private.example:443", "private.example is 10.0.0.7, a private network", ""},
		{"mixed.example:443", "mixed.example is 127.0.0.1, this machine", ""},
		{"mapped.example:80", "link-local", ""},
		{"[::1]:80", "::1 is this machine", ""},
		{"[::ffff:127.0.0.1]:80", "this machine", ""},
		{"127.0.0.1:9999", "127.0.0.1 is this machine", ""},
		{"127.0.0.1:8080", "dialed", "127.0.0.1:8080"},
		{"intern.example:1", "dialed", "intern.example:1"},
		{"INTERN.example.:1", "dialed", "INTERN.example.:1"},
		{"x.intern.example:1", "no such host", ""},
		{"nowhere.example:1", "no such host", ""},
		{"2130706433:80", "no such host", ""}, // 127.0.0.1 as one number
		{"0x7f.1:80", "no such host", ""},
		{"[fe80::1%lo]:80", "zone", ""},
	} {
		t.Run(tt.addr, func(t *testing.T) {
			var dialed []string
			p := safedial.Policy{
				Allow: []string{"127.0.0.1:8080", "intern.example"},
				Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
					var out []netip.Addr
					for _, a := range answers[host] {
						out = append(out, netip.MustParseAddr(a))
					}
					return out, nil
				},
			}.WithDial(func(_ context.Context, _, addr string) (net.Conn, error) {
				dialed = append(dialed, addr)
				return nil, errDialed
			})
			_, err := p.DialContext(t.Context(), "tcp", tt.addr)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Join(dialed, " ") != tt.dialed {
				t.Errorf("got %v and dialed %q, want %s and %q", err, dialed, tt.want, tt.dialed)
			}
		})
	}
}

// TestRebinding: a name that resolves to a public address first and to this machine then
// is asked once, and what was looked at is what is dialed.
func TestRebinding(t *testing.T) {
	asked := 0
	p := safedial.Policy{Resolve: func(context.Context, string) ([]netip.Addr, error) {
		asked++
		if asked == 1 {
			return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}}.WithDial(func(_ context.Context, _, addr string) (net.Conn, error) { return nil, fmt.Errorf("dialed %s", addr) })
	if _, err := p.DialContext(t.Context(), "tcp", "a.example:80"); err == nil || err.Error() != "dialed 8.8.8.8:80" || asked != 1 {
		t.Errorf("got %v after %d questions", err, asked)
	}
	var no *safedial.Refused
	if _, err := p.DialContext(t.Context(), "tcp", "a.example:80"); !errors.As(err, &no) {
		t.Errorf("the second time gave %v", err)
	}
}

// TestSystem dials for real: a refused host gets no connection, an allowed one does.
func TestSystem(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	get := func(p safedial.Policy) error {
		c := http.Client{Transport: p.Transport()}
		defer c.CloseIdleConnections()
		resp, err := c.Get(srv.URL)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	var no *safedial.Refused
	if err := get(safedial.Policy{}); !errors.As(err, &no) {
		t.Errorf("got %v", err)
	}
	if err := get(safedial.Policy{Allow: []string{"127.0.0.1"}}); err != nil {
		t.Error(err)
	}
}

func TestRedirect(t *testing.T) {
	check := safedial.Redirect([]string{"X-Token", "Idempotency-Key"})
	for _, tt := range []struct{ method, from, to, want string }{
		{"GET", "https://a.example/x", "https://a.example/y", "X-Token Idempotency-Key Authorization Accept"},
		{"GET", "https://a.example/x", "https://A.example/y", "X-Token Idempotency-Key Authorization Accept"},
		{"GET", "https://a.example/x", "https://b.a.example/y", "Accept"},
		{"GET", "https://a.example/x", "https://a.example:8443/y", "Accept"},
		{"GET", "http://a.example/x", "https://a.example/y", "Accept"},
		{"GET", "https://a.example/x", "http://a.example/y", "refused"},
		{"GET", "http://a.example/x", "file:///etc/passwd", "refused"},
		{"GET", "http://a.example/x", "gopher://a.example/", "refused"},
		{"GET", "http://a.example/x", "http://u:p@a.example/", "refused"},
		{"POST", "http://a.example/x", "http://a.example/y", "answered"},
	} {
		first, _ := http.NewRequest(tt.method, tt.from, nil)
		next, _ := http.NewRequest(tt.method, tt.to, nil)
		names := []string{"X-Token", "Idempotency-Key", "Authorization", "Accept"}
		for _, n := range append(names, "Referer") {
			next.Header.Set(n, "1")
		}
		err := check(next, []*http.Request{first})
		var no *safedial.Refused
		got := "refused"
		switch {
		case errors.Is(err, http.ErrUseLastResponse):
			got = "answered"
		case err == nil:
			left := slices.DeleteFunc(names, func(n string) bool { return next.Header.Get(n) == "" })
			got = strings.Join(left, " ")
		case !errors.As(err, &no):
			t.Errorf("%s: got %v", tt.to, err)
		}
		if got != tt.want || err == nil && next.Header.Get("Referer") != "" {
			t.Errorf("%s from %s to %s: got %q, want %q", tt.method, tt.from, tt.to, got, tt.want)
		}
	}
	first, _ := http.NewRequest("GET", "http://a.example/", nil)
	if err := check(first, slices.Repeat([]*http.Request{first}, safedial.MaxRedirects)); err != nil {
		t.Error(err)
	}
	if err := check(first, slices.Repeat([]*http.Request{first}, safedial.MaxRedirects+1)); err == nil {
		t.Error("redirects are without bound")
	}
}

func TestCheckAllow(t *testing.T) {
	for _, good := range []string{"a.example", "a.example:8080", "127.0.0.1", "[::1]:80", "::1", "localhost"} {
		if err := safedial.CheckAllow([]string{good}); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "http://a.example", "*.example", "a.example/x", "a:0", "a:http", "10.0.0.0/8", ":80"} {
		if safedial.CheckAllow([]string{bad}) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
