package guard_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/access/guard"
)

func login(code string, headers ...string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), "POST", "http://localhost:7777/login", strings.NewReader(`{"code": "`+code+`"}`))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "From-Address" {
			r.RemoteAddr = value
			continue
		}
		r.Header.Set(name, value)
	}
	return r
}

// code makes a user's token and a login code of it.
func (k *kit) code(r access.Role) (access.Token, string) {
	k.t.Helper()
	owner, _ := k.token(access.Spec{Kind: access.User, Role: r})
	spec, err := owner.Principal().LoginCode()
	if err != nil {
		k.t.Fatal(err)
	}
	_, text := k.token(spec)
	return owner, text
}

func TestALoginIsACookie(t *testing.T) {
	k := newKit(t, nil)
	_, code := k.code(access.Operator)
	w := k.do(login(code, "Sec-Fetch-Site: same-origin"))
	cookies := w.Result().Cookies()
	if w.Code != 204 || len(cookies) != 1 || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("%d with %v", w.Code, w.Header())
	}
	c := cookies[0]
	if c.Name != "stint-7777" || !c.HttpOnly || c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge < 11*3600 || c.MaxAge > 12*3600 {
		t.Errorf("the cookie is %+v", c)
	}
	if strings.Contains(w.Body.String(), "stint_") {
		t.Error("the answer itself has the token")
	}
	cookie := "Cookie: " + c.Name + "=" + c.Value
	for path, want := range map[string]int{"/v1/sessions": 200, "/v1/decisions": 403} {
		if got := k.status("POST", path, cookie, "Sec-Fetch-Site: same-origin"); got != want {
			t.Errorf("POST %s: %d, want %d", path, got, want)
		}
	}
	if w := k.do(login(code)); w.Code != 401 || len(w.Result().Cookies()) != 0 {
		t.Errorf("the code again: %d with %v", w.Code, w.Result().Cookies())
	}

	k = newKit(t, func(c *guard.Config) { c.BehindProxy = true })
	_, code = k.code(access.Viewer)
	w = k.do(login(code, "From-Address: 127.0.0.1:1", "X-Forwarded-Proto: https"))
	if cs := w.Result().Cookies(); len(cs) != 1 || cs[0].Name != "__Host-stint" || !cs[0].Secure {
		t.Errorf("behind a proxy with TLS: %d, %v", w.Code, w.Result().Cookies())
	}
	w = httptest.NewRecorder()
	guard.Logout(w, request("POST", "/logout"))
	for _, c := range w.Result().Cookies() {
		if c.MaxAge >= 0 || c.Value != "" {
			t.Errorf("after logging out: %+v", c)
		}
	}
	if n := len(w.Result().Cookies()); n != 2 {
		t.Errorf("%d cookies are taken away", n)
	}
}

func TestLoginsThatFail(t *testing.T) {
	k := newKit(t, nil)
	user := k.user(access.Administrator)
	owner, code := k.code(access.Viewer)
	for name, c := range map[string]struct {
		r    *http.Request
		want int
	}{
		"another page's":   {login(code, "Origin: http://evil.example"), 403},
		"without a code":   {login(""), 401},
		"a user's token":   {login(user), 401},
		"made up":          {login("stint_login_0440y5gx4gnk4ea0_" + strings.Repeat("0", 59)), 401},
		"no JSON":          {httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost:7777/login", strings.NewReader(code)), 400},
		"a very long body": {login(strings.Repeat("a", 2000)), 400},
		"by GET":           {httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost:7777/login?code="+code, nil), 200}, // a page, which does nothing
	} {
		if w := k.do(c.r); w.Code != c.want || len(w.Result().Cookies()) != 0 {
			t.Errorf("%s: %d, want %d", name, w.Code, c.want)
		}
	}
	if err := k.mem.Revoke(owner.ID, owner.Created); err != nil {
		t.Fatal(err)
	}
	if w := k.do(login(code)); w.Code != 401 {
		t.Errorf("the token that asked for the code is revoked: %d", w.Code)
	}
	none := newKit(t, func(c *guard.Config) { c.Redeemer = nil })
	_, code = none.code(access.Viewer)
	if w := none.do(login(code)); w.Code != 404 {
		t.Errorf("where nobody logs in: %d", w.Code)
	}
	down := newKit(t, func(c *guard.Config) { c.Redeemer = broken{} })
	_, code = down.code(access.Viewer)
	if w := down.do(login(code)); w.Code != 503 || len(w.Result().Cookies()) != 0 {
		t.Errorf("where the code cannot be ended: %d", w.Code)
	}
}

// Two browsers race with one code; one of them is in.
func TestTwoRaceWithOneCode(t *testing.T) {
	k := newKit(t, nil)
	_, code := k.code(access.Viewer)
	var wg sync.WaitGroup
	codes := make([]int, 8)
	for i := range codes {
		wg.Go(func() {
			w := httptest.NewRecorder()
			k.h.ServeHTTP(w, login(code))
			codes[i] = w.Code
		})
	}
	wg.Wait()
	in := 0
	for _, c := range codes {
		switch c {
		case 204:
			in++
		case 401:
		default:
			t.Errorf("one is told %d", c)
		}
	}
	if in != 1 {
		t.Errorf("%d got in", in)
	}
}

func TestACodeAndACookieEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		_, late := k.code(access.Viewer)
		owner, code := k.code(access.Viewer)
		w := k.do(login(code))
		if w.Code != 204 {
			t.Fatal(w.Code)
		}
		c := w.Result().Cookies()[0]
		cookie := "Cookie: " + c.Name + "=" + c.Value
		<-time.After(5 * time.Minute)
		if w := k.do(login(late)); w.Code != 401 {
			t.Errorf("a code of five minutes ago: %d", w.Code)
		}
		<-time.After(12*time.Hour - 5*time.Minute - time.Second)
		if got := k.status("GET", "/v1/sessions", cookie); got != 200 {
			t.Errorf("a cookie of 12 hours: %d", got)
		}
		<-time.After(time.Second)
		if got := k.status("GET", "/v1/sessions", cookie); got != 401 {
			t.Errorf("after that: %d", got)
		}

		spec, err := owner.Principal().LoginCode()
		if err != nil {
			t.Fatal(err)
		}
		_, code = k.token(spec)
		c = k.do(login(code)).Result().Cookies()[0]
		if err := k.mem.Revoke(owner.ID, time.Now()); err != nil {
			t.Fatal(err)
		}
		if got := k.status("GET", "/v1/sessions", "Cookie: "+c.Name+"="+c.Value); got != 401 {
			t.Errorf("the cookie of a revoked token: %d", got)
		}
	})
}
