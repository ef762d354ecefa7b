package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/client"
	"github.com/stint-dev/stint/internal/access"
)

// answer is a response of a server.
func answer(status int, kind, body string, header ...string) *http.Response {
	h := http.Header{"Content-Type": {kind}}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

const problemType = "application/problem+json"

// What may be repeated is sent again, after the time that the server asks for, else after
// one that doubles; and so often and no more.
func TestAgain(t *testing.T) {
	gone := errors.New("connection reset")
	busy := `{"code":"unavailable","detail":"the store is busy","hint":"later"}`
	for _, c := range []struct {
		what     string
		failures []*http.Response // nil is a network that fails; then it works
		from, to time.Duration
		sent     int
		code     stint.Code
	}{
		{"it works", []*http.Response{}, 0, 0, 1, ""},
		{"the network fails twice", []*http.Response{nil, nil}, 300 * time.Millisecond, 600 * time.Millisecond, 3, ""},
		{"the network fails", []*http.Response{nil, nil, nil, nil}, 700 * time.Millisecond, 1400 * time.Millisecond, 4, stint.Unavailable},
		{"it says when", []*http.Response{answer(503, problemType, busy, "Retry-After", "7")}, 7 * time.Second, 7 * time.Second, 2, ""},
		{"it says when, as a date", []*http.Response{answer(503, problemType, busy, "Retry-After", "Sat, 01 Jan 2000 00:00:09 GMT")}, 9 * time.Second, 9 * time.Second, 2, ""},
		{"it says much later", []*http.Response{answer(503, problemType, busy, "Retry-After", "3600")}, 0, 0, 1, stint.Unavailable},
		{"too many requests", []*http.Response{answer(429, problemType, `{"code":"limit","detail":"slow down"}`, "Retry-After", "2")}, 2 * time.Second, 2 * time.Second, 2, ""},
		{"a limit that is used up", []*http.Response{answer(429, problemType, `{"code":"limit","detail":"no money left"}`)}, 0, 0, 1, stint.Limit},
		{"a proxy without a server", []*http.Response{answer(502, "text/html", "<h1>Bad Gateway</h1>")}, 100 * time.Millisecond, 200 * time.Millisecond, 2, ""},
		{"a fault", []*http.Response{answer(500, problemType, `{"code":"internal","detail":"a fault of stint"}`)}, 0, 0, 1, stint.Internal},
		{"a conflict", []*http.Response{answer(409, problemType, `{"code":"conflict","detail":"it went on"}`)}, 0, 0, 1, stint.Conflict},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				cl := over(t, "", func(r *http.Request) (*http.Response, error) {
					if b, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(b), `"session"`) {
						t.Errorf("request %d has the body %q, %v", sent, b, err)
					}
					if sent++; sent > len(c.failures) {
						return answer(200, "application/json", `{"session":{"name":"x"},"short":"abcd","live":false}`), nil
					}
					if f := c.failures[sent-1]; f != nil {
						return f, nil
					}
					return nil, gone
				})
				began := time.Now()
				row, err := cl.Session(t.Context(), stint.ID{1})
				if took := time.Since(began); took < c.from || took > c.to {
					t.Errorf("it took %v, want %v to %v", took, c.from, c.to)
				}
				if sent != c.sent || stint.CodeOf(err) != c.code || err == nil && row.Session.Name != "x" {
					t.Errorf("sent %d times, want %d; %v", sent, c.sent, err)
				}
			})
		})
	}
}

// What is not known to be the same twice is sent once, whatever becomes of it.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fails := range []*http.Response{nil, answer(503, problemType, `{"code":"unavailable","detail":"busy"}`, "Retry-After", "1")} {
			for key, want := range map[string]int{"": 1, "mine": 4} {
				sent := 0
				c := over(t, "", func(r *http.Request) (*http.Response, error) {
					if sent++; r.Header.Get("Idempotency-Key") != key {
						t.Errorf("the key is %q", r.Header.Get("Idempotency-Key"))
					}
					if fails == nil {
						return nil, io.ErrUnexpectedEOF
					}
					again := *fails
					again.Body = io.NopCloser(strings.NewReader(`{"code":"unavailable","detail":"busy"}`))
					return &again, nil
				})
				if _, err := c.Start(t.Context(), client.Start{Agent: "chat", Key: key}); !errors.Is(err, stint.Unavailable) || sent != want {
					t.Errorf("with the key %q: sent %d times, want %d, %v", key, sent, want, err)
				}
			}
		}
	})
}

