package guard_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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

// serve serves k over pipes until the end of the test.
func (k *kit) serve() *pipes {
	p := newPipes()
	s := guard.Server(k.h)
	go func() { _ = s.Serve(p) }()
	k.t.Cleanup(func() {
		_ = s.Close()
		<-time.After(time.Second) // the server waits a moment before it closes a connection
	})
	return p
}

// until waits for the end of the context of a stream that runs for at most d more.
func until(t *testing.T, ended <-chan error, d time.Duration) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	select {
	case err := <-ended:
		return time.Since(began), err
	case <-time.After(d):
		return d, nil
	}
}

// open begins a stream; what its context ended with comes on the channel.
func (k *kit) open(headers ...string) <-chan error {
	k.t.Helper()
	began, ended := make(chan struct{}), make(chan error, 1)
	k.stream = func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		ended <- context.Cause(r.Context())
	}
	ctx, cancel := context.WithCancel(context.Background())
	k.t.Cleanup(cancel)
	go k.h.ServeHTTP(httptest.NewRecorder(), request("GET", "/v1/events", headers...).WithContext(ctx))
	<-began
	return ended
}

func TestARevokedTokenEndsItsStreams(t *testing.T) {
	for name, c := range map[string]func(k *kit, tok, from access.Token){
		"revoked":           func(k *kit, tok, _ access.Token) { _ = k.mem.Revoke(tok.ID, time.Now()) },
		"its maker revoked": func(k *kit, _, from access.Token) { _ = k.mem.Revoke(from.ID, time.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, nil)
				from, _ := k.token(access.Spec{Kind: access.User, Role: access.Administrator})
				tok, text := k.token(access.Spec{Kind: access.CI, Role: access.Viewer, From: from.ID})
				ended := k.open(bearer(text))
				if _, err := until(t, ended, time.Hour+500*time.Millisecond); err != nil {
					t.Fatalf("a live token's stream ended: %v", err)
				}
				c(k, tok, from)
				took, err := until(t, ended, time.Minute)
				if err == nil || !strings.Contains(err.Error(), "revoked") || took > 4*time.Second {
					t.Errorf("it ended after %s: %v", took, err)
				}
			})
		})
	}
}

func TestAStreamEndsWithItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		_, text := k.token(access.Spec{Kind: access.Agent, Role: access.Viewer, Lifetime: time.Hour + 300*time.Millisecond})
		took, err := until(t, k.open(bearer(text)), 2*time.Hour)
		if err == nil || !strings.Contains(err.Error(), "expired") || took != time.Hour+300*time.Millisecond {
			t.Errorf("it ended after %s: %v", took, err)
		}
	})
}

// faulty is a Keeper whose answers can be changed while it is used.
type faulty struct {
	*access.Mem

	mu    sync.Mutex
	token answer
}

// answer changes what a Keeper says.
type answer func(context.Context, access.Token, error) (access.Token, error)

func (f *faulty) set(a answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.token = a
}

func (f *faulty) Token(ctx context.Context, id string) (access.Token, error) {
	t, err := f.Mem.Token(ctx, id)
	f.mu.Lock()
	a := f.token
	f.mu.Unlock()
	if a != nil {
		return a(ctx, t, err)
	}
	return t, err
}

func TestAStreamThatNobodyAnswersForEnds(t *testing.T) {
	for name, c := range map[string]struct {
		answer answer
		most   time.Duration // 0: it goes on
	}{
		"the store fails": {func(context.Context, access.Token, error) (access.Token, error) {
			return access.Token{}, errors.New("I/O error")
		}, 4 * time.Second},
		"the store hangs": {func(ctx context.Context, _ access.Token, _ error) (access.Token, error) {
			<-ctx.Done()
			return access.Token{}, ctx.Err()
		}, 4 * time.Second},
		"it has another role": {func(_ context.Context, t access.Token, err error) (access.Token, error) {
			t.Role, t.Scopes = "", []access.Scope{access.TriggersFire}
			return t, err
		}, 4 * time.Second},
		"it answers slowly": {func(ctx context.Context, t access.Token, err error) (access.Token, error) {
			select {
			case <-ctx.Done():
			case <-time.After(800 * time.Millisecond):
			}
			return t, err
		}, 0},
	} {
		for _, after := range []time.Duration{100 * time.Millisecond, 10500 * time.Millisecond} { // before the first answer, and later
			t.Run(name+" after "+after.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var f faulty
					k := newKit(t, func(c *guard.Config) { f.Mem = c.Keeper.(*access.Mem); c.Keeper = &f })
					_, text := k.token(access.Spec{Kind: access.User, Role: access.Viewer})
					ended := k.open(bearer(text))
					<-time.After(after)
					f.set(c.answer)
					took, err := until(t, ended, time.Minute)
					if c.most == 0 && err != nil || c.most > 0 && (err == nil || took > c.most) {
						t.Errorf("after %s: %v", took, err)
					}
				})
			})
		}
	}
}

