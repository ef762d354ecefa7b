package guard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/access/guard"
)

// A page of another site that points its name here gets nothing, whatever it asks for.
func TestAnotherHostIsRefusedOnEveryRoute(t *testing.T) {
	k := newKit(t, nil)
	admin := k.user(access.Administrator)
	hosts := []string{"evil.example", "evil.example:7777", "localhost.evil.example", "", "127.0.0.1.evil.example", "[::2]:7777"}
	paths := []string{"/nothing", "//", "*"}
	for _, r := range table() {
		paths = append(paths, strings.NewReplacer("{name}", "a", "{id}", "a", "{key}", "a").Replace(r.Pattern))
	}
	for _, host := range hosts {
		for _, path := range paths {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"} {
				r := request(method, path, bearer(admin))
				r.Host = host
				if w := k.do(r); w.Code != http.StatusForbidden {
					t.Errorf("%s %s with Host %q: %d", method, path, host, w.Code)
				}
			}
		}
	}
	if n := k.calls.Load(); n != 0 {
		t.Errorf("%d requests came to a handler", n)
	}
	for _, host := range []string{"localhost", "localhost:1", "127.0.0.1:7777", "[::1]:7777", "stint.example.com"} {
		if got := k.status("GET", "/v1/sessions", bearer(admin), "Host: "+host); got != 200 {
			t.Errorf("Host %q: %d", host, got)
		}
	}
	// What a proxy header says is no name of this server.
	if got := k.status("GET", "/v1/sessions", bearer(admin), "Host: evil.example", "X-Forwarded-Host: localhost"); got != 403 {
		t.Errorf("a forwarded host: %d", got)
	}
}

// The matrix of package access is what happens: every route with every role.
func TestEveryRouteWithEveryRole(t *testing.T) {
	k := newKit(t, nil)
	type caller struct {
		name   string
		who    access.Principal
		header []string
	}
	callers := []caller{{name: "nobody"}}
	for _, r := range access.Roles() {
		tok, text := k.token(access.Spec{Kind: access.User, Role: r, Name: string(r)})
		callers = append(callers, caller{string(r), tok.Principal(), []string{bearer(text)}})
	}
	for _, s := range access.Scopes() {
		tok, text := k.token(access.Spec{Kind: access.CI, Scopes: []access.Scope{s}, Name: string(s)})
		callers = append(callers, caller{string(s), tok.Principal(), []string{bearer(text)}})
	}
	for _, r := range table() {
		path := strings.NewReplacer("{name}", "a", "{id}", "a", "{key}", "a").Replace(r.Pattern)
		if path == "/login" {
			continue // it has its own tests
		}
		for _, c := range callers {
			want := http.StatusOK
			switch {
			case r.Allows(c.who):
			case c.header == nil:
				want = http.StatusUnauthorized
			default:
				want = http.StatusForbidden
			}
			before := k.calls.Load()
			w := k.do(request(r.Method, path, c.header...))
			if w.Code != want || (k.calls.Load() > before) != (want == 200) {
				t.Errorf("%s by %s: %d, want %d", r.Key(), c.name, w.Code, want)
			}
			if r.Public == "" && want == 200 && w.Header().Get("X-Who") != c.name {
				t.Errorf("%s by %s: the handler is told %q", r.Key(), c.name, w.Header().Get("X-Who"))
			}
		}
	}
}

func TestEveryAnswerIsSecured(t *testing.T) {
	k := newKit(t, nil)
	admin := bearer(k.user(access.Administrator))
	for name, r := range map[string]*http.Request{
		"an answer": request("GET", "/v1/sessions", admin), "no token": request("GET", "/v1/sessions"),
		"another host": request("GET", "/", "Host: evil.example"), "public": request("GET", "/"), "another page": request("POST", "/v1/sessions", admin, "Origin: null"),
		"another method": request("PUT", "/v1/sessions", admin), "a crooked path": request("GET", "//", admin),
	} {
		w := k.do(r)
		h := w.Header()
		csp := h.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'self'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: the policy is %q", name, csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("X-Frame-Options") != "DENY" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%s: the headers are %v", name, h)
		}
		if got, want := h.Get("Cache-Control") == "no-store", name != "public"; got != want {
			t.Errorf("%s: Cache-Control is %q", name, h.Get("Cache-Control"))
		}
		for allow := range h {
			if strings.HasPrefix(allow, "Access-Control-") {
				t.Errorf("%s: other origins are told %s", name, allow)
			}
		}
	}
}

