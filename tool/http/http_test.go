package http_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
	toolhttp "github.com/stint-dev/stint/tool/http"
)

func serve(t testing.TB, f http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	return srv.URL
}

func local(s toolhttp.Spec) toolhttp.Spec {
	s.Name, s.Allow = "api", []string{"127.0.0.1"}
	return s
}

func call(t testing.TB, s toolhttp.Spec, args string) (tool.Output, error) {
	t.Helper()
	return callIn(t.Context(), t, s, args)
}

func callIn(ctx context.Context, t testing.TB, s toolhttp.Spec, args string) (tool.Output, error) {
	t.Helper()
	one, err := toolhttp.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return one.Caller.Call(ctx, tool.Call{Args: json.RawMessage(args), Key: "k3y", Epoch: 7})
}

// known tells what an error says: "definite", "not begun" or "open".
func known(err error) string {
	var n interface{ NotBegun() bool }
	var s interface {
		Steer() (time.Duration, bool, bool)
	}
	switch {
	case errors.As(err, &n) && n.NotBegun():
		return "not begun"
	case errors.As(err, &s):
		if _, _, definite := s.Steer(); definite {
			return "definite"
		}
	}
	return "open"
}

func TestPlaces(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.RequestURI, b)
	})
	for _, tt := range []struct{ method, path, args, want string }{
		{"GET", "/v1/issues/{id}?q={q}&page=2", `{"id":2512292042121000001,"q":"a b&c=d#é?+"}`, "GET /v1/issues/2512292042121000001?q=a%20b%26c%3Dd%23%C3%A9%3F%2B&page=2 "},
		{"GET", "/f/{p}?q={q}", `{"p":"a/b?c#d%2e"}`, "GET /f/a%2Fb%3Fc%23d%252e "},
		{"GET", "/f/x-{p}.json", `{"p":"1"}`, "GET /f/x-1.json "},
		{"GET", "?q={q}", `{"q":"1"}`, "GET /?q=1 "},
		{"GET", "/f/{p}", `{"p":".."}`, `".." would lead elsewhere`},
		{"GET", "/f/{p}", `{"p":"a/../../admin"}`, "would lead elsewhere"},
		{"GET", "/f/{p}", `{"p":"..\\admin"}`, "would lead elsewhere"},
		{"GET", "/f/.{p}", `{"p":"."}`, `".." would lead elsewhere`},
		{"GET", "/f/{p}", `{"p":""}`, "the argument p is needed for the path"},
		{"GET", "/f/{p}", `{}`, "the argument p is needed for the path"},
		{"GET", "/f/{p}", `{"p":"x\r\nHost: evil"}`, "GET /f/x%0D%0AHost%3A%20evil "},
		{"POST", "/f", `{"id": 18446744073709551615, "s":"<&>"}`, `POST /f {"id": 18446744073709551615, "s":"<&>"}`},
		{"PUT", "/f/{id}", `{"id":"x","n":18446744073709551615,"s":"<"}`, `PUT /f/x {"n":18446744073709551615,"s":"<"}`},
		{"DELETE", "/f/{id}", `{"id":"x"}`, `DELETE /f/x `},
	} {
		out, err := call(t, local(toolhttp.Spec{Method: tt.method, URL: url + tt.path}), tt.args)
		if err != nil || !strings.Contains(out.Text, tt.want) {
			t.Errorf("%s %s with %s: got %q, %v, want %q", tt.method, tt.path, tt.args, out.Text, err, tt.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"a":{},"b":{}}}`)
	secret := map[string]tool.Secret{"X-Key": nil}
	for want, s := range map[string]toolhttp.Spec{
		"does not begin with http":         {URL: "ftp://a.example/"},
		"an argument would choose the":     {URL: "https://{host}/x"},
		"the URL has no host":              {URL: "https:///x"},
		"a user or a password":             {URL: "https://u:p@a.example/x"},
		"a fragment":                       {URL: "https://a.example/x#y"},
		"an argument would name a":         {URL: "https://a.example/?{a}=1"},
		"is no URL":                        {URL: "https://a.example/%zz"},
		"begins no argument":               {URL: "https://a.example/{"},
		"{c} is no argument of its schema": {URL: "https://a.example/{c}", Schema: schema},
		"the argument b is not used":       {URL: "https://a.example/{a}", Schema: schema},
		`there is no method "PUNCH"`:       {URL: "https://a.example/", Method: "PUNCH"},
		`the header "Host"`:                {URL: "https://a.example/", Headers: map[string]string{"Host": "evil"}},
		`the header "idempotency-key"`:     {URL: "https://a.example/", Headers: map[string]string{"idempotency-key": "1"}},
		`the header "X Y"`:                 {URL: "https://a.example/", Headers: map[string]string{"X Y": "1"}},
		"has a line end in it":             {URL: "https://a.example/", Headers: map[string]string{"X": "1\r\nY: 2"}, Secrets: secret},
		"patterns and URLs are not taken":  {URL: "https://a.example/", Allow: []string{"*.example"}},
	} {
		if _, err := toolhttp.New(s); !errors.Is(err, stint.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestEffects(t *testing.T) {
	for method, want := range map[string]stint.Effect{"": stint.Read, "GET": stint.Read, "HEAD": stint.Read,
		"PUT": stint.Idempotent, "DELETE": stint.Idempotent, "POST": stint.Once, "PATCH": stint.Once} {
		one, err := toolhttp.New(toolhttp.Spec{URL: "https://a.example/", Method: method})
		if err != nil || one.Class() != want {
			t.Errorf("%s: got %s, %v", method, one.Class(), err)
		}
	}
}

func TestHeadersAndSecrets(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r.Header)
	})
	s := local(toolhttp.Spec{Method: "POST", URL: url, Headers: map[string]string{"X-Plain": "p"},
		Secrets: map[string]tool.Secret{"Authorization": func() (string, error) { return "Bearer s3cr3t", nil }}})
	out, err := call(t, s, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"Idempotency-Key":["k3y"]`, `"Stint-Fencing-Token":["7"]`, `"X-Plain":["p"]`, `"Authorization":["{{secret:Authorization}}"]`} {
		if !strings.Contains(out.Text, want) || !strings.Contains(string(out.Data), want) {
			t.Errorf("%s is not in %s", want, out.Text)
		}
	}
	if strings.Contains(out.Text+string(out.Data), "s3cr3t") {
		t.Errorf("the secret is in %s", out.Text)
	}
	for why, secret := range map[string]tool.Secret{
		"not set":  func() (string, error) { return "", errors.New("not set") },
		"line end": func() (string, error) { return "s3cr3t\r\nX: y", nil },
	} {
		s.Secrets["Authorization"] = secret
		if _, err := call(t, s, `{}`); known(err) != "not begun" || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("got %v", err)
		}
	}
}