// A store that was away for a moment costs nobody his stream.
func TestAShortFailureIsForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f faulty
		k := newKit(t, func(c *guard.Config) { f.Mem = c.Keeper.(*access.Mem); c.Keeper = &f })
		_, text := k.token(access.Spec{Kind: access.User, Role: access.Viewer})
		ended := k.open(bearer(text))
		for range 5 {
			<-time.After(5500 * time.Millisecond)
			synctest.Wait()
			f.set(func(context.Context, access.Token, error) (access.Token, error) {
				return access.Token{}, errors.New("busy")
			})
			<-time.After(2 * time.Second)
			synctest.Wait()
			f.set(nil)
		}
		if _, err := until(t, ended, time.Minute); err != nil {
			t.Error(err)
		}
	})
}

// Whoever was let in because there were no tokens goes when there are.
func TestTheFirstTokenEndsLocalStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		ended := k.open("From-Address: 127.0.0.1:1")
		<-time.After(time.Minute)
		k.user(access.Viewer)
		if took, err := until(t, ended, time.Minute); err == nil || took > 4*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

func TestStreamsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, func(c *guard.Config) { c.MaxStreams = 16 })
		tok, one := k.token(access.Spec{Kind: access.User, Role: access.Viewer})
		k.open(bearer(one))
		k.open(bearer(one))
		if w := k.do(request("GET", "/v1/events", bearer(one))); w.Code != 429 || w.Header().Get("Retry-After") == "" {
			t.Errorf("the third of one token: %d", w.Code)
		}
		for range 7 {
			_, other := k.token(access.Spec{Kind: access.User, Role: access.Viewer})
			k.open(bearer(other))
			k.open(bearer(other))
		}
		_, last := k.token(access.Spec{Kind: access.User, Role: access.Viewer})
		if got := k.status("GET", "/v1/events", bearer(last)); got != 429 {
			t.Errorf("the seventeenth: %d", got)
		}
		if got := k.status("GET", "/v1/sessions", bearer(last)); got != 200 {
			t.Errorf("what is no stream: %d", got)
		}
		if err := k.mem.Revoke(tok.ID, time.Now()); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Second)
		k.open(bearer(last)) // there is room
	})
}

// The same over connections: the stream outlives the limits of the server, and ends
// within five seconds of the revocation, even for who reads nothing any more.
func TestStreamsOverConnections(t *testing.T) {
	for _, reads := range []bool{true, false} {
		t.Run(fmt.Sprintf("reads: %t", reads), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, nil)
				tok, text := k.token(access.Spec{Kind: access.User, Role: access.Viewer})
				over := make(chan error, 1)
				k.stream = func(w http.ResponseWriter, r *http.Request) {
					rc := http.NewResponseController(w)
					for r.Context().Err() == nil {
						if _, err := io.WriteString(w, "data: tick\n\n"); err != nil {
							over <- err
							return
						}
						if err := rc.Flush(); err != nil {
							over <- err
							return
						}
						select {
						case <-r.Context().Done():
						case <-time.After(10 * time.Second):
						}
					}
					over <- context.Cause(r.Context())
				}
				conn := k.serve().dial()
				defer conn.Close()
				in := bufio.NewReader(conn)
				send(t, conn, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+text+"\r\n\r\n")
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				if res.StatusCode != http.StatusOK {
					t.Fatal(res.Status)
				}
				lines := bufio.NewScanner(res.Body)
				for range 30 { // five minutes
					for range 2 { // an event is two lines
						if !lines.Scan() {
							t.Fatalf("it ended: %v", lines.Err())
						}
					}
				}
				<-time.After(2 * time.Second)
				if reads {
					go func() { _, _ = io.Copy(io.Discard, in) }()
				} else {
					<-time.After(10 * time.Second) // it hangs in a write now
				}
				synctest.Wait()
				if err := k.mem.Revoke(tok.ID, time.Now()); err != nil {
					t.Fatal(err)
				}
				if took, err := until(t, over, time.Minute); err == nil || took > 5*time.Second {
					t.Errorf("after %s: %v", took, err)
				}
			})
		})
	}
}