func TestWhatNoClientSends(t *testing.T) {
	k := newKit(t, nil)
	admin := bearer(k.user(access.Administrator))
	for path, want := range map[string]int{
		"/v1/sessions": 200, "/v1/sessions/a": 200, "//": 400, "//evil.example": 400, "/v1//sessions": 400, "/v1/./sessions": 400, "/v1/x/../sessions": 400, "/..": 400, "/v1/sessions/..": 400,
		"/v1/sessions/a\x00": 400, "/v1/sessions/a\nb": 400, `/v1/sessions/..\x`: 400, "": 400, "*": 400, "v1/sessions": 400, "/v1/sessions/...": 200, "/v1/sessions/-rf": 200,
	} {
		if got := k.status("GET", path, admin); got != want {
			t.Errorf("%q: %d, want %d", path, got, want)
		}
	}
	r := request("GET", "/v1/sessions/../audit", admin) // as %2e%2e%2f, which the mux does not see
	r.URL.RawPath = "/v1/sessions/%2e%2e%2faudit"
	if w := k.do(r); w.Code != 400 {
		t.Errorf("an encoded way up: %d", w.Code)
	}
	if w := k.do(request("GET", "/v1/none", admin)); w.Code != 200 { // "GET /" takes it: a file of the dashboard
		t.Errorf("an unknown file: %d", w.Code)
	}
	if w := k.do(request("PUT", "/v1/sessions", admin)); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("another method: %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
	long := request("GET", "/v1/sessions", admin)
	long.RequestURI = "/v1/sessions?" + strings.Repeat("a", 8<<10)
	if w := k.do(long); w.Code != 414 {
		t.Errorf("a long URL: %d", w.Code)
	}
	many := request("GET", "/v1/sessions", admin)
	for range 100 {
		many.Header.Add("X-A", "b")
	}
	if w := k.do(many); w.Code != 431 {
		t.Errorf("many headers: %d", w.Code)
	}
	// A method is what the request line says.
	for _, h := range []string{"X-HTTP-Method-Override: DELETE", "X-HTTP-Method: DELETE", "X-Method-Override: DELETE"} {
		if w := k.do(request("GET", "/v1/sessions", admin, h)); w.Code != 200 || w.Header().Get("X-Method") != "GET" {
			t.Errorf("%s: %d as %s", h, w.Code, w.Header().Get("X-Method"))
		}
	}
	// A token belongs in no URL, where logs and histories keep it.
	inURL := request("GET", "/v1/sessions")
	inURL.URL.RawQuery = "token=" + strings.TrimPrefix(admin, "Authorization: Bearer ") + "&access_token=" + strings.TrimPrefix(admin, "Authorization: Bearer ")
	if w := k.do(inURL); w.Code != 401 {
		t.Errorf("a token in the URL: %d", w.Code)
	}
}

func TestBodiesHaveALimit(t *testing.T) {
	k := newKit(t, nil)
	admin := bearer(k.user(access.Administrator))
	for _, c := range []struct {
		path    string
		bytes   int
		chunked bool
		want    int
	}{
		{"/v1/sessions", 100, false, 200}, {"/v1/sessions", 101, false, 413}, {"/v1/sessions", 101, true, 413},
		{"/v1/fire", 1 << 20, false, 200}, {"/v1/fire", 1<<20 + 1, false, 413}, {"/v1/fire", 1<<20 + 1, true, 413},
		{"/hooks/a", 1<<20 + 1, true, 413},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", c.path, strings.NewReader(strings.Repeat("a", c.bytes)))
		r.Host = "localhost"
		r.Header.Set("Authorization", strings.TrimPrefix(admin, "Authorization: "))
		if c.chunked {
			r.ContentLength = -1
		}
		if w := k.do(r); w.Code != c.want {
			t.Errorf("%d bytes to %s (chunked: %t): %d, want %d", c.bytes, c.path, c.chunked, w.Code, c.want)
		}
	}
}

// What browsers say of the page that sends a request, and whether it gets in.
func TestPagesOfOthers(t *testing.T) {
	k := newKit(t, nil)
	local := "From-Address: 127.0.0.1:1000"
	web, cookie := k.token(access.Spec{Kind: access.Web, Role: access.Administrator})
	if web.Kind != access.Web {
		t.Fatal(web.Kind)
	}
	cookie = "Cookie: stint-7777=" + cookie
	const same, other, null = "Origin: http://localhost:7777", "Origin: http://evil.example", "Origin: null"
	const sfsSame, sfsNone, sfsSite, sfsCross = "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: none", "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: cross-site"
	for _, c := range []struct {
		who          string
		said         []string
		read, change int
	}{
		{local, nil, 200, 200}, // curl
		{local, []string{same}, 200, 200},
		{local, []string{sfsSame}, 200, 200},
		{local, []string{sfsNone}, 200, 200},
		{local, []string{sfsSame, other}, 200, 200}, // a browser does not say both
		{local, []string{other}, 403, 403},
		{local, []string{null}, 403, 403},
		{local, []string{"Origin: http://localhost:3000"}, 403, 403},
		{local, []string{"Origin: http://127.0.0.1:7777"}, 403, 403},
		{local, []string{sfsSite, "Origin: http://localhost:3000"}, 403, 403}, // another port
		{local, []string{sfsCross}, 403, 403},
		{local, []string{sfsCross, same}, 403, 403},
		{local, []string{"Sec-Fetch-Site: x"}, 403, 403},
		{cookie, []string{sfsSame}, 200, 200},
		{cookie, []string{same}, 200, 200},
		{cookie, nil, 200, 403}, // no origin is not the same origin
		{cookie, []string{null}, 403, 403},
		{cookie, []string{other}, 403, 403},
		{cookie, []string{sfsSite}, 403, 403},
		{cookie, []string{sfsCross}, 403, 403},
	} {
		if got := k.status("GET", "/v1/sessions", append(c.said, c.who)...); got != c.read {
			t.Errorf("%.20s reads, %q: %d, want %d", c.who, c.said, got, c.read)
		}
		for _, path := range []string{"/v1/sessions", "/v1/tokens"} {
			if got := k.status("POST", path, append(c.said, c.who)...); got != c.change {
				t.Errorf("%.20s changes, %q: %d, want %d", c.who, c.said, got, c.change)
			}
		}
	}
	for said, want := range map[string]int{"X-Nothing: x": 200, other: 403, null: 403, sfsCross: 403, sfsSame: 200} {
		for _, path := range []string{"/hooks/a", "/v1/sessions"} {
			if got := k.status("POST", path, said, bearer(k.user(access.Administrator))); got != want {
				t.Errorf("POST %s, %s: %d, want %d", path, said, got, want)
			}
		}
	}
	// A link from elsewhere opens the dashboard's page, which holds no data.
	if got := k.status("GET", "/", sfsCross, cookie); got != 200 {
		t.Errorf("a link from elsewhere: %d", got)
	}
}

func TestWhoIsThere(t *testing.T) {
	k := newKit(t, nil)
	user := k.user(access.Viewer)
	_, agent := k.token(access.Spec{Kind: access.Agent, Role: access.Viewer})
	_, ci := k.token(access.Spec{Kind: access.CI, Role: access.Viewer})
	_, login := k.token(access.Spec{Kind: access.Login, Role: access.Viewer})
	_, web := k.token(access.Spec{Kind: access.Web, Role: access.Viewer})
	gone, revoked := k.token(access.Spec{Kind: access.User, Role: access.Viewer})
	if err := k.mem.Revoke(gone.ID, gone.Created); err != nil {
		t.Fatal(err)
	}
	_, unknown, err := access.Mint(access.Spec{Kind: access.User, Role: access.Viewer, Name: "x"}, gone.Created, [access.RandomBytes]byte{41: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		headers []string
		want    int
	}{
		"nobody":                  {nil, 401},
		"a user":                  {[]string{bearer(user)}, 200},
		"an agent":                {[]string{bearer(agent)}, 200},
		"a build":                 {[]string{bearer(ci)}, 200},
		"lower case":              {[]string{"Authorization: bearer " + user}, 200},
		"a login code as bearer":  {[]string{bearer(login)}, 401},
		"a cookie as bearer":      {[]string{bearer(web)}, 401},
		"revoked":                 {[]string{bearer(revoked)}, 401},
		"unknown":                 {[]string{bearer(unknown.Reveal())}, 401},
		"cut off":                 {[]string{bearer(user[:len(user)-1])}, 401},
		"two":                     {[]string{bearer(user), bearer(user)}, 401},
		"empty":                   {[]string{"Authorization: "}, 401},
		"basic":                   {[]string{"Authorization: Basic " + user}, 401},
		"the token alone":         {[]string{"Authorization: " + user}, 401},
		"a cookie":                {[]string{"Cookie: stint-7777=" + web}, 200},
		"of another port":         {[]string{"Cookie: stint-7778=" + web}, 401},
		"a user's in a cookie":    {[]string{"Cookie: stint-7777=" + user}, 401},
		"a code in a cookie":      {[]string{"Cookie: stint-7777=" + login}, 401},
		"bad header, good cookie": {[]string{bearer(revoked), "Cookie: stint-7777=" + web}, 401},
		"good header, bad cookie": {[]string{bearer(user), "Cookie: stint-7777=x"}, 200},
	} {
		address := fmt.Sprintf("From-Address: 198.51.100.%d:1", len(name)*7%250) // so that no failure of another counts
		w := k.do(request("GET", "/v1/sessions", append(c.headers, address)...))
		if w.Code != c.want || (w.Header().Get("WWW-Authenticate") != "") != (c.want == 401) {
			t.Errorf("%s: %d, want %d; %s", name, w.Code, c.want, w.Body)
		}
	}
}

// On a machine of one person the first command works; the first token ends that.
func TestLoopbackNeedsATokenOnceThereIsOne(t *testing.T) {
	const loop, far, socket = "From-Address: 127.0.0.1:1000", "From-Address: 192.0.2.9:1000", "From-Socket: /run/stint.sock"
	ask := func(k *kit, headers ...string) int { k.t.Helper(); return k.status("POST", "/v1/tokens", headers...) }
	k := newKit(t, nil)
	for name, want := range map[string]int{loop: 200, "From-Address: [::1]:9": 200, "From-Address: [::ffff:127.0.0.1]:9": 200, socket: 200, far: 401, "From-Address: nonsense": 401} {
		if got := ask(k, name); got != want {
			t.Errorf("without tokens, %s: %d, want %d", name, got, want)
		}
	}
	for _, h := range []string{"X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.1", "X-Real-IP: 192.0.2.1", "Via: 1.1 x", "X-Forwarded-Proto: https", "X-Forwarded-Host: localhost"} {
		if got := ask(k, loop, h); got != 401 {
			t.Errorf("through a proxy that nobody spoke of, %s: %d", h, got)
		}
	}
	if got := ask(k, loop, bearer("stint_user_x")); got != 401 {
		t.Errorf("a bad token on loopback: %d", got)
	}
	if got := ask(k, loop, "Cookie: stint-7777=old", "Sec-Fetch-Site: same-origin"); got != 200 {
		t.Errorf("a cookie of the past on loopback: %d", got)
	}
	k.token(access.Spec{Kind: access.Agent, Role: access.Viewer})
	if got := ask(k, loop); got != 200 {
		t.Errorf("after an agent got a token: %d", got)
	}
	tok, text := k.token(access.Spec{Kind: access.User, Role: access.Administrator})
	for name, want := range map[string]int{loop: 401, socket: 200} {
		if got := ask(k, name); got != want {
			t.Errorf("with tokens, %s: %d, want %d", name, got, want)
		}
	}
	if got := ask(k, loop, bearer(text)); got != 200 {
		t.Errorf("with its token: %d", got)
	}
	if err := k.mem.Revoke(tok.ID, tok.Created); err != nil {
		t.Fatal(err)
	}
	if got := ask(k, loop); got != 401 {
		t.Errorf("a revoked token opens loopback again: %d", got)
	}
	k = newKit(t, func(c *guard.Config) { c.LocalAdmin = true })
	k.user(access.Viewer)
	for name, want := range map[string]int{loop: 200, far: 401} {
		if got := ask(k, name); got != want {
			t.Errorf("with --local-admin, %s: %d, want %d", name, got, want)
		}
	}
}

func TestBehindAProxy(t *testing.T) {
	const https = "X-Forwarded-Proto: https"
	k := newKit(t, func(c *guard.Config) {
		c.BehindProxy, c.Proxies = true, []netip.Prefix{netip.MustParsePrefix("10.0.0.2/32")}
	})
	user := bearer(k.user(access.Administrator))
	for name, c := range map[string]struct {
		headers []string
		want    int
	}{
		"through it":              {[]string{"From-Address: 10.0.0.2:1", user}, 200},
		"without a token":         {[]string{"From-Address: 10.0.0.2:1"}, 401},
		"around it":               {[]string{"From-Address: 10.0.0.3:1", user}, 403},
		"around it, pretending":   {[]string{"From-Address: 10.0.0.3:1", "X-Forwarded-For: 10.0.0.2", https, user}, 403},
		"from the machine":        {[]string{"From-Address: 127.0.0.1:1", user}, 200},
		"from it without a token": {[]string{"From-Address: 127.0.0.1:1"}, 401},
		"from its socket":         {[]string{"From-Socket: /run/stint.sock"}, 401},
	} {
		if got := k.status("GET", "/v1/sessions", c.headers...); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	// Only the last address is the proxy's word; a client that invents others before it is
	// still counted as one.
	k = newKit(t, func(c *guard.Config) { c.BehindProxy = true })
	limited := 0
	for i := range 15 {
		forged := fmt.Sprintf("X-Forwarded-For: 198.51.100.%d, 203.0.113.7", i)
		if k.status("GET", "/v1/sessions", "From-Address: 127.0.0.1:1", forged, bearer("bad")) == 429 {
			limited++
		}
	}
	if limited == 0 {
		t.Error("who forges X-Forwarded-For is never told to wait")
	}
	if got := k.status("GET", "/v1/sessions", "From-Address: 127.0.0.1:1", "X-Forwarded-For: 203.0.113.8", bearer("bad")); got != 401 {
		t.Errorf("a neighbour: %d", got)
	}
	// With TLS in front a cookie that could be set without it is not looked at.
	_, web := k.token(access.Spec{Kind: access.Web, Role: access.Viewer})
	for name, want := range map[string]int{"__Host-stint": 200, "stint-7777": 401, "stint": 401} {
		if got := k.status("GET", "/v1/sessions", "From-Address: 127.0.0.1:1", https, "Cookie: "+name+"="+web); got != want {
			t.Errorf("cookie %s: %d, want %d", name, got, want)
		}
	}
	if got := k.status("GET", "/v1/sessions", "From-Address: 127.0.0.1:1", "X-Forwarded-Proto: https, http", "Cookie: __Host-stint="+web); got != 401 {
		t.Errorf("the client's word on TLS is believed: %d", got)
	}
}

func TestOneWithoutTokensLocksNobodyOut(t *testing.T) {
	k := newKit(t, nil)
	good := bearer(k.user(access.Viewer))
	var last int
	for range 11 {
		w := k.do(request("GET", "/v1/sessions", bearer("bad")))
		if last = w.Code; last == 429 && w.Header().Get("Retry-After") != "6" {
			t.Errorf("Retry-After is %q", w.Header().Get("Retry-After"))
		}
	}
	if last != 429 {
		t.Errorf("the eleventh bad token: %d", last)
	}
	if got := k.status("GET", "/v1/sessions", good); got != 200 {
		t.Errorf("a good token of the same address: %d", got)
	}
	if got := k.status("GET", "/v1/sessions"); got != 401 {
		t.Errorf("a page before its login: %d", got)
	}
	if got := k.status("GET", "/v1/sessions", bearer("bad"), "From-Address: 192.0.2.10:1"); got != 401 {
		t.Errorf("another address: %d", got)
	}
	for i := range 11 { // of IPv6, the network counts
		last = k.status("GET", "/v1/sessions", bearer("bad"), fmt.Sprintf("From-Address: [2001:db8::%d]:1", i))
	}
	if last != 429 {
		t.Errorf("eleven addresses of one network: %d", last)
	}
}

// broken is a store of tokens that is down.
type broken struct{}

func (broken) Token(context.Context, string) (access.Token, error) {
	return access.Token{}, errors.New("disk I/O error at /home/me")
}
func (broken) Any(context.Context) (bool, error) { return false, errors.New("disk I/O error") }
func (broken) Used(context.Context, string, time.Time) error {
	return errors.New("disk I/O error")
}
func (broken) Redeem(context.Context, string, access.Token) error {
	return errors.New("disk I/O error")
}

func TestNobodyIsLetInBlindly(t *testing.T) {
	k := newKit(t, func(c *guard.Config) { c.Keeper, c.Redeemer = broken{}, broken{} })
	user := bearer(k.user(access.Administrator))
	for _, h := range []string{user, "From-Address: 127.0.0.1:1"} {
		w := k.do(request("GET", "/v1/sessions", h))
		if w.Code != 503 || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "/home") {
			t.Errorf("%.20s: %d %s", h, w.Code, w.Body)
		}
	}
	if got := k.status("GET", "/v1/sessions", "From-Socket: /s"); got != 200 {
		t.Errorf("a socket, which no token matters to: %d", got)
	}
	if k.calls.Load() != 1 {
		t.Error("somebody got in")
	}
}

// half notes no use.
type half struct{ *access.Mem }

func (half) Used(context.Context, string, time.Time) error { return errors.New("read-only") }

func TestTheLastUseIsNoted(t *testing.T) {
	k := newKit(t, nil)
	tok, text := k.token(access.Spec{Kind: access.User, Role: access.Viewer})
	for range 2 {
		if got := k.status("GET", "/v1/sessions", bearer(text)); got != 200 {
			t.Fatal(got)
		}
		got, err := k.mem.Token(t.Context(), tok.ID)
		if err != nil || got.LastUsed.IsZero() {
			t.Errorf("last used at %s, %v", got.LastUsed, err)
		}
	}
	k = newKit(t, nil)
	mem := k.mem
	k2 := newKit(t, func(c *guard.Config) { c.Keeper = half{mem} })
	_, text = k.token(access.Spec{Kind: access.User, Role: access.Viewer})
	if got := k2.status("GET", "/v1/sessions", bearer(text)); got != 200 {
		t.Errorf("where the use cannot be noted: %d", got)
	}
}

func TestContradictionsAreRefused(t *testing.T) {
	mem := &access.Mem{}
	for name, c := range map[string]guard.Config{
		"no keeper":              {},
		"local behind a proxy":   {Keeper: mem, LocalAdmin: true, BehindProxy: true},
		"proxies without a word": {Keeper: mem, Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
	} {
		if _, err := guard.New(c); !errors.Is(err, stint.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	g, err := guard.New(guard.Config{Keeper: mem})
	if err != nil {
		t.Fatal(err)
	}
	var m guard.Mux
	m.HandleFunc("GET /a", func(http.ResponseWriter, *http.Request) {})
	m.HandleFunc("/any", func(http.ResponseWriter, *http.Request) {})
	_, err = g.Protect(access.Table{{Method: "GET", Pattern: "/b", Scope: access.Admin}}, &m)
	for _, want := range []string{"GET /a has a route and no row", "/any has a route and no row", "GET /b has a row and no route"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	// A route that is registered afterwards is not served.
	var late guard.Mux
	late.HandleFunc("GET /a", func(http.ResponseWriter, *http.Request) {})
	h, err := g.Protect(access.Table{{Method: "GET", Pattern: "/a", Public: "a test"}}, &late)
	if err != nil {
		t.Fatal(err)
	}
	late.HandleFunc("GET /late", func(http.ResponseWriter, *http.Request) { t.Error("it was called") })
	for path, want := range map[string]int{"/a": 200, "/late": 404, "/none": 404} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request("GET", path))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}