// TestResponses: what a server says is the outcome, whatever it is.
func TestResponses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		serve http.HandlerFunc
		text  string
		data  string
		wrong bool
	}{
		{"digits", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"id": 2512292042121000001}`) },
			`{"id": 2512292042121000001}`, `{"id": 2512292042121000001}`, false},
		{"nothing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, "", "", false},
		{"not found", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such issue", 404) },
			"[HTTP 404 Not Found]\nno such issue", "", true},
		{"busy", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "9"); w.WriteHeader(503) },
			"[HTTP 503 Service Unavailable]\n[Retry-After: 9]", "", true},
		{"redirect of a POST", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Location", "/other"); w.WriteHeader(307) },
			"[HTTP 307 Temporary Redirect]\n[it redirects to /other; stint follows that for GET and HEAD only]", "", true},
		{"strange bytes", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprint(w, "a\x00b\\u0000")
		},
			"a\uFFFDb\\u0000\n[stint: one \uFFFD above stands for a NUL or for bytes that are not UTF-8]", "", false},
		{"an image", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			fmt.Fprint(w, "\x89PNG")
		}, "[image/png, 4 bytes; it is no text and not shown]", "", false},
		{"a flood", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, "only its first 1000 bytes were read]", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := call(t, local(toolhttp.Spec{Method: "POST", URL: serve(t, tt.serve), MaxOutput: 1000}), `{}`)
			text := strings.TrimSpace(out.Text)
			if err != nil || out.Error != tt.wrong || string(out.Data) != tt.data || text != tt.text && !strings.HasSuffix(text, tt.text) || len(text) > 5000 {
				t.Errorf("got %q, %s, %v, %v", text, out.Data, out.Error, err)
			}
		})
	}
}

// TestOpen: what is not known when the server does not say it.
func TestOpen(t *testing.T) {
	reset := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
	})
	broken := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "half")
	})
	var asked atomic.Bool
	slow := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		asked.Store(true)
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + ln.Addr().String()
	ln.Close()
	for _, tt := range []struct{ name, url, known, text string }{
		{"reset", reset, "open", ""},
		{"broken off", broken, "open", "broke off after 4 bytes"},
		{"time-out", slow, "open", "was up"},
		{"nobody listens", closed, "not begun", "refused"},
		{"no such host", "http://stint-test.invalid", "not begun", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := local(toolhttp.Spec{Method: "POST", URL: tt.url, Timeout: time.Minute})
			if tt.url == slow {
				s.Timeout, tt.text = 300*time.Millisecond, "its time of 300ms was up"
			}
			_, err := call(t, s, `{}`)
			for tt.url == slow && !asked.Load() && s.Timeout < time.Minute { // its time was up before it was sent: it gets more
				s.Timeout *= 4
				tt.text = fmt.Sprintf("its time of %v was up", s.Timeout)
				_, err = call(t, s, `{}`)
			}
			if err == nil || known(err) != tt.known || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, which is %s", err, known(err))
			}
		})
	}
}

// TestOnceIsSentOnce: Go's transport sends a request again when a connection that it kept
// breaks, if the request has an Idempotency-Key.
func TestOnceIsSentOnce(t *testing.T) {
	var asked atomic.Int64
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			fmt.Fprint(w, "ok") // the connection could be kept now
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
	})
	one, err := toolhttp.New(local(toolhttp.Spec{Method: "POST", URL: url}))
	if err != nil {
		t.Fatal(err)
	}
	c := tool.Call{Args: json.RawMessage(`{}`), Key: "k3y"}
	if _, err := one.Caller.Call(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Caller.Call(t.Context(), c); err == nil || known(err) != "open" {
		t.Errorf("got %v", err)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("two calls were %d requests", n)
	}
}

// TestRedirects: where a redirect leads to, and what it takes along.
func TestRedirects(t *testing.T) {
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "key %q, token %q, fence %q", r.Header.Get("Idempotency-Key"), r.Header.Get("X-Token"), r.Header.Get("Stint-Fencing-Token"))
	})
	var asked atomic.Int64
	first := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		to := map[string]string{
			"/other": other, "/metadata": "http://169.254.169.254/latest/meta-data/", "/file": "file:///etc/passwd",
			"/loop": "/loop", "/nat64": "http://[64:ff9b::7f00:1]/", "/same": "/end",
		}[r.URL.Path]
		if to == "" {
			fmt.Fprintf(w, "the end, token %q", r.Header.Get("X-Token"))
			return
		}
		http.Redirect(w, r, to, http.StatusFound)
	})
	for path, want := range map[string]string{
		"/same":     `the end, token "t0ken"`,
		"/other":    `key "", token "", fence ""`,
		"/metadata": "link-local, where clouds keep their secrets",
		"/nat64":    "an IPv6 form of an IPv4 address",
		"/file":     "reached by a redirect from http to file",
		"/loop":     "more than 5 redirects away",
	} {
		s := local(toolhttp.Spec{URL: first + path, Secrets: map[string]tool.Secret{"X-Token": func() (string, error) { return "t0ken", nil }}})
		want = strings.ReplaceAll(want, "t0ken", "{{secret:X-Token}}")
		out, err := call(t, s, `{}`)
		if err != nil || !strings.Contains(out.Text, want) || out.Error == strings.Contains(want, "token") {
			t.Errorf("%s: got %q, %v, want %q", path, out.Text, err, want)
		}
	}
	if n := asked.Load(); n != 2+1+1+1+1+6 {
		t.Errorf("the first server was asked %d times", n)
	}
}

// TestRefused: without an entry under allow nothing local is reached.
func TestRefused(t *testing.T) {
	var asked atomic.Int64
	url := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	_, port, _ := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
	t.Setenv("HTTP_PROXY", url) // a proxy would be asked instead
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]"} {
		out, err := call(t, toolhttp.Spec{Name: "api", URL: "http://" + host + ":" + port}, `{}`)
		if err != nil || !out.Error || !strings.Contains(out.Text, "only if its configuration names it") {
			t.Errorf("%s: got %q, %v", host, out.Text, err)
		}
	}
	if asked.Load() != 0 {
		t.Error("the server was asked")
	}
}

func FuzzTarget(f *testing.F) {
	for _, s := range []string{"/{a}", "/x/{a}/y?q={a}&r=1", "?{a}", "/{a}{a}", "/{{"} {
		f.Add(s, "../x")
		f.Add(s, "é/?#")
	}
	f.Fuzz(func(t *testing.T, path, value string) {
		one, err := toolhttp.New(toolhttp.Spec{Name: "api", URL: "http://a.invalid/base" + path, Timeout: time.Second})
		if err != nil {
			return
		}
		args, err := stint.Marshal(map[string]string{"a": value})
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nothing is sent
		if out, err := one.Caller.Call(ctx, tool.Call{Args: args}); err != nil && known(err) == "open" {
			t.Errorf("%q with %q: %+v, %v", path, value, out, err)
		}
	})
}

func Example() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "you asked for ", r.RequestURI)
	}))
	defer srv.Close()
	issue, err := toolhttp.New(toolhttp.Spec{
		Name: "issue", Description: "Read an issue.", URL: srv.URL + "/issues/{id}?lang={lang}",
		Schema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"},"lang":{"type":"string"}},"required":["id"]}`),
		Allow:  []string{"127.0.0.1"}, // a private address is refused otherwise
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := issue.Caller.Call(context.Background(), tool.Call{Args: json.RawMessage(`{"id":9007199254740993}`)})
	fmt.Println(out.Text, err)
	// Output: you asked for /issues/9007199254740993 <nil>
}