// Who waits for the next try does not wait longer than they want.
func TestTryingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		c := over(t, "", func(*http.Request) (*http.Response, error) {
			return answer(503, problemType, `{"code":"unavailable","detail":"busy"}`, "Retry-After", "20"), nil
		})
		if _, err := c.Session(ctx, stint.ID{1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// An answer that is none of a server of stint says where it came from, and no token goes
// with a redirect.
func TestNoServerOfStint(t *testing.T) {
	for want, resp := range map[string]*http.Response{
		"404 Not Found":               {StatusCode: 404, Status: "404 Not Found", Header: http.Header{"Content-Type": {"text/html"}}, Body: http.NoBody},
		"to https://evil.example/x":   {StatusCode: 307, Status: "307 Temporary Redirect", Header: http.Header{"Location": {"https://evil.example/x"}}, Body: http.NoBody},
		"it answers what cannot be r": answer(200, "text/html", "<h1>Welcome</h1>"),
	} {
		asked := 0
		c := over(t, "secret", func(r *http.Request) (*http.Response, error) {
			if asked++; r.URL.Host != "localhost" {
				t.Errorf("it follows to %s", r.URL)
			}
			return resp, nil
		})
		_, err := c.Session(t.Context(), stint.ID{1})
		var e *stint.Error
		if !errors.As(err, &e) || e.Code != stint.Unavailable || !strings.Contains(e.Error(), want) || !strings.Contains(e.Hint, "http://localhost") || asked != 1 {
			t.Errorf("%q: asked %d times, %v", want, asked, err)
		}
	}
}

// What is no address is refused, and so is one that a token would cross a network to in
// the clear.
func TestNew(t *testing.T) {
	for _, o := range []client.Options{
		{}, {URL: "stint.example.com"}, {URL: "ftp://x"}, {URL: "http://"}, {URL: "unix:"}, {URL: "unix:/a", Socket: "/b"}, {URL: "https://user:pw@x"}, {URL: "https://x?a=b"},
		{URL: "http://stint.example.com", Token: "t"}, {URL: "http://10.0.0.1:7878", Token: "t"}, {URL: "http://localhost.evil.example", Token: "t"},
	} {
		var e *stint.Error
		if _, err := client.New(o); !errors.As(err, &e) || e.Code != stint.Invalid || e.Hint == "" {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, o := range []client.Options{
		{URL: "https://stint.example.com/behind", Token: "t"}, {URL: "http://127.0.0.1:1", Token: "t"}, {URL: "http://[::1]:1", Token: "t"}, {URL: "http://localhost", Token: "t"},
		{URL: "http://stint.example.com"}, {URL: "unix:/a", Token: "t"}, {Socket: "/a", Token: "t"},
	} {
		if _, err := client.New(o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// A session is begun once for each key, and takes a message that settles it.
func TestVerbs(t *testing.T) {
	p := newPlace(t)
	c := p.client("ada", access.Operator)
	first, err := c.Start(t.Context(), client.Start{Agent: "chat", Prompt: "hello", Labels: map[string]string{"team": "a"}, Limits: client.Limits{Loops: "9"}, Key: "k"})
	if err != nil || first.Found || first.Short == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := c.Start(t.Context(), client.Start{Agent: "chat", Prompt: "hello", Labels: map[string]string{"team": "a"}, Limits: client.Limits{Loops: "9"}, Key: "k"})
	if err != nil || !again.Found || again.ID != first.ID {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := c.Start(t.Context(), client.Start{Agent: "chat", Prompt: "other", Key: "k"}); !errors.Is(err, stint.Conflict) {
		t.Errorf("another start with the key: %v", err)
	}
	row, err := c.Session(t.Context(), first.ID)
	if err != nil || row.Session.Limits.Loops != 9 || row.Session.Labels["team"] != "a" {
		t.Errorf("%+v, %v", row.Session, err)
	}
	if err := c.Send(t.Context(), first.ID, stint.Message{ID: "m", Kind: stint.Stop, Data: []byte(`{"reason":"enough"}`)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Settle(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	if row, err = c.Session(t.Context(), first.ID); err != nil || row.Session.Status != stint.Canceled {
		t.Errorf("it is %s, %v", row.Session.Status, err)
	}
	es, err := c.Entries(t.Context(), stint.Range{Session: first.ID, Kinds: []stint.Kind{stint.MessageTaken}})
	if err != nil || len(es) == 0 || !strings.Contains(string(es[len(es)-1].Data), `"human:ada"`) {
		t.Errorf("%d entries, %v", len(es), err)
	}
	var agents struct{ Items []struct{ Name string } }
	if err := c.Get(t.Context(), "/v1/agents", nil, &agents); err != nil || len(agents.Items) != 1 {
		t.Errorf("%+v, %v", agents, err)
	}
	if h, err := c.Health(t.Context()); err != nil || h.Status != "ok" {
		t.Errorf("%+v, %v", h, err)
	}
	var e *stint.Error
	viewer := p.client("vera", access.Viewer)
	if err := viewer.Send(t.Context(), first.ID, stint.Message{ID: "n", Kind: stint.Stop}); !errors.As(err, &e) || e.Code != stint.Denied || e.Hint == "" {
		t.Errorf("a viewer stops: %v", err)
	}
	if _, err := viewer.Start(t.Context(), client.Start{Agent: "chat"}); !errors.Is(err, stint.Denied) {
		t.Errorf("a viewer starts: %v", err)
	}
}