// Who does not read holds a stream for half a minute, with a good token as well.
func TestWhoDoesNotReadIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		_, text := k.token(access.Spec{Kind: access.User, Role: access.Viewer})
		over := make(chan error, 1)
		k.stream = func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					over <- err
					return
				}
			}
		}
		conn := k.serve().dial()
		defer conn.Close()
		send(t, conn, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+text+"\r\n\r\n")
		if took, err := until(t, over, time.Hour); err == nil || took > 31*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// Clients that are slow on purpose.
func TestSlowClients(t *testing.T) {
	for name, c := range map[string]struct {
		begin, more string
		most        time.Duration
	}{
		"headers": {"GET / HTTP/1.1\r\nHost: localhost\r\n", "X-A: b\r\n", 5 * time.Second},
		"a body":  {"POST /hooks/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n", "a", 30 * time.Second},
		"nothing": {"", "", 5 * time.Second},
		"idle":    {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "", 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, nil)
				conn := k.serve().dial()
				defer conn.Close()
				began, gone := time.Now(), make(chan struct{})
				go func() {
					_, _ = io.Copy(io.Discard, conn)
					close(gone)
				}()
				send(t, conn, c.begin)
				for time.Since(began) < 10*time.Minute {
					if c.more != "" {
						_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
						_, _ = io.WriteString(conn, c.more)
					}
					select {
					case <-gone:
						if took := time.Since(began); took > c.most+2*time.Second {
							t.Errorf("it was held for %s", took)
						}
						return
					case <-time.After(time.Second):
					}
				}
				t.Error("it is held for ever")
			})
		})
	}
}

func TestHeadersWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		conn := k.serve().dial()
		defer conn.Close()
		go func() {
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n"+strings.Repeat("X-A: b\r\n", 100_000)+"\r\n")
		}()
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Error(res.Status)
		}
		if n := k.calls.Load(); n != 0 {
			t.Error("a handler saw it")
		}
	})
}

// What the standard library would answer by itself passes the same checks.
func TestRawRequests(t *testing.T) {
	for request, want := range map[string]int{
		"OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n\r\n":                        403,
		"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n":                           400,
		"GET / HTTP/1.0\r\n\r\n":                                                  403,
		"GET / HTTP/1.1\r\n\r\n":                                                  400,
		"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n":         400,
		"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n":            403,
		"GET http://localhost/v1/sessions HTTP/1.1\r\nHost: evil.example\r\n\r\n": 200, // the target is the name, RFC 9112 3.2.2
		"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\n":             400,
		"GET //evil.example/.. HTTP/1.1\r\nHost: localhost\r\n\r\n":               400,
		"GET /v1/sessions HTTP/1.1\r\nHost: [::1]:7777\r\n\r\n":                   200,
		"GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-\r\n\r\n": 200,
	} {
		t.Run(strings.ReplaceAll(request, "\r\n", " "), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := newKit(t, nil).serve().dial()
				defer conn.Close()
				go func() { _, _ = io.WriteString(conn, request) }()
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				if res.StatusCode != want {
					t.Errorf("%s, want %d", res.Status, want)
				}
			})
		})
	}
}

func TestEveryLimitOfTheServerIsSet(t *testing.T) {
	s := guard.Server(http.NotFoundHandler())
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 || s.Handler == nil {
		t.Errorf("%+v", s)
	}
}

// Ten failures at once, then ten a minute.
func TestFailuresAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		try := func() int { return k.status("GET", "/v1/sessions", bearer("bad")) }
		for i := range 12 {
			if got := try(); (got == 429) != (i >= 10) {
				t.Errorf("failure %d: %d", i+1, got)
			}
		}
		<-time.After(6 * time.Second)
		if a, b := try(), try(); a != 401 || b != 429 {
			t.Errorf("six seconds later: %d, %d", a, b)
		}
		// However many addresses there are, the memory is bounded, and they wait together.
		limited := 0
		for i := range 6000 {
			if k.status("GET", "/v1/sessions", bearer("bad"), fmt.Sprintf("From-Address: 10.0.%d.%d:1", i/250, i%250)) == 429 {
				limited++
			}
		}
		if limited < 1000 {
			t.Errorf("of 6000 addresses %d wait", limited)
		}
		<-time.After(2 * time.Minute)
		if got := k.status("GET", "/v1/sessions", bearer("bad"), "From-Address: 10.9.9.9:1"); got != 401 {
			t.Errorf("when all is forgotten: %d", got)
		}
	})
}
